package native

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/enginetest"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// drawnNetwork draws a network: a chain of blocks, some of them residual. norms has batch norms and dropout among them.
func drawnNetwork(t *rapid.T, norms bool) *model.Graph {
	b := model.NewBuilder("drawn", model.Shape{3, 12, 12})
	acts := []model.Op{
		model.OpReLU, model.OpReLU6, model.OpTanh, model.OpSigmoid, model.OpHardSwish, model.OpELU, model.OpSoftplus,
		model.OpLeakyReLU, model.OpHardSigmoid,
	}
	act := func(name string, x int) int { return b.Same(name, x, rapid.SampledFrom(acts).Draw(t, "activation")) }
	conv := func(name string, x, filters int) int {
		side := 2*rapid.IntRange(0, 1).Draw(t, "side") + 1
		x = b.Conv(name, x, filters, model.Square(side, 1, side/2), 1, !norms)
		if norms {
			x = b.BatchNorm(name+".norm", x)
		}
		return act(name+".act", x)
	}
	x := 0
	for i := range rapid.IntRange(1, 5).Draw(t, "blocks") {
		name, filters := fmt.Sprintf("b%d", i), rapid.IntRange(1, 9).Draw(t, "filters")
		kinds := []string{"conv", "residual", "depthwise", "pool", "concat"}
		if norms {
			kinds = append(kinds, "dropout")
		}
		switch rapid.SampledFrom(kinds).Draw(t, "block") {
		case "conv":
			x = conv(name, x, filters)
		case "residual":
			x = conv(name+".in", x, filters)
			x = act(name+".act", b.Add(name+".add", conv(name+".2", conv(name+".1", x, filters+1), filters), x))
		case "depthwise":
			x = act(name+".act", b.Conv(name, x, b.Out(x)[0], model.Square(3, 1, 1), b.Out(x)[0], true))
		case "pool":
			x = b.Pool(name, x, rapid.SampledFrom([]model.Op{model.OpMaxPool, model.OpAvgPool}).Draw(t, "pool"),
				model.Square(3, 1, 1))
		case "concat":
			x = conv(name, x, filters)
			x = b.Concat(name+".cat", conv(name+".1", x, 3), x)
		case "dropout":
			x = b.Dropout(name, x, 0.3)
		}
	}
	b.Same("softmax", b.Dense("fc", b.Flatten("flatten", conv("last", x, 4)), 3), model.OpSoftmax)
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// away is the length of the difference of two sets of weights over that of the first.
func away(a, b disdel.Weights) float64 {
	var all, off float64
	for i := range a {
		for k, v := range a[i].Data {
			d := float64(v - b[i].Data[k])
			all, off = all+float64(v)*float64(v), off+d*d
		}
	}
	return math.Sqrt(off / max(all, 1e-12))
}

// A step of micro-batches is that of the whole batch but for the order of sums, also if the last one has fewer rows.
func TestMicroBatchesAreTheWholeBatch(t *testing.T) {
	check := func(t rapid.TB, g *model.Graph, s engine.Spec) {
		s.BatchSize, s.Training, s.Threads = 40, true, 2
		parts := s
		parts.MicroBatch = 16
		var weights [2]disdel.Weights
		var losses [2]float64
		for i, spec := range []engine.Spec{s, parts} {
			e, err := New(enginetest.On(g, spec))
			if err != nil {
				t.Fatal(err)
			}
			if err := engine.SetWeights(e, namedWeights(g)); err != nil {
				t.Fatal(err)
			}
			for _, rows := range []int{40, 7} {
				x, y := batch(g, rows, 3)
				if losses[i], err = enginetest.Train(e, x, y); err != nil {
					t.Fatal(err)
				}
			}
			weights[i] = engine.Weights(e)
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}
		if off := away(weights[0], weights[1]); !(off < 1e-5) || math.Abs(losses[0]/losses[1]-1) > 1e-5 {
			t.Errorf("weights are %.1e off, losses %v and %v", off, losses[0], losses[1])
		}
	}
	sgd := disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.1, Momentum: 0.9}}
	rapid.Check(t, func(t *rapid.T) {
		check(t, drawnNetwork(t, false), engine.Spec{
			Optimizer: sgd, ClipNorm: rapid.SampledFrom([]float64{0, 0.5}).Draw(t, "clip"),
		})
	})
}

// Micro-batches take less memory for activations, and the engine takes what its plan says.
func TestMicroBatchesTakeThePlansMemory(t *testing.T) {
	g := testNetwork(t, "resnet8-test")
	s := enginetest.On(g, engine.Spec{BatchSize: 64, Training: true, Optimizer: sgd1})
	whole, err1 := PlanOf(s)
	s.MicroBatch = 16
	parts, err2 := PlanOf(s)
	if err := errors.Join(err1, err2); err != nil || parts.Bytes() > whole.Bytes()/3 {
		t.Fatalf("%v of %v, %v", parts.Bytes(), whole.Bytes(), err)
	}
	if e := newEngine(t, g, s); len(e.mem.Values()) != parts.Len {
		t.Errorf("%d values, planned %d", len(e.mem.Values()), parts.Len)
	}
	s.Exact = true
	if _, err := PlanOf(s); !errors.Is(err, disdel.Invalid) {
		t.Errorf("batch norm of a part of an exact batch: %v", err)
	}
}

// An input that is not finite in a later micro-batch changes nothing.
func TestMicroBatchesLookAtAllInputsFirst(t *testing.T) {
	g := testNetwork(t, "resnet8-test")
	e := initialized(t, g, engine.Spec{
		BatchSize: 40, StepMemory: disdel.StepMemory{MicroBatch: 16}, Training: true, Optimizer: sgd1,
	})
	before := engine.Weights(e)
	x, y := batch(g, 40, 1)
	x[len(x)-1] = float32(math.NaN())
	if _, err := enginetest.Train(e, x, y); !errors.Is(err, disdel.Diverged) {
		t.Error(err)
	}
	sameBits(t, "statistics, too", before, engine.Weights(e))
}

// What is computed again has the same bits, with batch norm, dropout and micro-batches, on any number of threads.
func TestRecomputeKeepsTheBits(t *testing.T) {
	check := func(t rapid.TB, g *model.Graph, s engine.Spec) {
		s.BatchSize, s.Training, s.Seed = 40, true, 9
		s.Optimizer = disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.01}}
		ways := []disdel.Recompute{disdel.RecomputeNone, disdel.RecomputeAuto, everySecond(g)}
		weights := make([]disdel.Weights, len(ways))
		for i, r := range ways {
			s.Recompute, s.Threads = r, 1+i%2
			e, err := New(enginetest.On(g, s))
			if err != nil {
				t.Fatal(err)
			}
			if err := engine.SetWeights(e, namedWeights(g)); err != nil {
				t.Fatal(err)
			}
			for seed, rows := range []int{40, 7, 33} {
				x, y := batch(g, rows, uint64(seed))
				if _, err = enginetest.Train(e, x, y); err != nil {
					t.Fatal(err)
				}
			}
			weights[i] = engine.Weights(e)
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}
		for i, a := range weights[0] {
			for k, v := range a.Data {
				for w, again := range weights {
					if math.Float32bits(v) != math.Float32bits(again[i].Data[k]) {
						t.Fatalf("%s[%d] is %v, and %v with recompute %q", a.Name, k, v, again[i].Data[k], ways[w])
					}
				}
			}
		}
	}
	for name, f := range someNetworks() {
		t.Run(name, func(t *testing.T) { check(t, build(t, name, f), engine.Spec{}) })
	}
	t.Run("wide dense", func(t *testing.T) {
		b := model.NewBuilder("wide", model.Shape{3, 16, 16})
		x := b.Flatten("f", 0)
		for _, name := range []string{"a", "b", "c", "d", "e", "g"} {
			x = b.Same(name+".act", b.Dense(name, x, 900), model.OpTanh)
		}
		b.Same("softmax", b.Dense("fc", x, 3), model.OpSoftmax)
		g, err := b.Graph()
		if err != nil {
			t.Fatal(err)
		}
		check(t, g, engine.Spec{})
	})
	for name, tokens := range map[string]func(*model.Builder) int{
		"padded":        func(*model.Builder) int { return 0 },
		"padded images": func(b *model.Builder) int { return b.Flatten("tokens", 0) },
	} {
		t.Run(name, func(t *testing.T) {
			input := map[bool]model.Shape{true: {24}, false: {1, 1, 24}}[name == "padded"]
			b := model.NewBuilder(name, input)
			x := b.Positions("p", b.Embedding("e", tokens(b), 9, 8, true), true)
			for _, block := range []string{"a", "b", "c", "d"} {
				x = b.Transformer(block, x, model.Transformer{Attention: model.Attention{Heads: 2}, Hidden: 12})
			}
			b.Dense("fc", b.TakePosition("mean", x, model.TakeMean), 3)
			g, err := b.Graph()
			if err != nil {
				t.Fatal(err)
			}
			check(t, g, engine.Spec{})
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		g := drawnNetwork(t, true)
		check(t, g, engine.Spec{StepMemory: disdel.StepMemory{MicroBatch: rapid.SampledFrom([]int{0, 16}).Draw(t, "parts")}})
	})
}

// everySecond names every second layer that Kept takes.
func everySecond(g *model.Graph) disdel.Recompute {
	var names []string
	for i := range g.Nodes {
		name := g.Nodes[i].Name
		if _, err := g.Kept([]string{name}); i > 0 && i%2 == 0 && err == nil {
			names = append(names, name)
		}
	}
	return disdel.Recompute(strings.Join(names, ","))
}

// A network that keeps the outputs of its residual blocks by hand keeps fewer activations, and these outputs are where
// it computes again. The activation behind a block's sum overwrites the sum, so that its output is kept.
func TestRecomputeKeepsTheNamedLayers(t *testing.T) {
	g, err := model.Build(disdel.Network{Name: "resnet18", Input: []int{3, 64, 64}, Classes: 10})
	if err != nil {
		t.Fatal(err)
	}
	s := enginetest.On(g, engine.Spec{BatchSize: 64, Training: true, Optimizer: sgd1})
	whole, err1 := PlanOf(s)
	s.Recompute = "layer1, layer2,layer3"
	again, err2 := PlanOf(s)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	var kept []string
	for _, at := range slices.Sorted(maps.Keys(again.Again)) {
		kept = append(kept, g.Nodes[at].Name)
	}
	t.Logf("%v of %v, kept %v", again.Bytes(), whole.Bytes(), kept)
	if len(kept) != 3 || again.Bytes() > whole.Bytes()*9/10 {
		t.Errorf("%v of %v, kept %v", again.Bytes(), whole.Bytes(), kept)
	}
	for i := range g.Nodes[:len(g.Nodes)-2] { // what Kept takes, the plan cuts
		s.Recompute = disdel.Recompute(g.Nodes[i].Name)
		if _, err := g.Kept(s.Recompute.Layers()); i == 0 || err != nil {
			continue
		}
		if p, err := PlanOf(s); err != nil || p.Again == nil {
			t.Errorf("%s is not kept: %v", s.Recompute, err)
		}
	}
}

// A deep network keeps less than half of its activations.
func TestRecomputeHalvesTheActivations(t *testing.T) {
	for _, name := range []string{"resnet50", "vgg16", "mobilenetv1"} {
		g, err := model.Build(disdel.Network{Name: name, Input: []int{3, 64, 64}, Classes: 10})
		if err != nil {
			t.Fatal(err)
		}
		s := enginetest.On(g, engine.Spec{BatchSize: 64, Training: true, Optimizer: sgd1})
		whole, err1 := PlanOf(s)
		s.Recompute = disdel.RecomputeAuto
		again, err2 := PlanOf(s)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		all, _ := whole.ByCategory()
		part, gaps := again.ByCategory()
		a, b := all[plan.Activations]+all[plan.Backward], part[plan.Activations]+part[plan.Backward]
		t.Logf("%s: %v of %v, activations %v of %v, gaps %v", name, again.Bytes(), whole.Bytes(), b, a, gaps)
		if b > a/2 {
			t.Errorf("%s: activations are %v of %v", name, b, a)
		}
	}
}

// Rows with padding do not keep a network from computing activations again: only their tokens are kept.
func TestRecomputeOfPaddedRowsTakesLess(t *testing.T) {
	g, err := model.Build(disdel.Network{Name: "bert-tiny", Input: []int{1, 1, 128}, Classes: 2})
	if err != nil {
		t.Fatal(err)
	}
	s := enginetest.On(g, engine.Spec{BatchSize: 64, Training: true, Optimizer: sgd1})
	whole, err1 := PlanOf(s)
	s.Recompute = disdel.RecomputeAuto
	again, err2 := PlanOf(s)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	t.Logf("%v of %v", again.Bytes(), whole.Bytes())
	if again.Again == nil || again.Bytes() > whole.Bytes()*9/10 {
		t.Errorf("%v of %v, again %v", again.Bytes(), whole.Bytes(), again.Again)
	}
}
