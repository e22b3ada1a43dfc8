package kernel

import (
	"math"
	"unsafe"
)

// element calls one kernel on this worker's chunk of arrays of one length, a multiple of 16.
func (w *Worker) element(f func(*elementArgs), dst, a, b, c []float32) {
	from, to := w.chunk(len(dst))
	if from == to {
		return
	}
	e := &w.elem
	e.dst, e.a, e.b, e.c, e.n = p(dst, from), nil, nil, nil, int64(4*(to-from))
	for _, s := range []struct {
		to   *unsafe.Pointer
		from []float32
	}{{&e.a, a}, {&e.b, b}, {&e.c, c}} {
		if s.from != nil {
			*s.to = p(s.from[:len(dst)], from)
		}
	}
	f(e)
}

// Add is dst = a + b.
func (w *Worker) Add(dst, a, b []float32) { w.element(w.f.add, dst, a, b, nil) }

// AddReLU is dst = max(0, a + b).
func (w *Worker) AddReLU(dst, a, b []float32) { w.element(w.f.addRelu, dst, a, b, nil) }

// ReLU is dst = max(0, x). NaN stays NaN, here and in all activations.
func (w *Worker) ReLU(dst, x []float32) { w.element(w.f.relu, dst, x, nil, nil) }

// ReLUBack is dst = dy where y > 0, else 0.
func (w *Worker) ReLUBack(dst, dy, y []float32) { w.element(w.f.reluBack, dst, dy, y, nil) }

// Clamp is dst = min(top, max(0, x)): ReLU6 with a top of 6.
func (w *Worker) Clamp(dst, x []float32, top float32) {
	w.elem.s[0] = top
	w.element(w.f.clamp, dst, x, nil, nil)
}

// ClampBack is dst = dy where 0 < y < top, else 0.
func (w *Worker) ClampBack(dst, dy, y []float32, top float32) {
	w.elem.s[0] = top
	w.element(w.f.clampBack, dst, dy, y, nil)
}

// Scale is dst = factor x.
func (w *Worker) Scale(dst, x []float32, factor float32) {
	w.elem.s[0] = factor
	w.element(w.f.scale, dst, x, nil, nil)
}

// Copy is dst = x.
func (w *Worker) Copy(dst, x []float32) {
	from, to := w.chunk(len(dst))
	copy(dst[from:to], x[from:to])
}

// Clear is dst = 0.
func (w *Worker) Clear(dst []float32) {
	from, to := w.chunk(len(dst))
	clear(dst[from:to])
}

// Sigmoid is dst = 1 / (1 + exp(-x)).
func (w *Worker) Sigmoid(dst, x []float32) {
	from, to := w.chunk(len(dst))
	for i := from; i < to; i++ {
		dst[i] = float32(1 / (1 + math.Exp(-float64(x[i]))))
	}
}

// SigmoidBack is dst = dy y (1 - y).
func (w *Worker) SigmoidBack(dst, dy, y []float32) {
	from, to := w.chunk(len(dst))
	for i := from; i < to; i++ {
		dst[i] = dy[i] * y[i] * (1 - y[i])
	}
}

// Tanh is dst = tanh(x).
func (w *Worker) Tanh(dst, x []float32) {
	from, to := w.chunk(len(dst))
	for i := from; i < to; i++ {
		dst[i] = float32(math.Tanh(float64(x[i])))
	}
}

// TanhBack is dst = dy (1 - y y).
func (w *Worker) TanhBack(dst, dy, y []float32) {
	from, to := w.chunk(len(dst))
	for i := from; i < to; i++ {
		dst[i] = dy[i] * (1 - y[i]*y[i])
	}
}

// squaresBlock is how many values SquareSum adds up in float32; the blocks are added in float64, in order.
const squaresBlock = 4096

// SquareSum is the sum of squares of x, for one worker.
func (w *Worker) SquareSum(x []float32) float64 {
	var sum float64
	for len(x) > 0 {
		n := min(len(x), squaresBlock)
		e := &w.elem
		e.dst, e.a, e.n = unsafe.Pointer(&w.part), p(x, 0), int64(4*n)
		w.f.squares(e)
		for _, v := range w.part {
			sum += float64(v)
		}
		x = x[n:]
	}
	return sum
}

// SGD is one step of stochastic gradient descent: w -= Rate (Scale g + Decay w), with the velocity of Momentum where v
// is not nil (Sutskever 2013; PyTorch's form).
type SGD struct {
	Rate, Decay, Scale, Momentum float64
	Nesterov                     bool
}

// SGD updates weights x by gradient g and velocity v.
func (w *Worker) SGD(o SGD, x, g, v []float32) {
	s := &w.elem.s
	s[0], s[1], s[2] = float32(-o.Rate), float32(o.Decay), float32(o.Scale)
	if v == nil {
		w.element(w.f.sgd, x, g, nil, nil)
		return
	}
	s[3], s[4], s[5] = float32(o.Momentum), 1, 0
	if o.Nesterov {
		s[4], s[5] = float32(o.Momentum), 1
	}
	w.element(w.f.momentum, x, g, v, nil)
}

// Adam is one step of Adam (Kingma 2015) or, with DecoupledDecay, of AdamW (Loshchilov 2019).
type Adam struct {
	Rate, Beta1, Beta2, Epsilon, Decay, DecoupledDecay, Scale float64
	Step                                                      int // 1 and up
}

// Adam updates weights x by gradient g and the moments m and v.
func (w *Worker) Adam(o Adam, x, g, m, v []float32) {
	first := 1 - math.Pow(o.Beta1, float64(o.Step))
	second := 1 - math.Pow(o.Beta2, float64(o.Step))
	for i, value := range [...]float64{
		-o.Rate / first, o.Decay, o.Scale, o.Beta1, 1 - o.Beta1, o.Beta2, 1 - o.Beta2, 1 / math.Sqrt(second), o.Epsilon,
		1 - o.Rate*o.DecoupledDecay,
	} {
		w.elem.s[i] = float32(value)
	}
	w.element(w.f.adam, x, g, m, v)
}

// Dropout is dst = x / (1 - rate), or 0 for a share of the values: which ones is a function of the seed and the place.
func (w *Worker) Dropout(dst, x []float32, rate float64, seed uint64) {
	from, to := w.chunk(len(dst))
	keep, bound := float32(1/(1-rate)), uint32(rate*(1<<32))
	for i := from; i < to; i++ {
		if uint32(mix(seed+uint64(i))>>32) < bound {
			dst[i] = 0
		} else {
			dst[i] = keep * x[i]
		}
	}
}

// mix is splitmix64's finaliser (Steele 2014).
func mix(z uint64) uint64 {
	z *= 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
