package native

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/enginetest"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
)

// identity is a network whose three outputs are its inputs.
func identity(t *testing.T) (*model.Graph, disdel.Weights) {
	t.Helper()
	b := model.NewBuilder("identity", model.Shape{3})
	b.Dense("fc", 0, 3)
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	w := namedWeights(g)
	for i := range w {
		clear(w[i].Data)
		if strings.HasSuffix(w[i].Name, ".weight") {
			w[i].Data[0], w[i].Data[4], w[i].Data[8] = 1, 1, 1
		}
	}
	return g, w
}

// A step with class weights has the loss and the gradient of PyTorch's CrossEntropyLoss(weight=[0.5, 2, 1.25]) in
// float64, with label_smoothing and without, for the whole batch at once and in micro-batches. Evaluations have the
// plain loss.
func TestClassWeightsArePyTorchs(t *testing.T) {
	for _, c := range []struct {
		smoothing, loss float64
		gradients       [][]float64 // by the outputs
	}{
		{0, 1.1263717642054043, [][]float64{
			{0.025129582654332225, 0.0020627617576000107, -0.027192344411932263},
			{0.32399016643309786, -0.3802912152933433, 0.05630104886024546},
			{-0.12811832356390834, 0.023372052285338226, 0.10474627127857011},
		}},
		{0.2, 1.3016424334375203, [][]float64{
			{0.016240693765443334, -0.03349279379795554, 0.01725210003251219},
			{0.29080201506172665, -0.3206582630352315, 0.029856247973504828},
			{-0.10877604285530307, -0.005171887584615861, 0.11394793043991894},
		}},
	} {
		for _, micro := range []int{0, 2} {
			stepsWithClassWeights(t, engine.Spec{
				LabelSmoothing: c.smoothing, StepMemory: disdel.StepMemory{MicroBatch: micro},
			}, c.loss, c.gradients)
		}
	}
}

func stepsWithClassWeights(t *testing.T, s engine.Spec, wantLoss float64, gradients [][]float64) {
	t.Helper()
	x, y := []float32{0.5, -2, 3, 1, 0.25, -0.75, -1, 0.5, 2}, []int32{2, 1, 0}
	g, w := identity(t)
	s.BatchSize, s.Training, s.Optimizer, s.ClassWeights = 3, true, sgd1, []float32{0.5, 2, 1.25}
	e := newEngine(t, g, s)
	if err := engine.SetWeights(e, w); err != nil {
		t.Fatal(err)
	}
	plain, _, err := enginetest.Evaluate(e, x, y)
	const want = 4.574841997764618 // PyTorch's CrossEntropyLoss(reduction="sum")
	if err != nil || math.Abs(plain-want) > 1e-5 {
		t.Errorf("an evaluation has the loss %.7f, %v", plain, err)
	}
	loss, err := enginetest.Train(e, x, y)
	if err != nil || math.Abs(loss-wantLoss) > 1e-6 {
		t.Errorf("micro-batches of %d, smoothing %g: the loss is %.9f, %v", s.MicroBatch, s.LabelSmoothing, loss, err)
	}
	for _, p := range engine.Weights(e) {
		for i, v := range p.Data {
			want := 0.0
			for r := range gradients {
				if strings.HasSuffix(p.Name, ".bias") {
					want -= gradients[r][i]
				} else {
					want -= gradients[r][i/3] * float64(x[3*r+i%3])
				}
			}
			if i%4 == 0 && strings.HasSuffix(p.Name, ".weight") {
				want++
			}
			if math.Abs(float64(v)-want) > 1e-6 {
				t.Errorf("micro-batches of %d: value %d of %s is %g, want %g", s.MicroBatch, i, p.Name, v, want)
			}
		}
	}
}

// Weights that the network or the loss does not have are refused.
func TestOddClassWeightsAreRefused(t *testing.T) {
	g, _ := identity(t)
	good := []float32{1, 2, 3}
	for _, s := range []engine.Spec{
		{Loss: MSE, ClassWeights: good},
		{ClassWeights: []float32{1, 2}},
		{ClassWeights: []float32{1, 2, 0}},
		{ClassWeights: []float32{1, 2, float32(math.NaN())}},
		{ClassWeights: []float32{1, 2, float32(math.Inf(1))}},
	} {
		s.Graph, s.BatchSize, s.Training, s.Optimizer = g, 3, true, sgd1
		if _, err := New(s); !errors.Is(err, disdel.Invalid) {
			t.Errorf("%+v: %v", s, err)
		}
	}
}
