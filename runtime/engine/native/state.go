package native

import (
	"math"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine"
)

// State lists views of the engine's arrays, which lie in its slab in the kernels' layouts.
func (e *Engine) State() []engine.Array {
	var out []engine.Array
	for i := range e.params {
		p := &e.params[i]
		role := engine.Weight
		if !p.Trainable {
			role = engine.Statistic
		}
		out = append(out, engine.NewArray(p.Name, p.Shape, role, view{p, p.value, &e.stale}))
	}
	if !e.spec.Training {
		return out
	}
	out = append(out, engine.NewArray(engine.StepCount, []int{1}, engine.Moment, count{e}))
	for m, kind := range stateNames(e.spec.Optimizer) {
		for i := range e.params {
			if p := &e.params[i]; p.Trainable {
				out = append(out, engine.NewArray(p.Name+"."+kind, p.Shape, engine.Moment, view{p, p.moments[m], &e.stale}))
			}
		}
	}
	return out
}

// stateNames are what PyTorch calls the moments of an optimiser.
func stateNames(o disdel.Optimizer) []string {
	switch o.Moments() {
	case 2:
		return []string{"exp_avg", "exp_avg_sq"}
	case 1:
		return []string{"momentum"}
	default:
		return nil
	}
}

// view reads and writes an array of weights, or one of its moments, in PyTorch's layout.
type view struct {
	param  *param
	values []float32 // in the slab
	stale  *bool     // the engine's
}

// ReadAt implements engine.Values.
func (v view) ReadAt(dst []float32, at int) {
	v.each(len(dst), at, func(there, here int) { dst[there-at] = v.values[here] })
}

// WriteAt implements engine.Values. What lies between the values is zero once all of them were written.
func (v view) WriteAt(src []float32, at int) {
	*v.stale = true
	if len(src) == v.param.Len() {
		clear(v.values)
	}
	v.each(len(src), at, func(there, here int) { v.values[here] = src[there-at] })
}

// each calls f with the places of n values from at on, there and here.
func (v view) each(n, at int, f func(there, here int)) {
	p := v.param
	if n == p.Len() {
		p.convert(f)
		return
	}
	row := p.row()
	p.convertRows(at/row, (at+n+row-1)/row, func(there, here int) {
		if at <= there && there < at+n {
			f(there, here)
		}
	})
}

// count reads and writes the number of steps.
type count struct{ e *Engine }

// ReadAt implements engine.Values.
func (c count) ReadAt(dst []float32, at int) {
	if len(dst) > 0 {
		dst[0] = float32(c.e.steps)
	}
}

// WriteAt implements engine.Values. An average of several counts need not be whole.
func (c count) WriteAt(src []float32, at int) {
	if len(src) > 0 {
		c.e.steps = int(math.Round(float64(src[0])))
	}
}
