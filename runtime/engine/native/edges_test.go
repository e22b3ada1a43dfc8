package native

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/enginetest"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
)

// everywhere runs f for every one of the tested sets of kernels, with one thread and with two.
func everywhere(t *testing.T, f func(t *testing.T, threads int)) {
	for _, set := range testedSets() {
		for _, threads := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s/%d", set.Name, threads), func(t *testing.T) {
				t.Setenv(kernel.Variable, set.Name)
				f(t, threads)
			})
		}
	}
}

func graphOf(t *testing.T, input model.Shape, build func(b *model.Builder)) *model.Graph {
	t.Helper()
	b := model.NewBuilder("edges", input)
	build(b)
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func engineOf(t *testing.T, g *model.Graph, cfg engine.Spec) *Engine {
	t.Helper()
	e, err := New(enginetest.On(g, cfg))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	if err := engine.SetWeights(e, engine.InitWeights(g, disdel.Init{Seed: 5})); err != nil {
		t.Fatal(err)
	}
	return e
}

func someRows(g *model.Graph, rows int, seed uint64) ([]float32, []int32) {
	rng := rand.New(rand.NewPCG(seed, 3))
	x, y := make([]float32, rows*g.Input().Len()), make([]int32, rows)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	for i := range y {
		y[i] = int32(rng.IntN(g.Output().Len()))
	}
	return x, y
}

var sgd = disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.1}}

// A network that has nothing to learn has a loss all the same, and outputs.
func TestANetworkWithoutWeightsHasALoss(t *testing.T) {
	for name, c := range map[string]struct {
		loss string
		ends []model.Op
	}{
		"softmax":        {CrossEntropy, []model.Op{model.OpSoftmax}},
		"nothing":        {CrossEntropy, nil},
		"sigmoid":        {MSE, []model.Op{model.OpSigmoid}},
		"binary":         {BinaryCrossEntropy, []model.Op{model.OpSigmoid}},
		"tanh, softmax":  {MSE, []model.Op{model.OpTanh, model.OpSoftmax}},
		"binary softmax": {BinaryCrossEntropy, []model.Op{model.OpReLU, model.OpSoftmax}},
	} {
		g := graphOf(t, model.Shape{1, 2, 3}, func(b *model.Builder) {
			b.Flatten("flat", b.Last())
			for _, op := range c.ends {
				b.Same(op.String(), b.Last(), op)
			}
		})
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, threads int) {
				for _, clip := range []float64{0, 1} {
					e := engineOf(t, g, engine.Spec{
						BatchSize: 5, Optimizer: sgd, Loss: c.loss, Training: true, ClipNorm: clip,
						Threads: threads,
					})
					x, y := someRows(g, 5, 1)
					for range 2 {
						loss, err := enginetest.Train(e, x, y)
						sum, _, err2 := enginetest.Evaluate(e, x, y)
						if err != nil || err2 != nil || !(loss > 0) || math.Abs(loss-sum/5) > 1e-6 {
							t.Errorf("a step's loss is %v, the evaluation's %v; %v, %v", loss, sum/5, err, err2)
						}
					}
					if p, err := enginetest.Predict(e, x, 5); err != nil || len(p) != 30 {
						t.Errorf("%d outputs, %v", len(p), err)
					}
				}
			})
		})
	}
}

// tanh, sigmoid and relu6 hide an infinite input from the loss; the weights' gradient would be NaN. NaN and large
// values, too.
func TestInputsThatAreNotFiniteChangeNoWeight(t *testing.T) {
	everywhere(t, func(t *testing.T, threads int) {
		for _, op := range []model.Op{
			model.OpReLU, model.OpReLU6, model.OpSigmoid, model.OpTanh, model.OpHardSwish, model.OpELU, model.OpSoftplus,
			model.OpLeakyReLU, model.OpHardSigmoid,
		} {
			g := graphOf(t, model.Shape{3, 5, 5}, func(b *model.Builder) {
				b.Conv("conv", b.Last(), 4, model.Square(3, 1, 1), 1, true)
				b.Same("act", b.Last(), op)
				b.BatchNorm("norm", b.Last())
				b.Dense("fc", b.Flatten("flat", b.Last()), 3)
			})
			e := engineOf(t, g, engine.Spec{BatchSize: 3, Optimizer: sgd, Training: true, Threads: threads})
			before := engine.Weights(e)
			for _, v := range []float64{math.Inf(1), math.Inf(-1), math.NaN()} {
				for _, at := range []int{0, 110, 111, 112, 224} {
					x, y := someRows(g, 3, 1)
					x[at] = float32(v)
					if _, err := enginetest.Train(e, x, y); !errors.Is(err, disdel.Diverged) {
						t.Fatalf("%v at %d behind %v: %v", v, at, op, err)
					}
					if !slices.EqualFunc(before, engine.Weights(e),
						func(a, b disdel.Tensor) bool { return slices.Equal(a.Data, b.Data) }) {
						t.Fatalf("%v at %d behind %v changed weights", v, at, op)
					}
				}
			}
			x, y := someRows(g, 3, 1)
			x[7], x[200] = 1e30, -1e30
			if _, err := enginetest.Train(e, x, y); op != model.OpReLU && err != nil {
				t.Errorf("1e30 behind %v: %v", op, err)
			}
		}
	})
}

// Whatever a sum overwrites, and it may overwrite more for inference, its terms are added in one order.
func TestASumIsTheSameForInferenceAsForTraining(t *testing.T) {
	for shared := range 1 << 4 { // which inputs others read too
		for _, relu := range []bool{false, true} {
			g := graphOf(t, model.Shape{3, 4, 4}, func(b *model.Builder) {
				var in []int
				for i := range 4 {
					in = append(in, b.Conv(fmt.Sprintf("c%d", i), 0, 5, model.Square(3, 1, 1), 1, true))
					if i == 2 {
						in[i] = b.Same("tanh", in[i], model.OpTanh) // not overwritten while training
					}
				}
				sum := b.Add("sum", in...)
				if relu {
					sum = b.Same("relu", sum, model.OpReLU)
				}
				for i := range 4 {
					if shared>>i&1 > 0 {
						sum = b.Concat(fmt.Sprintf("also%d", i), sum, in[i])
					}
				}
				b.Dense("fc", b.Flatten("flat", sum), 3)
			})
			trains, infers := engineOf(t, g, engine.Spec{BatchSize: 4, Optimizer: sgd, Training: true}),
				engineOf(t, g, engine.Spec{BatchSize: 4})
			x, _ := someRows(g, 4, 9)
			a, err := enginetest.Predict(trains, x, 4)
			if err != nil {
				t.Fatal(err)
			}
			b, err := enginetest.Predict(infers, x, 4)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(a, b) {
				t.Errorf("inputs %04b shared, relu %v: %v, then %v", shared, relu, a, b)
			}
		}
	}
}

// The loss of a row is what it says, however sure the network is of something else, and the gradient is the loss's.
func TestLossesHaveNoCap(t *testing.T) {
	for _, c := range []struct {
		loss  string
		row   []float32
		label int
		want  float64
	}{
		{CrossEntropy, []float32{0, 200}, 0, 200},
		{CrossEntropy, []float32{-1e6, 1e6, 3}, 0, 2e6},
		{BinaryCrossEntropy, []float32{0, 200}, 0, 200},             // (200 + 200) / 2
		{BinaryCrossEntropy, []float32{0, 1000, -3}, 0, 2000.0 / 3}, // the rest of the largest is the label
		{BinaryCrossEntropy, []float32{7}, 0, 0},
		{BinaryCrossEntropy, []float32{0, 0}, 1, math.Ln2},
	} {
		if got := rowLoss(c.loss, slices.Clone(c.row), c.label, true, false, 1); math.Abs(got-c.want) > 0.05+1e-6*c.want {
			t.Errorf("%s of %v at %d is %v, want %v", c.loss, c.row, c.label, got, c.want)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, scale := range []float64{0.5, 5, 30, 300} {
		for n := 1; n < 6; n++ {
			for _, loss := range []string{CrossEntropy, BinaryCrossEntropy} {
				row := make([]float32, n)
				for k := range row {
					row[k] = float32(scale * rng.NormFloat64())
				}
				for label := range n {
					grad := slices.Clone(row)
					rowLoss(loss, grad, label, true, true, 1)
					for k := range row {
						const h = 1.0 / 64
						up, down := slices.Clone(row), slices.Clone(row)
						up[k] += h
						down[k] -= h
						step := float64(up[k]) - float64(down[k])
						want := (rowLoss(loss, up, label, true, false, 1) - rowLoss(loss, down, label, true, false, 1)) / step
						if math.Abs(float64(grad[k])-want) > 1e-3 {
							t.Errorf("%s of %v at %d: slope %d is %v, and the loss's %v", loss, row, label, k, grad[k], want)
						}
					}
				}
			}
		}
	}
}
