package gorgonia

import (
	"math"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/enginetest"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/native"
)

// compare trains both backends on the same batches, one of them short, and compares losses, weights and outputs.
func compare(t *testing.T, g *model.Graph, cfg engine.Spec, bound float64) {
	t.Helper()
	cfg.BatchSize, cfg.Training = 5, true
	oracle := make1(t, g, cfg)
	e, err := native.New(enginetest.On(g, cfg))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	start := positiveStatistics(spread(engine.Weights(oracle)))
	for _, e := range []engine.Engine{oracle, e} {
		if err := engine.SetWeights(e, start); err != nil {
			t.Fatal(err)
		}
	}
	for step, rows := range []int{5, 5, 3, 1, 4} {
		x, y := batch(g, rows, g.Output().Len(), uint64(step))
		want, err := enginetest.Train(oracle, x, y)
		if err != nil {
			t.Fatal(err)
		}
		got, err := enginetest.Train(e, x, y)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(got-want) > bound*(1+want) {
			t.Fatalf("step %d: the engine's loss is %v, gorgonia's %v", step, got, want)
		}
	}
	for i, w := range engine.Weights(oracle) {
		closeTo(t, w.Name, engine.Weights(e)[i].Data, w.Data, bound)
	}
	x, y := batch(g, 4, g.Output().Len(), 99)
	want, err := enginetest.Predict(oracle, x, 4)
	if err != nil {
		t.Fatal(err)
	}
	got, err := enginetest.Predict(e, x, 4)
	if err != nil {
		t.Fatal(err)
	}
	closeTo(t, "prediction", got, want, bound)
	a, n, err := enginetest.Evaluate(oracle, x, y)
	if err != nil {
		t.Fatal(err)
	}
	b, m, err := enginetest.Evaluate(e, x, y)
	if err != nil || math.Abs(a-b) > bound*(1+a) || n != m {
		t.Errorf("evaluation: the engine says %v and %d right, gorgonia %v and %d; %v", b, m, a, n, err)
	}
}

// The engine and gorgonia train every layer alike.
func TestTheEngineAgreesOnEveryLayer(t *testing.T) {
	for name, layer := range odd {
		if name == "batch norm of vectors" {
			continue // its batch of one row has no variance; see below
		}
		t.Run(name, func(t *testing.T) {
			compare(t, oddGraph(t, layer, model.OpSoftmax),
				engine.Spec{Optimizer: disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.02}}}, 2e-3)
		})
	}
}

func TestTheEngineAgreesOnEveryLossAndOptimizer(t *testing.T) {
	for name, o := range map[string]disdel.Optimizer{
		"sgd":      {SGD: &disdel.SGD{LearningRate: 0.05, WeightDecay: 0.1}},
		"momentum": {SGD: &disdel.SGD{LearningRate: 0.05, Momentum: 0.9}},
		"nesterov": {SGD: &disdel.SGD{LearningRate: 0.05, Momentum: 0.9, Nesterov: true, WeightDecay: 0.01}},
		"adam":     {Adam: &disdel.Adam{LearningRate: 0.01, WeightDecay: 0.1, Epsilon: 1e-3}},
		"rmsprop":  {RMSprop: &disdel.RMSprop{LearningRate: 0.001, Momentum: 0.9, WeightDecay: 0.1}},
		"adagrad":  {Adagrad: &disdel.Adagrad{LearningRate: 0.01}},
		"lion":     {Lion: &disdel.Lion{LearningRate: 0.001, WeightDecay: 0.1, Beta1: 0.8, Beta2: 0.95}},
		"lamb":     {LAMB: &disdel.LAMB{LearningRate: 0.01, WeightDecay: 0.1, Epsilon: 1e-3}},
		"adamw":    {AdamW: &disdel.Adam{LearningRate: 0.01, WeightDecay: 0.1, Beta1: 0.8, Beta2: 0.99, Epsilon: 1e-3}},
	} {
		for _, c := range []struct {
			loss string
			last model.Op
		}{
			{"crossEntropy", model.OpSoftmax},
			{"crossEntropy", model.OpUnknown},
			{"binaryCrossEntropy", model.OpSigmoid},
			{"binaryCrossEntropy", model.OpSoftmax},
			{"mse", model.OpUnknown},
			{"mse", model.OpSoftmax},
		} {
			for _, clip := range []float64{0, 0.1} {
				t.Run(name+" "+c.loss, func(t *testing.T) {
					compare(t, oddGraph(t, odd["tanh"], c.last), engine.Spec{Optimizer: o, Loss: c.loss, ClipNorm: clip}, 1e-3)
				})
			}
		}
	}
}

// Binary cross-entropy of a network that is sure of a wrong class is not capped: loss and step are the native engine's.
func TestBinaryCrossEntropyHasNoCap(t *testing.T) {
	for _, last := range []model.Op{model.OpSigmoid, model.OpSoftmax} {
		g := oddGraph(t, odd["tanh"], last)
		spec := engine.Spec{BatchSize: 5, Training: true, Optimizer: sgd1, Loss: "binaryCrossEntropy"}
		oracle := make1(t, g, spec)
		e, err := native.New(enginetest.On(g, spec))
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		start := spread(engine.Weights(oracle))
		for i := range start {
			for k := range start[i].Data {
				start[i].Data[k] *= 60
			}
		}
		x, y := batch(g, 5, g.Output().Len(), 3)
		var losses []float64
		for _, e := range []engine.Engine{oracle, e} {
			if err := engine.SetWeights(e, start); err != nil {
				t.Fatal(err)
			}
			loss, err := enginetest.Train(e, x, y)
			if err != nil {
				t.Fatal(err)
			}
			losses = append(losses, loss)
		}
		if losses[1] < 20 || math.Abs(losses[0]-losses[1]) > 1e-4*losses[1] {
			t.Errorf("%s: the loss is %v, the native engine's %v", last, losses[0], losses[1])
		}
		for i, w := range engine.Weights(oracle) {
			closeTo(t, w.Name, engine.Weights(e)[i].Data, w.Data, 1e-3)
		}
	}
}

// Optimisers' states go from one backend to the other.
func TestOptimizerStatesAreTheEngines(t *testing.T) {
	g := oddGraph(t, odd["conv"], model.OpSoftmax)
	cfg := engine.Spec{BatchSize: 5, Optimizer: disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.01}}, Training: true}
	from, to := make1(t, g, cfg), make1(t, g, cfg)
	e, err := native.New(enginetest.On(g, cfg))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	x, y := batch(g, 5, 3, 1)
	if _, err := enginetest.Train(from, x, y); err != nil {
		t.Fatal(err)
	}
	state := engine.Moments(from)
	if err := engine.SetMoments(e, state); err != nil {
		t.Fatal(err)
	}
	if err := engine.SetMoments(to, engine.Moments(e)); err != nil {
		t.Fatal(err)
	}
	same(t, state, engine.Moments(to))
	if err := engine.SetWeights(to, engine.Weights(from)); err != nil {
		t.Fatal(err)
	}
	for _, e := range []*Engine{from, to} {
		if _, err := enginetest.Train(e, x, y); err != nil {
			t.Fatal(err)
		}
	}
	same(t, engine.Weights(from), engine.Weights(to))
	if err := engine.SetMoments(to, state[1:]); disdel.KindOf(err) != disdel.Corrupt {
		t.Errorf("got %v, want Corrupt", err)
	}
}

// Networks of the zoo, small, train alike: branches, shortcuts and depthwise layers together.
func TestTheEngineAgreesOnNetworks(t *testing.T) {
	for name, input := range map[string][]int{
		"lenet5": {1, 28, 28}, "resnet20-cifar": {3, 8, 8},
		"resnet20-cifar-b": {3, 8, 8},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() {
				t.Skip("takes seconds")
			}
			g, err := model.Build(disdel.Network{Name: name, Input: input, Classes: 4})
			if err != nil {
				t.Fatal(err)
			}
			cfg := engine.Spec{BatchSize: 4, Optimizer: disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.01}}, Training: true}
			oracle := make1(t, g, cfg)
			e, err := native.New(enginetest.On(g, cfg))
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			if err := engine.SetWeights(e, engine.Weights(oracle)); err != nil {
				t.Fatal(err)
			}
			x, y := batch(g, 4, 4, 3)
			for step := range 3 {
				want, err := enginetest.Train(oracle, x, y)
				if err != nil {
					t.Fatal(err)
				}
				got, err := enginetest.Train(e, x, y)
				if err != nil || math.Abs(got-want) > 5e-3*(1+want) {
					t.Fatalf("step %d: the engine's loss is %v, gorgonia's %v; %v", step, got, want, err)
				}
			}
		})
	}
}
