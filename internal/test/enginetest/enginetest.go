package enginetest

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
)

// Exercise runs every promise against a backend.
func Exercise(t *testing.T, b engine.Backend) {
	t.Helper()
	for name, promise := range map[string]func(*testing.T, engine.Backend){
		"first weights": firstWeights, "gradients": gradients, "determinism": determinism, "rates": rates,
		"clipping": clipping,
		"state":    state, "parts of arrays": parts, "reset": reset, "evaluation": evaluation, "counting": counting,
		"refusals": refusals,
		"batches":  batches, "footprint": footprints, "memory": memory, "staging": staging,
	} {
		t.Run(name, func(t *testing.T) { promise(t, b) })
	}
}

const rows, classes = 6, 3

var adam = disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.01}}

// network is a small graph with all kinds of arrays: convolutions whose layout backends change, statistics, biases.
func network(t *testing.T, layers ...disdel.Layer) *model.Graph {
	t.Helper()
	if layers == nil {
		layers = []disdel.Layer{
			{Kind: "conv", Filters: 5, Kernel: 3, Padding: 1},
			{Kind: "batchNorm"},
			{Kind: "tanh"},
			{Kind: "avgPool", Kernel: 2},
			{Kind: "dense", Units: 7, Activation: "tanh"},
			{Kind: "dense", Units: classes, Activation: "softmax"},
		}
	}
	g, err := model.Build(disdel.Network{Layers: layers, Input: []int{2, 6, 6}, Classes: classes})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// dropping has dropout, whose numbers come from the engine's seed.
func dropping(t *testing.T) *model.Graph {
	t.Helper()
	return network(t, disdel.Layer{Kind: "dense", Units: 40, Activation: "tanh"}, disdel.Layer{Kind: "dropout", Rate: 0.5},
		disdel.Layer{Kind: "dense", Units: classes, Activation: "softmax"})
}

// fresh is an engine with first weights.
func fresh(t *testing.T, b engine.Backend, s engine.Spec) engine.Engine {
	t.Helper()
	if s.BatchSize == 0 {
		s.BatchSize = rows
	}
	e, err := b.New(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := e.Init(disdel.Init{Seed: 7}); err != nil {
		t.Fatal(err)
	}
	return e
}

// batch is rows by a seed.
func batch(g *model.Graph, rows int, seed uint64) dataset.Batch {
	rng := rand.New(rand.NewPCG(seed, 1))
	b := dataset.Dense(rows, make([]float32, rows*g.Input().Len()), make([]int32, rows))
	for i := range b.Input.Values {
		b.Input.Values[i] = float32(rng.NormFloat64())
	}
	for i := range b.Target.Classes {
		b.Target.Classes[i] = int32(rng.IntN(g.Output().Len()))
	}
	return b
}

// steps trains on batches of seeds from (included) to (not), every third one short.
func steps(t *testing.T, e engine.Engine, g *model.Graph, from, to int) (losses []float64) {
	t.Helper()
	for i := from; i < to; i++ {
		n := rows
		if i%3 == 2 {
			n = rows / 2
		}
		m, err := e.Step(batch(g, n, uint64(i)))
		if err != nil {
			t.Fatal(err)
		}
		if m.Rows != n || m.Loss <= 0 {
			t.Fatalf("step %d of %d rows says %+v", i, n, m)
		}
		losses = append(losses, m.Loss)
	}
	return losses
}

// same compares bits.
func same(t *testing.T, what string, want, got disdel.Weights) {
	t.Helper()
	if len(want) != len(got) {
		t.Errorf("%s: %d arrays, want %d", what, len(got), len(want))
		return
	}
	for i := range want {
		w, g := want[i], got[i]
		if w.Name != g.Name || !slices.Equal(w.Shape, g.Shape) || !slices.Equal(w.Data, g.Data) {
			t.Errorf("%s: %s %v is another than %s %v", what, g.Name, g.Shape, w.Name, w.Shape)
		}
	}
}

func differ(a, b disdel.Weights) bool {
	return slices.ContainsFunc(a, func(v disdel.Tensor) bool {
		return !slices.ContainsFunc(b, func(w disdel.Tensor) bool { return v.Name == w.Name && slices.Equal(v.Data, w.Data) })
	})
}

// everything is a copy of all arrays.
func everything(e engine.Engine) disdel.Weights { return engine.Copies(e.State()) }

func firstWeights(t *testing.T, b engine.Backend) {
	g := network(t)
	for _, training := range []bool{true, false} {
		e := fresh(t, b, engine.Spec{Graph: g, Optimizer: adam, Training: training})
		same(t, "first weights", engine.InitWeights(g, disdel.Init{Seed: 7}), engine.Weights(e))
		for i, p := range g.Params() {
			want := engine.Statistic
			if p.Trainable {
				want = engine.Weight
			}
			if a := e.State()[i]; a.Role != want || a.Name != p.Name {
				t.Errorf("array %d is %s, a %v, and not %s, a %v", i, a.Name, a.Role, p.Name, want)
			}
		}
		if n := len(engine.Of(e.State(), engine.Moment)); training != (n > 0) {
			t.Errorf("training %v, and %d moments", training, n)
		}
	}
}

// With SGD and a rate of 1, weights change by the gradient: it must be the difference quotient of the loss.
func gradients(t *testing.T, b engine.Backend) {
	// The last layer's output is a probability without softmax: there binary cross-entropy is of a sigmoid.
	for loss, last := range map[string]string{"crossEntropy": "softmax", "mse": "tanh", "binaryCrossEntropy": "sigmoid"} {
		g := network(t, disdel.Layer{Kind: "conv", Filters: 4, Kernel: 3, Activation: "tanh"},
			disdel.Layer{Kind: "avgPool", Kernel: 2},
			disdel.Layer{Kind: "dense", Units: classes, Activation: last})
		sgd := disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 1}}
		for _, n := range []int{rows, rows - 2} { // a whole batch and a short one
			e := fresh(t, b, engine.Spec{Graph: g, Optimizer: sgd, Loss: loss, Training: true})
			x := batch(g, n, 11)
			before := engine.Weights(e)
			if _, err := e.Step(x); err != nil {
				t.Fatal(err)
			}
			quotients(t, e, x, loss, before, engine.Weights(e))
		}
	}
}

func quotients(t *testing.T, e engine.Engine, x dataset.Batch, loss string, before, after disdel.Weights) {
	t.Helper()
	const h = 2e-3
	at := func() float64 {
		if err := engine.SetWeights(e, before); err != nil {
			t.Fatal(err)
		}
		m, err := e.Evaluate(x)
		if err != nil {
			t.Fatal(err)
		}
		return m.Loss
	}
	for i, p := range before {
		for k := 0; k < len(p.Data); k += max(1, len(p.Data)/5) {
			old := p.Data[k]
			p.Data[k] = old + h
			up := at()
			p.Data[k] = old - h
			down := at()
			p.Data[k] = old
			want, got := (up-down)/(2*h), float64(old-after[i].Data[k])
			if math.Abs(want-got) > 2e-3+0.02*math.Abs(want) {
				t.Errorf("%s, %d rows: the gradient of %s[%d] is %.5f, the difference quotient %.5f", loss, x.Input.Rows, p.Name, k,
					got, want)
			}
		}
	}
}

// The same graph, weights, seed and batches give the same bits, on any number of threads; another seed drops other
// values.
func determinism(t *testing.T, b engine.Backend) {
	g := dropping(t)
	run := func(threads int, seed int64) disdel.Weights {
		e := fresh(t, b, engine.Spec{Graph: g, Optimizer: adam, Training: true, Threads: threads, Seed: 99})
		e.SetSeed(seed)
		steps(t, e, g, 0, 5)
		return everything(e)
	}
	want := run(1, 3)
	same(t, "a second run", want, run(1, 3))
	same(t, "two threads", want, run(2, 3))
	if !differ(want, run(1, 4)) {
		t.Error("another seed drops the same values")
	}
}

// The rate is that of the steps to come.
func rates(t *testing.T, b engine.Backend) {
	g := network(t, disdel.Layer{Kind: "dense", Units: classes, Activation: "softmax"})
	run := func(optimizer, rate float64) disdel.Weights {
		e := fresh(t, b, engine.Spec{
			Graph: g, Optimizer: disdel.Optimizer{SGD: &disdel.SGD{LearningRate: optimizer}},
			Training: true,
		})
		if rate >= 0 {
			e.SetRate(rate)
		}
		steps(t, e, g, 0, 2)
		return engine.Weights(e)
	}
	same(t, "a rate of 0", engine.InitWeights(g, disdel.Init{Seed: 7}), run(0.5, 0))
	same(t, "a rate that was set", run(0.25, -1), run(0.5, 0.25))
}

// A gradient is no longer than the limit.
func clipping(t *testing.T, b engine.Backend) {
	g := network(t)
	const limit = 0.01
	sgd := disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 1}}
	e := fresh(t, b, engine.Spec{Graph: g, Optimizer: sgd, ClipNorm: limit, Training: true})
	before := engine.Copies(engine.Of(e.State(), engine.Weight))
	steps(t, e, g, 0, 1)
	var sum float64
	for i, v := range engine.Copies(engine.Of(e.State(), engine.Weight)) {
		for k, x := range v.Data {
			d := float64(x - before[i].Data[k])
			sum += d * d
		}
	}
	if norm := math.Sqrt(sum); math.Abs(norm-limit) > 0.01*limit {
		t.Errorf("weights moved by %v, and %v is the limit", norm, limit)
	}
}

// What State reads, another engine continues from to the same bits.
func state(t *testing.T, b engine.Backend) {
	g := network(t)
	for name, o := range map[string]disdel.Optimizer{
		"adam": adam, "lion": {Lion: &disdel.Lion{LearningRate: 0.001}},
		"momentum": {SGD: &disdel.SGD{LearningRate: 0.1, Momentum: 0.9}},
		"sgd":      {SGD: &disdel.SGD{LearningRate: 0.1}},
	} {
		s := engine.Spec{Graph: g, Optimizer: o, Training: true}
		straight, first, second := fresh(t, b, s), fresh(t, b, s), fresh(t, b, s)
		steps(t, straight, g, 0, 6)
		steps(t, first, g, 0, 3)
		to := second.State()
		for i, v := range everything(first) {
			if err := to[i].Set(v); err != nil {
				t.Fatal(err)
			}
		}
		steps(t, second, g, 3, 6)
		same(t, name, everything(straight), everything(second))
	}
}

// Arrays are read and written in parts, are views, and refuse what does not fit.
func parts(t *testing.T, b engine.Backend) {
	g := network(t)
	s := engine.Spec{Graph: g, Optimizer: adam, Training: true}
	e, other := fresh(t, b, s), fresh(t, b, s)
	steps(t, e, g, 0, 2)
	to := other.State()
	for i, a := range e.State() {
		part := make([]float32, min(5, a.Len()))
		for at := 0; at < a.Len(); at += len(part) {
			part = part[:min(len(part), a.Len()-at)]
			if err := errors.Join(a.ReadAt(part, at), to[i].WriteAt(part, at)); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.ReadAt(make([]float32, a.Len()), 1); !errors.Is(err, disdel.Invalid) {
			t.Errorf("%s was read beyond its end: %v", a.Name, err)
		}
		if err := a.WriteAt([]float32{float32(math.NaN())}, 0); !errors.Is(err, disdel.Diverged) {
			t.Errorf("%s took what is no number: %v", a.Name, err)
		}
	}
	same(t, "in parts", everything(e), everything(other))
	seen := make([]float32, to[0].Len())
	steps(t, other, g, 2, 3)
	if err := to[0].ReadAt(seen, 0); err != nil || !slices.Equal(seen, engine.Weights(other)[0].Data) {
		t.Errorf("an array from before a step does not show it: %v", err)
	}
}

// Reset forgets a role, and that alone.
func reset(t *testing.T, b engine.Backend) {
	g := network(t)
	e := fresh(t, b, engine.Spec{Graph: g, Optimizer: adam, Training: true})
	first := everything(e)
	steps(t, e, g, 0, 2)
	moved := everything(e)
	for _, role := range []engine.Role{engine.Moment, engine.Statistic} {
		if err := e.Reset(role); err != nil {
			t.Fatal(err)
		}
		for i, a := range e.State() {
			want := moved[i]
			if a.Role == engine.Moment || a.Role == role {
				want = first[i]
			}
			same(t, "reset of "+role.String(), disdel.Weights{want}, disdel.Weights{a.Copy()})
		}
	}
	if err := e.Reset(engine.Weight); !errors.Is(err, disdel.Invalid) {
		t.Errorf("weights were reset: %v", err)
	}
	again := dropping(t)
	d := fresh(t, b, engine.Spec{Graph: again, Optimizer: adam, Training: true, Seed: 5})
	want := steps(t, d, again, 0, 3)
	if err := errors.Join(d.Init(disdel.Init{Seed: 7}), d.Reset(engine.Moment)); err != nil {
		t.Fatal(err)
	}
	if got := steps(t, d, again, 0, 3); !slices.Equal(want, got) {
		t.Errorf("losses %v after a reset, %v before", got, want)
	}
}

// Evaluation and prediction change nothing, not even the next step.
func evaluation(t *testing.T, b engine.Backend) {
	g := network(t)
	s := engine.Spec{Graph: g, Optimizer: adam, Training: true}
	e, undisturbed := fresh(t, b, s), fresh(t, b, s)
	steps(t, e, g, 0, 2)
	steps(t, undisturbed, g, 0, 2)
	x := batch(g, rows, 5)
	m, err := e.Evaluate(x)
	if err != nil || m.Rows != rows || m.Loss <= 0 {
		t.Fatalf("%+v, %v", m, err)
	}
	p, err := e.Predict(x)
	if err != nil || p.Rows != rows || p.Columns != classes || len(p.Values) != rows*classes {
		t.Fatalf("%+v, %v", p, err)
	}
	correct, loss := 0, 0.0
	for i, y := range x.Target.Classes {
		row := p.Row(i)
		if slices.Max(row) == row[y] {
			correct++
		}
		loss -= math.Log(float64(row[y])) / rows
	}
	if correct != m.Correct || math.Abs(loss-m.Loss) > 1e-4*(1+loss) {
		t.Errorf("predictions come to %d right and a loss of %v, the evaluation to %+v", correct, loss, m)
	}
	if top5 := disdel.CountTop5(p.Values, x.Target.Classes); m.Top5 != top5 {
		t.Errorf("the evaluation counts %d rows in the top 5, predictions %d", m.Top5, top5)
	}
	if predicted := engine.Largest(p.Values, classes); !slices.Equal(m.Classes, predicted) {
		t.Errorf("the evaluation gives the classes %v, predictions %v", m.Classes, predicted)
	}
	same(t, "after an evaluation", everything(undisturbed), everything(e))
	steps(t, e, g, 2, 4)
	steps(t, undisturbed, g, 2, 4)
	same(t, "steps after an evaluation", everything(undisturbed), everything(e))
}

// A step counts the rows that were right as it saw them, before it changed anything.
func counting(t *testing.T, b engine.Backend) {
	g := network(t, disdel.Layer{Kind: "dense", Units: 20, Activation: "tanh"},
		disdel.Layer{Kind: "dense", Units: classes, Activation: "softmax"})
	e := fresh(t, b, engine.Spec{Graph: g, Optimizer: adam, Training: true})
	right := 0
	for i := range 12 {
		x := batch(g, rows, uint64(i%2))
		want, err := e.Evaluate(x)
		if err != nil {
			t.Fatal(err)
		}
		got, err := e.Step(x)
		if err != nil || got.Correct != want.Correct {
			t.Fatalf("step %d counted %d right, an evaluation before it %d: %v", i, got.Correct, want.Correct, err)
		}
		right = got.Correct
	}
	if right == 0 {
		t.Error("nothing was learned, and so nothing counted")
	}
}

// Batches that do not fit are refused, and nothing has changed.
func batches(t *testing.T, b engine.Backend) {
	g := network(t)
	e := fresh(t, b, engine.Spec{Graph: g, Optimizer: adam, Training: true})
	infers := fresh(t, b, engine.Spec{Graph: g})
	before := engine.Copies(engine.Of(e.State(), engine.Weight, engine.Moment)[1:2])
	odd := func(change func(*dataset.Batch)) dataset.Batch {
		x := batch(g, rows, 1)
		change(&x)
		return x
	}
	for name, c := range map[string]struct {
		x    dataset.Batch
		want disdel.Kind
	}{
		"no rows":       {dataset.Batch{}, disdel.Invalid},
		"too many rows": {batch(g, rows+1, 1), disdel.Invalid},
		"few values":    {odd(func(x *dataset.Batch) { x.Input.Values = x.Input.Values[1:] }), disdel.Invalid},
		"few labels":    {odd(func(x *dataset.Batch) { x.Target.Classes = x.Target.Classes[1:] }), disdel.Invalid},
		"label":         {odd(func(x *dataset.Batch) { x.Target.Classes[0] = classes }), disdel.Invalid},
		"infinite":      {odd(func(x *dataset.Batch) { x.Input.Values[3] = float32(math.Inf(1)) }), disdel.Diverged},
	} {
		if _, err := e.Step(c.x); !errors.Is(err, c.want) {
			t.Errorf("%s: a step returns %v, want %v", name, err, c.want)
		}
		if _, err := e.Evaluate(c.x); c.want == disdel.Invalid && !errors.Is(err, c.want) {
			t.Errorf("%s: an evaluation returns %v, want %v", name, err, c.want)
		}
	}
	same(t, "after refusals", before, engine.Copies(engine.Of(e.State(), engine.Weight, engine.Moment)[1:2]))
	if _, err := infers.Step(batch(g, rows, 1)); !errors.Is(err, disdel.Invalid) {
		t.Errorf("an engine for inference trains: %v", err)
	}
}

// refusals: New and Footprint refuse the same, and what Supports refuses, New does.
func refusals(t *testing.T, b engine.Backend) {
	g := network(t)
	foreign, err := model.Build(disdel.Network{
		Custom: &disdel.CustomNetwork{
			Name: "of another program", Input: []int{4}, Classes: 3,
			Params: []disdel.CustomParam{{Name: "w", Shape: []int{4, 3}, Trainable: true}},
		}, Input: []int{4}, Classes: 3,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Supports(g); err != nil {
		t.Errorf("a plain network is not supported: %v", err)
	}
	if err := b.Supports(foreign); !errors.Is(err, disdel.Invalid) {
		t.Errorf("a network of another program is supported: %v", err)
	}
	for name, s := range map[string]engine.Spec{
		"foreign": {Graph: foreign, BatchSize: 1}, "no batch": {Graph: g}, "loss": {Graph: g, BatchSize: 1, Loss: "hinge"},
	} {
		if e, err := b.New(s); !errors.Is(err, disdel.Invalid) || e != nil {
			t.Errorf("%s: New returns %v and %v, want Invalid and nothing", name, e, err)
		}
	}
	if _, err := b.Footprint(engine.Spec{Graph: g}); !errors.Is(err, disdel.Invalid) {
		t.Errorf("a batch of no rows has a footprint: %v", err)
	}
	if b.Name() == "" {
		t.Error("it has no name to be asked for by")
	}
	precision(t, b, g)
}

// precision: a backend trains with bfloat16, or New and Footprint refuse to; inference is no business of it.
func precision(t *testing.T, b engine.Backend, g *model.Graph) {
	t.Helper()
	s := engine.Spec{Graph: g, BatchSize: rows, Optimizer: adam, Training: true, Precision: disdel.PrecisionBF16}
	f, planned := b.Footprint(s)
	e, made := b.New(s)
	switch {
	case planned == nil && made == nil:
		if got := e.Footprint().Total(); got != f.Total() {
			t.Errorf("an engine of bf16 takes %v, and its footprint was %v", got, f.Total())
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	case !errors.Is(planned, disdel.Invalid) || !errors.Is(made, disdel.Invalid):
		t.Errorf("bf16: Footprint returns %v, New %v; want both to refuse it or none", planned, made)
	}
	s.Training = false
	e, err := b.New(s)
	if err != nil {
		t.Fatalf("inference of what was trained with bf16: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
