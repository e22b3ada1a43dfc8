package native

import (
	"math"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// Reset puts the arrays of a role back to what they are before the first step. Dropout's random numbers go by the count
// of steps, and so start anew with the moments. It returns Invalid for weights, which Init draws.
func (e *Engine) Reset(r engine.Role) error {
	switch r {
	case engine.Moment:
		return e.resetMoments()
	case engine.Statistic:
		e.stale = true
		for i := range e.params {
			if p := &e.params[i]; !p.Trainable && !p.Frozen {
				start := engine.StartOf(e.g, p.Param)
				clear(p.value)
				p.convert(func(_, here int) { p.value[here] = start })
			}
		}
	case engine.Weight:
		return &disdel.Error{Kind: disdel.Invalid, Op: "reset state", Msg: "weights have no start but Init's"}
	}
	return nil
}

func (e *Engine) resetMoments() error {
	e.open = openMoment{}
	for i := range e.params {
		clear(e.params[i].moments[0])
		clear(e.params[i].moments[1])
		e.params[i].stirred = false
	}
	e.steps, e.scale = 0, 1
	if e.pages != nil {
		return e.pages.clear()
	}
	return nil
}

// SetSeed changes the seed of dropout: steps counted from zero again, round after round, would drop the same values.
func (e *Engine) SetSeed(seed int64) { e.spec.Seed = seed }

// update moves weights by their gradients. Those of idle taps have none, and stay where they are unless they decay or
// an earlier engine's moments move them.
func (e *Engine) update(w *kernel.Worker, params []*param) {
	for _, p := range params {
		if !p.Trainable || p.part > 0 { // parts changed when their gradients were there
			continue
		}
		if e.spec.Optimizer.LAMB != nil {
			e.moveWhole(w, p)
			continue
		}
		u := e.updateOfStep()
		e.move(w, &u, p, 0, p.total[:p.used])
		if !p.stirred && e.spec.Optimizer.WeightDecay() == 0 {
			continue
		}
		e.moveIdle(w, &u, p)
	}
}

// moveIdle moves the weights of idle taps.
func (e *Engine) moveIdle(w *kernel.Worker, u *kernel.Update, p *param) {
	for at := p.idleAt(); at < len(p.value); at += len(e.zeros) {
		e.move(w, u, p, at, e.zeros[:min(len(e.zeros), len(p.value)-at)])
	}
}

// trustParts is in how many parts the norms of an array are added up, so that their bits do not depend on the number of
// workers. The last part has the idle taps.
const trustParts = 17

// moveWhole moves the weights of an array by LAMB, for which the norms of the whole array come first.
func (e *Engine) moveWhole(w *kernel.Worker, p *param) {
	u := e.updateOfStep()
	e.eachPart(w, &u, p, true)
	w.Sync()
	var norms [2]float64
	for _, part := range p.norms {
		norms[0], norms[1] = norms[0]+part[0], norms[1]+part[1]
	}
	u.Trust = kernel.TrustRatio(norms)
	e.eachPart(w, &u, p, false)
}

// eachPart updates those parts of an array that are the worker's own, by itself.
func (e *Engine) eachPart(w *kernel.Worker, u *kernel.Update, p *param, measure bool) {
	id, n := w.ID, w.N
	w.ID, w.N = 0, 1
	blocks := plan.MomentBlocks(p.used)
	for k := id; k < trustParts; k += n {
		if u.Norms = nil; measure {
			u.Norms = &p.norms[k]
			*u.Norms = [2]float64{}
		}
		if k == trustParts-1 {
			e.moveIdle(w, u, p)
			continue
		}
		from := min(blocks*k/(trustParts-1)*plan.MomentBlock, p.used)
		to := min(blocks*(k+1)/(trustParts-1)*plan.MomentBlock, p.used)
		e.move(w, u, p, from, p.total[from:to])
	}
	w.ID, w.N = id, n
}

// sum adds the gradients of a pass to those of the step's earlier passes.
func (e *Engine) sum(w *kernel.Worker, params []*param) {
	for _, p := range params {
		if !p.Trainable || p.direct {
			continue
		}
		if e.first == 0 {
			w.Copy(p.total[:p.used], p.grad[:p.used])
		} else {
			w.Add(p.total[:p.used], p.total[:p.used], p.grad[:p.used])
		}
	}
	w.Sync()
}

// updateOfStep is the update of the current step.
func (e *Engine) updateOfStep() kernel.Update {
	return kernel.Update{Optimizer: e.spec.Optimizer, Rate: e.rate, Scale: e.scale, Step: e.steps}
}

// move moves as many weights of an array as there are gradients, from an index in memory on.
func (e *Engine) move(w *kernel.Worker, u *kernel.Update, p *param, from int, gradients []float32) {
	part := func(values []float32) []float32 {
		if values == nil {
			return nil
		}
		return values[from:][:len(gradients)]
	}
	if e.plan.Spec.MomentsApart() {
		w.UpdateApart(u, part(p.value), gradients, p.apart, p.apartAt(from))
		return
	}
	w.Update(u, part(p.value), gradients, part(p.moments[0]), part(p.moments[1]))
}

// clip scales all gradients so that their norm is at most ClipNorm (Pascanu 2013) and updates all weights.
func (e *Engine) clip(w *kernel.Worker) {
	e.square(w)
	if w.ID == 0 {
		e.scale = e.scaleOf(e.norms)
	}
	w.Sync()
	e.updateAll(w)
}

// square computes the sum of squares of each gradient.
func (e *Engine) square(w *kernel.Worker) {
	for i := range e.params {
		if p := &e.params[i]; p.Trainable && len(p.total) > 0 && i%w.N == w.ID {
			e.norms[i] = w.SquareSum(p.total[:p.used])
		}
	}
	w.Sync()
}

// scaleOf is the factor by which gradients with these sums of squares are clipped.
func (e *Engine) scaleOf(squares []float64) float64 {
	var sum float64
	for _, v := range squares {
		sum += v
	}
	if norm := math.Sqrt(sum); norm > e.spec.ClipNorm {
		return e.spec.ClipNorm / norm
	}
	return 1
}

func (e *Engine) updateAll(w *kernel.Worker) {
	for i := range e.layers {
		if len(e.layers[i].grad) > 0 {
			e.update(w, e.layers[i].params)
		}
	}
	w.Sync()
}
