package text

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// row is a row as it was given to a data set.
type row struct {
	Text    string
	Label   string
	HeldOut bool
}

// rowsOf reads a table, and decodes its rows.
func rowsOf(t *testing.T, table Table) (in dataset.DenseInput, rows []row) {
	t.Helper()
	in, err := table.Input("set")
	if err != nil {
		t.Fatal(err)
	}
	tokenizer := read(t, in.Tokenizer)
	err = in.Each(func(r dataset.DenseRow) error {
		tokens := make([]int32, len(r.Values))
		for i, v := range r.Values {
			tokens[i] = int32(v)
		}
		rows = append(rows, row{tokenizer.Decode(tokens), in.ClassNames[r.Label], r.HeldOut})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return in, rows
}

const reviews = "id,review,stars\n1,a good film,10\n2,\"bad, and long\",9\n3,,9\n4,no stars,\n5,good,10\n"

// Rows of CSV and of JSON lines have the texts and classes of the file; rows without one of them are left out and
// counted, and classes that are numbers are in their order.
func TestRowsHaveTheTextsOfTheTable(t *testing.T) {
	lines := `{"review":"a good film","stars":10}` + "\n\n" + `{"review":"bad, and long","stars":"9","id":2}` + "\n" +
		`{"review":null,"stars":9}` + "\n" + `{"review":"no stars","stars":null}` + "\n" + `{"review":"good","stars":10}`
	for name, source := range map[string]dataset.Source{
		"csv":  dataset.TextSource("reviews.csv", "\ufeff"+reviews),
		"json": dataset.TextSource("reviews.jsonl", lines),
	} {
		t.Run(name, func(t *testing.T) {
			test := source
			in, rows := rowsOf(t, Table{
				Source: source, Test: &test, Text: "review", Label: "stars", Vocabulary: 300, Positions: 20,
			})
			want := []row{{"a good film", "10", false}, {"bad, and long", "9", false}, {"good", "10", false}}
			for _, r := range slices.Clone(want) {
				r.HeldOut = true
				want = append(want, r)
			}
			if diff := cmp.Diff(want, rows); diff != "" {
				t.Error(diff)
			}
			if !slices.Equal(in.ClassNames, []string{"9", "10"}) || !slices.Equal(in.Shape, []int{1, 1, 20}) {
				t.Errorf("classes %v, shape %v", in.ClassNames, in.Shape)
			}
			if got := in.Understood.Passed; len(got) != 1 || got[0] != "1 row without review and 1 without stars" {
				t.Errorf("left out: %q", got)
			}
		})
	}
}

// Rows that are left out are counted among the rows to learn from, whatever the held-out rows are.
func TestLeftOutRowsAreThoseToLearnFrom(t *testing.T) {
	test := dataset.TextSource("test.csv", "review,stars\ngood,10\n")
	in, _ := rowsOf(t, Table{
		Source: dataset.TextSource("r.csv", reviews), Test: &test, Text: "review", Label: "stars", Vocabulary: 300,
		Positions: 20,
	})
	if got := in.Understood.Passed; len(got) != 1 || got[0] != "1 row without review and 1 without stars" {
		t.Errorf("left out: %q", got)
	}
}

// A text that has too many tokens keeps the first ones.
func TestLongTextsAreCutOff(t *testing.T) {
	in, rows := rowsOf(t, Table{
		Source: dataset.TextSource("t.csv", "x,y\nabcdef,1\nuvw,2\n"), Text: "x", Label: "y", Vocabulary: 258, Positions: 4,
	})
	if got := in.Understood.Notes; len(got) != 1 || !strings.HasPrefix(got[0], "1 text has more than 4 tokens") {
		t.Errorf("notes: %q", got)
	}
	if diff := cmp.Diff([]row{{"abcd", "1", false}, {"uvw", "2", false}}, rows); diff != "" {
		t.Error(diff)
	}
}

// All faults of a file are reported at once, with their lines.
func TestFaultsOfATableHaveTheirLines(t *testing.T) {
	_, err := Table{
		Source: dataset.TextSource("t.jsonl", "{\"x\":\"a\",\"y\":1}\n[]\n{\"x\":7,\"y\":1}\n{\"x\":\"b\"}\n"),
		Text:   "x", Label: "y", Vocabulary: 300, Positions: 8,
	}.Input("set")
	var faults *disdel.Faults
	if !errors.As(err, &faults) || len(faults.Faults) != 3 {
		t.Fatal(err)
	}
	for i, want := range []int{2, 3, 4} {
		if got := faults.Faults[i]; got.Line != want {
			t.Errorf("fault %d is %+v, not of line %d", i, got, want)
		}
	}
	_, err = Table{
		Source: dataset.TextSource("t.csv", "x,y\na,1\nb\nc,2\n\"d\n"), Text: "x", Label: "y", Vocabulary: 300, Positions: 8,
	}.Input("set")
	if !errors.As(err, &faults) || len(faults.Faults) != 2 || faults.Faults[0].Line != 3 || faults.Faults[1].Line != 5 {
		t.Error(err)
	}
}

// What cannot be a data set of texts is refused with the reason.
func TestUnusableTablesAreRefused(t *testing.T) {
	source := dataset.TextSource("r.csv", reviews)
	padless := read(t, fixtures(t).Tokenizers["pieces"].File)
	padless.added = newAddedTokens(nil, nil)
	other := dataset.TextSource("o.csv", "review,stars\nx,8\n")
	for want, table := range map[string]Table{
		"id, review, stars":  {Source: source, Text: "text", Label: "stars", Vocabulary: 300, Positions: 8},
		"rows of 0 tokens":   {Source: source, Text: "review", Label: "stars", Vocabulary: 300},
		"special token":      {Source: source, Text: "review", Label: "stars", Tokenizer: padless, Positions: 8},
		"fewer than":         {Source: source, Text: "review", Label: "stars", Vocabulary: 100, Positions: 8},
		"all texts have the": {Source: other, Text: "review", Label: "stars", Vocabulary: 300, Positions: 8},
		`class "8"`:          {Source: source, Test: &other, Text: "review", Label: "stars", Vocabulary: 300, Positions: 8},
	} {
		_, err := table.Input("set")
		if disdel.KindOf(err) != disdel.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// The tokenizer is kept with its data set, belongs to it, and is refused when somebody changed it.
func TestTheTokenizerIsKept(t *testing.T) {
	dir := t.TempDir()
	s, err := dataset.OpenStore(t.Context(), "file://"+dir)
	if err != nil {
		t.Fatal(err)
	}
	in, _ := rowsOf(t, Table{
		Source: dataset.TextSource("r.csv", reviews), Text: "review", Label: "stars", Vocabulary: 300, Positions: 8,
	})
	m, err := s.AddDense(t.Context(), in, false)
	if err != nil {
		t.Fatal(err)
	}
	if file, err := s.Tokenizer(t.Context(), &m); err != nil || string(file) != string(in.Tokenizer) {
		t.Errorf("%d bytes, %v", len(file), err)
	}
	if got := m.Info(disdel.Split{Train: 0.5}).Tokenizer; got != m.Tokenizer || got == "" {
		t.Errorf("a job knows the tokenizer %q, not %q", got, m.Tokenizer)
	}
	changed := m
	changed.Tokenizer = "sha256:00"
	if _, err := s.Tokenizer(t.Context(), &changed); disdel.KindOf(err) != disdel.Corrupt {
		t.Errorf("another tokenizer: %v", err)
	}
	if gone, err := s.Remove(t.Context(), "set"); err != nil || gone.Files != 4 {
		t.Errorf("%+v, %v: a manifest, its checksum, a chunk and the tokenizer", gone, err)
	}
	if _, err := s.Tokenizer(t.Context(), &m); disdel.KindOf(err) != disdel.NotFound {
		t.Errorf("after removal: %v", err)
	}
}

// Tables may have tabs and no header, as many collections of texts do: columns have numbers then. A quote within a text
// with tabs is a quote.
func TestTablesOfTextsMayHaveTabsAndNoHeader(t *testing.T) {
	table := Table{
		Source: dataset.TextSource("sms.tsv", "ham\tgo \"there\" now\nspam\twin, win\nham\tok\n"), Text: "2", Label: "1",
		Separator: '\t', Headless: true, Vocabulary: 300, Positions: 20,
	}
	in, rows := rowsOf(t, table)
	want := []row{{"go \"there\" now", "ham", false}, {"win, win", "spam", false}, {"ok", "ham", false}}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Error(diff)
	}
	if got := in.Understood.Kind; got != "CSV without a header; the text is 2; the label is 1" {
		t.Error(got)
	}
	table.Text = "3"
	if _, err := table.Input("set"); err == nil || !strings.Contains(err.Error(), "columns have the numbers 1 to 2") {
		t.Error(err)
	}
}
