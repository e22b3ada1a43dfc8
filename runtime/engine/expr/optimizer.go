package expr

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
	// state lists the moments of each array, with the name that follows the array's own.
	state() map[string][][]float32
}

func newOptimizer(o disdel.Optimizer, sizes []int) optimizer {
	if o.Adam != nil {
		return newAdam(*o.Adam, sizes)
	}
	s := disdel.SGD{}
	if o.SGD != nil {
		s = *o.SGD
	}
	return &sgd{cfg: s, velocity: arrays(sizes, s.Momentum != 0)}
}

func arrays(sizes []int, wanted bool) [][]float32 {
	if !wanted {
		return nil
	}
	out := make([][]float32, len(sizes))
	for i, n := range sizes {
		out[i] = make([]float32, n)
	}
	return out
}

func zero(list [][]float32) {
	for _, v := range list {
		clear(v)
	}
}

// sgd is w -= lr v, v = momentum v + (g + decay w): PyTorch's SGD without dampening or Nesterov.
type sgd struct {
	cfg      disdel.SGD
	velocity [][]float32
}

func (s *sgd) next()  {}
func (s *sgd) reset() { zero(s.velocity) }
func (s *sgd) state() map[string][][]float32 {
	if s.velocity == nil {
		return nil
	}
	return map[string][][]float32{"momentum": s.velocity}
}

func (s *sgd) step(k int, w, grad []float32) {
	lr, decay, momentum := float32(s.cfg.LearningRate), float32(s.cfg.WeightDecay), float32(s.cfg.Momentum)
	for i, g := range grad {
		g += decay * w[i]
		if s.velocity != nil {
			g += momentum * s.velocity[k][i]
			s.velocity[k][i] = g
		}
		w[i] -= lr * g
	}
}

// adam is Kingma and Ba's algorithm 1, with its bias correction.
type adam struct {
	lr, beta1, beta2, eps float64
	t                     int
	m, v                  [][]float32
}

func newAdam(c disdel.Adam, sizes []int) *adam {
	or := func(v, standard float64) float64 {
		if v == 0 {
			return standard
		}
		return v
	}
	return &adam{
		lr: c.LearningRate, beta1: or(c.Beta1, 0.9), beta2: or(c.Beta2, 0.999), eps: or(c.Epsilon, 1e-8),
		m: arrays(sizes, true), v: arrays(sizes, true),
	}
}

func (a *adam) next() { a.t++ }

func (a *adam) reset() {
	a.t = 0
	zero(a.m)
	zero(a.v)
}

func (a *adam) state() map[string][][]float32 {
	return map[string][][]float32{"exp_avg": a.m, "exp_avg_sq": a.v}
}

func (a *adam) step(k int, w, grad []float32) {
	b1, b2 := float32(a.beta1), float32(a.beta2)
	rate := float32(a.lr / (1 - math.Pow(a.beta1, float64(a.t))))
	root := float32(1 / math.Sqrt(1-math.Pow(a.beta2, float64(a.t))))
	eps := float32(a.eps)
	m, v := a.m[k], a.v[k]
	for i, g := range grad {
		m[i] = b1*m[i] + (1-b1)*g
		v[i] = b2*v[i] + (1-b2)*g*g
		w[i] -= rate * m[i] / (float32(math.Sqrt(float64(v[i])))*root + eps)
	}
}
