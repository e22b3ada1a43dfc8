package gorgonia

import "github.com/disdel/disdel/runtime/engine"

// Ahead implements engine.Engine: batches are read where they lie.
func (*Engine) Ahead() engine.Ahead { return nil }

// State lists views of the engine's arrays.
func (e *Engine) State() []engine.Array {
	var out []engine.Array
	for i := range e.params {
		p := &e.params[i]
		role := engine.Weight
		if !p.trainable {
			role = engine.Statistic
		}
		out = append(out, engine.NewArray(p.name, p.shape, role, view{p, p.data}))
	}
	if e.optimizer == nil {
		return out
	}
	m := e.optimizer.state()
	out = append(out, engine.NewArray(engine.StepCount, []int{1}, engine.Moment, engine.StepValues(&m.steps)))
	for i, name := range m.names {
		k := 0
		for j := range e.params {
			if p := &e.params[j]; p.trainable {
				out = append(out, engine.NewArray(p.name+"."+name, p.shape, engine.Moment, view{p, m.arrays[i][k]}))
				k++
			}
		}
	}
	return out
}

// view reads and writes an array of weights, or one of its moments, in PyTorch's layout. It differs from gorgonia's for
// dense weights only, which gorgonia has as [in out].
type view struct {
	param *param
	data  []float32
}

// ReadAt implements engine.Values.
func (v view) ReadAt(dst []float32, at int) {
	if !v.param.dense {
		copy(dst, v.data[at:])
		return
	}
	v.each(len(dst), at, func(there, here int) { dst[there] = v.data[here] })
}

// WriteAt implements engine.Values.
func (v view) WriteAt(src []float32, at int) {
	if !v.param.dense {
		copy(v.data[at:], src)
		return
	}
	v.each(len(src), at, func(there, here int) { v.data[here] = src[there] })
}

// each calls f with the places of n values from at on: there, counted from at, and here, of a dense layer's weights.
func (v view) each(n, at int, f func(there, here int)) {
	outputs, inputs := v.param.shape[0], v.param.shape[1]
	row, column := at/inputs, at%inputs
	for k := range n {
		f(k, column*outputs+row)
		if column++; column == inputs {
			row, column = row+1, 0
		}
	}
}
