package native

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/internal/test/enginetest"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
)

func TestStepsAllocateNothing(t *testing.T) {
	for _, network := range []string{"resnet8-test", "encoder-test", "recurrent-test", "both-ways-test", "language-test"} {
		for _, threads := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s, %d threads", network, threads), func(t *testing.T) {
				allocatesNothing(t, network, threads)
			})
		}
	}
}

func allocatesNothing(t *testing.T, network string, threads int) {
	g := testNetwork(t, network)
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
			t.Errorf("%v allocations of a %s", n, call)
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

// A channel of a row is dropped whole or not at all, in other rows others.
func TestDropout2DDropsWholeChannels(t *testing.T) {
	b := model.NewBuilder("dropout", model.Shape{40, 5, 3})
	b.Dense("fc", b.Flatten("f", b.Dropout2D("d", 0, 0.3)), 2)
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	e := newEngine(t, g, engine.Spec{BatchSize: 32, Training: true, Optimizer: sgd1, Seed: 5, Threads: 2})
	x, y := make([]float32, 32*g.Input().Len()), make([]int32, 32)
	for i := range x {
		x[i] = 1
	}
	if _, err := enginetest.Train(e, x, y); err != nil {
		t.Fatal(err)
	}
	l := &e.layers[1]
	pixel, dropped := l.v.Image.Pixel(), 0
	for i, v := range l.out {
		if (v == 0) != (l.out[i%pixel] == 0) {
			t.Fatalf("value %d is %v, its channel's first %v", i, v, l.out[i%pixel])
		}
		if i < pixel && v == 0 {
			dropped++
		}
	}
	if share := float64(dropped) / float64(pixel); math.Abs(share-0.3) > 0.05 {
		t.Errorf("%.3f of the channels are dropped", share)
	}
	if _, err := enginetest.Predict(e, x, 32); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(l.out, 0) {
		t.Error("evaluation drops")
	}
}

// A row of a branch is dropped whole or not at all, of images and of short sequences that share vectors, and the rest
// is scaled up. Evaluation drops none.
func TestDropPathDropsWholeRows(t *testing.T) {
	for name, c := range map[string]struct {
		input model.Shape
		build func(b *model.Builder)
		rows  int
	}{
		"image": {model.Shape{3, 4, 5}, func(b *model.Builder) { b.DropPath("d", 0, 0.5) }, 64},
		"tokens": {model.Shape{16}, func(b *model.Builder) {
			b.TakePosition("t", b.DropPath("d", b.Embedding("e", 0, 4, 8, false), 0.5), model.TakeMean)
		}, 8},
	} {
		b := model.NewBuilder(name, c.input)
		c.build(b)
		b.Dense("fc", b.Flatten("f", b.Last()), 2)
		g, err := b.Graph()
		if err != nil {
			t.Fatal(err)
		}
		e := initialized(t, g, engine.Spec{BatchSize: c.rows, Training: true, Optimizer: sgd1, Seed: 7, Threads: 2})
		x, y := make([]float32, c.rows*g.Input().Len()), make([]int32, c.rows)
		for i := range x {
			x[i] = 1
		}
		if _, err := enginetest.Train(e, x, y); err != nil {
			t.Fatal(err)
		}
		l := &e.layers[slices.IndexFunc(g.Nodes, func(n model.Node) bool { return n.Op == model.OpDropPath })]
		span, dropped := l.v.Image.Span(), 0
		for i, v := range l.out {
			if i%span < c.rows && (v == 0) != (l.out[i%span] == 0) {
				t.Fatalf("%s: value %d is %v, its row's first %v", name, i, v, l.out[i%span])
			}
			if i < c.rows && v == 0 {
				dropped++
			}
		}
		if dropped == 0 || dropped == c.rows {
			t.Errorf("%s: %d of %d rows are dropped", name, dropped, c.rows)
		}
		if _, err := enginetest.Predict(e, x, c.rows); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(l.out[:c.rows], 0) {
			t.Errorf("%s: evaluation drops", name)
		}
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

// apartNetwork has workers compute units of Winograd's algorithm, and channels of a batch norm, apart.
func apartNetwork(t *testing.T) *model.Graph {
	t.Helper()
	b := model.NewBuilder("wide", model.Shape{3, 24, 24})
	x := b.Same("relu1", convNorm(b, "conv1", "bn1", 0, 16, model.Square(3, 1, 1), 1), model.OpReLU)
	x = b.Same("relu2", b.Conv("conv2", x, 16, model.Square(3, 1, 1), 1, true), model.OpReLU)
	x = b.Same("relu3", convNorm(b, "conv3", "bn3", x, 512, model.Square(3, 8, 0), 1), model.OpReLU)
	b.Dense("fc", b.Flatten("flatten", x), 10)
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Blocks and threads are matters of speed: whatever the environment says, and however many compute, a network learns
// the same bits in the same memory.
func TestBlocksAndThreadsAreSpeedAlone(t *testing.T) {
	g := apartNetwork(t)
	paths(t, func(t *testing.T) {
		set, err := kernel.Choose()
		if err != nil {
			t.Fatal(err)
		}
		heights := set.Heights()
		cfg := engine.Spec{
			BatchSize: 32, Threads: 1, Training: true,
			Optimizer: disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.01, Momentum: 0.9}},
		}
		want, p := run(t, g, cfg, 32, 20), planned(t, g, cfg)
		for _, blocks := range []string{
			"", "weights=8192,depth=64", fmt.Sprintf("weights=1048576,rows=%d,depth=512", heights[len(heights)-1]),
		} {
			t.Setenv(kernel.BlocksVariable, blocks)
			for _, threads := range []int{1, 2} {
				cfg.Threads = threads
				sameBits(t, fmt.Sprintf("%q on %d threads", blocks, threads), want, run(t, g, cfg, 32, 20))
				if again := planned(t, g, cfg); again != p {
					t.Errorf("%q: a plan of %d values and one of %d", blocks, p, again)
				}
			}
		}
	})
}

// planned is the length of the engine's slab.
func planned(t *testing.T, g *model.Graph, cfg engine.Spec) int {
	t.Helper()
	return len(newEngine(t, g, cfg).mem.Values())
}
