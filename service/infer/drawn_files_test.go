package infer

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"

	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/dataset/dense"
	"github.com/disdel/disdel/internal/test/faults"
)

// A file that nobody chose has the same rows as it has as a data set, bit for bit, if a model is asked about it. A file
// without labels of some rows is left out: a data set has no such rows.
//
// DISDEL_TEST_DRAWN is how many are drawn, from DISDEL_TEST_SEED.
func TestDrawnFilesAreTheRowsOfTheDataSet(t *testing.T) {
	python := os.Getenv("DISDEL_TEST_MLFLOW")
	if python == "" {
		t.Skip("DISDEL_TEST_MLFLOW names no Python with pandas and scikit-learn")
	}
	drawn, seed := faults.Drawn()
	const script = "../../dataset/dense/testdata/drawtables.py"
	said, err := exec.CommandContext(t.Context(), python, script, strconv.Itoa(drawn),
		strconv.FormatUint(seed, 10)).Output()
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for i, line := range bytes.Split(bytes.TrimSpace(said), []byte("\n")) {
		var p struct {
			dense.CSV
			Name, Separator string
			File            []byte
			Kinds           map[string]dataset.ColumnKind
		}
		if err := json.Unmarshal(line, &p); err != nil {
			t.Fatal(err)
		}
		p.Source = dataset.TextSource(p.Name, string(p.File))
		for _, by := range p.Separator {
			p.CSV.Separator = by
		}
		in, err := p.Input("drawn")
		if err != nil {
			continue // the draw has no column that is not left out
		}
		var want [][]float32
		var labels []int32
		if err := in.Each(func(r dataset.DenseRow) error {
			want, labels = append(want, slices.Clone(r.Values)), append(labels, r.Label)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		got, err := modelOf(t, &in).Read(p.Name, p.File)
		switch {
		case err != nil:
			t.Errorf("seed %d, table %d (%s): %v", seed, i, p.Name, err)
		case len(got.Rows) > len(want): // some have no label
		case !slices.EqualFunc(got.Rows, want, slices.Equal), in.Label != "" && !slices.Equal(got.Labels, labels),
			in.Label == "" && len(got.Numbers) != len(want):
			t.Errorf("seed %d, table %d (%s): the rows differ", seed, i, p.Name)
		default:
			compared++
		}
	}
	if 2*compared < drawn {
		t.Errorf("%d of %d tables are compared", compared, drawn)
	}
}
