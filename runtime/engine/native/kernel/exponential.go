package kernel

import (
	"math"
	"unsafe"
)

// Constants of GELUTanh.
const (
	geluScale = 0.7978845608028654 // sqrt(2 / pi)
	geluCube  = 0.044715
)

// exponentNumbers are the constants of the kernels; the generator in gen has their places.
var exponentNumbers = [...]float32{
	math.Log2E, 3<<22 + 127, logHigh, logLow, -87, 88,
	1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 1.0 / 2, 1, 1,
	2 * geluScale, geluCube, 3 * geluCube, 0.5, -0.5,
	normalScale, tailTerms[0], tailTerms[1], tailTerms[2], tailTerms[3], tailTerms[4], 0.3989422804, // 1 / sqrt(2 pi)
}

// Constants of exp32: log 2 in two parts, of which n times the first is exact.
const (
	logHigh = 355.0 / 512
	logLow  = math.Ln2 - logHigh
)

// Constants of normal32.
const normalScale = 0.3275911 / math.Sqrt2

var tailTerms = [...]float32{1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592}

// exponents calls one kernel on this worker's chunk of arrays of one length, a multiple of 16.
func (w *Worker) exponents(f func(*exponentArgs), dst, a, b []float32) {
	from, to := w.chunk(len(dst))
	if from == to {
		return
	}
	e := &w.expo
	*e = exponentArgs{
		dst: p(dst, from), a: p(a[:len(dst)], from), n: int64(4 * (to - from)),
		numbers: unsafe.Pointer(&exponentNumbers),
	}
	if b != nil {
		e.b = p(b[:len(dst)], from)
	}
	f(e)
}

// softmaxRows is dst = exp(a - b) in n rows of 16 values. It adds the sums of the rows to sum. stride is the number of
// values from one row to the next.
func (w *Worker) softmaxRows(dst, a []float32, b, sum vec, n, stride int) {
	w.rowsOf(w.f.softmaxRows, dst, a, b, sum, n, stride)
}

// softmaxRowsBack is a = exp(a - b) and dst = a (dst - sum) in n rows of 16 values.
func (w *Worker) softmaxRowsBack(dst, a []float32, b, sum vec, n, stride int) {
	w.rowsOf(w.f.softmaxRowsBack, dst, a, b, sum, n, stride)
}

func (w *Worker) rowsOf(f func(*exponentArgs), dst, a []float32, b, sum vec, n, stride int) {
	if n == 0 {
		return
	}
	e, last := &w.expo, (n-1)*stride+lanes
	*e = exponentArgs{
		dst: p(dst[:last], 0), a: p(a[:last], 0), b: unsafe.Pointer(b), sum: unsafe.Pointer(sum), n: int64(n),
		stride: int64(4 * stride), numbers: unsafe.Pointer(&exponentNumbers),
	}
	f(e)
	e.b, e.sum = nil, nil // which may be on a stack
}

// eachRow calls a kernel of n rows of 16 values. b is a factor of a lane, and sum is changed. The distances are values.
func (w *Worker) eachRow(f func(*exponentArgs), dst []float32, stride int, a []float32, from int, b, sum vec, n int) {
	if n == 0 {
		return
	}
	e, last := &w.expo, n-1
	*e = exponentArgs{
		dst: p(dst[:last*stride+lanes], 0), a: p(a[:last*from+lanes], 0), b: unsafe.Pointer(b), sum: unsafe.Pointer(sum),
		n: int64(n), stride: int64(4 * stride), from: int64(4 * from),
	}
	f(e)
	e.b, e.sum = nil, nil // which may be on a stack
}

// GELU is dst = x Phi(x), Phi being the normal distribution function (Hendrycks 2016).
func (w *Worker) GELU(dst, x []float32) { w.exponents(w.f.gelu, dst, x, nil) }

// GELUBack is dst = dy times the slope at x, Phi(x) + x phi(x).
func (w *Worker) GELUBack(dst, dy, x []float32) { w.exponents(w.f.geluBack, dst, x, dy) }

// GELUTanh is dst = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), which is x sigmoid of twice the argument.
func (w *Worker) GELUTanh(dst, x []float32) { w.exponents(w.f.geluTanh, dst, x, nil) }

// GELUTanhBack is dst = dy times the slope of GELUTanh at x.
func (w *Worker) GELUTanhBack(dst, dy, x []float32) { w.exponents(w.f.geluTanhBack, dst, x, dy) }

// SiLU is dst = x sigmoid(x).
func (w *Worker) SiLU(dst, x []float32) { w.exponents(w.f.silu, dst, x, nil) }

// SiLUBack is dst = dy times the slope at x, s (1 + x (1 - s)) with s = sigmoid(x).
func (w *Worker) SiLUBack(dst, dy, x []float32) { w.exponents(w.f.siluBack, dst, x, dy) }

// exponents are the kernels in plain Go.
func exponents(f *functions) {
	each := func(value func(x float32) float32) func(*exponentArgs) {
		return func(e *exponentArgs) {
			dst, a, b := slice(e.dst, e.n), slice(e.a, e.n), slice(e.b, e.n)
			for i, x := range a {
				y := value(x)
				if b != nil {
					y *= b[i]
				}
				dst[i] = y
			}
		}
	}
	f.silu = each(func(x float32) float32 { return x * sigmoid32(x) })
	f.siluBack = each(func(x float32) float32 {
		s := sigmoid32(x)
		return s * (1 + x*(1-s))
	})
	inner := func(x float32) float32 { return 2 * geluScale * (x + geluCube*x*x*x) }
	f.geluTanh = each(func(x float32) float32 { return x * sigmoid32(inner(x)) })
	f.geluTanhBack = each(func(x float32) float32 {
		s := sigmoid32(inner(x))
		return s * (1 + x*(1-s)*2*geluScale*(1+3*geluCube*x*x))
	})
	f.gelu = each(func(x float32) float32 {
		phi, _ := normal32(x)
		return x * phi
	})
	f.geluBack = each(func(x float32) float32 {
		phi, density := normal32(x)
		return phi + x*density
	})
	rows := func(each func(dst, a *float32, b float32, sum *float32)) func(*exponentArgs) {
		return func(e *exponentArgs) {
			b, sum := vec(e.b), vec(e.sum)
			for r := range e.n {
				dst, a := vec(ptr(e.dst, r*e.stride)), vec(ptr(e.a, r*e.stride))
				for l := range dst {
					each(&dst[l], &a[l], b[l], &sum[l])
				}
			}
		}
	}
	pairs := func(each func(dst, a, b, sum *float32)) func(*exponentArgs) {
		return func(e *exponentArgs) {
			var none [lanes]float32
			b, sum := &none, &none
			if e.b != nil {
				b = vec(e.b)
			}
			if e.sum != nil {
				sum = vec(e.sum)
			}
			for r := range e.n {
				dst, a := vec(ptr(e.dst, r*e.stride)), vec(ptr(e.a, r*e.from))
				for l := range dst {
					each(&dst[l], &a[l], &b[l], &sum[l])
				}
			}
		}
	}
	f.mulRows = pairs(func(dst, a, b, _ *float32) { *dst = *a * *b })
	f.addRows = pairs(func(dst, a, b, _ *float32) { *dst += *a * *b })
	f.dotRows = pairs(func(dst, a, _, sum *float32) { *sum += *a * *dst })
	f.maxRows = pairs(func(_, a, _, sum *float32) {
		if *a > *sum || *a != *a {
			*sum = *a
		}
	})
	f.softmaxRows = rows(func(dst, a *float32, b float32, sum *float32) {
		*dst = exp32(*a - b)
		*sum += *dst
	})
	f.softmaxRowsBack = rows(func(dst, a *float32, b float32, sum *float32) {
		*a = exp32(*a - b)
		*dst = *a * (*dst - *sum)
	})
}

func sigmoid32(x float32) float32 { return 1 / (1 + exp32(-x)) }
func tanh32(x float32) float32    { return 2*sigmoid32(2*x) - 1 }

// normal32 is the normal distribution function and its density, to 1e-6: Abramowitz and Stegun 1964, 7.1.26.
func normal32(x float32) (distribution, density float32) {
	e := exp32(-x * x / 2)
	t := 1 / (1 + normalScale*float32(math.Abs(float64(x))))
	tail := tailTerms[0]
	for _, c := range tailTerms[1:] {
		tail = tail*t + c
	}
	if distribution = tail * t * e / 2; x > 0 {
		distribution = 1 - distribution
	}
	return distribution, e * 0.3989422804 // 1 / sqrt(2 pi)
}

// exp32 is the exponential function, to 2 units in the last place; 0 below -87, and above 88 as at 88.
func exp32(x float32) float32 {
	if x < -87 {
		return 0
	}
	x = min(x, 88)
	const toWhole = 3 << 22 // adding it rounds to a whole number
	n := float32(x*math.Log2E+toWhole) - toWhole
	r := x - n*logHigh - n*logLow
	y := float32(1.0 / 5040) // Taylor's series, for r of at most log(2)/2
	for _, c := range [...]float32{1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 1.0 / 2, 1, 1} {
		y = y*r + c
	}
	return y * math.Float32frombits(uint32(int32(n)+127)<<23)
}
