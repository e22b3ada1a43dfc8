package native

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/internal/test/enginetest"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
)

// slicesOf makes an engine for each slice between cuts.
func slicesOf(t *rapid.T, g *model.Graph, cuts []int, s engine.Spec) (out []*Engine) {
	ends := append([]int{1}, append(cuts, len(g.Nodes))...)
	for i := range len(ends) - 1 {
		part, err := g.Sliced(ends[i], ends[i+1])
		if err != nil {
			t.Fatal(err)
		}
		s.Graph = part
		e, err := New(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Init(disdel.Init{Seed: 5}); err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

// stepThrough trains slices on a batch in GPipe's order: all micro-batches forward, then all of them backward.
func stepThrough(t *rapid.T, all []*Engine, b dataset.Batch, micro int) (m disdel.Metrics) {
	rows, last := b.Input.Rows, len(all)-1
	var inputs [][][]float32 // by slice and micro-batch
	at := func(i, first int, x []float32) engine.Pass {
		p := engine.Pass{Rows: rows, First: first, Input: dataset.Matrix{Rows: min(micro, rows-first), Values: x}}
		if i == last {
			p.Target = b.Target
		}
		return p
	}
	sample := b.Input.Columns
	var first [][]float32
	for from := 0; from < rows; from += micro {
		first = append(first, b.Input.Values[from*sample:min(from+micro, rows)*sample])
	}
	inputs = append(inputs, first)
	for i, e := range all[:last] {
		var next [][]float32
		for k, x := range inputs[i] {
			y, err := e.Passes().Forward(at(i, k*micro, x))
			if err != nil {
				t.Fatal(err)
			}
			next = append(next, slices.Clone(y))
		}
		inputs = append(inputs, next)
	}
	gradients := make([][]float32, len(first))
	for i, e := range slices.Backward(all) {
		for k, x := range inputs[i] {
			back, got, err := e.Passes().Backward(at(i, k*micro, x), gradients[k])
			if err != nil {
				t.Fatal(err)
			}
			if gradients[k] = slices.Clone(back); i == last {
				m = got
			}
		}
	}
	return m
}

// Slices change their weights, moments and statistics by the bits of the whole network with the same micro-batches.
func TestSlicesHaveTheBitsOfTheWholeNetwork(t *testing.T) {
	optimizers := []disdel.Optimizer{
		{SGD: &disdel.SGD{LearningRate: 0.1, Momentum: 0.9}}, {Adam: &disdel.Adam{LearningRate: 0.01}},
	}
	cut := 0
	rapid.Check(t, func(t *rapid.T) {
		g := drawnNetwork(t, true)
		s := enginetest.On(g, engine.Spec{
			BatchSize: 19, Training: true, Threads: 2, Seed: 7,
			StepMemory: disdel.StepMemory{
				MicroBatch: rapid.SampledFrom([]int{0, 4, 17}).Draw(t, "microBatch"),
				Recompute:  rapid.SampledFrom([]disdel.Recompute{"", disdel.RecomputeAuto}).Draw(t, "recompute"),
			},
			Optimizer: rapid.SampledFrom(optimizers).Draw(t, "optimizer"),
		})
		whole, err := New(s)
		if err != nil {
			t.Fatal(err)
		}
		defer whole.Close()
		if err := whole.Init(disdel.Init{Seed: 5}); err != nil {
			t.Fatal(err)
		}
		cuts := g.Cuts()
		for len(cuts) > rapid.IntRange(0, 3).Draw(t, "cuts") {
			cuts = slices.Delete(cuts, 0, 1)
		}
		cut = max(cut, len(cuts))
		all := slicesOf(t, g, cuts, s)
		defer func() {
			for _, e := range all {
				e.Close()
			}
		}()
		for k := range 3 {
			x, y := batch(g, 19-k, uint64(k))
			b := dataset.Dense(19-k, x, y)
			want, err := whole.Step(b)
			if err != nil {
				t.Fatal(err)
			}
			micro := s.MicroBatch
			if micro == 0 {
				micro = 19
			}
			if got := stepThrough(t, all, b, micro); got.Loss != want.Loss || got.Correct != want.Correct {
				t.Fatalf("%+v, want %+v", got, want)
			}
		}
		var weights, moments disdel.Weights
		for _, e := range all {
			weights = append(weights, engine.Weights(e)...)
			moments = append(moments, engine.Moments(e)[1:]...)
		}
		for _, want := range append(engine.Weights(whole), engine.Moments(whole)[1:]...) {
			all := append(weights, moments...)
			i := slices.IndexFunc(all, func(v disdel.Tensor) bool { return v.Name == want.Name })
			if i < 0 || !slices.Equal(all[i].Data, want.Data) {
				t.Fatalf("%s differs", want.Name)
			}
		}
	})
	if cut < 3 {
		t.Errorf("no network had more than %d cuts", cut)
	}
}

// A slice refuses what would not be the bits of the whole network, and micro-batches that do not fit.
func TestSlicesRefuse(t *testing.T) {
	g := testNetwork(t, "resnet8-test")
	part, err := g.Sliced(1, g.Cuts()[0])
	if err != nil {
		t.Fatal(err)
	}
	s := enginetest.On(part, engine.Spec{BatchSize: 8, Training: true, Optimizer: sgd1})
	for _, with := range []func(*engine.Spec){
		func(s *engine.Spec) { s.ClipNorm = 1 },
		func(s *engine.Spec) { s.Precision = disdel.PrecisionBF16 },
	} {
		bad := s
		if with(&bad); !errors.Is(errorOf(PlanOf(bad)), disdel.Invalid) {
			t.Errorf("%+v is taken", bad)
		}
	}
	e := newEngine(t, part, s)
	x, _ := batch(part, 8, 1)
	p := engine.Pass{Rows: 4, Input: dataset.Matrix{Rows: 8, Values: x}}
	if _, err := e.Passes().Forward(p); !errors.Is(err, disdel.Invalid) {
		t.Errorf("8 rows of 4: %v", err)
	}
	p.Rows = 8
	if _, _, err := e.Passes().Backward(p, x[:3]); !errors.Is(err, disdel.Invalid) {
		t.Errorf("a gradient of 3 values: %v", err)
	}
	s.Graph = g
	if whole := newEngine(t, g, s); whole.Passes() != nil {
		t.Error("a whole network is computed in slices")
	}
}

func errorOf[T any](_ T, err error) error { return err }
