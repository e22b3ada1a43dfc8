package sparse_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/dataset/sparse"
)

// read is all rows of an input.
func read(t testing.TB, in dataset.SparseInput, err error) (out []dataset.SparseRow) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if err := in.Each(func(r dataset.SparseRow) error {
		r.Index, r.Value = slices.Clone(r.Index), slices.Clone(r.Value)
		out = append(out, r)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

func row(target float32, index []int32, value ...float32) dataset.SparseRow {
	return dataset.SparseRow{Target: target, Index: index, Value: value}
}

func TestLibsvmFiles(t *testing.T) {
	for name, c := range map[string]struct {
		text             string
		columns, classes int
		ones             bool
		want             []dataset.SparseRow
	}{
		"two classes": {
			"+1 1:0.5 3:-2 # a comment\n-1 2:1e-3\n\n# a line of it\n1 qid:4 3:7\r\n", 3, 2, false,
			[]dataset.SparseRow{row(1, []int32{0, 2}, 0.5, -2), row(0, []int32{1}, 0.001), row(1, []int32{2}, 7)},
		},
		"from column 0": {
			"0 0:2 5:1\n1 1:3\n", 6, 2, false,
			[]dataset.SparseRow{row(0, []int32{0, 5}, 2, 1), row(1, []int32{1}, 3)},
		},
		"numbers": {
			"3.5 1:2\n-7 1:3\n0 1:1\n", 1, 1, false,
			[]dataset.SparseRow{row(3.5, []int32{0}, 2), row(-7, []int32{0}, 3), row(0, []int32{0}, 1)},
		},
		"ones": {
			"1 4:1 9:1\n2 1:1\n", 9, 2, true,
			[]dataset.SparseRow{row(0, []int32{3, 8}), row(1, []int32{0})},
		},
		"a row without entries": {"1\n2 1:2\n", 1, 2, false, []dataset.SparseRow{row(0, nil), row(1, []int32{0}, 2)}},
	} {
		in, err := sparse.Libsvm{Source: dataset.TextSource(name, c.text)}.Input("rows")
		got := read(t, in, err)
		if in.Columns != c.columns || in.Classes != c.classes || in.Ones != c.ones {
			t.Errorf("%s: %d columns, %d classes, ones %v", name, in.Columns, in.Classes, in.Ones)
		}
		for i := range got { // empty is empty
			if len(got[i].Index) == 0 {
				got[i].Index, got[i].Value = nil, nil
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestRatingsInMovieLensLayouts(t *testing.T) {
	want := []dataset.SparseRow{
		row(3, []int32{0, 3}), row(5, []int32{1, 3}), row(1.5, []int32{0, 4}), row(2, []int32{2, 5}),
	}
	for name, text := range map[string]string{
		"u.data":      "196\t242\t3\t881250949\n186\t242\t5\t891717742\n196\t51\t1.5\t1\n22\t377\t2\t878887116\n",
		"ratings.dat": "196::242::3::881250949\n186::242::5::1\n196::51::1.5::1\n22::377::2::1\n",
		"ratings.csv": "userId,movieId,rating,timestamp\n196,242,3.0,881250949\n186,242,5,1\n196,51,1.5,1\n22,377,2,1\n",
		"ml.inter": "user_id:token\titem_id:token\trating:float\ttimestamp:float\n196\t242\t3\t881250949\n186\t242\t5\t1\n" +
			"196\t51\t1.5\t1\n22\t377\t2\t1\n",
		"without times": "196;242;3\n186;242;5\n196;51;1.5\n22;377;2\n",
		"names":         "\"anna\",\"Heat\",3\n\"bob\",\"Heat\",5\n\"anna\",\"Alien\",1.5\n\"eve\",\"Big\",2\n",
	} {
		in, err := sparse.Ratings{Source: dataset.TextSource(name, text)}.Input("films")
		got := read(t, in, err)
		if diff := cmp.Diff(want, got); diff != "" || in.Users != 3 || in.Items != 3 || in.Columns != 6 || in.Classes != 1 {
			t.Errorf("%s: %d users, %d items: %s", name, in.Users, in.Items, diff)
		}
	}
}

const schema = `{"header": true, "hash": 1000, "missing": ["NA"], "fields": [
  {"name": "clicked", "kind": "target"}, {"name": "age", "kind": "number"}, {"name": "price", "kind": "number", "scale": "range"},
  {"name": "site", "kind": "category"}]}`

func TestCSVByASchema(t *testing.T) {
	s, err := sparse.ReadSchema(strings.NewReader(schema), "schema.json")
	if err != nil {
		t.Fatal(err)
	}
	text := "id,site,price,age,clicked\n1,a.org,10,20,no\n2,b.org,NA,40,yes\n3,,30,,no\n4,a.org,20,30,yes\n"
	in, err := sparse.CSV{Source: dataset.TextSource("clicks.csv", text), Schema: s}.Input("clicks")
	got := read(t, in, err)
	// Ages 20, 40, 30 have mean 30 and deviation sqrt(200/3); prices go from 10 to 30. Columns 2 and 3 say that age or
	// price is missing, and sites are hashed behind them.
	a, b, none := int32(4+sparse.Hashed("site", "a.org", 1000)), int32(4+sparse.Hashed("site", "b.org", 1000)),
		int32(4+sparse.Hashed("site", "", 1000))
	dev := float32(10 / math.Sqrt(200.0/3))
	want := []dataset.SparseRow{
		row(0, []int32{0, a}, -dev, 1), row(1, []int32{0, 3, b}, dev, 1, 1), row(0, []int32{2, 1, none}, 1, 1, 1),
		row(1, []int32{1, a}, 0.5, 1),
	}
	if diff := cmp.Diff(want, got); diff != "" || in.Columns != 1004 || in.Classes != 2 ||
		!slices.Equal(in.ClassNames, []string{"no", "yes"}) {
		t.Errorf("%d columns, classes %v: %s", in.Columns, in.ClassNames, diff)
	}
	if a == b {
		t.Error("the sites are hashed to one column: the test does not see that they are two")
	}
}

// Criteo's files have no header, and fields alike: 13 numbers, 26 categories.
func TestFieldsAlikeAreCounted(t *testing.T) {
	s, err := sparse.ReadSchema(strings.NewReader(`{"separator": "\t", "hash": 50, "fields": [{"kind": "target"},
		{"name": "i", "kind": "number", "scale": "log", "count": 2}, {"kind": "skip"}, {"name": "c", "kind": "category", "count": 3}]}`),
		"schema.json")
	if err != nil {
		t.Fatal(err)
	}
	text := "0\t1\t\tskipped\tx\ty\tx\n1\t\t3\tskipped\t\ty\tz\n0\t4\t5\tskipped\tx\ty\tx\n"
	in, err := sparse.CSV{Source: dataset.TextSource("day.tsv", text), Schema: s}.Input("clicks")
	got := read(t, in, err)
	if in.Columns != 54 || in.Classes != 2 || len(got) != 3 {
		t.Fatalf("%d columns, %d classes, %d rows", in.Columns, in.Classes, len(got))
	}
	sum := func(r dataset.SparseRow) (n float32) {
		for k, c := range r.Index {
			if c >= 4 {
				n += r.Value[k]
			}
		}
		return n
	}
	for i, r := range got {
		if sum(r) != 3 { // whether or not two of them share a column
			t.Errorf("row %d has categories that come to %v: %v", i, sum(r), r)
		}
	}
	if !slices.Equal(got[0].Index[2:], got[2].Index[2:]) {
		t.Errorf("the same categories are %v and %v", got[0], got[2])
	}
}

// What cannot be read is refused with its line, and never guessed.
func TestFaultsNameTheirLine(t *testing.T) {
	libsvm := func(text string) error {
		in, err := sparse.Libsvm{Source: dataset.TextSource("f", text)}.Input("rows")
		if err == nil {
			err = in.Each(func(dataset.SparseRow) error { return nil })
		}
		return err
	}
	ratings := func(text string) error {
		_, err := sparse.Ratings{Source: dataset.TextSource("f", text)}.Input("rows")
		return err
	}
	csv := func(text string) error {
		s, err := sparse.ReadSchema(strings.NewReader(schema), "schema.json")
		if err != nil {
			return err
		}
		_, err = sparse.CSV{Source: dataset.TextSource("f", text), Schema: s}.Input("rows")
		return err
	}
	headless := func(text string) error {
		fields := `{"fields": [{"name": "x", "kind": "number"}, {"name": "y", "kind": "target"}]}`
		s, err := sparse.ReadSchema(strings.NewReader(fields), "schema.json")
		if err != nil {
			return err
		}
		_, err = sparse.CSV{Source: dataset.TextSource("f", text), Schema: s}.Input("rows")
		return err
	}
	head := "clicked,age,price,site\n"
	for want, err := range map[string]error{
		"line 2: \"3\" is no COLUMN:VALUE":                   libsvm("1 1:2\n1 3\n"),
		"line 1: \"x\" is no column":                         libsvm("1 x:2\n"),
		"line 1: \"-4\" is no column":                        libsvm("1 -4:2\n"),
		"line 1: \"2147483647\" is no column":                libsvm("1 2147483647:2\n"),
		"line 2: column 3 comes after 3, and columns ascend": libsvm("1 1:2\n1 3:1 3:1\n"),
		"line 1: \"NaN\" is no value":                        libsvm("1 1:NaN\n"),
		"line 1: \"1e39\" is no value":                       libsvm("1 1:1e39\n"),
		"line 3: the target \"x\" is no number":              libsvm("1 1:2\n2 1:2\nx 1:2\n"),
		"line 2: the rating \"good\" is no number":           ratings("1,2,3\n1,2,good\n"),
		"line 2: \"1,2\" is no user, item and rating":        ratings("1,2,3\n1,2\n"),
		"line 3: the age \"old\" is no number":               csv(head + "1,2,3,a\n1,old,3,a\n"),
		"add \"header\": true to the schema":                 headless("x,y\n1,2\n"),
		"line 2: its target is missing":                      csv(head + "NA,2,3,a\n"),
		"line 1: the header has no field \"price\"":          csv("clicked,age,site\n1,2,a\n"),
		"line 3: it has 2 fields, and the header 4":          csv(head + "1,2,3,a\n1,2\n"),
	} {
		if !errors.Is(err, disdel.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for want, text := range map[string]string{
		"a schema is JSON":                   `{"columns": 3}`,
		"it has 0 targets":                   `{"fields": [{"kind": "number"}]}`,
		"field 1 is a \"colour\"":            `{"fields": [{"kind": "colour"}]}`,
		"categories are hashed to 0 columns": `{"fields": [{"kind": "target"}, {"kind": "category"}]}`,
		"field 2 has the scale \"big\"":      `{"fields": [{"kind": "target"}, {"kind": "number", "scale": "big"}]}`,
		"there are two fields \"a\"":         `{"fields": [{"kind": "target", "name": "a"}, {"kind": "skip", "name": "a"}]}`,
		"a field under a header has a name":  `{"header": true, "fields": [{"kind": "target"}]}`,
		"the separator is \"ab\"":            `{"separator": "ab", "fields": [{"kind": "target"}]}`,
	} {
		_, err := sparse.ReadSchema(strings.NewReader(text), "schema.json")
		if !errors.Is(err, disdel.Invalid) || !strings.Contains(fmt.Sprint(err, disdel.AsError(err).Hint), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	all := sparse.Ratings{Source: dataset.TextSource("f", "1,2,3\n"), HeldOut: sparse.HeldOut{Share: 1}}
	if _, err := all.Input("rows"); !errors.Is(err, disdel.Invalid) {
		t.Errorf("all rows are held out: %v", err)
	}
}

// Files are read packed or not.
func TestPackedFilesAreRead(t *testing.T) {
	dir, text := t.TempDir(), "1,2,3\n2,2,4\n"
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write([]byte(text)); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"plain": []byte(text), "packed.gz": packed.Bytes()} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		in, err := sparse.Ratings{Source: dataset.FileSource(file)}.Input("films")
		if got := read(t, in, err); len(got) != 2 {
			t.Errorf("%s: %v", name, got)
		}
	}
	for _, name := range []string{filepath.Join(dir, "none"), dir} {
		if _, err := (sparse.Ratings{Source: dataset.FileSource(name)}).Input("films"); !errors.Is(err, disdel.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// By row about the share is held out; by user each user's share is, and nobody's only rating.
func TestSharesAreHeldOut(t *testing.T) {
	var text strings.Builder
	for u := range 50 {
		for i := range 1 + u {
			fmt.Fprintf(&text, "%d,%d,3\n", u, i)
		}
	}
	for _, seed := range []int64{1, 2} {
		byUser := sparse.HeldOut{Share: 0.2, ByUser: true, Seed: seed}
		in, err := sparse.Ratings{Source: dataset.TextSource("f", text.String()), HeldOut: byUser}.Input("films")
		all, held := map[int32]int{}, map[int32]int{}
		for _, r := range read(t, in, err) {
			all[r.Index[0]]++
			if r.HeldOut {
				held[r.Index[0]]++
			}
		}
		for u, n := range all {
			if want := 0.2 * float64(n-1); math.Abs(float64(held[u])-want) > 1 {
				t.Errorf("user %d: %d of %d ratings are held out", u, held[u], n)
			}
		}
		in, err = sparse.Ratings{
			Source: dataset.TextSource("f", text.String()), HeldOut: sparse.HeldOut{Share: 0.2, Seed: seed},
		}.Input("films")
		rows, n := read(t, in, err), 0
		for _, r := range rows {
			if r.HeldOut {
				n++
			}
		}
		if share := float64(n) / float64(len(rows)); math.Abs(share-0.2) > 0.05 {
			t.Errorf("%v of the rows are held out", share)
		}
	}
}

// same compares rows, of which there are too many for a comparison that would print them.
func same(a, b []dataset.SparseRow) bool {
	return slices.EqualFunc(a, b, func(x, y dataset.SparseRow) bool {
		return x.Target == y.Target && x.HeldOut == y.HeldOut && slices.Equal(x.Index, y.Index) && slices.Equal(x.Value, y.Value)
	})
}

// Made ratings are those that are asked for: as many, no pair twice, spread as MovieLens', and the same by the same
// seed.
func TestMadeRatings(t *testing.T) {
	users, items, n, _ := sparse.MovieLensSize("ml-100k")
	m := sparse.MadeRatings{Users: users, Items: items, Ratings: n, Seed: 5}
	in, err := m.Input("films")
	rows := read(t, in, err)
	if len(rows) != n {
		t.Fatalf("%d ratings, want %d", len(rows), n)
	}
	type pair struct{ user, item int32 }
	seen, byItem, byUser := map[pair]bool{}, make([]int, items), make([]int, users)
	mean, squares := 0.0, 0.0
	for _, r := range rows {
		p := pair{r.Index[0], r.Index[1]}
		if seen[p] || r.Target < 1 || r.Target > 5 || r.Target != float32(int(r.Target)) {
			t.Fatalf("%v rates twice, or with %v", p, r.Target)
		}
		seen[p] = true
		byUser[p.user]++
		byItem[int(p.item)-users]++
		mean += float64(r.Target) / float64(n)
		squares += float64(r.Target*r.Target) / float64(n)
	}
	slices.Sort(byItem)
	slices.Sort(byUser)
	popular := 0
	for _, k := range byItem[items*9/10:] {
		popular += k
	}
	if dev := math.Sqrt(squares - mean*mean); math.Abs(mean-3.5) > 0.15 || math.Abs(dev-1.1) > 0.12 || byUser[0] < 20 ||
		popular < n/4 || byUser[users-1] < 5*byUser[users/2] {
		t.Errorf("mean %.3f, deviation %.3f, a user's ratings from %d by %d to %d, %d of the tenth of the items", mean, dev, byUser[0],
			byUser[users/2], byUser[users-1], popular)
	}
	if bayes := in.Bayes(); bayes < 0.6 || bayes > 0.9 {
		t.Errorf("the best loss is %v", bayes)
	}
	if !same(rows, read(t, in, nil)) {
		t.Error("a second reading gives other rows")
	}
	m.Seed++
	other, err := m.Input("films")
	if same(rows, read(t, other, err)) {
		t.Error("another seed gives the same rows")
	}
	for _, m := range []sparse.MadeRatings{{}, {Users: 5, Items: 5, Ratings: 20}, {Users: 5, Items: 50, Ratings: 4}} {
		if _, err := m.Input("films"); !errors.Is(err, disdel.Invalid) {
			t.Errorf("%+v: %v", m, err)
		}
	}
}

// Made clicks are positive as often as is said, and their best loss is below that of guessing and above none.
func TestMadeClicks(t *testing.T) {
	in, err := sparse.MadeClicks{Rows: 20_000, Features: 10_000, Seed: 1}.Input("ads")
	rows := read(t, in, err)
	positives, entries := 0.0, 0
	for _, r := range rows {
		positives += float64(r.Target) / float64(len(rows))
		entries += len(r.Index)
		for _, c := range r.Index {
			if int(c) >= in.Columns {
				t.Fatalf("column %d of %d", c, in.Columns)
			}
		}
	}
	guess := (&disdel.SparseData{Mean: positives}).Guess(disdel.LossLogistic)
	if math.Abs(positives-0.256) > 0.02 || len(rows) != 20_000 || entries < 38*len(rows) || in.Columns != 10_026 {
		t.Errorf("%.3f are positive, %d entries in %d rows of %d columns", positives, entries, len(rows), in.Columns)
	}
	if bayes := in.Bayes(); bayes > guess-0.05 || bayes < 0.2 {
		t.Errorf("the best loss is %.4f, that of guessing %.4f", bayes, guess)
	}
	if !same(rows, read(t, in, nil)) {
		t.Error("a second reading gives other rows")
	}
}

// Readers take anything without a panic, and what they take they give in a form that is stored.
func FuzzReaders(f *testing.F) {
	f.Add("+1 1:0.5 3:-2 # a comment\n-1 2:1e-3\n")
	f.Add("userId,movieId,rating\n1,2,3\n")
	f.Add("1::2::3::4\n")
	f.Add("clicked,age,price,site\n1,2,3,a\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := sparse.ReadSchema(strings.NewReader(schema), "schema.json")
		if err != nil {
			t.Fatal(err)
		}
		from := dataset.TextSource("f", text)
		store, err := dataset.OpenStore(t.Context(), "mem://")
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		libsvm, err := sparse.Libsvm{Source: from}.Input("a")
		stored(t, store, libsvm, err)
		ratings, err := sparse.Ratings{Source: from}.Input("b")
		stored(t, store, ratings, err)
		csv, err := sparse.CSV{Source: from, Schema: s}.Input("c")
		stored(t, store, csv, err)
	})
}

func stored(t *testing.T, store *dataset.Store, in dataset.SparseInput, err error) {
	t.Helper()
	if err == nil {
		_, err = store.AddSparse(t.Context(), in, false)
	}
	if k := disdel.KindOf(err); err != nil && k != disdel.Invalid && k != disdel.Corrupt {
		t.Errorf("%s: %v", in.Name, err)
	}
}

func ExampleRatings() {
	text := dataset.TextSource("ratings.csv", "user,film,rating\nanna,Heat,5\nbob,Heat,2\n")
	in, err := sparse.Ratings{Source: text}.Input("films")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(in.Users, "users,", in.Items, "item")
	err = in.Each(func(r dataset.SparseRow) error {
		fmt.Println(r.Index, r.Target)
		return nil
	})
	// Output:
	// 2 users, 1 item
	// [0 2] 5
	// [1 2] 2
	_ = err
}

func ExampleLibsvm() {
	in, err := sparse.Libsvm{Source: dataset.TextSource("a.svm", "+1 1:0.5 4:2\n-1 2:1\n")}.Input("rows")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(in.Columns, "columns, classes", in.ClassNames)
	// Output: 4 columns, classes [-1 +1]
}

func ExampleMadeClicks() {
	in, err := sparse.MadeClicks{Rows: 3, Features: 1000, Seed: 1}.Input("ads")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(in.Columns, "columns of which 13 are numbers, 13 say that one is missing, and 1000 are hashed")
	// Output: 1026 columns of which 13 are numbers, 13 say that one is missing, and 1000 are hashed
}
