package native

import (
	"cmp"
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
		e.resetMoments()
	case engine.Statistic:
		e.stale = true
		for i := range e.params {
			if p := &e.params[i]; !p.Trainable {
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

func (e *Engine) resetMoments() {
	for i := range e.params {
		clear(e.params[i].moments[0])
		clear(e.params[i].moments[1])
		e.params[i].stirred = false
	}
	e.steps, e.scale = 0, 1
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
		e.move(w, p, 0, p.grad[:p.used])
		if !p.stirred && !decays(e.spec.Optimizer) {
			continue
		}
		for at := p.idleAt(); at < len(p.value); at += len(e.zeros) {
			e.move(w, p, at, e.zeros[:min(len(e.zeros), len(p.value)-at)])
		}
	}
}

// decays tells whether an optimiser moves weights that have no gradient and never had one.
func decays(o disdel.Optimizer) bool {
	return o.SGD != nil && o.SGD.WeightDecay != 0 || o.Adam != nil && o.Adam.WeightDecay != 0 ||
		o.AdamW != nil && o.AdamW.WeightDecay != 0
}

// move moves as many weights of an array as there are gradients, from an index in memory on.
func (e *Engine) move(w *kernel.Worker, p *param, from int, gradients []float32) {
	part := func(values []float32) []float32 { return values[from:][:len(gradients)] }
	switch o := e.spec.Optimizer; {
	case o.SGD != nil:
		var velocity []float32
		if o.SGD.Momentum != 0 {
			velocity = part(p.moments[0])
		}
		w.SGD(kernel.SGD{
			Rate: e.rate, Decay: o.SGD.WeightDecay, Scale: e.scale, Momentum: o.SGD.Momentum,
			Nesterov: o.SGD.Nesterov,
		}, part(p.value), gradients, velocity)
	case o.Adam != nil:
		a := e.adam(o.Adam)
		a.Decay = o.Adam.WeightDecay
		w.Adam(a, part(p.value), gradients, part(p.moments[0]), part(p.moments[1]))
	case o.AdamW != nil:
		a := e.adam(o.AdamW)
		a.DecoupledDecay = o.AdamW.WeightDecay
		w.Adam(a, part(p.value), gradients, part(p.moments[0]), part(p.moments[1]))
	}
}

func (e *Engine) adam(a *disdel.Adam) kernel.Adam {
	return kernel.Adam{
		Rate: e.rate, Beta1: cmp.Or(a.Beta1, 0.9), Beta2: cmp.Or(a.Beta2, 0.999), Epsilon: cmp.Or(a.Epsilon, 1e-8),
		Scale: e.scale, Step: e.steps,
	}
}

// clip scales all gradients so that their norm is at most ClipNorm (Pascanu 2013) and updates all weights.
func (e *Engine) clip(w *kernel.Worker) {
	for i := range e.params {
		if p := &e.params[i]; p.Trainable && len(p.grad) > 0 && i%w.N == w.ID {
			e.norms[i] = w.SquareSum(p.grad[:p.used])
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
