package gorgonia

import (
	"errors"
	"math"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/enginetest"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
)

// odd are networks of one layer each between a convolution, so that its data gradient counts, and a dense layer. Sizes
// are odd, and inputs no multiple of anything.
var odd = map[string]func(b *model.Builder) int{
	"conv": func(b *model.Builder) int { return b.Conv("l", b.Last(), 5, model.Square(3, 1, 1), 1, true) },
	"conv without bias": func(b *model.Builder) int {
		return b.Conv("l", b.Last(), 5, model.Square(3, 2, 0), 1, false)
	},
	"dilated conv": func(b *model.Builder) int {
		w := model.Square(3, 1, 2)
		w.Dilation = model.Sides{H: 2, W: 2}
		return b.Conv("l", b.Last(), 2, w, 1, true)
	},
	"uneven conv": func(b *model.Builder) int {
		return b.Conv("l", b.Last(), 3,
			model.Window{
				Kernel: model.Sides{H: 2, W: 3}, Stride: model.Sides{H: 2, W: 1},
				Pad: model.Padding{Bottom: 1, Left: 2},
			}, 1, true)
	},
	"grouped conv":   func(b *model.Builder) int { return b.Conv("l", b.Last(), 6, model.Square(3, 2, 1), 3, true) },
	"depthwise conv": func(b *model.Builder) int { return b.Conv("l", b.Last(), 3, model.Square(3, 2, 1), 3, true) },
	"depthwise without bias": func(b *model.Builder) int {
		w := model.Square(2, 1, 0)
		w.Dilation, w.Pad.Right = model.Sides{H: 2, W: 1}, 1
		return b.Conv("l", b.Last(), 3, w, 3, false)
	},
	"batch norm": func(b *model.Builder) int { return b.BatchNorm("l", b.Last()) },
	"batch norm of one scale": func(b *model.Builder) int {
		return b.Norm("l", b.Last(), model.Norm{Eps: 1e-3, Momentum: 0.3, NoScale: true})
	},
	"batch norm without centre": func(b *model.Builder) int { return b.Norm("l", b.Last(), model.Norm{NoCenter: true}) },
	"two batch norms of one input": func(b *model.Builder) int {
		in := b.Last()
		return b.Add("sum", b.BatchNorm("l", in), b.Norm("m", in, model.Norm{Momentum: 0.5}))
	},
	"batch norm of vectors": func(b *model.Builder) int {
		b.Flatten("flat", b.Last())
		b.Dense("d", b.Last(), 5)
		return b.BatchNorm("l", b.Last())
	},
	"relu":       func(b *model.Builder) int { return b.Same("l", b.Last(), model.OpReLU) },
	"relu6":      func(b *model.Builder) int { return b.Same("l", b.Last(), model.OpReLU6) },
	"sigmoid":    func(b *model.Builder) int { return b.Same("l", b.Last(), model.OpSigmoid) },
	"tanh":       func(b *model.Builder) int { return b.Same("l", b.Last(), model.OpTanh) },
	"hard swish": func(b *model.Builder) int { return b.Same("l", b.Last(), model.OpHardSwish) },
	"max pool": func(b *model.Builder) int {
		return b.Pool("l", b.Last(), model.OpMaxPool,
			model.Square(2, 2, 0))
	},
	"padded max pool": func(b *model.Builder) int {
		return b.Pool("l", b.Last(), model.OpMaxPool,
			model.Square(3, 2, 1))
	},
	"uneven max pool": func(b *model.Builder) int { return b.Pool("l", b.Last(), model.OpMaxPool, unevenWindow(false)) },
	"average pool": func(b *model.Builder) int {
		return b.Pool("l", b.Last(), model.OpAvgPool,
			model.Square(3, 2, 1))
	},
	"uneven average":   func(b *model.Builder) int { return b.Pool("l", b.Last(), model.OpAvgPool, unevenWindow(false)) },
	"average with pad": func(b *model.Builder) int { return b.Pool("l", b.Last(), model.OpAvgPool, unevenWindow(true)) },
	"adaptive pool":    func(b *model.Builder) int { return b.AdaptivePool("l", b.Last(), 3) },
	"global pool":      func(b *model.Builder) int { return b.GlobalPool("l", b.Last()) },
	"add": func(b *model.Builder) int {
		in := b.Last()
		return b.Add("sum", in, b.Conv("l", in, 3, model.Square(3, 1, 1), 1, true), in)
	},
	"concat": func(b *model.Builder) int {
		in := b.Last()
		return b.Concat("l", b.Conv("a", in, 2, model.Square(1, 1, 0), 1, true), in,
			b.Conv("b", in, 1, model.Square(3, 1, 1), 1, true))
	},
	"downsample": func(b *model.Builder) int { return b.Downsample("l", b.Last(), 7, 2) },
}

func unevenWindow(count bool) model.Window {
	return model.Window{
		Kernel: model.Sides{H: 3, W: 2}, Stride: model.Sides{H: 2, W: 2},
		Pad: model.Padding{Top: 1, Right: 1}, CountPad: count,
	}
}

func oddGraph(t *testing.T, layer func(b *model.Builder) int, last model.Op) *model.Graph {
	t.Helper()
	b := model.NewBuilder("odd", model.Shape{2, 7, 5})
	b.Conv("first", b.Last(), 3, model.Square(2, 1, 1), 1, true)
	layer(b)
	if len(b.Out(b.Last())) == 3 {
		b.Flatten("flatten", b.Last())
	}
	b.Dense("last", b.Last(), 3)
	if last != model.OpUnknown {
		b.Same("end", b.Last(), last)
	}
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// With SGD and a rate of 1 the weights move by the gradient, which must be the difference quotient of the training
// loss: for every layer, while training, for whole and for short batches and for a single row.
func TestEveryLayersGradientIsItsDifferenceQuotient(t *testing.T) {
	for name, layer := range odd {
		t.Run(name, func(t *testing.T) {
			g := oddGraph(t, layer, model.OpSoftmax)
			for _, rows := range []int{5, 3, 1} {
				if rows == 1 && name == "batch norm of vectors" {
					continue // one value a channel has no variance
				}
				trainingGradient(t, g, "crossEntropy", rows)
			}
		})
	}
}

func TestEveryLossesGradientIsItsDifferenceQuotient(t *testing.T) {
	for _, c := range []struct {
		loss string
		last model.Op
	}{
		{"crossEntropy", model.OpSoftmax},
		{"crossEntropy", model.OpUnknown},
		{"binaryCrossEntropy", model.OpSigmoid},
		{"binaryCrossEntropy", model.OpSoftmax},
		{"mse", model.OpUnknown},
		{"mse", model.OpSigmoid},
		{"mse", model.OpSoftmax},
	} {
		t.Run(c.loss+" "+c.last.String(), func(t *testing.T) {
			trainingGradient(t, oddGraph(t, odd["tanh"], c.last), c.loss, 4)
		})
	}
}

// trainingGradient takes the loss from steps with a rate of 0, so that batch norm goes by the batch.
func trainingGradient(t *testing.T, g *model.Graph, loss string, rows int) {
	t.Helper()
	x, y := batch(g, rows, 3, 11)
	e := make1(t, g, engine.Spec{BatchSize: 5, Optimizer: sgd1, Loss: loss, Training: true})
	before := spread(engine.Weights(e))
	at := func(rate float64) float64 {
		e.SetRate(rate)
		loss, err := enginetest.Train(e, x, y)
		if err != nil {
			t.Fatal(err)
		}
		return loss
	}
	set := func() {
		if err := engine.SetWeights(e, before); err != nil {
			t.Fatal(err)
		}
	}
	set()
	at(1)
	after := engine.Weights(e)
	const h = 2e-3
	for i, p := range g.Params() {
		for k := 0; p.Trainable && k < len(before[i].Data); k += max(1, len(before[i].Data)/5) {
			old := before[i].Data[k]
			before[i].Data[k] = old + h
			set()
			up := at(0)
			before[i].Data[k] = old - h
			set()
			down := at(0)
			before[i].Data[k] = old
			want, got := (up-down)/(2*h), float64(old-after[i].Data[k])
			if !(math.Abs(want-got) <= 2e-3+0.03*math.Abs(want)) {
				t.Errorf("%d rows: gradient of %s[%d] is %.5f, difference quotient %.5f", rows, p.Name, k, got, want)
			}
		}
	}
}

// spread moves zero weights away from kinks, and the same ones apart.
func spread(w disdel.Weights) disdel.Weights {
	for i := range w {
		for k := range w[i].Data {
			w[i].Data[k] += 0.11 * float32(math.Sin(float64(3*k+i)))
		}
	}
	return w
}

// Running statistics follow PyTorch: the mean, and the variance with n-1, each by momentum. Here from the definition.
func TestRunningStatisticsFollowTheBatches(t *testing.T) {
	for name, twice := range map[string]bool{"gorgonia's": false, "the kernels'": true} {
		b := model.NewBuilder("n", model.Shape{2, 3, 3})
		in := b.Norm("l", 0, model.Norm{Momentum: 0.3})
		if twice {
			in = b.Add("sum", in, b.BatchNorm("m", 0)) // two on one input: gorgonia's cannot
		}
		b.Flatten("f", in)
		b.Dense("d", b.Last(), 3)
		g, err := b.Graph()
		if err != nil {
			t.Fatal(err)
		}
		e := make1(t, g, engine.Spec{BatchSize: 4, Optimizer: sgd1, Training: true})
		mean, variance := []float64{0, 0}, []float64{1, 1}
		for step, rows := range []int{4, 1, 3, 4} {
			x, y := batch(g, rows, 3, uint64(step))
			for i := range x {
				x[i] = x[i]*3 + 5
			}
			for c := range 2 {
				m, v := moment(x, rows, c)
				mean[c] += 0.3 * (m - mean[c])
				variance[c] += 0.3 * (v - variance[c])
			}
			if _, err := enginetest.Train(e, x, y); err != nil {
				t.Fatal(err)
			}
		}
		for _, w := range engine.Weights(e) {
			for c, v := range w.Data {
				want := map[string]float64{"l.running_mean": mean[c%2], "l.running_var": variance[c%2]}[w.Name]
				if want != 0 && math.Abs(float64(v)-want) > 1e-4*math.Abs(want) {
					t.Errorf("%s: %s[%d] is %v, want %v", name, w.Name, c, v, want)
				}
			}
		}
	}
}

// moment is mean and unbiased variance of channel c of two, of 9 pixels.
func moment(x []float32, rows, c int) (mean, variance float64) {
	each := func(f func(v float64)) {
		for r := range rows {
			for p := range 9 {
				f(float64(x[(r*2+c)*9+p]))
			}
		}
	}
	n := float64(rows * 9)
	each(func(v float64) { mean += v / n })
	each(func(v float64) { variance += (v - mean) * (v - mean) / (n - 1) })
	return mean, variance
}

// A step that fails leaves no trace: neither in weights nor in running statistics.
func TestAFailedStepChangesNothing(t *testing.T) {
	for _, name := range []string{"batch norm", "two batch norms of one input"} {
		g := oddGraph(t, odd[name], model.OpSoftmax)
		e := make1(t, g, engine.Spec{BatchSize: 4, Optimizer: sgd1, Training: true})
		x, y := batch(g, 4, 3, 1)
		x[3] = float32(math.NaN())
		before := engine.Weights(e)
		if _, err := enginetest.Train(e, x, y); !errors.Is(err, disdel.Diverged) {
			t.Fatalf("got %v, want Diverged", err)
		}
		same(t, before, engine.Weights(e))
	}
}

func same(t *testing.T, want, got disdel.Weights) {
	t.Helper()
	for i := range want {
		for k, v := range want[i].Data {
			if got[i].Data[k] != v {
				t.Errorf("%s[%d] is %v, want %v", want[i].Name, k, got[i].Data[k], v)
				return
			}
		}
	}
}

// Evaluation is the same row by row and in batches, whatever their sizes.
func TestEvaluationDoesNotDependOnTheBatch(t *testing.T) {
	for name, layer := range odd {
		g := oddGraph(t, layer, model.OpSoftmax)
		e := make1(t, g, engine.Spec{BatchSize: 7})
		if err := engine.SetWeights(e, positiveStatistics(spread(engine.Weights(e)))); err != nil {
			t.Fatal(err)
		}
		x, y := batch(g, 7, 3, 2)
		whole, _, err := enginetest.Evaluate(e, x, y)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var parts float64
		for _, r := range [][2]int{{0, 1}, {1, 4}, {4, 6}, {6, 7}} {
			loss, _, err := enginetest.Evaluate(e, x[r[0]*70:r[1]*70], y[r[0]:r[1]])
			if err != nil {
				t.Fatal(err)
			}
			parts += loss
		}
		if !(math.Abs(whole-parts) <= 1e-4*whole) || whole <= 0 {
			t.Errorf("%s: %v in one batch, %v in four", name, whole, parts)
		}
	}
}

func positiveStatistics(w disdel.Weights) disdel.Weights {
	for i := range w {
		for k, v := range w[i].Data {
			if len(w[i].Shape) == 1 {
				w[i].Data[k] = float32(math.Abs(float64(v))) + 0.1
			}
		}
	}
	return w
}
