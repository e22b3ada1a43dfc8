package enginetest

import (
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/footprint"
)

// ExerciseSparse runs every promise against a backend of models of sparse rows: those of Exercise, and that what a
// batch has no entries for is left alone.
func ExerciseSparse(t *testing.T, b engine.Backend) {
	t.Helper()
	for name, promise := range map[string]func(*testing.T, engine.Backend, *model.Graph){
		"first weights": sparseFirstWeights, "gradients": sparseGradients, "determinism": sparseDeterminism,
		"rates": sparseRates, "clipping": sparseClipping, "state": sparseState, "reset": sparseReset,
		"evaluation": sparseEvaluation, "batches": sparseBatches, "lazy rows": sparseLazy, "footprint": sparseFootprints,
		"allocations": sparseAllocations, "refusals": sparseRefusals,
	} {
		t.Run(name, func(t *testing.T) {
			for _, m := range model.SparseModels() {
				t.Run(m.Name, func(t *testing.T) { promise(t, b, SparseGraph(t, m.Name, 7, 9, 5, 40)) })
			}
		})
	}
	t.Run("memory", func(t *testing.T) { sparseMemory(t, b) })
}

// SparseGraph is the graph of a model of sparse rows: of ratings by users of items, in a rank, or of columns.
func SparseGraph(t testing.TB, name string, users, items, rank, columns int) *model.Graph {
	t.Helper()
	m, ok := model.FindSparse(name)
	if !ok {
		t.Fatalf("there is no model %q", name)
	}
	d := disdel.DataInfo{
		Sample: []int{columns}, Classes: m.Classes, Train: 1, Sparse: &disdel.SparseData{Entries: int64(min(4, columns)), Most: min(8, max(1, columns)), Mean: 3.5},
	}
	if m.Ratings {
		d.Sample = []int{users + items}
		d.Sparse = &disdel.SparseData{Entries: 2, Most: 2, Mean: 3.5, Users: users, Items: items, Ones: true}
	}
	g, err := model.Build(m.Describe(d, rank, disdel.Init{}))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// SparseBatch is rows for a graph, by a seed: columns of different rows are often the same.
func SparseBatch(g *model.Graph, rows int, seed uint64) dataset.Batch {
	rng := rand.New(rand.NewPCG(seed, 2))
	n, columns := g.Sparse(), g.Input()[0]
	b := dataset.Batch{Input: dataset.Matrix{Rows: rows, Columns: columns, Start: []int32{0}}}
	for range rows {
		if n.Users > 0 {
			b.Input.Index = append(b.Input.Index, int32(rng.IntN(n.Users)), int32(n.Users+rng.IntN(n.Items)))
		} else {
			for _, c := range rng.Perm(columns)[:rng.IntN(n.Most+1)] {
				b.Input.Index = append(b.Input.Index, int32(c))
				b.Input.Values = append(b.Input.Values, float32(rng.NormFloat64()))
			}
		}
		b.Input.Start = append(b.Input.Start, int32(len(b.Input.Index)))
		y := float32(1 + 4*rng.Float64())
		if g.Probability() {
			y = float32(rng.IntN(2))
		}
		b.Target.Values = append(b.Target.Values, y)
	}
	return b
}

func sparseSteps(t *testing.T, e engine.Engine, g *model.Graph, from, to int) (losses []float64) {
	t.Helper()
	for i := from; i < to; i++ {
		n := rows - i%3
		m, err := e.Step(SparseBatch(g, n, uint64(i)))
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

func sparseFirstWeights(t *testing.T, b engine.Backend, g *model.Graph) {
	for _, training := range []bool{true, false} {
		e := fresh(t, b, engine.Spec{Graph: g, Optimizer: adam, Training: training})
		same(t, "first weights", engine.InitWeights(g, disdel.Init{Seed: 7}), engine.Weights(e))
		for i, p := range g.Params() {
			if a := e.State()[i]; a.Role != engine.Weight || a.Name != p.Name {
				t.Errorf("array %d is %s, a %v, and not %s", i, a.Name, a.Role, p.Name)
			}
		}
		if n := len(engine.Of(e.State(), engine.Moment)); training != (n > 0) {
			t.Errorf("training %v, and %d moments", training, n)
		}
	}
}

// With SGD and a rate of 1, weights change by the gradient: it must be the difference quotient of the loss, of every
// weight.
func sparseGradients(t *testing.T, b engine.Backend, g *model.Graph) {
	sgd := disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 1}}
	for _, ones := range []bool{false, true} {
		e := fresh(t, b, engine.Spec{Graph: g, Optimizer: sgd, Training: true})
		sparseSteps(t, e, g, 0, 1) // to weights other than zero
		x := SparseBatch(g, rows, 11)
		if ones {
			x.Input.Values = nil
		}
		before := engine.Weights(e)
		if _, err := e.Step(x); err != nil {
			t.Fatal(err)
		}
		sparseQuotients(t, e, x, before, engine.Weights(e))
	}
}

func sparseQuotients(t *testing.T, e engine.Engine, x dataset.Batch, before, after disdel.Weights) {
	t.Helper()
	const h = 1e-2
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
		for k, old := range p.Data {
			p.Data[k] = old + h
			up := at()
			p.Data[k] = old - h
			down := at()
			p.Data[k] = old
			want, got := (up-down)/(2*h), float64(old-after[i].Data[k])
			if math.Abs(want-got) > 1e-3+0.005*math.Abs(want) {
				t.Errorf("the gradient of %s[%d] is %.5f, the difference quotient %.5f", p.Name, k, got, want)
			}
		}
	}
}

func sparseDeterminism(t *testing.T, b engine.Backend, g *model.Graph) {
	run := func(threads int) disdel.Weights {
		e := fresh(t, b, engine.Spec{Graph: g, Optimizer: adam, Training: true, Threads: threads})
		sparseSteps(t, e, g, 0, 6)
		return everything(e)
	}
	want := run(1)
	same(t, "a second run", want, run(1))
	same(t, "two threads", want, run(2))
}

func sparseRates(t *testing.T, b engine.Backend, g *model.Graph) {
	run := func(optimizer, rate float64) disdel.Weights {
		o := disdel.Optimizer{SGD: &disdel.SGD{LearningRate: optimizer}}
		e := fresh(t, b, engine.Spec{Graph: g, Optimizer: o, Training: true})
		if rate >= 0 {
			e.SetRate(rate)
		}
		sparseSteps(t, e, g, 0, 2)
		return engine.Weights(e)
	}
	same(t, "a rate of 0", engine.InitWeights(g, disdel.Init{Seed: 7}), run(0.5, 0))
	same(t, "a rate that was set", run(0.25, -1), run(0.5, 0.25))
}

func sparseClipping(t *testing.T, b engine.Backend, g *model.Graph) {
	const limit = 0.01
	sgd := disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 1}}
	e := fresh(t, b, engine.Spec{Graph: g, Optimizer: sgd, ClipNorm: limit, Training: true})
	before := engine.Weights(e)
	sparseSteps(t, e, g, 0, 1)
	var sum float64
	for i, v := range engine.Weights(e) {
		for k, x := range v.Data {
			d := float64(x - before[i].Data[k])
			sum += d * d
		}
	}
	if norm := math.Sqrt(sum); math.Abs(norm-limit) > 0.01*limit {
		t.Errorf("weights moved by %v, and %v is the limit", norm, limit)
	}
}

// sparseOptimizers are all ways that weights move.
var sparseOptimizers = map[string]disdel.Optimizer{
	"adam": adam, "adamw": {AdamW: &disdel.Adam{LearningRate: 0.01, WeightDecay: 0.1}},
	"lion":     {Lion: &disdel.Lion{LearningRate: 0.003, WeightDecay: 0.1}},
	"rmsprop":  {RMSprop: &disdel.RMSprop{LearningRate: 0.003, Momentum: 0.5}},
	"adagrad":  {Adagrad: &disdel.Adagrad{LearningRate: 0.03}},
	"sgd":      {SGD: &disdel.SGD{LearningRate: 0.1, WeightDecay: 0.01}},
	"momentum": {SGD: &disdel.SGD{LearningRate: 0.1, Momentum: 0.9}},
	"nesterov": {SGD: &disdel.SGD{LearningRate: 0.1, Momentum: 0.9, Nesterov: true}},
}

// What State reads, in parts, another engine continues from to the same bits.
func sparseState(t *testing.T, b engine.Backend, g *model.Graph) {
	for name, o := range sparseOptimizers {
		s := engine.Spec{Graph: g, Optimizer: o, Training: true}
		straight, first, second := fresh(t, b, s), fresh(t, b, s), fresh(t, b, s)
		sparseSteps(t, straight, g, 0, 6)
		sparseSteps(t, first, g, 0, 3)
		to := second.State()
		for i, a := range first.State() {
			part := make([]float32, min(7, a.Len()))
			for at := 0; at < a.Len(); at += len(part) {
				part = part[:min(len(part), a.Len()-at)]
				if err := errors.Join(a.ReadAt(part, at), to[i].WriteAt(part, at)); err != nil {
					t.Fatal(err)
				}
			}
		}
		same(t, name+", in parts", everything(first), everything(second))
		sparseSteps(t, second, g, 3, 6)
		same(t, name, everything(straight), everything(second))
		again := fresh(t, b, s)
		for i, a := range again.State() {
			if err := a.Set(everything(straight)[i]); err != nil {
				t.Fatal(err)
			}
		}
		same(t, name+", as a whole", everything(straight), everything(again))
	}
}

func sparseReset(t *testing.T, b engine.Backend, g *model.Graph) {
	s := engine.Spec{Graph: g, Optimizer: adam, Training: true}
	e := fresh(t, b, s)
	want := sparseSteps(t, e, g, 0, 3)
	if err := errors.Join(e.Init(disdel.Init{Seed: 7}), e.Reset(engine.Moment), e.Reset(engine.Statistic)); err != nil {
		t.Fatal(err)
	}
	same(t, "after a reset", everything(fresh(t, b, s)), everything(e))
	if got := sparseSteps(t, e, g, 0, 3); !slices.Equal(want, got) {
		t.Errorf("losses %v after a reset, %v before", got, want)
	}
	if err := e.Reset(engine.Weight); !errors.Is(err, disdel.Invalid) {
		t.Errorf("weights were reset: %v", err)
	}
}

// Evaluation and prediction say the same, and change nothing.
func sparseEvaluation(t *testing.T, b engine.Backend, g *model.Graph) {
	e := fresh(t, b, engine.Spec{Graph: g, Optimizer: adam, Training: true})
	sparseSteps(t, e, g, 0, 2)
	before, x := everything(e), SparseBatch(g, rows, 5)
	p, err := e.Predict(x)
	if err != nil || p.Rows != rows || p.Columns != 1 || len(p.Values) != rows {
		t.Fatalf("%+v, %v", p, err)
	}
	m, err := e.Evaluate(x)
	if err != nil || m.Rows != rows || !slices.Equal(m.Scores, p.Values) {
		t.Fatalf("%+v of %v, %v", m, p.Values, err)
	}
	loss, correct := 0.0, 0
	for i, y := range x.Target.Values {
		v, y := float64(p.Values[i]), float64(y)
		if g.Probability() {
			loss -= (y*math.Log(v) + (1-y)*math.Log(1-v)) / rows
			if (v >= 0.5) == (y == 1) {
				correct++
			}
			continue
		}
		loss += (v - y) * (v - y) / rows
	}
	if math.Abs(loss-m.Loss) > 1e-5*(1+loss) || correct != m.Correct {
		t.Errorf("predictions come to a loss of %v and %d right, the evaluation to %+v", loss, correct, m)
	}
	same(t, "after an evaluation", before, everything(e))
}

// Batches that do not fit are refused, and nothing has changed.
func sparseBatches(t *testing.T, b engine.Backend, g *model.Graph) {
	e := fresh(t, b, engine.Spec{Graph: g, Optimizer: adam, Training: true})
	before := everything(e)
	odd := func(change func(*dataset.Batch)) dataset.Batch {
		x := SparseBatch(g, rows, 1)
		change(&x)
		return x
	}
	cases := map[string]struct {
		x    dataset.Batch
		want disdel.Kind
	}{
		"no rows":         {dataset.Batch{}, disdel.Invalid},
		"dense rows":      {dataset.Dense(rows, make([]float32, rows*g.Input()[0]), make([]int32, rows)), disdel.Invalid},
		"too many rows":   {SparseBatch(g, rows+1, 1), disdel.Invalid},
		"few columns":     {odd(func(x *dataset.Batch) { x.Input.Index = x.Input.Index[1:] }), disdel.Invalid},
		"few targets":     {odd(func(x *dataset.Batch) { x.Target.Values = x.Target.Values[1:] }), disdel.Invalid},
		"backwards":       {odd(func(x *dataset.Batch) { x.Input.Start[1] = x.Input.Start[rows] + 1 }), disdel.Invalid},
		"begins late":     {odd(func(x *dataset.Batch) { x.Input.Start[0] = 1 }), disdel.Invalid},
		"column":          {odd(func(x *dataset.Batch) { x.Input.Index[1] = int32(g.Input()[0]) }), disdel.Invalid},
		"column below":    {odd(func(x *dataset.Batch) { x.Input.Index[1] = -1 }), disdel.Invalid},
		"infinite target": {odd(func(x *dataset.Batch) { x.Target.Values[2] = float32(math.Inf(1)) }), disdel.Diverged},
	}
	if g.Sparse().Users == 0 {
		cases["infinite"] = struct {
			x    dataset.Batch
			want disdel.Kind
		}{odd(func(x *dataset.Batch) { x.Input.Values[0] = float32(math.NaN()) }), disdel.Diverged}
	}
	for name, c := range cases {
		if _, err := e.Step(c.x); !errors.Is(err, c.want) {
			t.Errorf("%s: a step returns %v, want %v", name, err, c.want)
		}
		if _, err := e.Evaluate(c.x); c.want == disdel.Invalid && !errors.Is(err, c.want) {
			t.Errorf("%s: an evaluation returns %v, want %v", name, err, c.want)
		}
	}
	same(t, "after refusals", before, everything(e))
	if _, err := fresh(t, b, engine.Spec{Graph: g}).Step(SparseBatch(g, rows, 1)); !errors.Is(err, disdel.Invalid) {
		t.Errorf("an engine for inference trains: %v", err)
	}
}

// Weights that a batch has no entries for keep their bits, and so do their moments.
func sparseLazy(t *testing.T, b engine.Backend, g *model.Graph) {
	for name, o := range sparseOptimizers {
		e := fresh(t, b, engine.Spec{Graph: g, Optimizer: o, Training: true})
		sparseSteps(t, e, g, 0, 4)
		before, x := everything(e), SparseBatch(g, 2, 9)
		touched := map[int]bool{}
		for _, c := range x.Input.Index {
			touched[int(c)] = true
		}
		if _, err := e.Step(x); err != nil {
			t.Fatal(err)
		}
		moved := 0
		for i, v := range everything(e) {
			first, rows := rowsOf(g, v)
			for k := range v.Data {
				if v.Data[k] == before[i].Data[k] {
					continue
				}
				moved++
				if rows > 0 && !touched[first+k/rows] {
					t.Errorf("%s: %s[%d] moved, and no row has an entry for it", name, v.Name, k)
				}
			}
		}
		if moved == 0 {
			t.Errorf("%s: nothing moved", name)
		}
	}
}

// rowsOf is the column of the data that an array's first row stands for, and how many values each has; 0: every batch
// touches it.
func rowsOf(g *model.Graph, v disdel.Tensor) (first, rows int) {
	n := g.Sparse()
	switch {
	case v.Name == engine.StepCount, len(v.Data) == 1:
		return 0, 0
	case n.Users == 0:
		return 0, 1
	case v.Shape[0] == n.Items:
		first = n.Users
	}
	return first, len(v.Data) / v.Shape[0]
}

func sparseFootprints(t *testing.T, b engine.Backend, g *model.Graph) {
	s := engine.Spec{Graph: g, BatchSize: rows, Optimizer: adam, Training: true}
	want, err := b.Footprint(s)
	if err != nil {
		t.Fatal(err)
	}
	if got := fresh(t, b, s).Footprint(); got.Total() != want.Total() || want.Basis != footprint.Planned {
		t.Errorf("the engine says %v, its backend %v (%v)", got.Total(), want.Total(), want.Basis)
	}
	if len(want.Layers) != len(g.Nodes) {
		t.Errorf("%d layers of %d nodes", len(want.Layers), len(g.Nodes))
	}
	minimum := disdel.Bytes(4 * g.Count().Trainable)
	if w, m := want.Sum(footprint.Weights), want.Sum(footprint.Moments); w != minimum || m != 2*minimum {
		t.Errorf("weights %v and moments %v, of %v and twice that", w, m, minimum)
	}
	more := s
	more.BatchSize *= 2
	if f, err := b.Footprint(more); err != nil || f.Total() <= want.Total() {
		t.Errorf("twice the batch takes %v, once %v; %v", f.Total(), want.Total(), err)
	}
	s.Training = false
	if f, err := b.Footprint(s); err != nil || f.Total() >= want.Total() || f.Layers != nil {
		t.Errorf("inference takes %v, training %v; %v", f.Total(), want.Total(), err)
	}
	s.Memory, s.BatchSize = 1, 1
	if _, err := b.New(s); !errors.Is(err, disdel.OOM) {
		t.Errorf("an engine of more than its memory: %v", err)
	}
}

// A step allocates nothing.
func sparseAllocations(t *testing.T, b engine.Backend, g *model.Graph) {
	for name, o := range sparseOptimizers {
		e := fresh(t, b, engine.Spec{Graph: g, Optimizer: o, ClipNorm: 1, Training: true})
		x := SparseBatch(g, rows, 3)
		if n := testing.AllocsPerRun(50, func() {
			if _, err := e.Step(x); err != nil {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("%s: a step allocates %v times", name, n)
		}
	}
}

func sparseRefusals(t *testing.T, b engine.Backend, g *model.Graph) {
	dense := network(t)
	if err := b.Supports(g); err != nil {
		t.Errorf("%s is not supported: %v", g.Name, err)
	}
	if err := b.Supports(dense); !errors.Is(err, disdel.Invalid) {
		t.Errorf("a network is supported: %v", err)
	}
	for name, s := range map[string]engine.Spec{
		"network": {Graph: dense, BatchSize: 1}, "no batch": {Graph: g}, "loss": {Graph: g, BatchSize: 1, Loss: "hinge"},
	} {
		if e, err := b.New(s); !errors.Is(err, disdel.Invalid) || e != nil {
			t.Errorf("%s: New returns %v and %v, want Invalid and nothing", name, e, err)
		}
		if _, err := b.Footprint(s); !errors.Is(err, disdel.Invalid) {
			t.Errorf("%s: the footprint is %v", name, err)
		}
	}
	if b.Name() == "" {
		t.Error("it has no name to be asked for by")
	}
	precision(t, b, g)
}

// What is measured of a process is what the footprint says.
func sparseMemory(t *testing.T, b engine.Backend) {
	g := SparseGraph(t, "logistic", 0, 0, 0, 1_000_000)
	s := engine.Spec{Graph: g, BatchSize: 512, Optimizer: adam, Training: true}
	estimated, err := b.Footprint(s)
	if err != nil {
		t.Fatal(err)
	}
	x := SparseBatch(SparseGraph(t, "logistic", 0, 0, 0, 1000), 512, 1)
	x.Input.Columns = g.Input()[0]
	heap, before := alive(), resident(t)
	e := fresh(t, b, s)
	beside := outside(t, heap, before)
	if _, err := e.Step(x); err != nil {
		t.Fatal(err)
	}
	took := alive() - heap
	runtime.KeepAlive(x)
	want := estimated.In(footprint.Host)
	if before > 0 && !testing.Short() && (beside < want-disdel.MB || beside > want+disdel.MB) {
		t.Errorf("%v are resident beside the heap, and %v are in the footprint", beside, want)
	}
	if want := estimated.In(footprint.Heap); took > want {
		t.Errorf("%v are alive on the heap, and %v are in the footprint", took, want)
	}
}
