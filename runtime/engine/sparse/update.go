package sparse

import (
	"cmp"
	"math"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine"
)

// squaredNorm is the squared length of the gradient, all tables together.
func (e *Engine) squaredNorm() (sum float64) {
	for i := range e.tables {
		t := &e.tables[i]
		if t.width == 1 {
			sum += t.markedNorm()
			continue
		}
		for _, g := range t.grad[:t.n*t.width] {
			sum += float64(g) * float64(g)
		}
	}
	return sum
}

func (t *table) markedNorm() (sum float64) {
	for i := range t.n {
		_, g := t.mark(i)
		sum += float64(g) * float64(g)
	}
	return sum
}

// update moves the weights that the step has touched by their gradients, of which norm is the squared length.
func (e *Engine) update(norm float64) {
	scale := 1.0
	if limit := e.layout.spec.ClipNorm; limit > 0 && norm > limit*limit {
		scale = limit / math.Sqrt(norm)
	}
	o := e.layout.spec.Optimizer
	for i := range e.tables {
		t := &e.tables[i]
		switch {
		case o.SGD != nil:
			e.sgd(o.SGD, float32(scale)).update(t)
		case o.Adam != nil:
			a := e.adam(o.Adam, scale)
			a.decay = float32(o.Adam.WeightDecay)
			a.update(t)
		case o.AdamW != nil:
			a := e.adam(o.AdamW, scale)
			a.keep = float32(1 - e.rate*o.AdamW.WeightDecay)
			a.update(t)
		}
	}
}

// sgd is gradient descent, with momentum as PyTorch has it: the velocity v = momentum v + g of a row changes where the
// row has a gradient, and a step is the velocity, or g + momentum v with Nesterov's.
type sgd struct {
	rate, decay, scale, momentum float32
	nesterov                     bool
}

func (e *Engine) sgd(o *disdel.SGD, scale float32) sgd {
	return sgd{
		rate: float32(e.rate), decay: float32(o.WeightDecay), scale: scale, momentum: float32(o.Momentum), nesterov: o.Nesterov,
	}
}

func (s sgd) update(t *table) {
	if t.width == 1 {
		s.marked(t)
		return
	}
	for i, row := range t.touched[:t.n] {
		x, g := t.row(row), t.grad[i*t.width:(i+1)*t.width]
		if s.momentum == 0 {
			s.plain(x, g)
			continue
		}
		from := int(row) * t.width
		s.withVelocity(x, g, t.moments[0][from:from+t.width])
	}
}

// marked is update of a table of width 1.
func (s sgd) marked(t *table) {
	x, velocity := t.value, t.moments[0]
	for i := range t.n {
		row, g := t.mark(i)
		w := x[row]
		slope := s.scale*g + s.decay*w
		if s.momentum == 0 {
			x[row] = w - s.rate*slope
			continue
		}
		v := s.momentum*velocity[row] + slope
		velocity[row] = v
		if s.nesterov {
			v = slope + s.momentum*v
		}
		x[row] = w - s.rate*v
	}
}

func (s sgd) plain(x, g []float32) {
	g = g[:len(x)]
	for k, w := range x {
		x[k] = w - s.rate*(s.scale*g[k]+s.decay*w)
	}
}

func (s sgd) withVelocity(x, g, velocity []float32) {
	g, velocity = g[:len(x)], velocity[:len(x)]
	for k, w := range x {
		slope := s.scale*g[k] + s.decay*w
		v := s.momentum*velocity[k] + slope
		velocity[k] = v
		if s.nesterov {
			v = slope + s.momentum*v
		}
		x[k] = w - s.rate*v
	}
}

// adam is Kingma and Ba's optimiser, and Loshchilov and Hutter's where keep is below 1. Its count of steps is the
// engine's, not a row's own: as PyTorch's SparseAdam.
type adam struct {
	beta1, beta2, epsilon float32
	rate                  float32 // over the bias of the mean
	unbias                float32 // 1 over the bias of the squares
	scale, decay, keep    float32
}

func (e *Engine) adam(o *disdel.Adam, scale float64) adam {
	beta1, beta2 := cmp.Or(o.Beta1, 0.9), cmp.Or(o.Beta2, 0.999)
	t := float64(e.steps)
	return adam{
		beta1: float32(beta1), beta2: float32(beta2), epsilon: float32(cmp.Or(o.Epsilon, 1e-8)),
		rate: float32(e.rate / (1 - math.Pow(beta1, t))), unbias: float32(1 / (1 - math.Pow(beta2, t))),
		scale: float32(scale), keep: 1,
	}
}

func (a adam) update(t *table) {
	if t.width == 1 {
		a.marked(t)
		return
	}
	for i, row := range t.touched[:t.n] {
		from := int(row) * t.width
		a.row(t.row(row), t.grad[i*t.width:(i+1)*t.width], t.moments[0][from:from+t.width],
			t.moments[1][from:from+t.width])
	}
}

// marked is update of a table of width 1.
func (a adam) marked(t *table) {
	x, mean, square := t.value, t.moments[0], t.moments[1]
	for i := range t.n {
		row, g := t.mark(i)
		x[row], mean[row], square[row] = a.one(x[row], g, mean[row], square[row])
	}
}

func (a adam) row(x, g, mean, square []float32) {
	g, mean, square = g[:len(x)], mean[:len(x)], square[:len(x)]
	for k, w := range x {
		x[k], mean[k], square[k] = a.one(w, g[k], mean[k], square[k])
	}
}

// one is the step of one weight w with gradient g.
func (a *adam) one(w, g, mean, square float32) (x, m, v float32) {
	slope := a.scale*g + a.decay*w
	m = a.beta1*mean + (1-a.beta1)*slope
	v = a.beta2*square + (1-a.beta2)*slope*slope
	return a.keep*w - a.rate*m/(float32(math.Sqrt(float64(v*a.unbias)))+a.epsilon), m, v
}

// Reset puts the arrays of a role back to what they are before the first step. There are no statistics. It returns
// Invalid for weights, which Init draws.
func (e *Engine) Reset(r engine.Role) error {
	switch r {
	case engine.Moment:
		e.steps = 0
		for i := range e.tables {
			clear(e.tables[i].moments[0])
			clear(e.tables[i].moments[1])
		}
	case engine.Weight:
		return &disdel.Error{Kind: disdel.Invalid, Op: "reset state", Msg: "weights have no start but Init's"}
	}
	return nil
}
