package sparse

import (
	"fmt"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/footprint"
)

// Backend makes engines for models of sparse rows.
type Backend struct{}

// Name implements engine.Backend.
func (Backend) Name() string { return disdel.BackendSparse }

// Supports implements engine.Backend: models of sparse rows, and no networks.
func (Backend) Supports(g *model.Graph) error {
	if g.Sparse() != nil {
		return nil
	}
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "make engine", Msg: fmt.Sprintf("%s is a network, and this backend takes sparse rows", g.Name),
		Hint: "leave training.backend out",
	}
}

// New implements engine.Backend.
func (b Backend) New(s engine.Spec) (engine.Engine, error) {
	l, err := b.layout(&s)
	if err != nil {
		return nil, err
	}
	e, err := newEngine(s, l)
	if err != nil {
		return nil, err // not a nil *Engine, which is no nil engine.Engine
	}
	return e, nil
}

// Footprint implements engine.Backend: what lies outside the heap is exact.
func (b Backend) Footprint(s engine.Spec) (engine.Footprint, error) {
	l, err := b.layout(&s)
	if err != nil {
		return engine.Footprint{}, err
	}
	return l.footprint(), nil
}

// layout checks s, completes its loss, and lays its memory out.
func (b Backend) layout(s *engine.Spec) (layout, error) {
	bad := func(hint, format string, args ...any) (layout, error) {
		return layout{}, &disdel.Error{
			Kind: disdel.Invalid, Op: "make engine", Msg: fmt.Sprintf(format, args...), Hint: hint,
		}
	}
	if err := b.Supports(s.Graph); err != nil {
		return layout{}, err
	}
	if err := s.OnlyPlain(disdel.BackendSparse); err != nil {
		return layout{}, err
	}
	loss := s.Graph.SparseLoss()
	if s.Loss == "" {
		s.Loss = loss
	}
	switch {
	case s.BatchSize < 1:
		return bad("", "a batch of %d rows", s.BatchSize)
	case s.Optimizer.LAMB != nil:
		return bad("choose adamw", "a step of lamb needs the norms of whole tables, and touches only rows of the batch here")
	case s.Loss != loss:
		return bad("leave training.loss out", "there is no loss %q of %s, which has %s", s.Loss, s.Graph.Name, loss)
	}
	return newLayout(*s), nil
}

// layout is how the memory of an engine is divided.
type layout struct {
	spec    engine.Spec
	tables  []tableShape
	entries int // most of a batch
}

// tableShape is what a table needs to know of itself: see table.
type tableShape struct {
	rows, width int
	maximum     int // rows that a step touches, at most; 0 where nothing is trained
}

func newLayout(s engine.Spec) layout {
	n := s.Graph.Sparse()
	l := layout{spec: s, entries: s.BatchSize * n.Most}
	if n.Users > 0 {
		l.tables = []tableShape{{rows: n.Users, width: n.Rank + 1}, {rows: n.Items, width: n.Rank + 1}}
		l.entries = 2 * s.BatchSize
	} else {
		l.tables = []tableShape{{rows: s.Graph.Input()[0], width: 1}, {rows: 1, width: 1}}
	}
	for i := range l.tables {
		if t := &l.tables[i]; s.Training {
			t.maximum = min(t.rows, l.entries)
		}
	}
	return l
}

// values are what a table takes of the slab, by category, in values of four bytes.
func (t tableShape) values(moments int) (weights, forMoments, gradients int) {
	weights = t.rows * t.width
	if t.maximum == 0 {
		return weights, 0, 0
	}
	return weights, weights * moments, t.rows + t.maximum + t.maximum*t.width
}

// sum is what all tables take of the slab.
func (l layout) sum() (weights, moments, gradients int) {
	for _, t := range l.tables {
		w, m, g := t.values(l.spec.Optimizer.Moments())
		weights, moments, gradients = weights+w, moments+m, gradients+g
	}
	return weights, moments, gradients
}

// len is how many values the slab has.
func (l layout) len() int {
	weights, moments, gradients := l.sum()
	return weights + moments + gradients
}

func (l layout) bytes() disdel.Bytes { return disdel.Bytes(valueSize * l.len()) }

const valueSize = 4

func (l layout) footprint() engine.Footprint {
	weights, moments, gradients := l.sum()
	part := func(c footprint.Category, m footprint.Memory, n disdel.Bytes) footprint.Part {
		return footprint.Part{Category: c, Memory: m, Bytes: n}
	}
	f := engine.Footprint{Basis: footprint.Planned, Parts: []footprint.Part{
		part(footprint.Weights, footprint.Host, disdel.Bytes(valueSize*weights)),
		part(footprint.Moments, footprint.Host, disdel.Bytes(valueSize*moments)),
		part(footprint.Gradients, footprint.Host, disdel.Bytes(valueSize*gradients)),
		part(footprint.Batch, footprint.Heap, l.batch()),
	}}
	if l.spec.Training {
		f.Layers = make([]footprint.Layer, len(l.spec.Graph.Nodes))
		f.Layers[1].Weights = l.bytes()
	}
	return f
}

// batch is a batch as it is handed over, with an eighth that it may grow by, and its predictions. Most batches have
// about as many entries as the mean of the rows says.
func (l layout) batch() disdel.Bytes {
	n := l.spec.Graph.Sparse()
	mean := l.spec.BatchSize * n.Mean
	entries := min(l.entries, mean+mean/4+fewRows*n.Most)
	each := 2 * valueSize // a column and a value
	if n.Users > 0 {
		each = valueSize
	}
	rows := l.spec.BatchSize * (3*valueSize + predicted)
	return disdel.Bytes(entries*each/8*9 + rows + whole)
}

const (
	fewRows   = 8         // of the most entries, that a batch may have more than its mean
	predicted = valueSize // the prediction of a row
	whole     = 4 << 10   // an engine itself: its tables' descriptions and views
)
