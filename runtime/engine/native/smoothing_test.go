package native

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/enginetest"
	"github.com/disdel/disdel/runtime/engine"
)

// The loss and the gradient of smoothed labels are PyTorch's CrossEntropyLoss(label_smoothing=0.1) in float64.
func TestSmoothedLabelsArePyTorchs(t *testing.T) {
	outputs, labels := [][]float32{{0.5, -2, 3}, {1, 0.25, -0.75}}, []int{2, 1}
	want := [][]float64{
		{0.02102770731483167, -0.01357252403026665, -0.00745518328456507},
		{0.2870741143643626, -0.323189681004176, 0.036115566639813454},
	}
	sum := 0.0
	for r := range outputs {
		row := slices.Clone(outputs[r])
		sum += smoothed(row, labels[r], 0.1, nil, false, true, 0.5) / 2
		for k, v := range row {
			if math.Abs(float64(v)-want[r][k]) > 1e-7 {
				t.Errorf("the gradient of output %d of row %d is %g, want %g", k, r, v, want[r][k])
			}
		}
	}
	if math.Abs(sum-0.7959320172203967) > 1e-7 {
		t.Errorf("the loss is %g", sum)
	}
}

// Training steps have the smoothed loss and evaluations the plain one. Other losses and shares are refused.
func TestTrainingSmoothsLabels(t *testing.T) {
	g := build(t, "residual", networks()["residual"])
	x, y := batch(g, 16, 2)
	losses := func(share float64) (trained, evaluated float64) {
		e := initialized(t, g, engine.Spec{
			BatchSize: 16, Training: true, LabelSmoothing: share, Optimizer: disdel.Optimizer{SGD: &disdel.SGD{}},
		})
		trained, err := enginetest.Train(e, x, y)
		if err != nil {
			t.Fatal(err)
		}
		evaluated, _, err = enginetest.Evaluate(e, x, y)
		if err != nil {
			t.Fatal(err)
		}
		return trained, evaluated
	}
	plain, held := losses(0)
	smooth, heldToo := losses(0.2)
	if plain == smooth || held != heldToo {
		t.Errorf("trained %g and %g smoothed, evaluated %g and %g", plain, smooth, held, heldToo)
	}
	for _, s := range []engine.Spec{{Loss: MSE, LabelSmoothing: 0.1}, {LabelSmoothing: 1}, {LabelSmoothing: -0.1}} {
		s.Graph, s.BatchSize, s.Training, s.Optimizer = g, 16, true, sgd1
		if _, err := New(s); !errors.Is(err, disdel.Invalid) {
			t.Errorf("%+v: %v", s, err)
		}
	}
}
