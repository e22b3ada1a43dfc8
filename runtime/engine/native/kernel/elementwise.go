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

// HardSwish is dst = x min(max(x + 3, 0), 6) / 6 (Howard 2019).
func (w *Worker) HardSwish(dst, x []float32) {
	from, to := w.chunk(len(dst))
	for i := from; i < to; i++ {
		switch v := x[i]; {
		case v <= -3:
			dst[i] = 0
		case v >= 3:
			dst[i] = v
		default:
			dst[i] = v * (v + 3) * (1.0 / 6)
		}
	}
}

// HardSwishBack is dst = dy times the slope at x: 0 up to -3, 1 from 3 on, and (2 x + 3) / 6 between.
func (w *Worker) HardSwishBack(dst, dy, x []float32) {
	from, to := w.chunk(len(dst))
	for i := from; i < to; i++ {
		switch v := x[i]; {
		case v <= -3:
			dst[i] = 0
		case v >= 3:
			dst[i] = dy[i]
		default:
			dst[i] = dy[i] * (v + v + 3) * (1.0 / 6)
		}
	}
}

// squaresBlock is how many values SquareSum adds up in float32; the blocks are added in float64, in order.
const squaresBlock = 4096

// SquareSum is the sum of squares of x, for one worker.
func (w *Worker) SquareSum(x []float32) float64 { return w.f.squareSum(&w.elem, &w.part, x) }

func (f *functions) squareSum(e *elementArgs, part *[lanes]float32, x []float32) float64 {
	var sum float64
	for len(x) > 0 {
		n := min(len(x), squaresBlock)
		e.dst, e.a, e.n = unsafe.Pointer(part), p(x, 0), int64(4*n)
		f.squares(e)
		for _, v := range part {
			sum += float64(v)
		}
		x = x[n:]
	}
	return sum
}

// Finite tells whether no value is NaN or infinite, at the speed of memory.
func Finite(x []float32) bool {
	vectorized := len(x) / lanes * lanes
	var e elementArgs
	var part [lanes]float32
	sum := available()[0].f.squareSum(&e, &part, x[:vectorized])
	if sum-sum != 0 { // squares of large finite values are infinite, too
		return allFinite(x)
	}
	return allFinite(x[vectorized:])
}

func allFinite(x []float32) bool {
	for _, v := range x {
		if v-v != 0 {
			return false
		}
	}
	return true
}

// Dropout is dst = x / (1 - rate), or 0 for a share of the values: which ones is a function of the seed and
// the place, which counts from 0 again after every period.
func (w *Worker) Dropout(dst, x []float32, rate float64, period int, seed uint64) {
	from, to := w.chunk(len(dst))
	keep, bound := float32(1/(1-rate)), uint32(rate*(1<<32))
	for i, at := from, from%max(1, period); i < to; i, at = i+1, at+1 {
		if at == period {
			at = 0
		}
		// all bits of the value or none, since no branch could be foreseen
		drop := int64(mix(seed+uint64(at))>>32) - int64(bound)
		dst[i] = math.Float32frombits(math.Float32bits(keep*x[i]) &^ uint32(drop>>63))
	}
}

// mix is splitmix64's finaliser (Steele 2014).
func mix(z uint64) uint64 {
	z *= 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// each is dst[i] = f(dy[i], x[i]) on this worker's chunk.
func (w *Worker) each(dst, dy, x []float32, f func(dy, x float32) float32) {
	from, to := w.chunk(len(dst))
	for i := from; i < to; i++ {
		dst[i] = f(dy[i], x[i])
	}
}

// LeakyReLU is dst = x above 0, slope x below.
func (w *Worker) LeakyReLU(dst, x []float32, slope float32) { w.LeakyReLUBack(dst, x, x, slope) }

// LeakyReLUBack is dst = dy, times the slope where y is below 0.
func (w *Worker) LeakyReLUBack(dst, dy, y []float32, slope float32) {
	from, to := w.chunk(len(dst))
	for i := from; i < to; i++ {
		if dst[i] = dy[i]; !(y[i] > 0) {
			dst[i] = slope * dy[i]
		}
	}
}

// ELU is dst = x above 0, exp(x) - 1 below (Clevert 2016).
func (w *Worker) ELU(dst, x []float32) {
	w.each(dst, x, x, func(_, x float32) float32 {
		if x > 0 {
			return x
		}
		return exp32(x) - 1
	})
}

// ELUBack is dst = dy, times y + 1 where y is below 0.
func (w *Worker) ELUBack(dst, dy, y []float32) {
	w.each(dst, dy, y, func(dy, y float32) float32 { return dy * (1 + min(y, 0)) })
}

// Softplus is dst = log(1 + exp(x)).
func (w *Worker) Softplus(dst, x []float32) {
	w.each(dst, x, x, func(_, x float32) float32 {
		return max(x, 0) + float32(math.Log1p(math.Exp(-math.Abs(float64(x)))))
	})
}

// SoftplusBack is dst = dy sigmoid(x), which is dy (1 - exp(-y)).
func (w *Worker) SoftplusBack(dst, dy, y []float32) {
	w.each(dst, dy, y, func(dy, y float32) float32 { return dy * (1 - exp32(-y)) })
}

// HardSigmoid is dst = min(max(x + 3, 0), 6) / 6.
func (w *Worker) HardSigmoid(dst, x []float32) {
	w.each(dst, x, x, func(_, x float32) float32 { return min(max(x+3, 0), 6) * (1.0 / 6) })
}

// HardSigmoidBack is dst = dy / 6 where 0 < y < 1, else 0.
func (w *Worker) HardSigmoidBack(dst, dy, y []float32) {
	w.each(dst, dy, y, func(dy, y float32) float32 {
		if y <= 0 || y >= 1 {
			return 0
		}
		return dy * (1.0 / 6)
	})
}
