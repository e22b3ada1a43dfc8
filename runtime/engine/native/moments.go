package native

import (
	"github.com/disdel/disdel/runtime/engine/native/kernel"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// buildApart finds the moments of 8 bits in the slab, or gives moments their places in a file. The file has them in the
// order in which a step needs them: from the last layer on.
func (e *Engine) buildApart() {
	if e.plan.Spec.PagedMoments {
		e.pages = &pages{}
	}
	for i := len(e.params) - 1; i >= 0; i-- {
		p := &e.params[i]
		for m := range e.plan.Spec.Moments {
			switch {
			case !p.Trainable:
			case e.pages != nil:
				p.apart = append(p.apart, e.pages.place(p.apartAt(len(p.value))))
			default:
				short := kernel.ShortMomentsOf(p.moments[m], p.apartAt(len(p.value)), kernel.SquareMoment(e.spec.Optimizer, m))
				p.apart = append(p.apart, &short)
			}
		}
	}
}

// apartAt is where the moment that is kept elsewhere lies of a value in memory. Those of idle taps begin at a block of
// their own.
func (p *param) apartAt(here int) int {
	if idle := p.idleAt(); here >= idle {
		return plan.MomentBlocks(idle)*plan.MomentBlock + here - idle
	}
	return here
}

// openMoment is a moment that is kept elsewhere, and is read or set piece by piece. Meanwhile it lies in the memory of
// the gradients: a block of 8 bits has no scale before all of its values are known.
type openMoment struct {
	param  *param // nil: there is none
	moment int
	set    bool // it has new values
}

// gather begins to read or set a moment, with the values that it has.
func (e *Engine) gather(p *param, moment int) {
	if e.open.param == p && e.open.moment == moment {
		return
	}
	e.settleMoments()
	e.open = openMoment{param: p, moment: moment}
	idle := p.idleAt()
	p.apart[moment].Read(p.grad[:idle], 0)
	p.apart[moment].Read(p.grad[idle:len(p.value)], p.apartAt(idle))
}

// settleMoments ends what gather began. The same values give the same bits, in whatever pieces they came.
func (e *Engine) settleMoments() {
	if p := e.open.param; p != nil && e.open.set {
		idle := p.idleAt()
		p.apart[e.open.moment].Write(p.grad[:idle], 0)
		p.apart[e.open.moment].Write(p.grad[idle:len(p.value)], p.apartAt(idle))
	}
	e.open = openMoment{}
}

// apartView reads and writes a moment that is kept elsewhere in PyTorch's layout.
type apartView struct {
	e      *Engine
	param  *param
	moment int
}

func (v apartView) gathered() view { return view{v.param, v.param.grad, v.param.idleAt(), &v.e.stale} }

// ReadAt implements engine.Values.
func (v apartView) ReadAt(dst []float32, at int) {
	if v.param.part > 0 {
		v.eachBlock(len(dst), at, false, func(values []float32, there, here int) { dst[there-at] = values[here] })
		return
	}
	if v.e.open.set {
		v.e.settleMoments()
	}
	v.e.gather(v.param, v.moment)
	v.gathered().ReadAt(dst, at)
}

// WriteAt implements engine.Values.
func (v apartView) WriteAt(src []float32, at int) {
	if v.param.part > 0 {
		v.eachBlock(len(src), at, true, func(values []float32, there, here int) { values[here] = src[there-at] })
		return
	}
	v.e.gather(v.param, v.moment)
	v.e.open.set = true
	v.gathered().WriteAt(src, at)
	if at+len(src) == v.param.Len() {
		v.e.settleMoments()
	}
}

// eachBlock calls f with the places of n moments from at on. It reads a block of filters at a time into the memory of
// the gradients, and writes it back if f sets values.
func (v apartView) eachBlock(n, at int, set bool, f func(values []float32, there, here int)) {
	v.e.settleMoments() // whose memory may be the same
	p, row := v.param, v.param.row()
	block, moment := p.conv.BlockLen(), p.apart[v.moment]
	from, to := at/row, (at+n+row-1)/row
	for first := from / lanes * lanes; first < to; first += lanes {
		values, base := p.grad[:block], first/lanes*block
		moment.Read(values, base)
		p.convertRows(max(first, from), min(first+lanes, to), func(there, here int) {
			if at <= there && there < at+n {
				f(values, there, here-base)
			}
		})
		if set {
			moment.Write(values, base)
		}
	}
}
