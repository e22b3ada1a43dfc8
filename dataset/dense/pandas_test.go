package dense

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"

	"github.com/disdel/disdel/dataset"
	harm "github.com/disdel/disdel/internal/test/faults"
)

// pandasTable is a drawn table, what a user says about it, and what pandas and scikit-learn make of it.
type pandasTable struct {
	Name, Separator, Decimal, Label string
	Header                          Header
	File                            []byte
	Kinds                           map[string]dataset.ColumnKind
	Missing, Targets                []string

	Columns []pandasColumn
	Rows    [][]float64
	Classes []string  // of the rows; nil: they have numbers to predict
	Numbers []float64 // to predict
}

// pandasColumn is what pandas knows of a column.
type pandasColumn struct {
	Name                       string
	Kind                       dataset.ColumnKind
	Missing                    int
	Mean, Deviation, Low, High float64
	Categories                 map[string]int
	Order                      []string
}

// csv is the table for its reader.
func (p *pandasTable) csv() CSV {
	c := CSV{
		Source: dataset.Source{
			Name: p.Name, Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(p.File)), nil },
		},
		Header: p.Header, Decimal: p.Decimal, Label: p.Label, Kinds: p.Kinds, Missing: p.Missing, Targets: p.Targets,
		LabelClasses: p.Label != "",
	}
	for _, by := range p.Separator {
		c.Separator = by
	}
	return c
}

// Tables that nobody chose have the counts, means, deviations, categories and missing values of pandas, and the rows
// of scikit-learn.
//
// DISDEL_TEST_DRAWN is how many are drawn, from DISDEL_TEST_SEED.
func TestTablesAreThoseOfPandas(t *testing.T) {
	python := os.Getenv("DISDEL_TEST_MLFLOW")
	if python == "" {
		t.Skip("DISDEL_TEST_MLFLOW names no Python with pandas and scikit-learn")
	}
	drawn, seed := harm.Drawn()
	said, err := exec.CommandContext(t.Context(), python, "testdata/drawtables.py", strconv.Itoa(drawn),
		strconv.FormatUint(seed, 10)).Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSpace(said), []byte("\n"))
	if len(lines) != drawn {
		t.Fatalf("%d tables were drawn, not %d", len(lines), drawn)
	}
	for i, line := range lines {
		var p pandasTable
		if err := json.Unmarshal(line, &p); err != nil {
			t.Fatal(err)
		}
		t.Run(fmt.Sprintf("seed %d table %d", seed, i), func(t *testing.T) { p.compare(t) })
	}
}

// compare adds the table, and tells of each difference.
func (p *pandasTable) compare(t *testing.T) {
	in, err := p.csv().Input("a")
	if len(p.Columns) == 0 {
		if err == nil {
			t.Error("it is added without a column")
		}
		return
	}
	if err != nil {
		t.Fatalf("%v\n%.400q", err, p.File)
	}
	if len(in.Columns) != len(p.Columns) {
		t.Fatalf("columns %+v, not %+v", in.Columns, p.Columns)
	}
	for i, c := range in.Columns {
		want := p.Columns[i]
		if c.Name != want.Name || c.Kind != want.Kind || c.Missing != want.Missing ||
			!slices.Equal(c.Categories, want.Order) ||
			!near(c.Mean, want.Mean, want.Deviation) || !near(c.Deviation, want.Deviation, want.Mean*1e-7) ||
			!near(c.Low, want.Low, 0) || !near(c.High, want.High, 0) {
			t.Errorf("a column is %+v, not %+v", c, want)
		}
	}
	p.compareRows(t, in)
	p.compareStatistics(t, statisticsOf(t, p.csv()))
}

// near tells whether two numbers differ by rounding only, in sums of numbers of a size.
func near(a, b, size float64) bool { return math.Abs(a-b) <= 1e-9*(math.Abs(b)+math.Abs(size)) }

// compareRows compares the values, the classes and the targets.
func (p *pandasTable) compareRows(t *testing.T, in dataset.DenseInput) {
	row := 0
	err := in.Each(func(r dataset.DenseRow) error {
		if row >= len(p.Rows) || len(r.Values) != len(p.Rows[row]) {
			return fmt.Errorf("row %d of %d has %d values", row, len(p.Rows), len(r.Values))
		}
		for k, v := range r.Values {
			if want := p.Rows[row][k]; math.Abs(float64(v)-want) > 1e-6*math.Max(1, math.Abs(want)) {
				return fmt.Errorf("row %d: value %d is %g, not %g", row, k, v, want)
			}
		}
		switch {
		case p.Classes == nil:
			got, want := in.Targets[0].Value(r.Targets[0]), p.Numbers[row]
			if !near(got, want, in.Targets[0].Deviation*1e3) {
				return fmt.Errorf("row %d: the target is %g, not %g", row, got, want)
			}
		case p.className(in, r.Label) != p.Classes[row]:
			return fmt.Errorf("row %d: the class is %q, not %q", row, p.className(in, r.Label), p.Classes[row])
		}
		row++
		return nil
	})
	if err == nil && row != len(p.Rows) {
		err = fmt.Errorf("%d rows, not %d", row, len(p.Rows))
	}
	if err != nil {
		t.Error(err)
	}
}

// className is the name of a class.
func (p *pandasTable) className(in dataset.DenseInput, label int32) string {
	if in.ClassNames == nil {
		return strconv.Itoa(int(label))
	}
	return in.ClassNames[label]
}

// compareStatistics compares what is stored of the table: the rows of each category and class.
func (p *pandasTable) compareStatistics(t *testing.T, got dataset.Statistics) {
	for i, c := range got.Columns {
		want, values := p.Columns[i], 0
		for _, n := range c.Histogram {
			values += n
		}
		if c.Kind == dataset.ColumnNumber && values != len(p.Rows)-want.Missing || c.Missing != want.Missing {
			t.Errorf("column %s counts %d values and %d missing ones of %d rows",
				c.Name, values, c.Missing, len(p.Rows))
		}
		for _, k := range c.Categories {
			if k.Rows != want.Categories[k.Name] {
				t.Errorf("column %s has %d rows of %q, not %d", c.Name, k.Rows, k.Name, want.Categories[k.Name])
			}
		}
	}
	for _, k := range got.Classes {
		rows := 0
		for _, class := range p.Classes {
			if class == k.Name {
				rows++
			}
		}
		if k.Rows != rows {
			t.Errorf("class %q has %d rows, not %d", k.Name, k.Rows, rows)
		}
	}
	if got.Rows != len(p.Rows) {
		t.Errorf("%d rows are stored, not %d", got.Rows, len(p.Rows))
	}
}
