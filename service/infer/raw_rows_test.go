package infer

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/dataset/dense"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/model"
)

// drawnTable draws a table of numbers, whole numbers, texts and missing values, and how it is read.
func drawnTable(rng *rand.Rand) (csv dense.CSV, header []string, cells [][]string) {
	towns := []string{"Ulm", "Bonn", "Kiel", "-1", "São Paulo"}[:2+rng.IntN(4)]
	kinds := []func() string{
		func() string { return strconv.FormatFloat(200*rng.NormFloat64(), 'f', rng.IntN(4), 64) },
		func() string { return strconv.Itoa(rng.IntN(90)) },
		func() string { return towns[rng.IntN(len(towns))] },
		func() string { return []string{"yes", "no"}[rng.IntN(2)] },
	}
	var draw []func() string
	for i := range 1 + rng.IntN(6) {
		header = append(header, fmt.Sprintf("c %d", i))
		draw = append(draw, kinds[rng.IntN(len(kinds))])
	}
	at := rng.IntN(len(header) + 1)
	header = slices.Insert(header, at, "what")
	numeric := rng.IntN(2) == 0
	draw = slices.Insert(draw, at, func() string {
		if numeric {
			return strconv.FormatFloat(rng.Float64(), 'f', 6, 64)
		}
		return []string{"a", "b", "c"}[rng.IntN(3)]
	})
	var text strings.Builder
	text.WriteString(strings.Join(header, ";") + "\n")
	for range 300 {
		row := make([]string, len(header))
		for i := range row {
			if row[i] = draw[i](); i != at && rng.IntN(20) == 0 {
				row[i] = []string{"", "NA", "gone"}[rng.IntN(3)]
			}
		}
		cells = append(cells, row)
		text.WriteString(strings.Join(row, ";") + "\n")
	}
	csv = dense.CSV{
		Source: dataset.TextSource("rows.csv", text.String()), Missing: []string{"gone"},
		Scale: []dense.Scale{"", dense.Range, dense.AsIs}[rng.IntN(3)],
	}
	if csv.Label = "what"; numeric {
		csv.Label, csv.Targets = "", []string{"what"}
	}
	return csv, header, cells
}

// modelOf is a model that was trained on a data set, as far as reading rows needs one.
func modelOf(t *testing.T, in *dataset.DenseInput) *Model {
	t.Helper()
	units := max(in.Classes, 1)
	g, err := model.Build(disdel.Network{
		Input: in.Shape, Classes: units, Targets: in.Targets,
		Layers: []disdel.Layer{{Kind: "flatten"}, {Kind: "dense", Units: units}},
	})
	if err != nil {
		t.Fatal(err)
	}
	form := dataset.Table{
		Columns: in.Columns, Label: in.Label, Missing: in.Missing, Decimal: in.Decimal, Separator: in.Separator,
	}
	return &Model{
		Model: modelstore.Model{
			Network: disdel.Network{Targets: in.Targets}, Labels: in.ClassNames, Data: disdel.DataInfo{Classes: in.Classes},
		},
		Graph: g, table: func() (*dataset.Table, error) { return &form, nil },
	}
}

// Rows of a table's own file become the values, labels and targets that the data set has, bit for bit, as CSV in
// another order of columns with other columns between them, and as JSON.
func TestRawRowsAreTheRowsOfTheDataSet(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(37, seed))
		csv, header, cells := drawnTable(rng)
		in, err := csv.Input("drawn")
		if err != nil {
			continue // the draw has a column that no table may have
		}
		m := modelOf(t, &in)
		var want [][]float32
		var labels []int32
		if err := in.Each(func(r dataset.DenseRow) error {
			want, labels = append(want, slices.Clone(r.Values)), append(labels, r.Label)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		for file, text := range map[string]string{
			"rows.csv": shuffledCSV(rng, header, cells), "rows.TSV": shuffledCSV(rng, header, cells),
			"-": shuffledCSV(rng, header, cells), "rows.json": asObjects(header, cells),
		} {
			got, err := m.Read(file, []byte(text))
			if err != nil {
				t.Fatalf("seed %d, %s: %v", seed, file, err)
			}
			if !slices.EqualFunc(got.Rows, want, slices.Equal) {
				t.Errorf("seed %d, %s: the rows differ", seed, file)
			}
			if in.Label != "" && !slices.Equal(got.Labels, labels) {
				t.Errorf("seed %d, %s: the labels differ: %v", seed, file, got.Labels)
			}
			if in.Label == "" && (len(got.Numbers) != len(want) || got.Labels != nil) {
				t.Errorf("seed %d, %s: %d rows of targets", seed, file, len(got.Numbers))
			}
		}
	}
}

// shuffledCSV is a table with its columns in another order, and two more of them.
func shuffledCSV(rng *rand.Rand, header []string, cells [][]string) string {
	order := rng.Perm(len(header))
	line := func(id string, row []string) string {
		out := []string{id}
		for _, at := range order {
			out = append(out, row[at])
		}
		return strings.Join(append(out, `"x, y"`), ",") + "\n"
	}
	var text strings.Builder
	text.WriteString(line("id", header))
	for i, row := range cells {
		text.WriteString(line(strconv.Itoa(i), row))
	}
	return text.String()
}

// asObjects is a table as JSON: numbers as numbers, texts as texts, some missing values as null.
func asObjects(header []string, cells [][]string) string {
	var rows []string
	for _, row := range cells {
		var fields []string
		for i, name := range header {
			value := strconv.Quote(row[i])
			if _, err := strconv.ParseFloat(row[i], 64); err == nil {
				value = row[i]
			} else if row[i] == "" {
				value = "null"
			}
			fields = append(fields, strconv.Quote(name)+": "+value)
		}
		rows = append(rows, "{"+strings.Join(fields, ", ")+"}")
	}
	return `{"rows": [` + strings.Join(rows, ",\n") + "]}"
}

// What a row lacks, and what cannot be read, is told with its place. Values that no training row has are noted.
func TestRawRowsWithFaultsAreTold(t *testing.T) {
	csv := dense.CSV{Source: dataset.TextSource("homes.csv",
		"area,town,price\n50,Ulm,100\n60,Bonn,120\n70,Ulm,150\n80,Bonn,160\n"), Targets: []string{"price"}}
	in, err := csv.Input("homes")
	if err != nil {
		t.Fatal(err)
	}
	m := modelOf(t, &in)
	for _, c := range []struct{ file, text, want string }{
		{"a.csv", "area,price\n50,1\n", "the header has no town"},
		{"a.csv", "area,town\nfifty,Ulm\n60,Ulm\n1O,Ulm\n", "fifty"},
		{"a.json", `{"area": 50}`, "row 0 has no town"},
		{"a.jsonl", "{\"area\": 50}\n{\"area\": 60}", "the file has no town"},
		{"a.json", `[{"area": 50, "town": "Ulm"}, {"area": [1], "town": "Ulm"}]`, "row 1, area"},
		{"a.json", `[{"area": 50, "town": "Ulm"}, 3]`, "row 1 is no JSON object"},
		{"a.json", `[{"area": 50, "town": "Ulm"}`, "it ends within the list"},
		{"a.json", `{"rows": []}`, "there are no rows"},
	} {
		if _, err := m.Read(c.file, []byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, not %q", c.text, err, c.want)
		}
	}
	for file, text := range map[string]string{
		"a.csv":   "town,area\nRome,50\nRome,\n",
		"a.jsonl": "{\"town\": \"Rome\", \"area\": 50}\n{\"town\": \"Rome\", \"area\": null}\n",
		"b.jsonl": "{\"town\": \"Rome\", \"area\": 50}\n{\"town\": \"Rome\"}\n", // as the table's file may lack keys
	} {
		got, err := m.Read(file, []byte(text))
		if err != nil || len(got.Rows) != 2 || !strings.Contains(strings.Join(got.Notes, "\n"), "2 texts of column town") {
			t.Errorf("%s: %v %q %v", file, got.Rows, got.Notes, err)
		}
	}
	if got, err := m.Read("a.csv", []byte("0.5,1,0\n")); err != nil || len(got.Notes) != 1 ||
		!strings.Contains(got.Notes[0], "area,town") {
		t.Errorf("without a header: %q %v", got.Notes, err)
	}
}

// A file that a model of a table cannot read, as HDF5, is answered with the rows that it can.
func TestAFileThatIsNoTableHintsAtRowsAsTheDataSetHadThem(t *testing.T) {
	in, err := dense.CSV{Source: dataset.TextSource("a.csv", "x,y\n1,u\n2,v\n3,u\n4,v\n")}.Input("a")
	if err != nil {
		t.Fatal(err)
	}
	_, err = modelOf(t, &in).Read("rows.h5", []byte("\x89HDF\r\n\x1a\n\x00"))
	var e *disdel.Error
	if !errors.As(err, &e) || !strings.Contains(e.Hint, "CSV with a header, JSON objects or Parquet") {
		t.Errorf("%v has the hint of arrays only", err)
	}
}

// A short text of a category becomes many values: a request with a bound takes no more of them than its text allows.
func TestRawRowsOfARequestAreBounded(t *testing.T) {
	var text strings.Builder
	text.WriteString("town,price\n")
	for i := range 640 {
		text.WriteString(fmt.Sprintf("town %d,%d\n", i%64, i))
	}
	in, err := dense.CSV{Source: dataset.TextSource("homes.csv", text.String()), Targets: []string{"price"}}.Input("homes")
	if err != nil {
		t.Fatal(err)
	}
	m := modelOf(t, &in)
	m.MostRows = 1 << 20
	_, err = m.Read("a.csv", []byte("town\n"+strings.Repeat("x\n", 100_000)))
	if disdel.KindOf(err) != disdel.OverLimit {
		t.Errorf("6,400,000 values of 200 kB: %v", err)
	}
}

// Rows of a spreadsheet have decimals with a comma, also in the file to ask with. Numbers of JSON have a point.
func TestRawRowsHaveTheMarksOfTheirTable(t *testing.T) {
	const table = "a;price\n1,234;10,5\n2.000;1.000\n"
	in, err := dense.CSV{
		Source: dataset.TextSource("a.csv", table), Decimal: ",", Scale: dense.AsIs, Targets: []string{"price"},
	}.Input("a")
	if err != nil {
		t.Fatal(err)
	}
	m := modelOf(t, &in)
	for name, file := range map[string]string{
		"a.csv": table, "a.json": `[{"a": 1.234, "price": 10.5}, {"a": 2000, "price": "1.000"}]`,
	} {
		got, err := m.Read(name, []byte(file))
		if err != nil {
			t.Fatal(err)
		}
		if got.Rows[0][0] != 1.234 || got.Rows[1][0] != 2000 || got.Numbers[0][0] != 10.5 || got.Numbers[1][0] != 1000 {
			t.Errorf("%s: %+v", file, got)
		}
	}
}

// A model of a table without a header takes rows as that file has them, in any file of text, with the label or without
// it if it is the last column. A single row may have blanks between its fields.
func TestRowsWithoutAHeaderAreTakenAsTheTableHasThem(t *testing.T) {
	in, err := dense.CSV{
		Source: dataset.TextSource("iris.data", "1 10 7 a\n3 30 7 b\n1 10 7 a\n3 30 7 b\n"), Skip: []string{"3"},
	}.Input("iris")
	if err != nil {
		t.Fatal(err)
	}
	m := modelOf(t, &in)
	for _, c := range []struct {
		text    string
		labels  []int32
		isWrong bool
	}{
		{"1 10 7 a", []int32{0}, false},
		{"3 30 7", nil, false},
		{"1,10,7,a\n3,30,7,b\n", []int32{0, 1}, false},
		{"1 10 7 a\n3 30 7 b\n", []int32{0, 1}, false},
		{" 1   10  7 a", []int32{0}, false},
		{"1  10  7  a \r\n3\t30 7 b\r\n", []int32{0, 1}, false},
		{"1\t10\t\ta\n3\t30\t\tb\n", []int32{0, 1}, false},
		{"column 1,column 2\n1,10\n", nil, false},
		{"5", nil, true},
	} {
		got, err := m.Read("ask.data", []byte(c.text))
		if (err != nil) != c.isWrong || !slices.Equal(got.Labels, c.labels) {
			t.Errorf("%q: labels %v, %v", c.text, got.Labels, err)
		}
		if err == nil && (len(got.Rows[0]) != 2 || got.Rows[0][0] != got.Rows[0][1] || got.Rows[0][0]*got.Rows[0][0] != 1) {
			t.Errorf("%q: rows %v, not standardised", c.text, got.Rows)
		}
	}
}

// A name that a header has twice is two columns, here as in the table.
func TestColumnsOfOneNameAreTwo(t *testing.T) {
	in, err := dense.CSV{
		Source: dataset.TextSource("a.csv", "a,,a,y\n1,5,10,p\n3,6,30,q\n"), Scale: dense.AsIs,
	}.Input("a")
	if err != nil {
		t.Fatal(err)
	}
	m := modelOf(t, &in)
	got, err := m.Read("b.csv", []byte("a,,a\n7,8,9\n"))
	if err != nil || !slices.Equal(got.Rows[0], []float32{7, 8, 9}) {
		t.Errorf("%v, %v", got.Rows, err)
	}
}
