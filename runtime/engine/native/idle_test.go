package native

import (
	"math"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/enginetest"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
)

// idleNetwork has a convolution that has eight of its nine taps idle, more weights than one move takes.
func idleNetwork(t *testing.T) *model.Graph {
	t.Helper()
	return graphOf(t, model.Shape{3, 6, 6}, func(b *model.Builder) {
		x := b.AdaptivePool("p", b.Conv("a", 0, 40, model.Square(3, 1, 1), 1, true), 1)
		b.Dense("fc", b.Flatten("f", b.Conv("b", x, 30, model.Square(3, 1, 1), 1, true)), 3)
	})
}

// isIdle tells of a weight of that convolution, in PyTorch's order, whether its tap is idle.
func isIdle(i int) bool { return i%9 != 4 }

// Weights that meet no pixel have a gradient of zero, and every optimiser moves them as that says: not at all, by their
// decay, or by moments that an earlier engine left.
func TestIdleWeightsMoveAsAGradientOfZeroSays(t *testing.T) {
	const rate, decay, momentum = 0.1, 0.05, 0.9
	g := idleNetwork(t)
	for name, c := range map[string]struct {
		optimizer disdel.Optimizer
		moments   float32 // to begin with
		clip      float64
		want      func(w float64, step int) float64
	}{
		"sgd":      {disdel.Optimizer{SGD: &disdel.SGD{LearningRate: rate}}, 0, 0, stays},
		"momentum": {disdel.Optimizer{SGD: &disdel.SGD{LearningRate: rate, Momentum: momentum}}, 0, 0.1, stays},
		"adam":     {disdel.Optimizer{Adam: &disdel.Adam{LearningRate: rate}}, 0, 0, stays},
		"lamb":     {disdel.Optimizer{LAMB: &disdel.LAMB{LearningRate: rate}}, 0, 0.1, stays},
		"decay": {
			disdel.Optimizer{SGD: &disdel.SGD{LearningRate: rate, WeightDecay: decay}},
			0, 0.1,
			func(w float64, _ int) float64 { return w * (1 - rate*decay) },
		},
		"lion": {
			disdel.Optimizer{Lion: &disdel.Lion{LearningRate: rate, WeightDecay: decay}},
			0, 0,
			func(w float64, _ int) float64 { return w * (1 - rate*decay) },
		},
		"adamw": {
			disdel.Optimizer{AdamW: &disdel.Adam{LearningRate: rate, WeightDecay: decay}},
			0, 0,
			func(w float64, _ int) float64 { return w * (1 - rate*decay) },
		},
		"moments": {
			disdel.Optimizer{SGD: &disdel.SGD{LearningRate: rate, Momentum: momentum}},
			0.5, 0,
			func(w float64, step int) float64 { return w - rate*0.5*math.Pow(momentum, float64(step)) },
		},
	} {
		for _, threads := range []int{1, 3} {
			e := initialized(t, g, engine.Spec{
				BatchSize: 8, Training: true, Threads: threads, Optimizer: c.optimizer, ClipNorm: c.clip,
			})
			if c.moments != 0 {
				fill(t, e, c.moments)
			}
			for step := 1; step < 4; step++ {
				before := weightsOf(t, e, "b.weight")
				x, y := batch(g, 8, uint64(step))
				if _, err := enginetest.Train(e, x, y); err != nil {
					t.Fatal(err)
				}
				for i, got := range weightsOf(t, e, "b.weight") {
					want := c.want(float64(before[i]), step)
					if d := math.Abs(float64(got) - want); isIdle(i) && !(d <= 1e-7*(1+math.Abs(want))) {
						t.Fatalf("%s, %d threads, step %d: weight %d went from %v to %v, want %v", name, threads, step, i,
							before[i], got, want)
					} else if !isIdle(i) && got == before[i] {
						t.Fatalf("%s: weight %d, which meets the image, stays", name, i)
					}
				}
			}
		}
	}
}

func stays(w float64, _ int) float64 { return w }

// fill sets all moments to a value.
func fill(t *testing.T, e *Engine, value float32) {
	t.Helper()
	m := engine.Moments(e)
	for i := range m {
		for k := range m[i].Data {
			m[i].Data[k] = value
		}
	}
	if err := engine.SetMoments(e, m); err != nil {
		t.Fatal(err)
	}
}

func weightsOf(t *testing.T, e *Engine, name string) []float32 {
	t.Helper()
	for _, w := range engine.Weights(e) {
		if w.Name == name {
			return w.Data
		}
	}
	t.Fatalf("there is no %s", name)
	return nil
}

// An engine that forgets its moments has no idle ones to move by either, and its gradients take no memory for them.
func TestIdleTapsCostNothing(t *testing.T) {
	g := idleNetwork(t)
	cfg := engine.Spec{
		BatchSize: 8, Training: true, Optimizer: disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.1, Momentum: 0.9}},
	}
	e := initialized(t, g, cfg)
	if err := engine.SetWeights(e, engine.Weights(e)); err != nil {
		t.Fatal(err)
	}
	for i := range e.params {
		if e.params[i].stirred {
			t.Errorf("%s is moved by weights that were set", e.params[i].Name)
		}
	}
	fill(t, e, 0.5)
	if err := e.Reset(engine.Moment); err != nil {
		t.Fatal(err)
	}
	for i := range e.params {
		p := &e.params[i]
		if p.stirred {
			t.Errorf("%s is moved by moments that were forgotten", p.Name)
		}
		if p.Name != "b.weight" {
			continue
		}
		if idle := len(p.value) - p.idleAt(); idle < 8*30*40 || len(p.value)-len(p.grad) != idle || idle < 2*len(e.zeros) {
			t.Errorf("%d weights, %d of them idle, %d gradients", len(p.value), idle, len(p.grad))
		}
	}
}
