package native

import "github.com/disdel/disdel/runtime/engine"

// Ahead implements engine.Engine: batches are read where they lie.
func (*Engine) Ahead() engine.Ahead { return nil }

// State lists views of the engine's arrays, which lie in its slab in the kernels' layouts.
func (e *Engine) State() []engine.Array {
	return engine.StateOf(&e.spec, &e.steps, func(i, moment int) engine.Values {
		p := &e.params[i]
		if moment < 0 {
			return view{p, p.value, len(p.value), &e.stale}
		}
		return view{p, p.moments[moment], p.idleAt(), &e.stale}
	})
}

// view reads and writes an array of weights, or one of its moments, in PyTorch's layout.
type view struct {
	param  *param
	values []float32 // in the slab
	idle   int       // where moments of idle taps begin; the end for weights
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
	v.each(len(src), at, func(there, here int) {
		v.values[here] = src[there-at]
		if here >= v.idle && v.values[here] != 0 {
			v.param.stirred = true
		}
	})
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
