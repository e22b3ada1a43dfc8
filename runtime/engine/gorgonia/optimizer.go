package gorgonia

import (
	"math"

	"github.com/disdel/disdel"
)

// optimizer changes weights by their gradients, in place, without allocating after the first step.
type optimizer interface {
	// step updates the k-th array.
	step(k int, w, grad []float32)
	// next starts a new step.
	next()
	reset()
	setRate(rate float64)
	// state is what an optimiser keeps between steps.
	state() *moments
}

// moments is an optimiser's memory: steps taken, and arrays as long as the weights, named as PyTorch names them.
type moments struct {
	steps  int
	names  []string
	arrays [][][]float32 // by name and weight
}

func newMoments(sizes []int, names ...string) *moments {
	m := &moments{names: names}
	for range names {
		list := make([][]float32, len(sizes))
		for i, n := range sizes {
			list[i] = make([]float32, n)
		}
		m.arrays = append(m.arrays, list)
	}
	return m
}

func (m *moments) reset() {
	m.steps = 0
	for _, list := range m.arrays {
		for _, v := range list {
			clear(v)
		}
	}
}

func newOptimizer(o disdel.Optimizer, sizes []int) optimizer {
	switch {
	case o.Adam != nil:
		return newAdam(*o.Adam, false, sizes)
	case o.AdamW != nil:
		return newAdam(*o.AdamW, true, sizes)
	case o.Lion != nil:
		return &lion{newMoments(sizes, "exp_avg"), o.Lion.WithDefaults()}
	case o.LAMB != nil:
		return &lamb{newMoments(sizes, o.MomentNames()...), o.LAMB.WithDefaults()}
	case o.RMSprop != nil:
		return &rooted{newMoments(sizes, o.MomentNames()...), o.RMSprop.WithDefaults(), false}
	case o.Adagrad != nil:
		a := o.Adagrad.WithDefaults()
		c := disdel.RMSprop{LearningRate: a.LearningRate, Alpha: 1, Epsilon: a.Epsilon, WeightDecay: a.WeightDecay}
		return &rooted{newMoments(sizes, o.MomentNames()...), c, true}
	}
	s := &sgd{}
	if o.SGD != nil {
		s.cfg = *o.SGD
	}
	if s.cfg.Momentum != 0 {
		s.moments = newMoments(sizes, "momentum")
	} else {
		s.moments = newMoments(sizes)
	}
	return s
}

// sgd is w -= rate v, v = momentum v + (g + decay w), and with Nesterov w -= rate (g + momentum v): PyTorch's SGD
// without dampening.
type sgd struct {
	*moments
	cfg disdel.SGD
}

func (s *sgd) next()                { s.steps++ }
func (s *sgd) setRate(rate float64) { s.cfg.LearningRate = rate }
func (s *sgd) state() *moments      { return s.moments }

func (s *sgd) step(k int, w, grad []float32) {
	rate, decay, momentum := float32(s.cfg.LearningRate), float32(s.cfg.WeightDecay), float32(s.cfg.Momentum)
	for i, g := range grad {
		g += decay * w[i]
		if len(s.arrays) > 0 {
			v := &s.arrays[0][k][i]
			*v = momentum**v + g
			if s.cfg.Nesterov {
				g += momentum * *v
			} else {
				g = *v
			}
		}
		w[i] -= rate * g
	}
}

// adam is Kingma and Ba's algorithm 1, with its bias correction and L2 in the gradient, or Loshchilov and Hutter's
// algorithm 2 (adamw), whose decay does not pass through the moments.
type adam struct {
	*moments
	cfg       disdel.Adam
	decoupled bool
}

func newAdam(c disdel.Adam, decoupled bool, sizes []int) *adam {
	return &adam{newMoments(sizes, "exp_avg", "exp_avg_sq"), c.WithDefaults(), decoupled}
}

func (a *adam) next()                { a.steps++ }
func (a *adam) setRate(rate float64) { a.cfg.LearningRate = rate }
func (a *adam) state() *moments      { return a.moments }

func (a *adam) step(k int, w, grad []float32) {
	c, t := a.cfg, float64(a.steps)
	// 1 - beta is taken in float64: 1 - float32(0.999) is off by 5e-5.
	b1, b2, n1, n2 := float32(c.Beta1), float32(c.Beta2), float32(1-c.Beta1), float32(1-c.Beta2)
	rate := float32(c.LearningRate / (1 - math.Pow(c.Beta1, t)))
	root := float32(1 / math.Sqrt(1-math.Pow(c.Beta2, t)))
	eps, decay, keep := float32(c.Epsilon), float32(c.WeightDecay), float32(1)
	if a.decoupled {
		decay, keep = 0, float32(1-c.LearningRate*c.WeightDecay)
	}
	m, v := a.arrays[0][k], a.arrays[1][k]
	for i, g := range grad {
		g += decay * w[i]
		m[i] = b1*m[i] + n1*g
		v[i] = b2*v[i] + n2*g*g
		w[i] = keep*w[i] - rate*m[i]/(float32(math.Sqrt(float64(v[i])))*root+eps)
	}
}

// lion is algorithm 2 of Chen and others (2023): w -= rate (sign(beta1 m + (1 - beta1) g) + decay w), and then
// m = beta2 m + (1 - beta2) g.
type lion struct {
	*moments
	cfg disdel.Lion
}

func (l *lion) next()                { l.steps++ }
func (l *lion) setRate(rate float64) { l.cfg.LearningRate = rate }
func (l *lion) state() *moments      { return l.moments }

func (l *lion) step(k int, w, grad []float32) {
	c := l.cfg
	m := l.arrays[0][k]
	for i, g := range grad {
		mean, slope := float64(m[i]), float64(g)
		sign := c.Beta1*mean + (1-c.Beta1)*slope
		if sign > 0 || sign < 0 { // what is no number stays none
			sign = math.Copysign(1, sign)
		}
		w[i] -= float32(c.LearningRate * (sign + c.WeightDecay*float64(w[i])))
		m[i] = float32(c.Beta2*mean + (1-c.Beta2)*slope)
	}
}

// lamb is algorithm 2 of You and others (2019): an array moves by rate |w| / |u| u, where u is Adam's direction and the
// decay of the weights. Weights of zero move by rate u.
type lamb struct {
	*moments
	cfg disdel.LAMB
}

func (l *lamb) next()                { l.steps++ }
func (l *lamb) setRate(rate float64) { l.cfg.LearningRate = rate }
func (l *lamb) state() *moments      { return l.moments }

func (l *lamb) step(k int, w, grad []float32) {
	c := l.cfg
	first, second := 1-math.Pow(c.Beta1, float64(l.steps)), 1-math.Pow(c.Beta2, float64(l.steps))
	m, v := l.arrays[0][k], l.arrays[1][k]
	direction := func(i int) float64 {
		return float64(m[i])/first/(math.Sqrt(float64(v[i])/second)+c.Epsilon) + c.WeightDecay*float64(w[i])
	}
	var weights, directions float64
	for i, g := range grad {
		m[i] = float32(c.Beta1*float64(m[i]) + (1-c.Beta1)*float64(g))
		v[i] = float32(c.Beta2*float64(v[i]) + (1-c.Beta2)*float64(g)*float64(g))
		weights += float64(w[i]) * float64(w[i])
		directions += direction(i) * direction(i)
	}
	trust := 1.0
	if weights > 0 && directions > 0 {
		trust = math.Sqrt(weights / directions)
	}
	for i := range w {
		w[i] -= float32(c.LearningRate * trust * direction(i))
	}
}

// rooted is RMSprop, or with sums Adagrad, of which the squares are summed up: w -= rate v, where v = momentum v +
// g / (root of squares + epsilon).
type rooted struct {
	*moments
	cfg  disdel.RMSprop
	sums bool
}

func (r *rooted) next()                { r.steps++ }
func (r *rooted) setRate(rate float64) { r.cfg.LearningRate = rate }
func (r *rooted) state() *moments      { return r.moments }

func (r *rooted) step(k int, w, grad []float32) {
	c, take := r.cfg, 1-r.cfg.Alpha
	if r.sums {
		take = 1
	}
	squares := r.arrays[0][k]
	for i, g := range grad {
		slope := float64(g) + c.WeightDecay*float64(w[i])
		squares[i] = float32(c.Alpha*float64(squares[i]) + take*slope*slope)
		move := slope / (math.Sqrt(float64(squares[i])) + c.Epsilon)
		if len(r.arrays) > 1 {
			v := &r.arrays[1][k][i]
			move += c.Momentum * float64(*v)
			*v = float32(move)
		}
		w[i] -= float32(c.LearningRate * move)
	}
}

// clipNorm scales gradients so that they are together no longer than limit (Pascanu 2013), and returns their length
// before.
func clipNorm(grads [][]float32, limit float64) float64 {
	var sum float64
	for _, g := range grads {
		for _, v := range g {
			sum += float64(v) * float64(v)
		}
	}
	length := math.Sqrt(sum)
	if length <= limit {
		return length
	}
	for _, g := range grads {
		for i := range g {
			g[i] *= float32(limit / length)
		}
	}
	return length
}
