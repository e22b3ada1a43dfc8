package sparse

import (
	"math"

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

// State lists views of the engine's arrays.
func (e *Engine) State() []engine.Array {
	params, parts := e.g.Params(), e.parts()
	var out []engine.Array
	for i, p := range params {
		t := &e.tables[parts[i].table]
		out = append(out, engine.NewArray(p.Name, p.Shape, engine.Weight, parts[i].view(t, t.value)))
	}
	if !e.layout.spec.Training {
		return out
	}
	out = append(out, engine.NewArray(engine.StepCount, []int{1}, engine.Moment, count{e}))
	for m, kind := range momentNames(e.layout.spec.Optimizer) {
		for i, p := range params {
			t := &e.tables[parts[i].table]
			out = append(out, engine.NewArray(p.Name+"."+kind, p.Shape, engine.Moment, parts[i].view(t, t.moments[m])))
		}
	}
	return out
}

// momentNames are what PyTorch calls the moments of an optimiser.
func momentNames(o disdel.Optimizer) []string {
	return [][]string{nil, {"momentum"}, {"exp_avg", "exp_avg_sq"}}[o.Moments()]
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

// count reads and writes the number of steps.
type count struct{ e *Engine }

// ReadAt implements engine.Values.
func (c count) ReadAt(dst []float32, _ int) {
	if len(dst) > 0 {
		dst[0] = float32(c.e.steps)
	}
}

// WriteAt implements engine.Values. An average of several counts need not be whole.
func (c count) WriteAt(src []float32, _ int) {
	if len(src) > 0 {
		c.e.steps = int(math.Round(float64(src[0])))
	}
}
