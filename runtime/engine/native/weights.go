package native

import (
	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// param is one array of weights with its pieces of the slab.
type param struct {
	model.Param
	value, grad []float32
	total       []float32 // gradients that weights move by: grad, or the sum of a step's passes
	direct      bool      // each pass adds to total: grad is the same
	moments     [2][]float32
	apart       []kernel.Moments // the same where they are kept in 8 bits or in a file
	used        int              // values that have a gradient
	part        int              // filters whose gradient grad has at a time; 0: all
	stirred     bool             // moments of idle taps are not all zero
	norms       [][2]float64     // LAMB: squared norms of the weights and of the direction, by parts

	conv      *plan.Conv // of convolutions and dense layers
	depthwise bool
	order     model.Shape // of the image that a dense layer's input was, where its columns are permuted
}

func (e *Engine) buildParams() {
	for _, p := range e.plan.Params {
		v := &e.plan.Nodes[p.Node]
		q := param{
			Param: p.Param, value: e.region(p.Value), grad: e.region(p.Grad), used: p.Value.Len,
			depthwise: v.Depthwise, part: p.Part,
		}
		if q.total = q.grad; p.Sum.Len > 0 {
			q.total, q.direct = e.region(p.Sum), p.Grad == p.Sum
		}
		for m, r := range p.Moments {
			q.moments[m] = e.region(r)
		}
		if v.Conv.Filters > 0 && !v.Depthwise {
			q.conv = &e.plan.Nodes[p.Node].Conv
			q.used = q.value0() - plan.Slack
		}
		if v.Permuted && e.g.Nodes[p.Node].Op == model.OpDense {
			q.order = e.flattened(v.Inputs[0])
		}
		if e.spec.Training && e.spec.Optimizer.LAMB != nil {
			q.norms = make([][2]float64, trustParts)
		}
		e.params = append(e.params, q)
	}
	if e.plan.Spec.MomentsApart() {
		e.buildApart()
	}
}

// value0 is the exact length of what computes in memory, slack included; the region may be rounded up.
func (p *param) value0() int {
	if len(p.Shape) > 1 {
		return p.conv.WeightLen()
	}
	return p.conv.BiasLen()
}

// idleAt is where the weights of idle taps begin in memory, which end with the array; where there are none, its end.
func (p *param) idleAt() int {
	if p.conv == nil || p.conv.IdleLen() == 0 || len(p.Shape) == 1 {
		return len(p.value)
	}
	return p.conv.WeightLen()
}

// flattened is the shape of the image that became the vector of a node.
func (e *Engine) flattened(i int) model.Shape {
	for e.g.Nodes[i].Op != model.OpFlatten {
		i = e.plan.Nodes[i].Inputs[0]
	}
	return e.g.Nodes[e.plan.Nodes[i].Inputs[0]].Out
}

// convert calls f with the index of every value in PyTorch's layout, in their order, and in memory.
func (p *param) convert(f func(there, here int)) { p.convertRows(0, p.Shape[0], f) }

// row is the number of values of one index of the first side.
func (p *param) row() int { return p.Len() / p.Shape[0] }

// convertRows is convert for the indices from (included) to (not) of the first side.
func (p *param) convertRows(from, to int, f func(there, here int)) {
	switch {
	case p.conv != nil && len(p.Shape) > 1 && p.order != nil:
		p.convertPermuted(from, to, f)
	case p.conv != nil && len(p.Shape) > 1:
		p.conv.Rows(from, to, f)
	case p.conv != nil:
		for k := from; k < to; k++ {
			f(k, p.conv.BiasAt(k))
		}
	case p.depthwise && len(p.Shape) > 1: // [C][1][KH][KW] there, [KH][KW][C] here
		taps := p.Shape[2] * p.Shape[3]
		for c := from; c < to; c++ {
			for t := range taps {
				f(c*taps+t, t*p.Shape[0]+c)
			}
		}
	default:
		for i := from * p.row(); i < to*p.row(); i++ {
			f(i, i)
		}
	}
}

// convertPermuted is for a dense layer whose columns are [C][H][W] there and [H][W][C] here.
func (p *param) convertPermuted(from, to int, f func(there, here int)) {
	in, channels := p.Shape[1], p.order[0]
	plane := in / channels
	for k := from; k < to; k++ {
		row := k/16*p.conv.BlockLen() + k%16
		for c := range channels {
			for px := range plane {
				f(k*in+c*plane+px, row+(px*channels+c)*16)
			}
		}
	}
}

// Init sets the weights to those of engine.InitWeights without a second copy of them in memory.
func (e *Engine) Init(init disdel.Init) error {
	e.stale = true
	whole, first := e.g, 0
	if s := e.g.Slice; s != nil { // it draws what the whole network would
		whole, first = s.Whole, s.FirstParam()
	}
	draws := engine.NewDraws(whole, init)
	for k, q := range whole.Params() {
		draw := draws.Of(q)
		if i := k - first; i >= 0 && i < len(e.params) {
			p := &e.params[i]
			clear(p.value)
			p.convert(func(_, here int) { p.value[here] = draw() })
			continue
		}
		for range q.Len() {
			draw()
		}
	}
	return nil
}

// Ahead implements engine.Engine: batches are read where they lie.
func (*Engine) Ahead() engine.Ahead { return nil }

// Listener implements engine.Engine.
func (*Engine) Listener() engine.Listener { return nil }

// State lists views of the engine's arrays, which lie in its slab in the kernels' layouts. A slice that is not trained
// also has the weight of an embedding in another slice.
func (e *Engine) State() []engine.Array {
	all := engine.StateOf(&e.spec, &e.steps, func(i, moment int) engine.Values {
		p := &e.params[i]
		if moment < 0 {
			return view{p, p.value, len(p.value), &e.stale}
		}
		if e.plan.Spec.MomentsApart() {
			return apartView{e, p, moment}
		}
		return view{p, p.moments[moment], p.idleAt(), &e.stale}
	})
	if q, ok := e.g.Borrowed(); ok && !e.spec.Training {
		p := &e.params[len(e.params)-1]
		role := engine.Weight
		if e.g.Nodes[q.Node].Frozen {
			role = engine.Frozen
		}
		all = append(all, engine.NewArray(q.Name, q.Shape, role, view{p, p.value, len(p.value), &e.stale}))
	}
	return all
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
