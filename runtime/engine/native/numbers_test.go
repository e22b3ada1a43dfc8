package native

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
)

// Losses and gradients of two rows of three outputs, as PyTorch 1.13 computes them in float64 (MSELoss, L1Loss,
// HuberLoss).
func TestLossesOfNumbersArePyTorchs(t *testing.T) {
	outputs := [][]float32{{0.5, -2, 3}, {1, 0.25, -0.75}}
	targets := []float32{0.25, 0.5, 3, -1, 0, 2}
	for loss, want := range map[string]struct {
		value    float64
		gradient [][]float64
	}{
		disdel.LossMSE: {2.9895833333333335, [][]float64{
			{0.08333333333333333, -0.8333333333333334, 0}, {0.6666666666666666, 0.08333333333333333, -0.9166666666666666},
		}},
		disdel.LossMAE: {1.2916666666666667, [][]float64{
			{0.16666666666666666, -0.16666666666666666, 0}, {0.16666666666666666, 0.16666666666666666, -0.16666666666666666},
		}},
		disdel.LossHuber: {0.96875, [][]float64{
			{0.041666666666666664, -0.16666666666666666, 0}, {0.16666666666666666, 0.041666666666666664, -0.16666666666666666},
		}},
	} {
		sum := 0.0
		for r := range outputs {
			row := slices.Clone(outputs[r])
			sum += numberLoss(loss, row, targets[3*r:], true, 0.5) / 2
			for k, v := range row {
				if math.Abs(float64(v)-want.gradient[r][k]) > 1e-7 {
					t.Errorf("%s: the gradient of output %d of row %d is %g, want %g", loss, k, r, v, want.gradient[r][k])
				}
			}
		}
		if math.Abs(sum-want.value) > 1e-12 {
			t.Errorf("%s is %g, want %g", loss, sum, want.value)
		}
	}
}

// A network learns numbers with every loss and number of threads; an evaluation gives its outputs, also in pieces of
// the batch size. Numbers and classes go with their own losses only, and a number that is not finite is refused.
func TestNetworksLearnNumbers(t *testing.T) {
	b := model.NewBuilder("numbers", model.Shape{1, 1, 2})
	b.Dense("out", b.Flatten("flat", 0), 2)
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	x, y := make([]float32, 0, 32), make([]float32, 0, 32)
	for i := range 16 {
		u, v := float32(i%4)/4, float32(i/4)/4
		x, y = append(x, u, v), append(y, 2*u-v+0.5, v-0.25)
	}
	rows := dataset.Batch{Input: dataset.Matrix{Rows: 16, Columns: 2, Values: x}, Target: dataset.Target{Values: y}}
	for _, loss := range []string{disdel.LossMSE, disdel.LossMAE, disdel.LossHuber} {
		for _, threads := range []int{1, 2} {
			e := initialized(t, g, engine.Spec{
				BatchSize: 16, Training: true, Loss: loss, Threads: threads,
				Optimizer: disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.02}},
			})
			for range 600 {
				m, err := e.Step(rows)
				if err != nil || m.Correct != -1 {
					t.Fatalf("%s: %+v, %v", loss, m, err)
				}
			}
			m, err := e.Evaluate(rows)
			if err != nil || m.Loss > 0.02 || len(m.Scores) != 32 || math.Abs(float64(m.Scores[31]-y[31])) > 0.1 {
				t.Errorf("%s, %d threads: %+v, %v", loss, threads, m, err)
			}
			odd := rows
			odd.Target.Values = slices.Clone(y)
			odd.Target.Values[3] = float32(math.NaN())
			if _, err := e.Step(odd); !errors.Is(err, disdel.Diverged) {
				t.Errorf("%s: a target of NaN: %v", loss, err)
			}
			odd.Target.Values = y[:30]
			if _, err := e.Step(odd); !errors.Is(err, disdel.Invalid) {
				t.Errorf("%s: 15 targets for 16 rows: %v", loss, err)
			}
		}
	}
	for loss, target := range map[string]dataset.Target{
		CrossEntropy: {Values: y}, disdel.LossMAE: {Classes: make([]int32, 16)},
	} {
		e := initialized(t, g, engine.Spec{BatchSize: 16, Training: true, Loss: loss, Optimizer: sgd1})
		if _, err := e.Step(dataset.Batch{Input: rows.Input, Target: target}); !errors.Is(err, disdel.Invalid) {
			t.Errorf("%s on %+v: %v", loss, target, err)
		}
	}
}

// The loss of several labels and its gradient before the sigmoid are those of PyTorch 1.13 in float64
// (BCEWithLogitsLoss), also where a float32 sigmoid is 1. Other values than 0 to 1 and other networks are refused.
func TestLossOfLabelsIsPyTorchs(t *testing.T) {
	outputs, targets := [][]float32{{0.5, -2, 30}, {1, 40, -0.75}}, []float32{1, 0, 0, 0, 1, 0.25}
	want := [][]float64{
		{-0.0629234447996909, 0.019867153670352924, 0.1666666666666511}, {0.12184309643833414, 0, 0.011803550137434504},
	}
	sum := 0.0
	for r := range outputs {
		row := slices.Clone(outputs[r])
		sum += numberLoss(BinaryCrossEntropy, row, targets[3*r:][:3], true, 0.5) / 2
		for k, v := range row {
			if math.Abs(float64(v)-want[r][k]) > 1e-7 {
				t.Errorf("the gradient of output %d of row %d is %g, want %g", k, r, v, want[r][k])
			}
		}
	}
	if math.Abs(sum-5.414772948142716) > 1e-12 {
		t.Errorf("the loss is %.17g", sum)
	}
}

// A network that ends in a sigmoid learns several labels, with every number of threads and precision. Its outputs are
// the probabilities. A row that starts far on the wrong side, where the sigmoid of a float32 is 1, is learned too.
func TestNetworksLearnLabels(t *testing.T) {
	ends := func(activation bool) *model.Graph {
		b := model.NewBuilder("labels", model.Shape{1, 1, 2})
		last := b.Dense("out", b.Flatten("flat", 0), 2)
		if activation {
			b.Same("sigmoid", last, model.OpSigmoid)
		}
		g, err := b.Graph()
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	x := []float32{0, 0, 0, 1, 1, 0, 1, 1}
	rows := dataset.Batch{
		Input:  dataset.Matrix{Rows: 4, Columns: 2, Values: x},
		Target: dataset.Target{Values: []float32{0, 1, 0, 1, 1, 1, 1, 1}},
	}
	spec := engine.Spec{
		BatchSize: 4, Training: true, Loss: BinaryCrossEntropy,
		Optimizer: disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.1}},
	}
	for _, c := range []struct {
		threads int
		halves  disdel.Precision
	}{{1, ""}, {2, ""}, {1, disdel.PrecisionBF16}} {
		spec.Threads, spec.Precision = c.threads, c.halves
		e := initialized(t, ends(true), spec)
		w := engine.Weights(e)
		w[1].Data[0], w[1].Data[1] = 40, 40 // the bias
		if err := engine.SetWeights(e, w); err != nil {
			t.Fatal(err)
		}
		for range 1500 {
			if _, err := e.Step(rows); err != nil {
				t.Fatal(err)
			}
		}
		m, err := e.Evaluate(rows)
		if err != nil || m.Loss > 0.05 || m.Scores[0] > 0.2 || m.Scores[1] < 0.8 {
			t.Errorf("%+v: %+v, %v", c, m, err)
		}
		p, err := e.Predict(dataset.Batch{Input: rows.Input})
		if err != nil || !slices.Equal(p.Values, m.Scores) {
			t.Errorf("%+v: predictions %v, %v, and the evaluation has %v", c, p.Values, err, m.Scores)
		}
		odd := rows
		odd.Target.Values = []float32{0, 1, 2, 1, 1, 1, 1, 1}
		if _, err := e.Step(odd); !errors.Is(err, disdel.Invalid) {
			t.Errorf("a label of 2: %v", err)
		}
	}
	if _, err := initialized(t, ends(false), spec).Step(rows); !errors.Is(err, disdel.Invalid) {
		t.Errorf("no sigmoid at the end: %v", err)
	}
}
