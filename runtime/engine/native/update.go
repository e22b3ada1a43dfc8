package native

import (
	"math"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
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
		if !p.Trainable {
			continue
		}
		e.move(w, p, 0, p.total[:p.used])
		if !p.stirred && e.spec.Optimizer.WeightDecay() == 0 {
			continue
		}
		for at := p.idleAt(); at < len(p.value); at += len(e.zeros) {
			e.move(w, p, at, e.zeros[:min(len(e.zeros), len(p.value)-at)])
		}
	}
}

// sum adds the gradients of a pass to those of the step's earlier passes.
func (e *Engine) sum(w *kernel.Worker, params []*param) {
	for _, p := range params {
		if !p.Trainable {
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

// move moves as many weights of an array as there are gradients, from an index in memory on.
func (e *Engine) move(w *kernel.Worker, p *param, from int, gradients []float32) {
	part := func(values []float32) []float32 {
		if values == nil {
			return nil
		}
		return values[from:][:len(gradients)]
	}
	u := kernel.Update{Optimizer: e.spec.Optimizer, Rate: e.rate, Scale: e.scale, Step: e.steps}
	if e.plan.Spec.MomentsApart() {
		w.UpdateApart(&u, part(p.value), gradients, p.apart, p.apartAt(from))
		return
	}
	w.Update(&u, part(p.value), gradients, part(p.moments[0]), part(p.moments[1]))
}

// clip scales all gradients so that their norm is at most ClipNorm (Pascanu 2013) and updates all weights.
func (e *Engine) clip(w *kernel.Worker) {
	for i := range e.params {
		if p := &e.params[i]; p.Trainable && len(p.total) > 0 && i%w.N == w.ID {
			e.norms[i] = w.SquareSum(p.total[:p.used])
		}
	}
	w.Sync()
	if w.ID == 0 {
		var sum float64
		for _, v := range e.norms {
			sum += v
		}
		e.scale = 1
		if norm := math.Sqrt(sum); norm > e.spec.ClipNorm {
			e.scale = e.spec.ClipNorm / norm
		}
	}
	w.Sync()
	for i := range e.layers {
		if len(e.layers[i].grad) > 0 {
			e.update(w, e.layers[i].params)
		}
	}
	w.Sync()
}
