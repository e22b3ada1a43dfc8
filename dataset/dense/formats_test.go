package dense

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// A table has the same rows and columns in each format.
func TestATableIsTheSameInEveryFormat(t *testing.T) {
	text := textTable{
		csv: "town,area,sold,price\nRome,50,true,1.5\n\"Bath, UK\",,false,2\nRome,70.25,true,2.5\n",
		json: `{"town": "Rome", "area": 50, "sold": true, "price": 1.5}` + "\n\n" +
			`{"town":"Bath, UK","area":null,"sold":false,"price":2}` + "\n" +
			`{"price":2.5,"sold":true,"area":70.25,"town":"Rome"}`,
	}
	want, err := CSV{Source: dataset.TextSource("a.csv", text.csv), Targets: []string{"price"}}.Input("homes")
	if err != nil {
		t.Fatal(err)
	}
	rows := all(t, want)
	for name, from := range map[string]dataset.Source{
		"JSON objects": dataset.TextSource("a.jsonl", text.json), "Parquet": homesFile(t),
	} {
		got, err := CSV{Source: from, Targets: []string{"price"}}.Input("homes")
		if err != nil {
			t.Fatal(name, err)
		}
		if diff := cmp.Diff(want.Columns, got.Columns); diff != "" {
			t.Errorf("%s: other columns: %s", name, diff)
		}
		if diff := cmp.Diff(rows, all(t, got)); diff != "" {
			t.Errorf("%s: other rows: %s", name, diff)
		}
		if got.Understood.Kind != name+"; a target is price" {
			t.Errorf("%s is taken for %q", name, got.Understood.Kind)
		}
	}
}

// pandas writes the index of a table as a column, which is no value of a row unless the user says so.
func TestTheIndexOfAPandasTableIsNoValue(t *testing.T) {
	type row struct {
		Area  float64 `parquet:"area"`
		Index int64   `parquet:"__index_level_0__"`
		Y     string  `parquet:"y"`
	}
	from := parquetOf(t, row{1.5, 0, "p"}, row{2.5, 1, "q"}, row{3.5, 2, "p"})
	const name = "__index_level_0__"
	for columns, kinds := range map[int]map[string]dataset.ColumnKind{1: nil, 2: {name: dataset.ColumnNumber}} {
		in, err := CSV{Source: from, Kinds: kinds}.Input("a")
		if err != nil || len(in.Columns) != columns ||
			slices.Contains(in.Understood.Passed, name+": it is the index of a pandas table") != (kinds == nil) {
			t.Errorf("%d columns: %+v, %v", columns, in.Columns, err)
		}
	}
}

// A file in LZ4, whose pages would have the values of other pages, is refused.
func TestParquetInLZ4IsRefused(t *testing.T) {
	var out bytes.Buffer
	w := parquet.NewGenericWriter[home](&out, parquet.Compression(&parquet.Lz4Raw))
	if _, err := w.Write([]home{{"Rome", nil, true, 1.5}, {"Bath", nil, false, 2}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := CSV{Source: fileOf(t, out.Bytes()), Targets: []string{"price"}}.Input("homes")
	if disdel.KindOf(err) != disdel.Invalid ||
		!strings.Contains(err.Error(), "column town is compressed with LZ4_RAW") {
		t.Error(err)
	}
}

// textTable is a table in two formats.
type textTable struct{ csv, json string }

type home struct {
	Town  string   `parquet:"town"`
	Area  *float64 `parquet:"area"`
	Sold  bool     `parquet:"sold"`
	Price float32  `parquet:"price"`
}

func homesFile(t *testing.T) dataset.Source {
	small, large := 50.0, 70.25
	return parquetOf(t, home{"Rome", &small, true, 1.5}, home{"Bath, UK", nil, false, 2}, home{"Rome", &large, true, 2.5})
}

// parquetOf writes rows to a Parquet file with two rows in each row group, or a seventh of many.
func parquetOf[T any](t testing.TB, rows ...T) dataset.Source {
	t.Helper()
	var out bytes.Buffer
	group := max(2, int64(len(rows)/7))
	w := parquet.NewGenericWriter[T](&out, parquet.MaxRowsPerRowGroup(group), parquet.Compression(&parquet.Snappy))
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return fileOf(t, out.Bytes())
}

func fileOf(t testing.TB, data []byte) dataset.Source {
	t.Helper()
	file := filepath.Join(t.TempDir(), "table.parquet")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return dataset.FileSource(file)
}

// Values of Parquet's types are the texts that CSV files have.
func TestValuesOfParquetAreTexts(t *testing.T) {
	type typed struct {
		Small   int32     `parquet:"small"`
		Huge    uint64    `parquet:"huge"`
		Cents   int64     `parquet:"cents,decimal(2:18)"`
		Day     int32     `parquet:"day,date"`
		At      time.Time `parquet:"at,timestamp(microsecond)"`
		Text    string    `parquet:"text"`
		Missing *int64    `parquet:"missing"`
	}
	from := parquetOf(t, typed{
		-7, 1<<64 - 1, -5, 19782, time.Date(2024, 2, 29, 12, 30, 0, 250000000, time.UTC), "a\nb", nil,
	})
	names, err := parquetNames(from, nil, mostColumns)
	if err != nil {
		t.Fatal(err)
	}
	columns := &table{CSV: CSV{Source: from}, format: formatParquet, names: names, columns: make([]column, len(names))}
	next, file, err := columns.blocks(from)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var s parsedBlock
	if !next(&s) || s.err != nil {
		t.Fatal(s.err)
	}
	s.fromParquet(columns)
	got := map[string]string{}
	for i, name := range names {
		got[name] = columns.columns[i].textOf(&s.cells[i])
	}
	want := map[string]string{
		"small": "-7", "huge": "18446744073709551615", "cents": "-0.05", "day": "2024-02-29",
		"at": "2024-02-29T12:30:00.25Z", "text": "a\nb", "missing": "",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// measured is a row with each kind of number that is read without its text.
type measured struct {
	Float  float32  `parquet:"float"`
	Double float64  `parquet:"double"`
	Maybe  *float32 `parquet:"maybe,optional"`
	Few    float64  `parquet:"few"`
	Int    int32    `parquet:"int"`
	Huge   int64    `parquet:"huge"`
	Big    uint64   `parquet:"big"`
	Kind   *int32   `parquet:"kind,optional"`
	Word   string   `parquet:"word"`
	Sure   bool     `parquet:"sure"`
	Label  int32    `parquet:"label"`
}

// A table has the same values, bit by bit, and the same columns in Parquet and as the text of its numbers.
func TestParquetHasTheBitsOfItsText(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	rows := make([]measured, 20_000) // several blocks
	var text strings.Builder
	text.WriteString("float,double,maybe,few,int,huge,big,kind,word,sure,label\n")
	for i := range rows {
		r := measured{
			Float: float32(rng.IntN(1<<17)-1<<16) / 8, Double: rng.NormFloat64() * 1e-5, // no more digits than a float32 has
			Few: float64(rng.IntN(5)) / 8, Int: rng.Int32() - 1<<30, Huge: rng.Int64() - 1<<62, Big: rng.Uint64(),
			Word: []string{"a", " b ", "c\r\nd", ""}[rng.IntN(4)], Sure: rng.IntN(2) == 0, Label: rng.Int32N(3),
		}
		maybe, kind := "", ""
		if rng.IntN(4) > 0 {
			v, k := float32(rng.IntN(1<<12))/8, rng.Int32N(3)
			r.Maybe, r.Kind = &v, &k
			maybe, kind = strconv.FormatFloat(float64(v), 'g', -1, 32), strconv.Itoa(int(k))
		}
		rows[i] = r
		fmt.Fprintf(&text, "%s,%s,%s,%s,%d,%d,%d,%s,\"%s\",%t,%d\n", strconv.FormatFloat(float64(r.Float), 'g', -1, 32),
			strconv.FormatFloat(r.Double, 'g', -1, 64), maybe, strconv.FormatFloat(r.Few, 'g', -1, 64), r.Int, r.Huge, r.Big,
			kind, r.Word, r.Sure, r.Label)
	}
	for name, table := range map[string]CSV{
		"detected": {},
		"asked": {
			Kinds:   map[string]dataset.ColumnKind{"few": dataset.ColumnCategory, "kind": dataset.ColumnCategory},
			Missing: []string{"0"}, HeldOut: &HeldOut{Share: 0.2},
		},
		"target": {Targets: []string{"float"}, Skip: []string{"word"}, HeldOut: &HeldOut{Share: 0.3, Group: "kind"}},
	} {
		var all [2]dataset.DenseInput
		var values [2][]uint32
		for i, from := range []dataset.Source{parquetOf(t, rows...), dataset.TextSource("f", text.String())} {
			table.Source = from
			in, err := table.Input("a")
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			err = in.Each(func(r dataset.DenseRow) error {
				for _, v := range append(slices.Clone(r.Values), r.Targets...) {
					values[i] = append(values[i], math.Float32bits(v))
				}
				values[i] = append(values[i], uint32(r.Label))
				if r.HeldOut {
					values[i] = append(values[i], 1)
				}
				return nil
			})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			in.Understood.Kind, in.Understood.Example.Place = "", ""
			all[i] = in
		}
		if !slices.Equal(values[0], values[1]) {
			t.Errorf("%s: the values differ", name)
		}
		if diff := cmp.Diff(all[0].Understood, all[1].Understood); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// A float32 of a Parquet file is that number, not the one that its shortest text is. Its texts stay short. NaN is no
// value, and infinity is a fault.
func TestFloatsOfParquetAreExact(t *testing.T) {
	rows := make([]measured, 100)
	for i := range rows {
		v := float32(i%2) / 10
		if rows[i] = (measured{Float: v, Maybe: &v, Double: float64(i), Label: int32(i % 3)}); i == 7 {
			rows[i].Maybe, rows[i].Double = nil, math.NaN()
		}
	}
	table := CSV{
		Source: parquetOf(t, rows...), Scale: AsIs, Skip: []string{"few", "int", "huge", "big", "kind", "word", "sure"},
	}
	in, err := table.Input("a")
	if err != nil {
		t.Fatal(err)
	}
	var got []float32
	if err := in.Each(func(r dataset.DenseRow) error { got = append(got, r.Values[0]); return nil }); err != nil {
		t.Fatal(err)
	}
	if c := in.Columns[0]; c.High != float64(float32(0.1)) || got[1] != 0.1 {
		t.Errorf("%v up to %v, not the float32 nearest to 0.1", got[1], c.High)
	}
	if in.Columns[1].Missing != 1 || in.Columns[2].Missing != 1 {
		t.Errorf("NaN and a null are %d and %d missing values", in.Columns[1].Missing, in.Columns[2].Missing)
	}
	rows[42].Float = float32(math.Inf(-1))
	table.Source = parquetOf(t, rows...)
	if _, err := table.Input("a"); err == nil || !strings.Contains(err.Error(), `"-Inf" is no number`) {
		t.Errorf("an infinity is read: %v", err)
	}
}

// faultsAt are the faults of an error, and the line and path of each.
func faultsAt(t *testing.T, err error) (all *disdel.Faults, places []string) {
	t.Helper()
	if !errors.As(err, &all) {
		t.Fatal(err)
	}
	for _, f := range all.Faults {
		places = append(places, fmt.Sprint(f.Line, " ", f.Path))
	}
	return all, places
}

// Faults of JSON objects are told with their lines and keys, all at once.
func TestFaultsOfObjectsHaveTheirLines(t *testing.T) {
	text := `{"a": 1, "y": 0}` + "\n" + `{"a": [1], "y": 0}` + "\n\n" + `[1, 2]` + "\n" + `{"a": 1, "a": 2}` + "\n" +
		`{"a": 1` + "\n" + `{"a": 1, "y": {"b": 2}}` + "\n" + `{"a": 1} {"a": 2}` + "\n{\"a\": \"\xff\"}\n"
	_, err := CSV{Source: dataset.TextSource("a.jsonl", text)}.Input("bad")
	faults, got := faultsAt(t, err)
	if diff := cmp.Diff([]string{"2 a", "4 json", "5 a", "6 json", "7 y", "8 json", "9 text"}, got); diff != "" {
		t.Errorf("%s\n%v", diff, err)
	}
	// A text in a column of numbers is told with its line, too.
	numbers := "\n" + strings.Repeat(`{"a": 1.5, "y": "u"}`+"\n"+`{"a": 2, "y": "v"}`+"\n", 20) + `{"a": "x", "y": "u"}`
	_, err = CSV{Source: dataset.TextSource("a.jsonl", numbers)}.Input("bad")
	if !errors.As(err, &faults) || faults.Faults[0].Line != 42 || faults.Faults[0].Path != "a" {
		t.Error(err)
	}
}

// Each key that holds objects or lists is told once, however many lines have it, and all keys in one run.
func TestNestedKeysAreToldOnceAndAllAtOnce(t *testing.T) {
	line := `{"chem": {"a": 1}, "x": 1, "tags": [2], "y": 0}` + "\n"
	_, err := CSV{Source: dataset.TextSource("a.jsonl", strings.Repeat(line, 30))}.Input("nested")
	_, got := faultsAt(t, err)
	if diff := cmp.Diff([]string{"1 chem", "1 tags"}, got); diff != "" {
		t.Errorf("%s\n%v", diff, err)
	}
}

// Held-out rows may have another order of columns, and no other columns.
func TestHeldOutRowsHaveTheSameColumns(t *testing.T) {
	type turned struct {
		Price float32  `parquet:"price"`
		Area  *float64 `parquet:"area"`
		Town  string   `parquet:"town"`
		Sold  bool     `parquet:"sold"`
	}
	area := 50.0
	test := parquetOf(t, turned{1.5, &area, "Rome", true})
	in, err := CSV{Source: homesFile(t), Test: &test, Targets: []string{"price"}}.Input("homes")
	if err != nil {
		t.Fatal(err)
	}
	rows := all(t, in)
	if diff := cmp.Diff(rows[0].Values, rows[3].Values); diff != "" {
		t.Error(diff)
	}
	type other struct {
		Price float32 `parquet:"price"`
		City  string  `parquet:"city"`
	}
	test = parquetOf(t, other{1.5, "Rome"})
	_, err = CSV{Source: homesFile(t), Test: &test, Targets: []string{"price"}}.Input("homes")
	for _, name := range []string{"city", "town", "area", "sold"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not told: %v", name, err)
		}
	}
}

// Nested columns are refused, all of them by name.
func TestNestedColumnsAreRefusedByName(t *testing.T) {
	type nested struct {
		Y    int64             `parquet:"y"`
		Tags []string          `parquet:"tags,list"`
		Map  map[string]string `parquet:"map"`
		Many []int64           `parquet:"many"`
	}
	_, err := CSV{Source: parquetOf(t, nested{1, []string{"a"}, nil, nil})}.Input("bad")
	for _, name := range []string{"tags", "map", "many"} {
		if err == nil || !strings.Contains(err.Error(), name+": it is nested") {
			t.Errorf("%s is not told: %v", name, err)
		}
	}
}

// Nested columns of Parquet are passed over if they are left out. Flat columns beside them keep their values.
func TestNestedColumnsAreSkipped(t *testing.T) {
	type point struct{ X, Y int64 }
	type nested struct {
		A     int64             `parquet:"a"`
		Tags  []string          `parquet:"tags,list"`
		Map   map[string]string `parquet:"map"`
		B     float64           `parquet:"b"`
		Place point             `parquet:"place"`
		Many  []int64           `parquet:"many"`
		Day   int32             `parquet:"day,date"`
		Label string            `parquet:"z"`
	}
	from := parquetOf(t,
		nested{1, []string{"x", "y"}, map[string]string{"k": "v"}, 2.5, point{1, 2}, []int64{7, 8, 9}, 19782, "no"},
		nested{3, nil, nil, 4.5, point{3, 4}, nil, 19783, "yes"})
	skip := []string{"tags", "map", "place", "many", "day"}
	in, err := CSV{Source: from, Skip: skip, Label: "z"}.Input("rows")
	if err != nil {
		t.Fatal(err)
	}
	want, err := CSV{Source: dataset.TextSource("a.csv", "a,b,z\n1,2.5,no\n3,4.5,yes\n"), Label: "z"}.Input("rows")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(all(t, want), all(t, in)); diff != "" {
		t.Error(diff)
	}
}

// A Parquet file that is cut or changed is refused or read, without a panic and in little memory.
func TestDamagedParquetIsAnError(t *testing.T) {
	small := 1.5
	rows := []home{}
	for i := range 300 {
		rows = append(rows, home{fmt.Sprint("town", i%7), &small, i%2 == 0, float32(i)})
	}
	data, err := os.ReadFile(parquetOf(t, rows[:6]...).Path)
	if err != nil {
		t.Fatal(err)
	}
	read := func(data []byte) error {
		from := fileOf(t, data)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		in, err := CSV{Source: from, Targets: []string{"price"}}.Input("homes")
		if err == nil {
			err = in.Each(func(dataset.DenseRow) error { return nil })
		}
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 200<<20 {
			t.Errorf("reading took %d MB", took>>20)
		}
		return err
	}
	if err := read(data); err != nil {
		t.Fatal(err)
	}
	for cut := len(parquetMark); cut < len(data); cut += 1 + len(data)/40 {
		if err := read(data[:cut]); disdel.KindOf(err) != disdel.Invalid {
			t.Errorf("cut after %d bytes: %v", cut, err)
		}
	}
	refused := 0
	for at := len(parquetMark); at < len(data); at++ {
		changed := bytes.Clone(data)
		changed[at] ^= byte(1 << (at % 8))
		if read(changed) != nil {
			refused++
		}
	}
	if refused < len(data)/4 {
		t.Errorf("%d of %d changes are noticed", refused, len(data))
	}
}

// FuzzParquet looks for panics: changed files are read, or refused with an error.
func FuzzParquet(f *testing.F) {
	small := 1.5
	data, err := os.ReadFile(parquetOf(f, home{"Rome", &small, true, 1.5}, home{"Bath", nil, false, 2}).Path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(data[:len(data)-9])
	f.Fuzz(func(t *testing.T, data []byte) {
		in, err := CSV{Source: fileOf(t, data), Targets: []string{"price"}}.Input("homes")
		if err == nil {
			in.Each(func(dataset.DenseRow) error { return nil }) //nolint:errcheck // either is fine
		}
	})
}

// The user gives columns other kinds than the detected ones.
func TestColumnsTakeTheirGivenKinds(t *testing.T) {
	text := "zip,age,note,size,y\n1,30,a,1,u\n2,31,b,2,v\n1,x,c,3,u\n"
	in, err := CSV{
		Source: dataset.TextSource("a.csv", text),
		Kinds: map[string]dataset.ColumnKind{
			"zip": dataset.ColumnCategory, "2": dataset.ColumnSkip, "note": dataset.ColumnSkip, "y": dataset.ColumnCategory,
		},
	}.Input("homes")
	if err != nil {
		t.Fatal(err)
	}
	if len(in.Columns) != 2 || cmp.Diff([]string{"1", "2"}, in.Columns[0].Categories) != "" ||
		in.Columns[1].Name != "size" {
		t.Errorf("the columns are %+v", in.Columns)
	}
	if got := all(t, in)[1].Values[:2]; got[0] != 0 || got[1] != 1 {
		t.Errorf("zip 2 is stored as %v", got)
	}
	_, err = CSV{
		Source: dataset.TextSource("a.csv", text),
		Kinds:  map[string]dataset.ColumnKind{"age": dataset.ColumnNumber},
	}.Input("homes")
	var faults *disdel.Faults
	if !errors.As(err, &faults) || faults.Faults[0].Line != 4 || faults.Faults[0].Path != "age" {
		t.Errorf("a text of a column of numbers: %v", err)
	}
}

// Wrong names and kinds of columns are told together.
func TestWrongKindsAreAllTold(t *testing.T) {
	var many strings.Builder
	many.WriteString("a,b,c,y\n")
	for i := range 100 {
		many.WriteString(fmt.Sprintf("%d,1,2,%d\n", i, i%2))
	}
	_, err := CSV{
		Source: dataset.TextSource("a.csv", many.String()), Skip: []string{"c"},
		Kinds: map[string]dataset.ColumnKind{
			"zip": dataset.ColumnCategory, "b": "text", "y": dataset.ColumnNumber, "c": dataset.ColumnNumber,
		},
	}.Input("homes")
	for _, part := range []string{
		`no column "zip"`, `b: there is no kind "text"`, "y: it is the label", "c: it has two kinds",
	} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not told: %v", part, err)
		}
	}
	_, err = CSV{
		Source: dataset.TextSource("a.csv", many.String()), Kinds: map[string]dataset.ColumnKind{"a": dataset.ColumnCategory},
	}.Input("homes")
	if err == nil || !strings.Contains(err.Error(), "more than 64 different numbers") {
		t.Errorf("a category of 100 numbers: %v", err)
	}
}

// An array of objects has the rows of the same objects in lines. Faults have the numbers of its elements.
func TestArraysOfObjectsAreTables(t *testing.T) {
	objects := []string{`{"a": 1.5, "b": "x\ny", "y": "no"}`, `{"y": "yes", "b": "z"}`, `{"a": 2, "b": "z", "y": "no"}`}
	lines, err := CSV{Source: dataset.TextSource("a", strings.Join(objects, "\n"))}.Input("a")
	if err != nil {
		t.Fatal(err)
	}
	array := "\ufeff [\n " + strings.Join(objects, ",\n\n") + " ]\n"
	in, err := CSV{Source: dataset.TextSource("a", array)}.Input("a")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(all(t, lines), all(t, in)); diff != "" || in.Understood.Example.Place != "row 1" {
		t.Errorf("%s\n%s", in.Understood.Example.Place, diff)
	}
	for text, says := range map[string]string{
		"[" + strings.Join(objects, ",") + `, {"a": [1]}]`: "a:4:1: a: the value is a list",
		"[" + strings.Join(objects, ",") + ", 7]":          "a:4:1: json: it is no JSON object",
		"[" + strings.Join(objects, ","):                   "a:4:1: json: the array does not end",
		`[{"a": 1}, {"a": NaN}]`: "a:2:1: json: it is no JSON: invalid character 'N' looking for beginning of value; " +
			"for NaN and Infinity, write null",
		"[" + objects[0] + objects[1] + "]":              "a:2:1: json: it is no JSON: ",
		"[" + strings.Join(objects, ",") + "] 7":         "a:4:1: json: it is no JSON: more follows",
		`[{"a": "` + strings.Repeat("x", 40<<20) + `"}]`: "a:1:1: json: an element of the array is longer than 16 MB",
		"[{" + strings.Repeat(" ", 40<<20):               "a:1:1: json: an element of the array is longer than 16 MB",
	} {
		_, err := CSV{Source: dataset.TextSource("a", text)}.Input("a")
		if disdel.KindOf(err) != disdel.Invalid || !strings.Contains(told(err), says) {
			t.Errorf("%.90q: %s", text, told(err))
		}
	}
}

// A list or an object of a JSON line is passed over if its column is left out, and is a fault otherwise.
func TestNestedKeysAreSkipped(t *testing.T) {
	const lines = `{"a": 1, "tags": ["x", {"deep": [1]}], "more": {"k": {}}, "label": "no"}
{"a": 2, "tags": [], "more": {"k": [{}]}, "label": "yes"}
`
	table := CSV{Source: dataset.TextSource("f.jsonl", lines), Skip: []string{"tags"}}
	if _, err := table.Input("f"); err == nil || !strings.Contains(told(err), "more: the value is an object") ||
		strings.Contains(told(err), "tags") {
		t.Errorf("%v", err)
	}
	table.Kinds = map[string]dataset.ColumnKind{"more": dataset.ColumnSkip}
	in, err := table.Input("f")
	if err != nil {
		t.Fatal(told(err))
	}
	if rows := all(t, in); len(rows) != 2 || rows[1].Label != 1 || len(rows[1].Values) != 1 {
		t.Errorf("rows %v", rows)
	}
	table.Source = dataset.TextSource("f.jsonl", `{"a": 1, "tags": [[1], "label": "no"}`)
	if _, err := table.Input("f"); err == nil {
		t.Error("a list that does not end is no fault")
	}
}

// A last column that differs in most rows is no label, unless somebody says so.
func TestALastColumnThatDiffersInMostRowsIsNoLabel(t *testing.T) {
	var text strings.Builder
	text.WriteString("size,kind,bottled\n")
	for i := range 40 {
		fmt.Fprintf(&text, "%d,%c,2020-01-%02d\n", i, 'a'+rune(i%2), 1+i%28)
	}
	source := dataset.TextSource("wine.csv", text.String())
	_, err := CSV{Source: source}.Input("wine")
	if err == nil || !strings.Contains(err.Error(), "40 rows have 28 different values, which are hardly classes") ||
		!strings.Contains(disdel.AsError(err).Hint+err.Error(), "--label COLUMN") {
		t.Errorf("%v", err)
	}
	if told := disdel.AsError(err).Hint + err.Error(); strings.Contains(told, "--target") {
		t.Errorf("dates are no target: %s", told)
	}
	prices := strings.ReplaceAll(strings.ReplaceAll(text.String(), "bottled", "the price"), "2020-01-", "1")
	_, err = CSV{Source: dataset.TextSource("wine.csv", prices)}.Input("wine")
	if told := disdel.AsError(err).Hint + err.Error(); !strings.Contains(told, "--target 'the price'") {
		t.Errorf("numbers may be a target: %s", told)
	}
	for _, c := range []CSV{{Source: source, Label: "bottled"}, {Source: source, LabelClasses: true}} {
		if _, err := c.Input("wine"); err != nil {
			t.Error(err)
		}
	}
}
