package native

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/enginetest"
	"github.com/disdel/disdel/internal/test/race"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
)

var sgd1 = disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 1}}

// With SGD and a learning rate of 1, the weights change by the gradient: along a random direction of all weights it
// must be the difference quotient of the loss, for every layer, whole batches and short ones, with every path of
// kernels.
func TestGradientsAreTheDifferenceQuotients(t *testing.T) {
	race.SkipSequential(t)
	all := networks()
	all["dropped"] = func(b *model.Builder) { // the same channels in every first step
		x := b.Dropout2D("d", b.LeakyReLU("l", b.Conv("a", 0, 5, model.Square(3, 1, 1), 1, true), 0.3), 0.3)
		b.Dense("fc", b.Flatten("f", b.Same("e", b.Conv("b", x, 4, model.Square(3, 1, 1), 1, true), model.OpELU)), 3)
	}
	all["dropped rows"] = func(b *model.Builder) {
		x := b.Conv("a", 0, 5, model.Square(3, 1, 1), 1, true)
		x = b.Add("s", x, b.DropPath("d", b.Conv("b", x, 5, model.Square(3, 1, 1), 1, true), 0.4))
		b.Dense("fc", b.Flatten("f", b.Same("e", x, model.OpELU)), 3)
	}
	paths(t, func(t *testing.T) {
		for name, f := range all {
			g := build(t, name, f)
			losses := []string{CrossEntropy, MSE}
			if name == "sigmoid" {
				losses = []string{BinaryCrossEntropy, MSE}
			}
			for _, loss := range losses {
				for _, rows := range []int{16, 5} {
					checkGradient(t, g, loss, rows)
				}
			}
		}
	})
}

// trainLoss is the loss of a batch while training in an engine's first step, whose optimizer leaves the weights as they
// are.
func trainLoss(t *testing.T, e *Engine, w disdel.Weights, x []float32, y []int32) float64 {
	t.Helper()
	if err := errors.Join(e.Reset(engine.Moment), engine.SetWeights(e, w)); err != nil {
		t.Fatal(err)
	}
	v, err := enginetest.Train(e, x, y)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func clone(w disdel.Weights) disdel.Weights {
	out := slices.Clone(w)
	for i := range out {
		out[i].Data = slices.Clone(out[i].Data)
	}
	return out
}

func checkGradient(t *testing.T, g *model.Graph, loss string, rows int) {
	t.Helper()
	x, y := batch(g, rows, 11)
	e := initialized(t, g, engine.Spec{BatchSize: 16, Optimizer: sgd1, Loss: loss, Training: true})
	before := engine.Weights(e)
	if _, err := enginetest.Train(e, x, y); err != nil {
		t.Fatal(err)
	}
	after := engine.Weights(e)
	still := newEngine(t, g, engine.Spec{
		BatchSize: 16, Optimizer: disdel.Optimizer{SGD: &disdel.SGD{}}, Loss: loss,
		Training: true,
	})
	for i, p := range g.Params() {
		if !p.Trainable {
			continue
		}
		rng := rand.New(rand.NewPCG(uint64(i), 4))
		direction := make([]float64, p.Len())
		var slope, norm float64
		for k := range direction {
			direction[k] = rng.Float64()*2 - 1
			slope += direction[k] * float64(before[i].Data[k]-after[i].Data[k])
			norm += direction[k] * direction[k]
		}
		h := 2e-3 / math.Sqrt(norm)
		at := func(sign float64) float64 {
			w := clone(before)
			for k := range direction {
				w[i].Data[k] += float32(sign * h * direction[k])
			}
			return trainLoss(t, still, w, x, y)
		}
		want := (at(1) - at(-1)) / (2 * h)
		if math.Abs(want-slope) > 4e-3*math.Sqrt(norm)+0.02*math.Abs(want) {
			t.Errorf("%s, %s, %d rows: slope along %s is %.5f, difference quotient %.5f", g.Name, loss, rows, p.Name, slope,
				want)
		}
	}
}

// Clipping keeps the direction of all gradients together and bounds their length; shorter ones stay as they are.
func TestClippingBoundsTheNorm(t *testing.T) {
	g := build(t, "residual", networks()["residual"])
	change := func(clip float64) disdel.Weights {
		e := initialized(t, g, engine.Spec{BatchSize: 16, Optimizer: sgd1, ClipNorm: clip, Training: true})
		before := engine.Weights(e)
		x, y := batch(g, 16, 2)
		if _, err := enginetest.Train(e, x, y); err != nil {
			t.Fatal(err)
		}
		after := engine.Weights(e)
		var out disdel.Weights
		for i, p := range g.Params() {
			if !p.Trainable {
				continue
			}
			for k := range after[i].Data {
				after[i].Data[k] -= before[i].Data[k]
			}
			out = append(out, after[i])
		}
		return out
	}
	norm := func(w disdel.Weights) (sum float64) {
		for _, v := range w {
			for _, x := range v.Data {
				sum += float64(x) * float64(x)
			}
		}
		return math.Sqrt(sum)
	}
	free := change(0)
	sameBits(t, "a bound far above", free, change(1e6))
	clipped := change(norm(free) / 4)
	if got := norm(clipped) / norm(free); math.Abs(got-0.25) > 1e-4 {
		t.Errorf("clipped to %.4f of its length, want 0.25", got)
	}
	for i, v := range clipped {
		for k, x := range v.Data {
			if math.Abs(float64(x)-float64(free[i].Data[k])/4) > 1e-6 {
				t.Fatalf("%s[%d] is %v, a quarter of %v", v.Name, k, x, free[i].Data[k])
			}
		}
	}
}
