package export_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/internal/export"
	"github.com/disdel/disdel/internal/test/faults"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/native"
)

// Drawn networks that come from PyTorch train as they do there: five steps have the same losses, and end with the same
// weights.
//
// DISDEL_TEST_DRAWN is how many are drawn, from DISDEL_TEST_SEED.
func TestDrawnNetworksTrainAsInPyTorch(t *testing.T) {
	drawn, seed := faults.Drawn()
	if os.Getenv("DISDEL_TEST_DRAWN") == "" {
		drawn = 7
	}
	folder, said := ofPyTorch(t, "torch_drawn_trained.py", strconv.Itoa(drawn), strconv.FormatUint(seed, 10))
	read, written := 0, 0
	for line := range strings.Lines(said) {
		var name string
		var rows int
		var want [5]float64
		if _, err := fmt.Sscan(line, &name, &rows, &want[0], &want[1], &want[2], &want[3], &want[4]); err != nil {
			t.Fatalf("torch_drawn_trained.py says %q", line)
		}
		written++
		file, x := exported(t, folder, name)
		if _, err := export.ImportONNX(file, nil, export.ONNXOptions{}); err != nil {
			t.Logf("seed %d, network %s: %v", seed, name, err)
			continue
		}
		read++
		g, in := imported(t, file, false)
		var fixed []string // norms that have no weight in the file
		for _, note := range in.Notes {
			if _, names, ok := strings.Cut(note, "names them: "); ok {
				fixed = append(fixed, names)
				continue
			}
			name, what, _ := strings.Cut(strings.TrimPrefix(note, "layer "), " ")
			if strings.Contains(what, "model.init.freeze") {
				fixed = append(fixed, name)
			}
		}
		if err := g.Freeze(disdel.Init{Freeze: strings.Join(fixed, ",")}); err != nil {
			t.Fatal(err)
		}
		losses, weights := trained(t, g, in.Weights, rows, x, 0.05, len(want))
		for i, loss := range want {
			if d := math.Abs(losses[i] - loss); !(d <= 1e-4) {
				t.Errorf("seed %d, network %s: losses are %.7g, not %.7g", seed, name, losses, want)
				break
			}
		}
		after, err := os.ReadFile(filepath.Join(folder, name+".after.onnx"))
		if err != nil {
			t.Fatal(err)
		}
		_, end := imported(t, after, false)
		var off float64
		for i, v := range end.Weights {
			d, at := farthest(weights[i].Data, v.Data)
			if weights[i].Name != v.Name || !(d <= max(off, 2e-4)) {
				t.Errorf("seed %d, network %s: value %d of %s (%s) is off by %g", seed, name, at, v.Name,
					weights[i].Name, d)
				off = d
			}
		}
	}
	if read < written*9/10 || written < drawn*3/4 {
		t.Errorf("seed %d: of %d networks, %d were written and %d read", seed, drawn, written, read)
	}
}

// farthest is by how much values differ most, and where.
func farthest(a, b []float32) (most float64, at int) {
	if len(a) != len(b) {
		return math.Inf(1), 0
	}
	for i := range a {
		if d := math.Abs(float64(a[i] - b[i])); !(d <= most) {
			most, at = d, i
		}
	}
	return most, at
}

// trained are the losses of steps on the same rows, as PyTorch trains in the programs of testdata, and the weights
// behind them.
func trained(t *testing.T, g *model.Graph, weights disdel.Weights, rows int, x []float32, rate float64, steps int) (
	losses []float64, after disdel.Weights,
) {
	t.Helper()
	e, err := native.Backend{}.New(engine.Spec{
		Graph: g, BatchSize: rows, Threads: 2, Training: true,
		Optimizer: disdel.Optimizer{SGD: &disdel.SGD{LearningRate: rate, Momentum: 0.9}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := engine.SetWeights(e, weights); err != nil {
		t.Fatal(err)
	}
	classes := make([]int32, rows)
	for i := range classes {
		classes[i] = int32(i % g.Output().Len())
	}
	for range steps {
		m, err := e.Step(dataset.Dense(rows, x, classes))
		if err != nil {
			t.Fatal(err)
		}
		losses = append(losses, m.Loss)
	}
	return losses, engine.Weights(e)
}
