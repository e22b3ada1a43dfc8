package native

import (
	"github.com/disdel/disdel/runtime/engine/native/kernel"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// buildShortMoments finds the moments of 8 bits in the slab.
func (e *Engine) buildShortMoments() {
	for i := range e.params {
		p := &e.params[i]
		for m := range e.plan.Spec.Moments {
			if p.Trainable {
				p.short = append(p.short, kernel.ShortMomentsOf(p.moments[m], p.shortAt(len(p.value)),
					kernel.SquareMoment(e.spec.Optimizer, m)))
			}
		}
	}
}

// shortAt is where the moment of 8 bits lies of a value in memory. Those of idle taps begin at a block of their own.
func (p *param) shortAt(here int) int {
	if idle := p.idleAt(); here >= idle {
		return plan.MomentBlocks(idle)*plan.MomentBlock + here - idle
	}
	return here
}

// openMoment is a moment of 8 bits that is set piece by piece. A block's scale is known once all of its values are.
// Until then they lie in the memory of the gradients.
type openMoment struct {
	param  *param // nil: there is none
	moment int
}

// gather begins to set a moment, with the values that it has.
func (e *Engine) gather(p *param, moment int) {
	if e.open == (openMoment{p, moment}) {
		return
	}
	e.settleMoments()
	e.open = openMoment{p, moment}
	idle := p.idleAt()
	p.short[moment].Read(p.grad[:idle], 0)
	p.short[moment].Read(p.grad[idle:], p.shortAt(idle))
}

// settleMoments ends what gather began. The same values give the same bits, in whatever pieces they came.
func (e *Engine) settleMoments() {
	p := e.open.param
	if p == nil {
		return
	}
	idle := p.idleAt()
	p.short[e.open.moment].Write(p.grad[:idle], 0)
	p.short[e.open.moment].Write(p.grad[idle:], p.shortAt(idle))
	e.open = openMoment{}
}

// shortView reads and writes a moment of 8 bits in PyTorch's layout.
type shortView struct {
	e      *Engine
	param  *param
	moment int
}

// ReadAt implements engine.Values.
func (v shortView) ReadAt(dst []float32, at int) {
	v.e.settleMoments()
	short := &v.param.short[v.moment]
	view{param: v.param}.each(len(dst), at, func(there, here int) { dst[there-at] = short.At(v.param.shortAt(here)) })
}

// WriteAt implements engine.Values.
func (v shortView) WriteAt(src []float32, at int) {
	p := v.param
	v.e.gather(p, v.moment)
	view{p, p.grad, p.idleAt(), &v.e.stale}.WriteAt(src, at)
	if at+len(src) == p.Len() {
		v.e.settleMoments()
	}
}
