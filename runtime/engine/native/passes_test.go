package native

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
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

// valuesOf and setValues copy values of a micro-batch by blocks that end within a group of lanes.
func valuesOf(l engine.Lanes) (out []float32) {
	for len(out) < l.Len() {
		out = append(out, l.Block(len(out), min(5, l.Len()-len(out)))...)
	}
	return out
}

func setValues(l engine.Lanes, values []float32) {
	for i := 0; i < len(values); i += 7 {
		l.Set(i, values[i:min(i+7, len(values))])
	}
}

// stepThrough trains slices on a batch in GPipe's order: all micro-batches forward, then all of them backward.
func stepThrough(t *rapid.T, all []*Engine, b dataset.Batch, micro int) (m disdel.Metrics) {
	rows, last := b.Input.Rows, len(all)-1
	var inputs [][][]float32 // by slice and micro-batch, as one slice hands them to the next
	at := func(i, first int, x []float32) engine.Pass {
		p := engine.Pass{Rows: rows, First: first, Tokens: b.Input.Values}
		if p.Input.Rows = min(micro, rows-first); i == 0 {
			p.Input.Values = x
		} else {
			setValues(all[i].Passes().Inputs(p.Input.Rows), x)
		}
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
			next = append(next, valuesOf(y))
		}
		inputs = append(inputs, next)
	}
	from, _ := all[0].Passes().Shared()
	to, _ := all[last].Passes().Shared()
	copy(to, from)
	gradients, shared := make([][]float32, len(first)), make([][]float32, len(first))
	for i, e := range slices.Backward(all) {
		for k, x := range inputs[i] {
			p := at(i, k*micro, x)
			if weight, trained := e.Passes().Shared(); trained {
				shared[k] = append(shared[k], make([]float32, len(weight)-len(shared[k]))...)
				p.Shared = shared[k]
			}
			if i < last {
				gradient, err := e.Passes().Recompute(p)
				if err != nil {
					t.Fatal(err)
				}
				setValues(gradient, gradients[k])
			}
			back, got, err := e.Passes().Backward(p)
			if err != nil {
				t.Fatal(err)
			}
			if i > 0 {
				gradients[k] = valuesOf(back)
			}
			if i == last {
				m = got
			}
		}
	}
	var squares []float64
	for _, e := range all {
		squares = append(squares, e.Passes().Squares()...)
	}
	for _, e := range all {
		if squares == nil {
			break
		}
		if err := e.Passes().Clip(squares); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// Slices change their weights, moments and statistics by the bits of the whole network with the same micro-batches.
func TestSlicesHaveTheBitsOfTheWholeNetwork(t *testing.T) {
	cut := 0
	rapid.Check(t, func(t *rapid.T) {
		g := drawnNetwork(t, true)
		drawFrozen(t, g, "", "", "freeze", "lora")
		cut = max(cut, sliceAndCompare(t, g, func(rows int, seed uint64) dataset.Batch {
			x, y := batch(g, rows, seed)
			return dataset.Dense(rows, x, y)
		}))
	})
	if cut < 2 {
		t.Errorf("no network had more than %d cuts", cut)
	}
}

// The same for networks of tokens: with masks for padding in all slices, and with a last layer that shares the weight
// of the embedding.
func TestSlicesOfTokensHaveTheBitsOfTheWholeNetwork(t *testing.T) {
	cut := 0
	rapid.Check(t, func(t *rapid.T) {
		g := drawnTransformer(t)
		drawFrozen(t, g, "", "", "freeze", "lora")
		cut = max(cut, sliceAndCompare(t, g, func(rows int, seed uint64) dataset.Batch {
			return rowsOfTokens(g, rows, seed)
		}))
	})
	if cut < 3 {
		t.Errorf("no network had more than %d cuts", cut)
	}
}

// rowsOfTokens are rows of 37 tokens, of which the last may be padding.
func rowsOfTokens(g *model.Graph, rows int, seed uint64) dataset.Batch {
	rng := rand.New(rand.NewPCG(seed, 3))
	x, y := make([]float32, rows*g.Input().Len()), make([]int32, rows)
	for i := range x {
		if n := g.Input().Len(); i%n < 3 || rng.IntN(4) > 0 && x[i-1] > 0 {
			x[i] = float32(1 + rng.IntN(36))
		}
	}
	for i := range y {
		y[i] = int32(rng.IntN(3))
	}
	return dataset.Dense(rows, x, y)
}

// drawnTransformer is a network of 37 tokens: a classifier or a language model.
func drawnTransformer(t *rapid.T) *model.Graph {
	b := model.NewBuilder("drawn", model.Shape{1, 1, 7})
	padded, post := rapid.Bool().Draw(t, "padded"), rapid.Bool().Draw(t, "post-norm")
	tokens := b.Embedding("e", b.Flatten("tokens", 0), 37, 8, padded)
	x := b.Dropout("dropout", b.Positions("p", tokens, rapid.Bool().Draw(t, "sines")), 0.1)
	kind := rapid.SampledFrom([]string{"tied", "untied", "first", "mean"}).Draw(t, "kind")
	language := kind == "tied" || kind == "untied"
	for i := range rapid.IntRange(1, 3).Draw(t, "blocks") {
		x = b.Transformer(fmt.Sprintf("b%d", i), x, model.Transformer{
			Attention: model.Attention{Heads: 2, Causal: language}, PostNorm: post, Dropout: 0.1,
		})
	}
	switch kind {
	case "tied":
		b.TiedDense("head", x, tokens)
	case "untied":
		b.Dense("head", x, 37)
	default:
		b.Dense("fc", b.TakePosition("take", x, kind), 3)
	}
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// drawFrozen freezes layers of a network, or gives it adapters beside frozen dense layers.
func drawFrozen(t *rapid.T, g *model.Graph, ways ...string) {
	init := disdel.Init{Seed: 5, Weights: "given"}
	var err error
	switch rapid.SampledFrom(ways).Draw(t, "frozen") {
	case "freeze":
		names := map[string]bool{}
		for _, p := range g.Params() {
			names[g.Nodes[p.Node].Name] = true
		}
		all := slices.Sorted(maps.Keys(names))
		init.Freeze = rapid.SampledFrom(all).Draw(t, "first") + "," + rapid.SampledFrom(all).Draw(t, "second")
		err = g.Freeze(init)
	case "lora":
		var dense []string
		for _, n := range g.Nodes {
			if n.Op == model.OpDense && n.Tied == 0 && rapid.Bool().Draw(t, n.Name) {
				dense = append(dense, n.Name)
			}
		}
		err = g.Adapt(init, disdel.LoRA{Rank: 2, Alpha: 4, Layers: strings.Join(dense, ",")})
	}
	if err != nil {
		t.Skip(err)
	}
}

// What is computed again of frozen layers is written nowhere else, and two workers wait for each other behind a frozen
// layer: however a network with adapters is computed, its loss has the same bits.
func TestFrozenLayersAreComputedAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawnTransformer(t)
		drawFrozen(t, g, "lora")
		s := enginetest.On(g, engine.Spec{
			BatchSize: 19, Training: true, Optimizer: disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.01}},
		})
		loss := func(threads int, again disdel.Recompute) (m disdel.Metrics) {
			s.Threads, s.Recompute = threads, again
			e, err := New(s)
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			if err := e.Init(disdel.Init{Seed: 5}); err != nil {
				t.Fatal(err)
			}
			for k := range 3 {
				if m, err = e.Step(rowsOfTokens(g, 19, uint64(k))); err != nil {
					t.Fatal(err)
				}
			}
			return m
		}
		if want, got := loss(1, ""), loss(2, disdel.RecomputeAuto); got.Loss != want.Loss {
			t.Fatalf("loss %v, want %v", got.Loss, want.Loss)
		}
	})
}

// sliceAndCompare trains a network whole and in drawn slices, and returns the number of cuts.
func sliceAndCompare(t *rapid.T, g *model.Graph, draw func(rows int, seed uint64) dataset.Batch) int {
	optimizers := []disdel.Optimizer{
		{SGD: &disdel.SGD{LearningRate: 0.1, Momentum: 0.9}},
		{Adam: &disdel.Adam{LearningRate: 0.01}},
		{LAMB: &disdel.LAMB{LearningRate: 0.01}},
	}
	s := enginetest.On(g, engine.Spec{
		BatchSize: 19, Training: true, Threads: 2, Seed: 7,
		StepMemory: disdel.StepMemory{
			MicroBatch: rapid.SampledFrom([]int{0, 4, 17}).Draw(t, "microBatch"),
			Recompute:  rapid.SampledFrom([]disdel.Recompute{"", disdel.RecomputeAuto}).Draw(t, "recompute"),
		},
		Optimizer: rapid.SampledFrom(optimizers).Draw(t, "optimizer"),
		ClipNorm:  rapid.SampledFrom([]float64{0, 0.3}).Draw(t, "clipNorm"),
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
	most := rapid.SampledFrom([]int{0, 1, 2, 3, 3, 3}).Draw(t, "cuts") // often many, so that some network has them
	for len(cuts) > most {
		i := rapid.IntRange(0, len(cuts)-1).Draw(t, "without")
		cuts = slices.Delete(cuts, i, i+1)
	}
	all := slicesOf(t, g, cuts, s)
	defer func() {
		for _, e := range all {
			e.Close()
		}
	}()
	for k := range 3 {
		b := draw(19-k, uint64(k))
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
	return len(cuts)
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
	p.Shared = x[:3]
	if _, err := e.Passes().Recompute(p); !errors.Is(err, disdel.Invalid) {
		t.Errorf("a shared gradient of 3 values: %v", err)
	}
	s.Graph = g
	if whole := newEngine(t, g, s); whole.Passes() != nil {
		t.Error("a whole network is computed in slices")
	}
}

func errorOf[T any](_ T, err error) error { return err }

// Slices that are not trained have the outputs and the metrics of the whole network, also with padding, with frozen
// layers, and where the last one needs the weight of the embedding.
func TestSlicesInferWhatTheWholeNetworkDoes(t *testing.T) {
	cut := 0
	rapid.Check(t, func(t *rapid.T) {
		g, rows := drawnNetwork(t, true), rapid.IntRange(1, 16).Draw(t, "rows")
		var b dataset.Batch
		if tokens := rapid.Bool().Draw(t, "tokens"); tokens {
			g = drawnTransformer(t)
			drawFrozen(t, g, "", "freeze", "lora")
			b = rowsOfTokens(g, rows, 1)
		} else {
			x, y := batch(g, rows, 1)
			b = dataset.Dense(rows, x, y)
		}
		cuts := g.Cuts()
		if cut = max(cut, len(cuts)); len(cuts) == 0 {
			t.Skip("one piece")
		}
		s := enginetest.On(g, engine.Spec{BatchSize: rows})
		whole, err := New(s)
		if err != nil {
			t.Fatal(err)
		}
		defer whole.Close()
		if err := whole.Init(disdel.Init{Seed: 5}); err != nil {
			t.Fatal(err)
		}
		want, err := whole.Predict(dataset.Batch{Input: b.Input})
		if err != nil {
			t.Fatal(err)
		}
		metrics, err := whole.Evaluate(b)
		if err != nil {
			t.Fatal(err)
		}
		in := b.Input
		all := slicesOf(t, g, cuts, s)
		for i, e := range all {
			defer e.Close()
			copyWeights(t, e, whole)
			p := engine.Pass{Rows: rows, Input: in, Tokens: b.Input.Values, Target: b.Target}
			out, err := e.Passes().Predict(p)
			if err != nil {
				t.Fatal(err)
			}
			if i < len(all)-1 {
				in = dataset.Dense(rows, slices.Clone(out), nil).Input
				continue
			}
			if !slices.Equal(out, want.Values) {
				t.Fatalf("%d slices have other outputs: %v, want %v", len(all), out, want.Values)
			}
			m, err := e.Passes().Measure(p)
			if err != nil || m.Loss != metrics.Loss || m.Correct != metrics.Correct || m.Targets != metrics.Targets {
				t.Fatalf("%d slices have the metrics %+v, want %+v: %v", len(all), m, metrics, err)
			}
		}
	})
	if cut < 2 {
		t.Errorf("no network had more than %d cuts", cut)
	}
}

// copyWeights sets the weights of a slice to those of the whole network with the same names, in two blocks.
func copyWeights(t *rapid.T, e, whole *Engine) {
	named := map[string]engine.Array{}
	for _, a := range whole.State() {
		named[a.Name] = a
	}
	for _, a := range e.State() {
		from, ok := named[a.Name]
		if !ok {
			t.Fatalf("the network has no %s", a.Name)
		}
		values, half := from.Copy().Data, a.Len()/2
		for _, err := range []error{a.WriteAt(values[:half], 0), a.WriteAt(values[half:], half)} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// An engine that was made for training measures nothing, and one that was not takes whole micro-batches only.
func TestSlicesRefuseToInfer(t *testing.T) {
	g := testNetwork(t, "resnet8-test")
	cuts := g.Cuts()
	part, err := g.Sliced(cuts[len(cuts)-1], len(g.Nodes))
	if err != nil {
		t.Fatal(err)
	}
	x, y := batch(part, 40, 1)
	p := engine.Pass{Rows: 40, Input: dataset.Dense(40, x, nil).Input, Target: dataset.Target{Classes: y}}
	trains := newEngine(t, part, enginetest.On(part, engine.Spec{BatchSize: 40, Training: true, Optimizer: sgd1}))
	if _, err := trains.Passes().Measure(p); !errors.Is(err, disdel.Invalid) {
		t.Errorf("an engine for training: %v", err)
	}
	infers := newEngine(t, part, enginetest.On(part, engine.Spec{BatchSize: 40}))
	_, err = infers.Passes().Predict(p)
	if !errors.Is(err, disdel.Invalid) || !strings.Contains(err.Error(), "at most 32") {
		t.Errorf("40 rows at once: %v", err)
	}
}
