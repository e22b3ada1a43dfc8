package sparse

import (
	"fmt"
	"math"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
	"github.com/disdel/disdel/runtime/engine/slab"
)

// Engine computes with one model of sparse rows. It is for one goroutine, and computes in it: a step takes less than
// handing it to others would.
type Engine struct {
	g      *model.Graph
	net    *disdel.SparseNetwork
	layout layout
	mem    *slab.Slab
	// tables are the weights: of columns and the bias, or of users and of items, each with its bias in the last column.
	tables []table

	probability bool    // predictions are probabilities, and the loss is logistic
	offset      float32 // of predictions
	rate        float64 // learning rate
	steps       int     // since the moments were reset
	out         []float32

	kernels string
	exact   *kernel.Exact
	places  [2 * pairsAtOnce]int32 // of ratings' rows among the touched ones
	sums    [rowsAtOnce]float64
}

// newEngine makes an engine by a layout that its spec was checked for.
func newEngine(s engine.Spec, l layout) (*Engine, error) {
	if s.Memory > 0 && l.bytes() > s.Memory {
		return nil, &disdel.Error{
			Kind: disdel.OOM, Op: "make engine",
			Msg: fmt.Sprintf("model %s with a batch of %d needs %v, and the action has %v",
				s.Graph.Name, s.BatchSize, l.bytes(), s.Memory),
			Hint: "lower training.batchSize or model.rank, or raise the memory limit",
		}
	}
	set, err := kernel.Choose()
	if err != nil {
		return nil, err
	}
	mem, err := slab.New(l.len())
	if err != nil {
		return nil, err
	}
	n := s.Graph.Sparse()
	e := &Engine{
		g: s.Graph, net: n, layout: l, mem: mem, probability: s.Graph.Probability(), offset: float32(n.Offset),
		rate: s.Optimizer.Rate(), out: make([]float32, s.BatchSize),
		kernels: set.Name, exact: kernel.NewExact(set),
	}
	at := 0
	for _, shape := range l.tables {
		var t table
		t, at = newTable(shape, s.Optimizer.Moments(), mem, at)
		e.tables = append(e.tables, t)
	}
	return e, nil
}

// Close frees the engine's memory; it must not be used afterwards.
func (e *Engine) Close() error { return e.mem.Free() }

// Footprint is the engine's memory by category.
func (e *Engine) Footprint() engine.Footprint { return e.layout.footprint() }

// Kernels is the path of its kernels, all of which have the same bits.
func (e *Engine) Kernels() string { return e.kernels }

// SetRate sets the learning rate of the steps to come.
func (e *Engine) SetRate(rate float64) { e.rate = rate }

// SetSeed does nothing: nothing of a step is drawn by lot.
func (e *Engine) SetSeed(int64) {}

// Step trains on one batch and returns the mean loss of its rows before the step. It allocates nothing. It returns
// Invalid for a batch that does not fit and Diverged for an entry, a target, a loss or a gradient that is not finite;
// then nothing was changed.
func (e *Engine) Step(b dataset.Batch) (disdel.Metrics, error) {
	const op = "train"
	if err := e.check(op, &b, true); err != nil {
		return disdel.Metrics{}, err
	}
	if !e.layout.spec.Training {
		return disdel.Metrics{}, &disdel.Error{Kind: disdel.Invalid, Op: op, Msg: "the engine was made for inference"}
	}
	if e.direct(b.Input.Rows) {
		return e.stepDirect(&b)
	}
	for i := range e.tables {
		e.tables[i].n = 0
	}
	loss := e.pass(&b, true) / float64(b.Input.Rows)
	norm := e.squaredNorm()
	if !finite(loss) || !finite(norm) {
		return disdel.Metrics{}, &disdel.Error{
			Kind: disdel.Diverged, Op: op, Msg: fmt.Sprintf("the loss is %v, and the gradient's length %v", loss, math.Sqrt(norm)),
			Hint: "lower the learning rate, set training.clipNorm, or check the data's scale",
		}
	}
	e.steps++
	e.update(norm)
	return disdel.Metrics{Rows: b.Input.Rows, Loss: loss}, nil
}

// Evaluate returns the mean loss of a batch's rows and their predictions; of probabilities also how many are on the
// side of their target. It returns Invalid and Diverged as Step does.
func (e *Engine) Evaluate(b dataset.Batch) (disdel.Metrics, error) {
	const op = "evaluate"
	if err := e.check(op, &b, true); err != nil {
		return disdel.Metrics{}, err
	}
	m := disdel.Metrics{Rows: b.Input.Rows, Loss: e.pass(&b, false) / float64(b.Input.Rows), Scores: e.out[:b.Input.Rows]}
	if !finite(m.Loss) {
		return disdel.Metrics{}, &disdel.Error{Kind: disdel.Diverged, Op: op, Msg: fmt.Sprintf("the loss is %v", m.Loss)}
	}
	if e.probability {
		for i, y := range b.Target.Values {
			if (m.Scores[i] >= 0.5) == (y >= 0.5) {
				m.Correct++
			}
		}
	}
	return m, nil
}

// Predict returns the model's prediction for each row of a batch, [rows 1]: a probability of a logistic regression.
func (e *Engine) Predict(b dataset.Batch) (dataset.Matrix, error) {
	if err := e.check("predict", &b, false); err != nil {
		return dataset.Matrix{}, err
	}
	b.Target.Values = nil
	e.pass(&b, false)
	rows := b.Input.Rows
	return dataset.Matrix{Rows: rows, Columns: 1, Values: append([]float32(nil), e.out[:rows]...)}, nil
}

// pass predicts every row and returns the sum of their losses, 0 without targets. With gradient set it also adds up the
// gradient of the mean loss.
func (e *Engine) pass(b *dataset.Batch, gradient bool) float64 {
	if e.net.Users > 0 {
		return e.factors(b, gradient)
	}
	return e.linear(b, gradient)
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// check refuses rows, and with targets set targets, that do not fit (Invalid) or are not finite (Diverged).
func (e *Engine) check(op string, b *dataset.Batch, targets bool) error {
	in := &b.Input
	bad := func(format string, args ...any) error {
		return &disdel.Error{Kind: disdel.Invalid, Op: op, Msg: fmt.Sprintf(format, args...)}
	}
	n := len(in.Index)
	switch {
	case in.Rows < 1 || in.Rows > e.layout.spec.BatchSize || len(in.Start) != in.Rows+1:
		return bad("%d rows with %d starts, at most %d rows a batch", in.Rows, len(in.Start), e.layout.spec.BatchSize)
	case in.Start[0] != 0 || int(in.Start[in.Rows]) != n || in.Values != nil && len(in.Values) != n:
		return bad("%d columns and %d values of entries %d to %d", n, len(in.Values), in.Start[0], in.Start[in.Rows])
	case n > e.layout.entries:
		return bad("%d entries in %d rows, and the engine was made for %d", n, in.Rows, e.layout.entries)
	case targets && len(b.Target.Values) != in.Rows:
		return bad("%d targets for %d rows", len(b.Target.Values), in.Rows)
	}
	for r := range in.Rows {
		if in.Start[r] > in.Start[r+1] {
			return bad("row %d ends before it begins", r)
		}
	}
	checked := in.Checked && in.Columns == e.g.Input()[0]
	if err := e.checkColumns(bad, in, checked); err != nil {
		return err
	}
	if (checked || allFinite(in.Values)) && (!targets || allFinite(b.Target.Values)) {
		return e.checkTargets(bad, b, targets)
	}
	return &disdel.Error{
		Kind: disdel.Diverged, Op: op, Msg: "an entry or a target of the batch is not finite",
		Hint: "check the data for NaN and infinities",
	}
}

func (e *Engine) checkColumns(bad func(string, ...any) error, in *dataset.Matrix, checked bool) error {
	columns := uint32(e.g.Input()[0])
	if !checked {
		for _, c := range in.Index {
			if uint32(c) >= columns {
				return bad("column %d of %d", c, columns)
			}
		}
	}
	if e.net.Users == 0 {
		return nil
	}
	if in.Values != nil {
		return bad("ratings have no values but their targets")
	}
	for r := range in.Rows {
		at := in.Start[r]
		if in.Start[r+1]-at != 2 || int(in.Index[at]) >= e.net.Users || int(in.Index[at+1]) < e.net.Users {
			return bad("row %d is no user and an item", r)
		}
	}
	return nil
}

func (e *Engine) checkTargets(bad func(string, ...any) error, b *dataset.Batch, targets bool) error {
	if !targets || !e.probability {
		return nil
	}
	for r, y := range b.Target.Values {
		if y < 0 || y > 1 {
			return bad("the target of row %d is %v, and not from 0 to 1", r, y)
		}
	}
	return nil
}

func allFinite(x []float32) bool {
	for _, v := range x {
		if v-v != 0 {
			return false
		}
	}
	return true
}

// part is where an array of the graph's Params lies: columns of a table.
type part struct{ table, column, width int }

// parts are those of the graph's Params, in their order.
func (e *Engine) parts() []part {
	if e.net.Users == 0 {
		return []part{{0, 0, 1}, {1, 0, 1}}
	}
	rank := e.net.Rank
	return []part{{0, 0, rank}, {0, rank, 1}, {1, 0, rank}, {1, rank, 1}}
}

// view is a part of the weights, or of a moment.
func (p part) view(t *table, values []float32) view {
	return view{values: values, stride: t.width, column: p.column, width: p.width}
}

// Ahead implements engine.Engine: batches are read where they lie.
func (*Engine) Ahead() engine.Ahead { return nil }

// Passes implements engine.Engine: it computes whole networks.
func (*Engine) Passes() engine.Passes { return nil }

// Listener implements engine.Engine.
func (*Engine) Listener() engine.Listener { return nil }

// State lists views of the engine's arrays.
func (e *Engine) State() []engine.Array {
	parts := e.parts()
	return engine.StateOf(&e.layout.spec, &e.steps, func(i, moment int) engine.Values {
		t := &e.tables[parts[i].table]
		if moment < 0 {
			return parts[i].view(t, t.value)
		}
		return parts[i].view(t, t.moments[moment])
	})
}

// Init sets the weights to those of engine.InitWeights.
func (e *Engine) Init(init disdel.Init) error {
	draws := engine.NewDraws(e.g, init)
	parts := e.parts()
	for i, p := range e.g.Params() {
		t, draw := &e.tables[parts[i].table], draws.Of(p)
		parts[i].view(t, t.value).runs(p.Len(), 0, func(_ int, run []float32) {
			for k := range run {
				run[k] = draw()
			}
		})
	}
	return nil
}
