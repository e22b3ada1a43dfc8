package native

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/enginetest"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newEngine(t testing.TB, g *model.Graph, cfg engine.Spec) *Engine {
	t.Helper()
	e, err := New(enginetest.On(g, cfg))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// initialized is an engine with weights from a seed, where batch norms are not at identity.
func initialized(t testing.TB, g *model.Graph, cfg engine.Spec) *Engine {
	t.Helper()
	e := newEngine(t, g, cfg)
	if err := engine.SetWeights(e, namedWeights(g)); err != nil {
		t.Fatal(err)
	}
	return e
}

func batch(g *model.Graph, rows int, seed uint64) ([]float32, []int32) {
	rng := rand.New(rand.NewPCG(seed, 1))
	x, y := make([]float32, rows*g.Input().Len()), make([]int32, rows)
	for i := range x {
		x[i] = rng.Float32()*2 - 1
	}
	for i := range y {
		y[i] = rng.Int32N(int32(g.Output().Len()))
	}
	return x, y
}

// networks have every layer in every role: in place and not, fused and not, before a fork and after, at odd sizes.
func networks() map[string]func(b *model.Builder) {
	window := func(kh, kw, sh, sw, dh, dw, top, bottom, left, right int) model.Window {
		return model.Window{
			Kernel: model.Sides{H: kh, W: kw}, Stride: model.Sides{H: sh, W: sw},
			Dilation: model.Sides{H: dh, W: dw}, Pad: model.Padding{Top: top, Bottom: bottom, Left: left, Right: right},
		}
	}
	end := func(b *model.Builder, x int) {
		if len(b.Out(x)) == 3 {
			x = b.Flatten("flatten", x)
		}
		b.Same("softmax", b.Dense("fc", x, 3), model.OpSoftmax)
	}
	return map[string]func(b *model.Builder){
		"dense": func(b *model.Builder) { end(b, b.Same("relu", b.Dense("a", b.Flatten("f", 0), 19), model.OpReLU)) },
		"conv":  func(b *model.Builder) { end(b, b.Conv("a", 0, 5, model.Square(3, 1, 1), 1, true)) },
		"asymmetric": func(b *model.Builder) {
			end(b, b.Same("t", b.Conv("a", 0, 5, window(3, 2, 2, 1, 1, 1, 0, 1, 1, 0), 1, true), model.OpTanh))
		},
		"dilated": func(b *model.Builder) {
			end(b, b.Conv("b", b.Conv("a", 0, 5, window(3, 3, 1, 2, 2, 1, 2, 1, 1, 1), 1, true), 4,
				window(2, 2, 1, 1, 1, 2, 0, 0, 0, 0), 1, true))
		},
		"grouped": func(b *model.Builder) {
			end(b, b.Conv("b", b.Conv("a", 0, 6, model.Square(3, 1, 1), 1, true), 4, model.Square(3, 2, 1), 2, true))
		},
		"depthwise": func(b *model.Builder) {
			end(b, b.Conv("b", b.Conv("a", 0, 6, model.Square(3, 1, 1), 1, true), 6, window(3, 3, 2, 1, 1, 1, 1, 1, 1, 0), 6,
				true))
		},
		"conv relu pool": func(b *model.Builder) {
			end(b, b.Pool("p", b.Same("r", b.Conv("a", 0, 5, model.Square(3, 1, 0), 1, true), model.OpReLU), model.OpMaxPool,
				model.Square(2, 2, 0)))
		},
		"pool relu": func(b *model.Builder) {
			end(b, b.Same("r", b.Pool("p", b.Conv("a", 0, 5, model.Square(3, 1, 0), 1, true), model.OpMaxPool,
				model.Square(3, 2, 1)), model.OpReLU))
		},
		"average": func(b *model.Builder) {
			end(b, b.Pool("p", b.Conv("a", 0, 5, model.Square(3, 1, 0), 1, true), model.OpAvgPool, model.Square(3, 2, 1)))
		},
		"average all": func(b *model.Builder) {
			w := model.Square(3, 1, 1)
			w.CountPad = true
			end(b, b.Pool("p", b.Conv("a", 0, 5, model.Square(3, 1, 0), 1, true), model.OpAvgPool, w))
		},
		"adaptive": func(b *model.Builder) {
			end(b, b.AdaptivePool("p", b.Conv("a", 0, 5, model.Square(2, 1, 0), 1, true), 3))
		},
		"global": func(b *model.Builder) {
			end(b, b.GlobalPool("p", b.Same("s", b.Conv("a", 0, 5, model.Square(2, 1, 0), 1, true), model.OpSigmoid)))
		},
		"norm": func(b *model.Builder) { end(b, b.BatchNorm("n", b.Conv("a", 0, 9, model.Square(3, 1, 1), 1, false))) },
		"norm relu": func(b *model.Builder) {
			end(b, b.Same("r", b.BatchNorm("n", b.Conv("a", 0, 9, model.Square(3, 1, 1), 1, false)), model.OpReLU))
		},
		"norm plain": func(b *model.Builder) {
			end(b, b.Norm("n", b.Conv("a", 0, 4, model.Square(3, 1, 1), 1, false),
				model.Norm{Eps: 1e-3, NoScale: true, NoCenter: true}))
		},
		"norm dense": func(b *model.Builder) {
			end(b, b.Same("r", b.BatchNorm("n", b.Dense("a", b.Flatten("f", 0), 7)), model.OpReLU6))
		},
		"norm input": func(b *model.Builder) { end(b, b.BatchNorm("n", 0)) },
		"residual": func(b *model.Builder) {
			x := b.Same("r0", b.Conv("a", 0, 6, model.Square(3, 1, 1), 1, true), model.OpReLU)
			y := b.BatchNorm("n", b.Conv("b", x, 6, model.Square(3, 1, 1), 1, false))
			end(b, b.Same("r", b.Add("add", y, x), model.OpReLU))
		},
		"projection": func(b *model.Builder) {
			x := b.Same("r0", b.BatchNorm("n0", b.Conv("a", 0, 6, model.Square(3, 1, 1), 1, false)), model.OpReLU)
			y := b.BatchNorm("n1", b.Conv("b", x, 8, model.Square(3, 2, 1), 1, false))
			z := b.BatchNorm("n2", b.Conv("c", x, 8, model.Square(1, 2, 0), 1, false))
			end(b, b.Same("r", b.Add("add", z, y), model.OpReLU))
		},
		"option a": func(b *model.Builder) {
			x := b.Same("r0", b.Conv("a", 0, 4, model.Square(3, 1, 1), 1, true), model.OpReLU)
			y := b.Conv("b", x, 8, model.Square(3, 2, 1), 1, true)
			end(b, b.Add("add", b.Downsample("d", x, 8, 2), y))
		},
		"fork": func(b *model.Builder) {
			x := b.Conv("a", 0, 4, model.Square(3, 1, 1), 1, true)
			p := b.Pool("p", x, model.OpMaxPool, model.Square(3, 1, 1))
			q := b.Pool("q", x, model.OpAvgPool, model.Square(3, 1, 1))
			r := b.Same("r", x, model.OpReLU)
			d := b.Conv("d", x, 4, model.Square(3, 1, 1), 4, false)
			end(b, b.Concat("cat", p, b.Same("s", q, model.OpTanh), r, d, x, b.Conv("e", r, 3, model.Square(1, 1, 0), 1, false)))
		},
		"sums": func(b *model.Builder) {
			x := b.Conv("a", 0, 4, model.Square(3, 1, 1), 1, true)
			y := b.Add("twice", x, x)
			z := b.Add("three", b.Conv("b", y, 4, model.Square(1, 1, 0), 1, true),
				b.Conv("c", y, 4, model.Square(1, 1, 0), 1, true), x)
			end(b, b.Same("r", z, model.OpReLU))
		},
		"vectors": func(b *model.Builder) { // a flatten that has to reorder, and one that has not
			x := b.Conv("a", 0, 3, model.Square(3, 2, 1), 1, true)
			f := b.Flatten("f", x)
			g := b.Same("r", b.Flatten("g", x), model.OpReLU)
			end(b, b.Add("add", b.Same("s", f, model.OpSigmoid), b.Dense("d", g, b.Out(f)[0])))
		},
		"dead end": func(b *model.Builder) {
			x := b.Conv("a", 0, 3, model.Square(3, 2, 1), 1, true)
			b.Conv("unused", x, 2, model.Square(1, 1, 0), 1, true)
			end(b, x)
		},
		"stacked": func(b *model.Builder) { // activations that must not overwrite each other
			x := b.Same("r", b.Conv("a", 0, 4, model.Square(3, 1, 1), 1, true), model.OpReLU)
			y := b.Same("s0", x, model.OpSigmoid)
			z := b.Same("s", b.Same("r6", b.Conv("b", y, 4, model.Square(1, 1, 0), 1, true), model.OpReLU6), model.OpSigmoid)
			end(b, b.Same("t2", b.Pool("p", b.Conv("c", z, 4, model.Square(1, 1, 0), 1, true), model.OpMaxPool,
				model.Square(2, 2, 0)), model.OpTanh))
		},
		"logits": func(b *model.Builder) {
			b.Dense("fc", b.Flatten("f", b.Conv("a", 0, 3, model.Square(3, 1, 0), 1, true)), 3)
		},
		"sigmoid": func(b *model.Builder) { b.Same("s", b.Dense("fc", b.Flatten("f", 0), 3), model.OpSigmoid) },
	}
}

func build(t testing.TB, name string, f func(b *model.Builder)) *model.Graph {
	t.Helper()
	b := model.NewBuilder(name, model.Shape{2, 7, 6})
	f(b)
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

var sgd1 = disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 1}}

// With SGD and a learning rate of 1, the weights change by the gradient: along a random direction of all weights it
// must be the difference quotient of the loss, for every layer, whole batches and short ones, with every path of
// kernels.
func TestGradientsAreTheDifferenceQuotients(t *testing.T) {
	paths(t, func(t *testing.T) {
		for name, f := range networks() {
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

// trainLoss is the loss of a batch while training, with weights as they are and left so.
func trainLoss(t *testing.T, g *model.Graph, loss string, w disdel.Weights, x []float32, y []int32) float64 {
	t.Helper()
	e := newEngine(t, g, engine.Spec{
		BatchSize: 16, Optimizer: disdel.Optimizer{SGD: &disdel.SGD{}}, Loss: loss,
		Training: true,
	})
	if err := engine.SetWeights(e, w); err != nil {
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
			return trainLoss(t, g, loss, w, x, y)
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

// run trains some steps and returns the weights.
func run(t *testing.T, g *model.Graph, cfg engine.Spec, rows ...int) disdel.Weights {
	t.Helper()
	e := initialized(t, g, cfg)
	for i, n := range rows {
		x, y := batch(g, n, uint64(i))
		if _, err := enginetest.Train(e, x, y); err != nil {
			t.Fatal(err)
		}
	}
	return engine.Weights(e)
}

func sameBits(t *testing.T, what string, a, b disdel.Weights) {
	t.Helper()
	for i := range a {
		for k := range a[i].Data {
			if math.Float32bits(a[i].Data[k]) != math.Float32bits(b[i].Data[k]) {
				t.Fatalf("%s: %s[%d] is %v and %v", what, a[i].Name, k, a[i].Data[k], b[i].Data[k])
			}
		}
	}
}

// The same seed and batches give the same bits, on any number of threads, with short batches between.
func TestThreadsDoNotChangeBits(t *testing.T) {
	for name, f := range networks() {
		g := build(t, name, f)
		cfg := engine.Spec{
			BatchSize: 20, Optimizer: disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.01}}, ClipNorm: 1,
			Training: true,
		}
		one := run(t, g, cfg, 20, 7, 20)
		for _, threads := range []int{1, 2, 3, 7} {
			cfg.Threads = threads
			sameBits(t, fmt.Sprintf("%s on %d threads", name, threads), one, run(t, g, cfg, 20, 7, 20))
		}
	}
}

// All paths compute the same function; they round differently.
func TestPathsAgree(t *testing.T) {
	for name, f := range networks() {
		g := build(t, name, f)
		var all []disdel.Weights
		paths(t, func(t *testing.T) {
			all = append(all, run(t, g,
				engine.Spec{BatchSize: 20, Optimizer: disdel.Optimizer{SGD: &disdel.SGD{
					LearningRate: 0.1, Momentum: 0.9,
					Nesterov: true, WeightDecay: 1e-3,
				}}, Training: true}, 20, 7, 20))
		})
		for _, other := range all[1:] {
			for i := range other {
				for k, v := range other[i].Data {
					if d := math.Abs(float64(v - all[0][i].Data[k])); !(d < 2e-4) {
						t.Fatalf("%s: %s[%d] differs by %g", name, other[i].Name, k, d)
					}
				}
			}
		}
	}
}

// Without batch norm a gradient is linear in the rows: the mean over a batch is the mean of the means of its halves.
func TestSplittingABatchChangesNothing(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		g := build(t, "conv relu pool", networks()["conv relu pool"])
		a, b := rapid.IntRange(1, 20).Draw(r, "a"), rapid.IntRange(1, 20).Draw(r, "b")
		x, y := batch(g, a+b, rapid.Uint64().Draw(r, "seed"))
		size := g.Input().Len()
		gradient := func(x []float32, y []int32) disdel.Weights {
			e := initialized(t, g, engine.Spec{BatchSize: 40, Optimizer: sgd1, Training: true})
			before := engine.Weights(e)
			if _, err := enginetest.Train(e, x, y); err != nil {
				r.Fatal(err)
			}
			after := engine.Weights(e)
			for i := range before {
				for k := range before[i].Data {
					before[i].Data[k] -= after[i].Data[k]
				}
			}
			return before
		}
		whole, left, right := gradient(x, y), gradient(x[:a*size], y[:a]), gradient(x[a*size:], y[a:])
		for i := range whole {
			for k, v := range whole[i].Data {
				mean := (float64(a)*float64(left[i].Data[k]) + float64(b)*float64(right[i].Data[k])) / float64(a+b)
				if math.Abs(float64(v)-mean) > 1e-5 {
					r.Fatalf("%s[%d]: %v of the batch, %v of its parts", whole[i].Name, k, v, mean)
				}
			}
		}
	})
}

// A row's prediction does not depend on the rows beside it, in evaluation.
func TestRowsAreIndependentInEvaluation(t *testing.T) {
	for name, f := range networks() {
		g := build(t, name, f)
		e := initialized(t, g, engine.Spec{BatchSize: 20})
		x, y := batch(g, 20, 3)
		all, err := enginetest.Predict(e, x, 20)
		if err != nil {
			t.Fatal(err)
		}
		size, classes := g.Input().Len(), g.Output().Len()
		for _, r := range []int{0, 17} {
			one, err := enginetest.Predict(e, x[r*size:(r+1)*size], 1)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(one, all[r*classes:(r+1)*classes]) {
				t.Errorf("%s: row %d alone gives %v, among others %v", name, r, one, all[r*classes:(r+1)*classes])
			}
		}
		trainer := initialized(t, g, engine.Spec{BatchSize: 20, Training: true, Optimizer: sgd1})
		again, err := enginetest.Predict(trainer, x, 20)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(all, again) {
			t.Errorf("%s: an engine for training predicts otherwise", name)
		}
		a, _, err1 := enginetest.Evaluate(e, x, y)
		b, _, err2 := enginetest.Evaluate(trainer, x, y)
		if a != b || err1 != nil || err2 != nil {
			t.Errorf("%s: losses %v and %v, %v, %v", name, a, b, err1, err2)
		}
	}
}

func TestStepsAllocateNothing(t *testing.T) {
	for _, threads := range []int{1, 2} {
		g := testNetwork(t, "resnet8-test")
		e := initialized(t, g, engine.Spec{
			BatchSize: 16, Threads: threads, ClipNorm: 1,
			Optimizer: disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 1e-3}}, Training: true,
		})
		x, y := namedBatch(0, g.Input())
		rows := dataset.Dense(len(y), x, y)
		var seam engine.Engine = e // as actions have it: the batch and the metrics go as values
		for call, f := range map[string]func(dataset.Batch) (disdel.Metrics, error){
			"step":       seam.Step,
			"evaluation": seam.Evaluate,
		} {
			if n := testing.AllocsPerRun(20, func() {
				if _, err := f(rows); err != nil {
					t.Fatal(err)
				}
			}); n != 0 {
				t.Errorf("%d threads: %v allocations of a %s", threads, n, call)
			}
		}
	}
}

// The memory of an engine is its plan's, to the byte, and known before.
func TestThePlanIsTheMemory(t *testing.T) {
	g := testNetwork(t, "lenet5")
	cfg := engine.Spec{BatchSize: 64, Training: true, Optimizer: disdel.Optimizer{Adam: &disdel.Adam{}}}
	p, err := PlanOf(enginetest.On(g, cfg))
	if err != nil {
		t.Fatal(err)
	}
	e := newEngine(t, g, cfg)
	if len(e.mem.Values()) != p.Len {
		t.Errorf("%d values, planned %d", len(e.mem.Values()), p.Len)
	}
	cfg.Memory = p.Bytes() - 1
	if _, err := New(enginetest.On(g, cfg)); !errors.Is(err, disdel.OOM) {
		t.Errorf("a byte too little: %v", err)
	}
}

func TestDropoutKeepsTheMeanAndForgetsInEvaluation(t *testing.T) {
	b := model.NewBuilder("dropout", model.Shape{400})
	b.Dense("fc", b.Dropout("d", 0, 0.3), 2)
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	x := make([]float32, 32*400)
	for i := range x {
		x[i] = 1
	}
	e := newEngine(t, g, engine.Spec{BatchSize: 32, Training: true, Optimizer: sgd1, Seed: 5})
	l := &e.layers[1]
	if _, err := enginetest.Train(e, x, make([]int32, 32)); err != nil {
		t.Fatal(err)
	}
	var sum, zeros float64
	for _, v := range l.out {
		sum += float64(v)
		if v == 0 {
			zeros++
		}
	}
	n := float64(len(l.out))
	if math.Abs(sum/n-1) > 0.03 || math.Abs(zeros/n-0.3) > 0.02 {
		t.Errorf("mean %.3f, dropped %.3f", sum/n, zeros/n)
	}
	first := slices.Clone(l.out)
	if _, err := enginetest.Train(e, x, make([]int32, 32)); err != nil {
		t.Fatal(err)
	}
	if slices.Equal(first, l.out) {
		t.Error("two steps drop the same values")
	}
	if _, err := enginetest.Predict(e, x, 32); err != nil {
		t.Fatal(err)
	}
	if slices.Max(l.out) != 1 || slices.Min(l.out) != 1 {
		t.Error("evaluation drops")
	}
}

func TestWeightsAndStateComeBackAsTheyWent(t *testing.T) {
	for name, f := range networks() {
		g := build(t, name, f)
		cfg := engine.Spec{
			BatchSize: 8, Training: true,
			Optimizer: disdel.Optimizer{AdamW: &disdel.Adam{LearningRate: 0.01, WeightDecay: 0.1}},
		}
		straight := run(t, g, cfg, 8, 8, 8)
		e := initialized(t, g, cfg)
		for i := range 3 {
			x, y := batch(g, 8, uint64(i))
			if i == 1 { // moves to another process
				w, s := engine.Weights(e), engine.Moments(e)
				e = newEngine(t, g, cfg)
				if err := errors.Join(engine.SetWeights(e, w), engine.SetMoments(e, s)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := enginetest.Train(e, x, y); err != nil {
				t.Fatal(err)
			}
		}
		sameBits(t, name, straight, engine.Weights(e))
	}
}

// Array by array, and in parts of any length, a state is the one that goes as a whole, both ways.
func TestArraysAreTheState(t *testing.T) {
	for name, f := range networks() {
		g := build(t, name, f)
		cfg := engine.Spec{BatchSize: 8, Training: true, Optimizer: disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.01}}}
		e, other := initialized(t, g, cfg), newEngine(t, g, cfg)
		x, y := batch(g, 8, 1)
		if _, err := enginetest.Train(e, x, y); err != nil {
			t.Fatal(err)
		}
		to := other.State()
		for i, a := range e.State() {
			part := make([]float32, min(a.Len(), 7))
			for at := 0; at < a.Len(); at += len(part) {
				part = part[:min(len(part), a.Len()-at)]
				if err := errors.Join(a.ReadAt(part, at), to[i].WriteAt(part, at)); err != nil {
					t.Fatal(err)
				}
			}
		}
		sameBits(t, name+" weights", engine.Weights(e), engine.Weights(other))
		sameBits(t, name+" optimiser", engine.Moments(e), engine.Moments(other))
	}
}

func TestInitDrawsWhatInitWeightsDraws(t *testing.T) {
	for name, f := range networks() {
		g := build(t, name, f)
		e := newEngine(t, g, engine.Spec{BatchSize: 1})
		for _, init := range []disdel.Init{{Scheme: "he", Seed: 3}, {Seed: 4}} {
			if err := e.Init(init); err != nil {
				t.Fatal(err)
			}
			sameBits(t, name, engine.InitWeights(g, init), engine.Weights(e))
		}
	}
}

func TestWhatDoesNotFitIsRefused(t *testing.T) {
	g := testNetwork(t, "lenet5")
	e := initialized(t, g, engine.Spec{BatchSize: 4, Optimizer: sgd1, Training: true})
	x, y := batch(g, 4, 1)
	w := engine.Weights(e)
	w[0].Data[3] = float32(math.NaN())
	huge := slices.Clone(x)
	huge[7] = float32(math.Inf(1))
	before := engine.Weights(e)
	for name, c := range map[string]struct {
		err  error
		kind disdel.Kind
	}{
		"short input":    {second(enginetest.Train(e, x[1:], y)), disdel.Invalid},
		"too many rows":  {second(enginetest.Train(e, append(x, x...), append(y, y...))), disdel.Invalid},
		"no rows":        {second(enginetest.Train(e, nil, nil)), disdel.Invalid},
		"label":          {second(enginetest.Train(e, x, []int32{0, 1, 2, 10})), disdel.Invalid},
		"infinite input": {second(enginetest.Train(e, huge, y)), disdel.Diverged},
		"nan weights":    {engine.SetWeights(e, w), disdel.Diverged},
		"fewer weights":  {engine.SetWeights(e, w[1:]), disdel.Corrupt},
		"other state":    {engine.SetMoments(e, w), disdel.Corrupt},
		"batch":          {second3(New(enginetest.On(g, engine.Spec{}))), disdel.Invalid},
		"loss":           {second3(New(enginetest.On(g, engine.Spec{BatchSize: 1, Loss: "hinge"}))), disdel.Invalid},
	} {
		if !errors.Is(c.err, c.kind) {
			t.Errorf("%s: %v, want %v", name, c.err, c.kind)
		}
	}
	sameBits(t, "after refusals", before, engine.Weights(e))
	t.Setenv(kernel.Variable, "mmx")
	if _, err := New(enginetest.On(g, engine.Spec{BatchSize: 1})); !errors.Is(err, disdel.Invalid) {
		t.Errorf("unknown kernels: %v", err)
	}
}

func second(_ float64, err error) error  { return err }
func second3(_ *Engine, err error) error { return err }

// Every network of the zoo plans, and buffers that are alive together never overlap.
func TestTheZooPlans(t *testing.T) {
	for _, entry := range model.Zoo() {
		g, err := model.Build(disdel.Network{Name: entry.Name, Input: entry.Input, Classes: entry.Classes})
		if err != nil {
			t.Fatal(err)
		}
		for _, training := range []bool{true, false} {
			p, err := plan.New(g, plan.Spec{BatchSize: 4, Training: training, Moments: 1})
			if err != nil {
				t.Fatal(err)
			}
			peak, gaps := p.ByCategory()
			if share := float64(gaps) / float64(p.Bytes()); share > 0.15 {
				t.Errorf("%s, training %v: %.0f %% of %v is gaps", entry.Name, training, 100*share, p.Bytes())
			}
			if peak[plan.Weights] < disdel.Bytes(4*g.Count().Trainable) {
				t.Errorf("%s: %v of weights", entry.Name, peak[plan.Weights])
			}
		}
	}
}
