package sparse

import (
	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine"
)

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
