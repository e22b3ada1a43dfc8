package dense

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// kept is a row as it goes into a data set.
type kept struct {
	Bytes   []byte
	Values  []float32
	Label   int32
	HeldOut bool
}

// all reads the rows of an input, twice, and that they are the same both times.
func all(t *testing.T, in dataset.DenseInput) []kept {
	t.Helper()
	var runs [2][]kept
	for i := range runs {
		err := in.Each(func(r dataset.DenseRow) error {
			runs[i] = append(runs[i], kept{slices.Clone(r.Bytes), slices.Clone(r.Values), r.Label, r.HeldOut})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(runs[0], runs[1]); diff != "" {
		t.Fatalf("the rows are other ones the second time: %s", diff)
	}
	return runs[0]
}

const people = `name,age,sex,fare,survived
"Brown, ""Molly""",44,female,10,yes
Ann,,female,30,yes
Bob,20,male,20,no
Tom,32,male,20,no
`

// What is in a table is found out: the header, numbers with their means, categories, missing values, classes.
func TestATableIsUnderstood(t *testing.T) {
	in, err := CSV{
		Source: dataset.TextSource("people.csv", people), Skip: []string{"name"}, Label: "survived",
	}.Input("people")
	if err != nil {
		t.Fatal(err)
	}
	u := in.Understood
	want := dataset.Interpretation{
		Kind: "CSV, separated by commas, with a header; the label is survived", Rows: 4,
		Values:  "numbers less their column's mean, over its deviation",
		Classes: []dataset.ClassRows{{Name: "no", Rows: 2}, {Name: "yes", Rows: 2}},
		Example: dataset.Example{Place: "line 2", Class: "yes", Values: []string{"age 44", "sex female", "fare 10"}},
		Passed:  []string{"name: as was asked for"},
		Columns: []dataset.ColumnReading{
			{Name: "name", Kind: "skip", Example: `Brown, "Molly"`, Done: "left out: as was asked for"},
			{
				Name: "age", Kind: "number", Missing: 1, Distinct: 3, Example: "44",
				Done: "minus 32, divided by 9.798; a missing one becomes the mean",
			},
			{
				Name: "sex", Kind: "category", Distinct: 2, Example: "female",
				Done: "one value of 0 or 1 for each of 2 categories",
			},
			{Name: "fare", Kind: "number", Distinct: 3, Example: "10", Done: "minus 20, divided by 7.071"},
			{Name: "survived", Kind: "label", Distinct: 2, Example: "yes", Done: "the class to predict, one of 2"},
		},
	}
	if diff := cmp.Diff(want, u); diff != "" {
		t.Error(diff)
	}
	if !slices.Equal(in.Shape, []int{1, 1, 4}) || in.Classes != 2 || in.Bytes {
		t.Errorf("shape %v, %d classes", in.Shape, in.Classes)
	}
	// ages 44, 20, 32: mean 32, deviation sqrt((144+144+0)/3) = 9.798; fares 10, 30, 20, 20: mean 20, deviation 7.071
	age, fare := float32(12/math.Sqrt(96)), float32(10/math.Sqrt(50))
	rows := []kept{
		{Values: []float32{age, 1, 0, -fare}, Label: 1},
		{Values: []float32{0, 1, 0, fare}, Label: 1}, // a missing age is the mean
		{Values: []float32{-age, 0, 1, 0}},
		{Values: []float32{0, 0, 1, 0}},
	}
	if diff := cmp.Diff(rows, all(t, in)); diff != "" {
		t.Error(diff)
	}
	if c := in.Columns[0]; c.Name != "age" || c.Missing != 1 || c.Mean != 32 || c.Low != 20 || c.High != 44 {
		t.Errorf("%+v", c)
	}
}

// Labels that are large integers keep their digits: codes of seven digits have no exponent, and ids that differ in
// their last digit are different classes.
func TestLabelsKeepTheirDigits(t *testing.T) {
	var text strings.Builder
	text.WriteString("a,label\n")
	names := []string{"1234567", "9007199254740992", "9007199254740993"}
	for i := range 30 {
		fmt.Fprintf(&text, "%d,%s\n", i, names[i%3])
	}
	in, err := CSV{Source: dataset.TextSource("codes.csv", text.String()), LabelClasses: true}.Input("codes")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(in.ClassNames, names) {
		t.Errorf("the classes are %q, not %q", in.ClassNames, names)
	}
	if got := LabelText(" 1234567.0"); got != names[0] {
		t.Errorf("the label is %q", got)
	}
}

// Files are written in many ways, and what is not said is told by what is in them.
func TestTablesAreWrittenInManyWays(t *testing.T) {
	for name, c := range map[string]struct {
		csv   CSV
		shape []int
		names []string
		first kept
	}{
		"no header, label last, numbers from 0": {
			CSV{Source: dataset.TextSource("a", "0,10,0\n2,30,1\n"), Scale: Range},
			[]int{1, 1, 2},
			nil,
			kept{Values: []float32{0, 0}},
		},
		"semicolons and a label by its usual name": {
			CSV{Source: dataset.TextSource("a", "Label;a;b\nx;1;2\ny;3;4\n"), Scale: AsIs},
			[]int{1, 1, 2},
			[]string{"x", "y"},
			kept{Values: []float32{1, 2}},
		},
		"tabs, and nothing between two of them": {
			CSV{Source: dataset.TextSource("a", "a\tb\ty\n5\t\t1\n3\t7\t-1\n"), Scale: AsIs},
			[]int{1, 1, 2},
			[]string{"-1", "1"},
			kept{Values: []float32{5, 7}, Label: 1},
		},
		"a byte order mark, spaces, and the ends of lines of another system": {
			CSV{Source: dataset.TextSource("a", "\xef\xbb\xbfa, y\r\n1 , p\r\n2, q\r\n"), Label: "y", Scale: AsIs},
			[]int{1, 1, 1},
			[]string{"p", "q"},
			kept{Values: []float32{1}},
		},
		"spaces": {
			CSV{Source: dataset.TextSource("a", "a b y\n5 1.5 p\n3 7 q\n"), Scale: AsIs},
			[]int{1, 1, 2},
			[]string{"p", "q"},
			kept{Values: []float32{5, 1.5}},
		},
		"runs of spaces, at the ends of lines too": {
			CSV{Source: dataset.TextSource("a", "  a   b y \r\n 5  1.5 p\r\n10 27.5 q"), Scale: AsIs},
			[]int{1, 1, 2},
			[]string{"p", "q"},
			kept{Values: []float32{5, 1.5}},
		},
		"tabs and spaces, and names in quotes": {
			CSV{
				Source: dataset.TextSource("a", "town,\ta  b\ty\n\"New  York\" \t 5 1.5\tp\nRome 3\t7  q\n"),
				Scale:  AsIs, Skip: []string{"town,"},
			},
			[]int{1, 1, 2},
			[]string{"p", "q"},
			kept{Values: []float32{5, 1.5}},
		},
		"blanks that the user names": {
			CSV{Source: dataset.TextSource("a", "a,b  c\ty\n5 1.5 p\n3   7 q\n"), Separator: Blanks, Scale: AsIs},
			[]int{1, 1, 2},
			[]string{"p", "q"},
			kept{Values: []float32{5, 1.5}},
		},
		"a name with a line break": {
			CSV{Source: dataset.TextSource("a", "\"two\nlines\";b;y\n1;2;p\n3;4;q\n"), Scale: AsIs},
			[]int{1, 1, 2},
			[]string{"p", "q"},
			kept{Values: []float32{1, 2}},
		},
		"names with commas between bars, and an empty line": {
			CSV{Source: dataset.TextSource("a", "a,1|b,2|y\r\n1|2|p\r\n\r\n3|4|q\r\n"), Scale: AsIs},
			[]int{1, 1, 2},
			[]string{"p", "q"},
			kept{Values: []float32{1, 2}},
		},
		"a header with a name twice, and an empty one": {
			CSV{Source: dataset.TextSource("a", "a,a,,y\n1,2,9,p\n3,4,9,q\n"), Skip: []string{"a", "column 3"}, Scale: AsIs},
			[]int{1, 1, 1},
			[]string{"p", "q"},
			kept{Values: []float32{2}},
		},
		"decimals with a comma, thousands with points": {
			CSV{Source: dataset.TextSource("a", "a;b;y\n1,5;1.234;p\n7;-2.000,5;q\n"), Scale: AsIs, Decimal: ","},
			[]int{1, 1, 2},
			[]string{"p", "q"},
			kept{Values: []float32{1.5, 1234}},
		},
		"thousands in quotes": {
			CSV{Source: dataset.TextSource("a", "a,y\n\"1,234.5\",p\n7.25,q\n"), Scale: AsIs, Decimal: "."},
			[]int{1, 1, 1},
			[]string{"p", "q"},
			kept{Values: []float32{1234.5}},
		},
		"a line in a field": {
			CSV{Source: dataset.TextSource("a", "a,note,y\n1,\"two\nlines\",0\n2,\"one\",1\n"), Scale: AsIs},
			[]int{1, 1, 3},
			nil,
			kept{Values: []float32{1, 0, 1}},
		},
		"texts alone under names": {
			CSV{Source: dataset.TextSource("a", "color,size,y\nred,big,no\nblue,big,yes\nred,small,yes\n")},
			[]int{1, 1, 4},
			[]string{"no", "yes"},
			kept{Values: []float32{0, 1, 1, 0}},
		},
		"pixels": {
			CSV{Source: dataset.TextSource("a", "y,p1,p2,p3,p4\n3,0,255,7,1\n4,1,2,3,4\n"), Shape: []int{1, 2, 2}},
			[]int{1, 2, 2},
			[]string{"3", "4"},
			kept{Bytes: []byte{0, 255, 7, 1}},
		},
		"classes in the order of their numbers": {
			CSV{Source: dataset.TextSource("a", "1,10\n2,9\n3,2\n4,10\n"), Scale: AsIs},
			[]int{1, 1, 1},
			[]string{"2", "9", "10"},
			kept{Values: []float32{1}, Label: 2},
		},
		"numbers of a label in two ways": {
			CSV{Source: dataset.TextSource("a", "1,1.0\n2,0\n3,1\n"), Scale: AsIs},
			[]int{1, 1, 1},
			nil,
			kept{Values: []float32{1}, Label: 1},
		},
	} {
		in, err := c.csv.Input("a")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !slices.Equal(in.Shape, c.shape) || !slices.Equal(in.ClassNames, c.names) {
			t.Errorf("%s: shape %v, classes %q (%s)", name, in.Shape, in.ClassNames, in.Understood.Kind)
		}
		if diff := cmp.Diff(c.first, all(t, in)[0], cmp.Comparer(func(a, b []float32) bool { return slices.Equal(a, b) }),
			cmp.Comparer(func(a, b []byte) bool { return slices.Equal(a, b) })); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// told is all faults of an error, a line each.
func told(err error) string {
	var wrong *disdel.Faults
	if errors.As(err, &wrong) {
		return wrong.Error()
	}
	return fmt.Sprint(err)
}

// Where a table is wrong, all of it is said at once, with lines.
func TestFaultsOfATable(t *testing.T) {
	many := func(n int) string {
		var b strings.Builder
		b.WriteString("a,b,y\n")
		for i := range n {
			fmt.Fprintf(&b, "%d,%d,%d\n", i, 2*i, i%2)
		}
		return b.String()
	}
	var names strings.Builder
	names.WriteString("id,a,y\n")
	for i := range 100 {
		names.WriteString(fmt.Sprintf("person%d,%d,%d\n", i, i, i%2))
	}
	for name, c := range map[string]struct {
		text string
		csv  CSV
		want []string
	}{
		"several": {
			many(50) + "1,oops,0\n1,2\n3,4,\n5,6,1,7\n",
			CSV{},
			[]string{
				`f:52:2: b: "oops" is no number`, "f:53:1: columns: it has 2, and the first line 3",
				"f:55:1: columns: it has 4, and the first line 3",
			},
		},
		"names of rows": {
			names.String(),
			CSV{},
			[]string{`f:2:1: id: it has more than 64 different texts such as "person0", as names`, "leave it out (--skip id)"},
		},
		"one class":             {"a,y\n1,x\n2,x\n", CSV{}, []string{`the label: it is "x" in all rows`, "--label COLUMN"}},
		"no rows":               {"a,y\n", CSV{Header: HeaderYes}, []string{"f: rows: there are none"}},
		"a quote in the middle": {"a,y\n1,x\n2\"3,y\n", CSV{}, []string{"f:3:", "quotes"}},
		"another shape": {
			"a,b,y\n1,2,0\n3,4,1\n",
			CSV{Shape: []int{1, 2, 2}},
			[]string{"a row has 2 values, and shape [1 2 2] needs 4"},
		},
		"no such label": {"a,b,y\n1,2,0\n3,4,1\n", CSV{Label: "z"}, []string{`there is no column "z"`}},
		"a Latin-1 name": {
			"a,gr\xf6\xdfe,y\n1,2,0\n3,4,1\n", CSV{}, []string{`f:1:2: columns: the name "gr\xf6\xdfe" is no text in UTF-8`},
		},
		"UTF-16":   {"\xff\xfea\x00", CSV{}, []string{"UTF-16"}},
		"a sheet":  {"PK\x03\x04\r\x14", CSV{}, []string{"a zip archive"}},
		"bytes":    {"\x01\x00\r", CSV{}, []string{"it is no text"}},
		"an array": {"\x93NUMPY\x01\x00", CSV{}, []string{"NumPy"}},
		"ARFF": {
			"% about\n\n@RELATION iris\n", CSV{}, []string{"it is an ARFF file"},
		},
		"LIBSVM":     {"# about\n1.0 3:2.5 \t 11:-5.2 # here\n2 1:1\n", CSV{}, []string{"it looks like LIBSVM"}},
		"one word":   {"a b\nc\n", CSV{}, []string{"line 1 has 2 fields, and line 2 has 1"}},
		"nothing":    {"", CSV{}, []string{"it is empty"}},
		"one column": {"1\n2\n", CSV{}, []string{"a single column"}},
	} {
		c.csv.Source = dataset.TextSource("f", c.text)
		_, err := c.csv.Input("a")
		got := told(err)
		if disdel.KindOf(err) != disdel.Invalid {
			t.Errorf("%s: %v", name, err)
		}
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in\n%s", name, want, got)
			}
		}
	}
}

// Columns that are numbers to people, and none to a program, are kept as categories, and that is said with the first
// texts that are no numbers. True categories, most of whose texts are no numbers, need no note.
func TestWhatIsAlmostANumberIsTold(t *testing.T) {
	const missing = "; if a text stands for no value: --missing TEXT; for numbers: --kind a=number"
	for rows, want := range map[string][]string{
		"1,5;a;0\n2,5;b;1\n3;a;0\n": {`a is kept as 3 categories and not as numbers: line 2 has "1,5"` +
			"; decimals have a point, and with --decimal , a comma"},
		"10%;a;0\n20 %;b;1\n": {
			`a is kept as 2 categories and not as numbers: line 2 has "10%"; a number has no percent sign`,
		},
		"1;a;0\n2;b;1\n3;a;0\noops;a;1\n": {
			`a is kept as 4 categories and not as numbers: line 5 has "oops"` + missing,
		},
		"1;a;0\nlow;b;1\n3;a;0\n4;a;1\nlow;a;0\n5;a;0\nhigh;a;0\n": {
			`a is kept as 6 categories and not as numbers: line 3 has "low", line 8 has "high"` + missing,
		},
		"1,5;a;0\n2;b;1\n3;a;0\nx;b;1\n": {
			`a is kept as 4 categories and not as numbers: line 2 has "1,5", line 5 has "x"` +
				"; decimals have a point, and with --decimal , a comma" + missing,
		},
		"1,5;a;0\nabout 2,5;b;1\n":            nil,
		"a,b;a;0\nc%;b;1\n":                   nil,
		"1;a;0\nB2;b;1\nC3;b;1\n":             nil,
		"1;a;0\n1;b;1\n1;b;1\n1;b;1\nx;b;1\n": nil,
	} {
		in, err := CSV{Source: dataset.TextSource("f", "a;b;y\n"+rows), Separator: ';'}.Input("a")
		if err != nil || !slices.Equal(in.Understood.Notes, want) {
			t.Errorf("%q: %q, %v", rows, in.Understood.Notes, err)
		}
	}
	chosen := CSV{
		Source: dataset.TextSource("f", "a,y\n1,0\n2,1\n3,0\nx,1\n"),
		Kinds:  map[string]dataset.ColumnKind{"a": dataset.ColumnCategory},
	}
	if in, err := chosen.Input("a"); err != nil || len(in.Understood.Notes) > 0 {
		t.Errorf("a category that was asked for: %q, %v", in.Understood.Notes, err)
	}
}

// A packed file that is damaged or ends early is an invalid file, as one is whose text is.
func TestDamagedPackedTable(t *testing.T) {
	var whole bytes.Buffer
	z := gzip.NewWriter(&whole)
	fmt.Fprint(z, "a,y\n", strings.Repeat("1,0\n2,1\n", 40_000))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	odd := bytes.Clone(whole.Bytes())
	odd[len(odd)-6] ^= 1 // of the checksum
	head := bytes.Clone(whole.Bytes())
	head[2] = 7
	for name, text := range map[string][]byte{
		"cut": whole.Bytes()[:whole.Len()/2], "cut head": whole.Bytes()[:5], "checksum": odd, "method": head,
	} {
		file := filepath.Join(t.TempDir(), "f.csv.gz")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := CSV{Source: dataset.FileSource(file)}.Input("a")
		if disdel.KindOf(err) != disdel.Invalid || !strings.Contains(fmt.Sprint(err), "damaged") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// However much is wrong, what is said of it has a bound.
func TestFaultsHaveABound(t *testing.T) {
	text := "a,y\n" + strings.Repeat("1,2,3\n", 10_000)
	_, err := CSV{Source: dataset.TextSource("f", text)}.Input("a")
	var wrong *disdel.Faults
	if !errors.As(err, &wrong) || len(wrong.Faults) != mostFaults+1 {
		t.Errorf("%v", err)
	}
}

// endless is a quote that is never closed, and no end.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	if e.read == 0 {
		copy(p, "a,y\n1,\"")
	}
	e.read += len(p)
	return len(p), nil
}

func (e *endless) Close() error { return nil }

// A row has a bound, too: a quote that is not closed is found before it takes all memory.
func TestARowHasABound(t *testing.T) {
	var opened []*endless
	from := dataset.Source{Name: "f", Open: func() (io.ReadCloser, error) {
		opened = append(opened, &endless{})
		return opened[len(opened)-1], nil
	}}
	_, err := CSV{Source: from, Header: HeaderYes}.Input("a")
	if !errors.Is(err, errLong) {
		t.Errorf("%v", err)
	}
	for _, e := range opened {
		if e.read > 2*longestRecord {
			t.Errorf("%d bytes were read", e.read)
		}
	}
}

// Held-out rows of their own are kept by what the rows to learn from say, and refused where these have no such class.
func TestHeldOutRowsOfATable(t *testing.T) {
	train := "a,b,y\n0,u,p\n10,v,q\n"
	test := dataset.TextSource("test", "a,b,y\n20,w,q\n")
	in, err := CSV{Source: dataset.TextSource("f", train), Test: &test, Scale: Range}.Input("a")
	if err != nil {
		t.Fatal(err)
	}
	rows := all(t, in)
	want := kept{Values: []float32{2, 0, 0}, Label: 1, HeldOut: true} // as missing: no row to learn from has a w
	if diff := cmp.Diff(want, rows[2]); diff != "" {
		t.Error(diff)
	}
	if u := in.Understood; u.HeldOut != 1 || len(u.Notes) != 1 || !strings.Contains(u.Notes[0], "1 texts") {
		t.Errorf("%+v", u)
	}
	bad := dataset.TextSource("test", "a,b,y\n20,w,r\nx,u,p\n")
	_, err = CSV{Source: dataset.TextSource("f", train), Test: &bad}.Input("a")
	for _, want := range []string{`test:2:3: y: no row to learn from has the label "r"`, `test:3:1: a: "x" is no number`} {
		if got := told(err); !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
}

// Cells of held-out rows are read by their place, so their header must be that of the rows to learn from.
func TestTheHeaderOfHeldOutRows(t *testing.T) {
	train := "a,b,y\n0,1,p\n10,2,q\n"
	for text, want := range map[string][]string{
		"\xef\xbb\xbfa, b,\"y\"\n5,1,q\n": nil,
		"b,a,y\n1,5,q\n": {
			`test:1:1: columns: column 1 is "b", and in f "a"; put the columns of both files in the same order`,
		},
		"a,y,b\n5,q,1\n": {`test:1:2: columns: column 2 is "y", and in f "b"`},
		"a,b\n5,1\n":     {`have a column "y", and these rows do not; rows without answers are for disdel infer`},
		"5,1,q\n6,2,p\n": {
			`test:1:1: columns: rows to learn from have no column "5"; the first line must be the header of f`,
		},
		"a,b,c,y\n": {`test:1:3: columns: rows to learn from have no column "c"`},
	} {
		test := dataset.TextSource("test", text)
		_, err := CSV{Source: dataset.TextSource("f", train), Test: &test}.Input("a")
		if len(want) == 0 && err != nil {
			t.Errorf("%q: %s", text, told(err))
		}
		for _, want := range want {
			if got := told(err); !strings.Contains(got, want) {
				t.Errorf("%q: no %q in %s", text, want, got)
			}
		}
	}
}

// Whatever bytes come, reading them ends with rows or with an error of the user's.
func FuzzCSV(f *testing.F) {
	for _, text := range []string{people, "a;b\n1;2\n", "\"", "a,y\n1e400,0\n", "\xef\xbb\xbf,,\n,,\n", "1\t2\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		in, err := CSV{Source: dataset.TextSource("f", text)}.Input("a")
		if err != nil {
			if kind := disdel.KindOf(err); kind != disdel.Invalid && kind != disdel.Corrupt {
				t.Fatal(err)
			}
			return
		}
		n := product(in.Shape)
		err = in.Each(func(r dataset.DenseRow) error {
			if len(r.Values)+len(r.Bytes) != n || r.Label < 0 || int(r.Label) >= in.Classes {
				t.Fatalf("%+v of shape %v", r, in.Shape)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// A file is plain or packed, and one that is not there is said to be so.
func TestFiles(t *testing.T) {
	name := filepath.Join(t.TempDir(), "people.csv")
	if err := os.WriteFile(name, []byte(people), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (CSV{Source: dataset.FileSource(name), Skip: []string{"1"}}).Input("a"); err != nil {
		t.Error(err)
	}
	for _, none := range []string{name + "x", filepath.Dir(name)} {
		_, err := CSV{Source: dataset.FileSource(none)}.Input("a")
		if disdel.KindOf(err) != disdel.Invalid {
			t.Errorf("%s: %v", none, err)
		}
	}
}

func ExampleCSV() {
	in, err := CSV{Source: dataset.TextSource("flowers.csv",
		"length,width,species\n5.1,3.5,setosa\n7.0,3.2,versicolor\n")}.Input("flowers")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(in.Understood.Kind)
	fmt.Println(in.Shape, in.ClassNames)
	// Output:
	// CSV, separated by commas, with a header; the label is species
	// [1 1 2] [setosa versicolor]
}

// Numbers that are read in a short way are those that the long one reads.
func TestNumbers(t *testing.T) {
	for _, text := range []string{
		"0", "-0", "1", "+1", "12.5", "-0.001", ".5", "5.", "123456789012345", "0.1", "3.14159265358979", "-99999999999999.9",
		"1234567890123456", "1e5", "-1E-3",
	} {
		want, err := strconv.ParseFloat(text, 64)
		got, ok := number(text)
		if err != nil || !ok || got != want || math.Signbit(got) != math.Signbit(want) {
			t.Errorf("%s: %v, %v, not %v", text, got, ok, want)
		}
	}
	for _, text := range []string{
		"", "-", ".", "1.2.3", "0x1p4", "1_000", "inf", "nan", "1e400", "1e39", "--1", "1,5", "a",
	} {
		if v, ok := number(text); ok {
			t.Errorf("%q is %v", text, v)
		}
	}
}

// What is wrong with texts and with the file as a whole is told by what it is: other encodings, texts where names of
// classes are expected, commas in numbers, lines of other systems.
func TestTextsThatAreNoNames(t *testing.T) {
	const rows = "a,b,label\n1,2,x\n3,4,y\n"
	var many strings.Builder
	many.WriteString("9,2,red,y\n")
	for i := range 99 {
		many.WriteString(fmt.Sprintf("%d,2,%d.5,z\n", i, i))
	}
	long := strings.Repeat("word ", 300)
	for text, want := range map[string]string{
		strings.ReplaceAll(rows, "x", "caf\xe9"): `"caf\xe9" is no text in UTF-8`,
		"a,b,label\ncaf\xe9,2,x\ntea,4,y\n":      `"caf\xe9" is no text in UTF-8`,
		strings.ReplaceAll(rows, "x", long):      "more than 1024 bytes, as no class's name does",
		"a,b,label\n" + long + ",2,x\ntea,4,y\n": "as no category does",
		strings.ReplaceAll(rows, "\n", "\r"):     "end in a carriage return alone",
		"sep=,\n" + rows:                         "what spreadsheets read the separator from",
		"# a b\n1 2\n3 4\n":                      "begins with #, as comments do",
		"Prices\n\na b\n1 2\n":                   "line 1 has 1 field, and line 3 has 2",
		"a  b  c\n1  2  New York\n":              "line 1 has 3 fields, and line 2 has 4",
		"a b\np  1 2\nq  3 4\n":                  "sed '1s/^/row\\t/' FILE > OUT, and --skip row",
		many.String(): `1:3: column 3: "red" is no number; ` +
			`if the first line is a header: --header yes`,
		"Prices,\nof,2020\na,b,c,d\n1,2,3,4\n":                      "leave out the lines above: tail -n +3 FILE > OUT",
		"a,b\np,1,2\nq,3,4\n":                                       "sed '1s/^/row,/' FILE > OUT, and --skip row",
		"a;b;label\n" + strings.Repeat("1;2;x\n", 30) + "1,5;2;y\n": `"1,5" is no number; decimals have a point`,
	} {
		_, err := CSV{Source: dataset.TextSource("f", text)}.Input("a")
		if err == nil || !strings.Contains(told(err), want) {
			t.Errorf("%.60q: %s, want %q", text, told(err), want)
		}
	}
	in, err := CSV{Source: dataset.TextSource("f", strings.ReplaceAll(rows, "x", "café")+"5,6,猫\n")}.Input("a")
	if err != nil || in.Classes != 3 || in.ClassNames[0] != "café" {
		t.Errorf("%v, %v", in.ClassNames, err)
	}
}
