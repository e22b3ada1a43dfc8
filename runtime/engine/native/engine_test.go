package native

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/enginetest"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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
		for _, threads := range threadCounts(1, 2, 3, 7) {
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

func second(_ float64, err error) error { return err }

func second3(_ *Engine, err error) error { return err }

// A network of each of the zoo's families plans, and buffers that are alive together never overlap.
func TestTheZooPlans(t *testing.T) {
	for _, entry := range model.Zoo() {
		if entry.VariantOf != "" {
			continue
		}
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
