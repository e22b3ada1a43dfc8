package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
)

// normal and normalDensity are the normal distribution in double precision.
func normal(x float64) float64        { return 0.5 * math.Erfc(-x/math.Sqrt2) }
func normalDensity(x float64) float64 { return math.Exp(-x*x/2) / math.Sqrt(2*math.Pi) }

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// inner is the argument of the sigmoid of GELUTanh, and its slope.
func inner(x float64) (z, slope float64) {
	return 2 * geluScale * (x + geluCube*x*x*x), 2 * geluScale * (1 + 3*geluCube*x*x)
}

// Activations on every path are within 2e-6 of their definitions, for numbers of every size, and NaN stays NaN.
func TestActivationsAreTheirDefinitions(t *testing.T) {
	each(t, func(t *testing.T, w *Worker, rng *rand.Rand) {
		const n = 5 * 16
		special := []float32{0, 1e-30, -1e-30, 88, -88, 87.5, 1e4, -1e4, 1e9, -1e9, float32(math.NaN())}
		for name, f := range map[string]struct {
			run    func(dst, dy, x []float32)
			define func(x float64) float64
		}{
			"silu": {func(d, _, x []float32) { w.SiLU(d, x) }, func(x float64) float64 { return x * sigmoid(x) }},
			"siluBack": {func(d, dy, x []float32) { w.SiLUBack(d, dy, x) }, func(x float64) float64 {
				return sigmoid(x) * (1 + x*sigmoid(-x))
			}},
			"gelu": {func(d, _, x []float32) { w.GELU(d, x) }, func(x float64) float64 { return x * normal(x) }},
			"geluBack": {func(d, dy, x []float32) { w.GELUBack(d, dy, x) }, func(x float64) float64 {
				return normal(x) + x*normalDensity(x)
			}},
			"geluTanh": {func(d, _, x []float32) { w.GELUTanh(d, x) }, func(x float64) float64 {
				z, _ := inner(x)
				return x * sigmoid(z)
			}},
			"geluTanhBack": {func(d, dy, x []float32) { w.GELUTanhBack(d, dy, x) }, func(x float64) float64 {
				z, slope := inner(x)
				return sigmoid(z) * (1 + x*sigmoid(-z)*slope)
			}},
		} {
			x, dy, dst := make([]float32, n), make([]float32, n), make([]float32, n)
			for i := range x {
				x[i], dy[i] = float32(rng.NormFloat64()*math.Pow(10, float64(rng.IntN(3)-1))), 1
			}
			copy(x, special)
			f.run(dst, dy, x)
			for i, v := range x {
				want := f.define(float64(v))
				got := float64(dst[i])
				if math.IsNaN(float64(v)) != math.IsNaN(got) {
					t.Errorf("%s of %v is %v", name, v, got)
				} else if !math.IsNaN(got) && !math.IsNaN(want) && math.Abs(got-want) > 2e-6*max(1, math.Abs(want)) {
					t.Errorf("%s of %v is %v, not %v", name, v, got, want)
				}
			}
			again := append([]float32(nil), x...)
			f.run(again, dy, again) // in place
			for i := range again {
				if again[i] != dst[i] && !math.IsNaN(float64(dst[i])) {
					t.Fatalf("%s in place of %v is %v, not %v", name, x[i], again[i], dst[i])
				}
			}
		}
	})
}

// Rows of a softmax on every path are exponentials and their sums, and rows of its gradient, with any stride. What is
// between the rows stays.
func TestSoftmaxRowsAreTheirDefinitions(t *testing.T) {
	each(t, func(t *testing.T, w *Worker, rng *rand.Rand) {
		for _, stride := range []int{lanes, 3 * lanes} {
			const rows = 7
			a, dst := make([]float32, rows*stride), make([]float32, rows*stride)
			for i := range a {
				a[i], dst[i] = float32(4*rng.NormFloat64()), float32(rng.NormFloat64())
			}
			a[0], a[1] = float32(math.Inf(-1)), float32(math.NaN())
			var b, sum [lanes]float32
			for l := range b {
				b[l], sum[l] = float32(rng.NormFloat64()), float32(l)
			}
			wrong := func(got float32, want float64) bool {
				return math.IsNaN(want) != math.IsNaN(float64(got)) || math.Abs(float64(got)-want) > 1e-5*max(1, math.Abs(want))
			}
			before, sums := append([]float32(nil), dst...), sum
			w.softmaxRows(dst, a, &b, &sums, rows, stride)
			for l := range lanes {
				want := float64(sum[l])
				for r := range rows {
					e := math.Exp(float64(a[r*stride+l] - b[l]))
					if want += e; wrong(dst[r*stride+l], e) {
						t.Errorf("row %d, lane %d: %v, not %v", r, l, dst[r*stride+l], e)
					}
				}
				if wrong(sums[l], want) {
					t.Errorf("lane %d: the sum is %v, not %v", l, sums[l], want)
				}
			}
			copy(dst, before)
			given := append([]float32(nil), a...)
			w.softmaxRowsBack(dst, a, &b, &sum, rows, stride)
			for i := range dst {
				r, l := i/stride, i%stride
				if l >= lanes {
					if dst[i] != before[i] || a[i] != given[i] {
						t.Fatalf("value %d behind row %d has changed", l, r)
					}
					continue
				}
				e := math.Exp(float64(given[i] - b[l]))
				if wrong(a[i], e) || wrong(dst[i], e*float64(before[i]-sum[l])) {
					t.Errorf("row %d, lane %d: %v and %v", r, l, a[i], dst[i])
				}
			}
		}
	})
}

// Rows of 16 values on every path are multiplied, added, summed and compared, with any two distances between them. What
// is between the rows stays.
func TestRowsOfLanesAreTheirDefinitions(t *testing.T) {
	each(t, func(t *testing.T, w *Worker, rng *rand.Rand) {
		const rows, stride, from = 5, 2 * lanes, 3 * lanes
		for name, f := range map[string]struct {
			run    func(*exponentArgs)
			define func(dst, a, b, sum float64) (float64, float64)
		}{
			"mulRows": {w.f.mulRows, func(_, a, b, sum float64) (float64, float64) { return a * b, sum }},
			"addRows": {w.f.addRows, func(dst, a, b, sum float64) (float64, float64) { return dst + a*b, sum }},
			"dotRows": {w.f.dotRows, func(dst, a, _, sum float64) (float64, float64) { return dst, sum + a*dst }},
			"maxRows": {w.f.maxRows, func(dst, a, _, sum float64) (float64, float64) { return dst, max(sum, a) }},
		} {
			dst, a := make([]float32, rows*stride), make([]float32, rows*from)
			for i := range a {
				a[i] = float32(rng.NormFloat64())
			}
			want := make([]float64, len(dst))
			for i := range dst {
				dst[i] = float32(rng.NormFloat64())
				want[i] = float64(dst[i])
			}
			var b, sum [lanes]float32
			var sums [lanes]float64
			for l := range b {
				b[l], sum[l] = float32(rng.NormFloat64()), float32(rng.NormFloat64())
				sums[l] = float64(sum[l])
			}
			for r := range rows {
				for l := range lanes {
					i := r*stride + l
					want[i], sums[l] = f.define(want[i], float64(a[r*from+l]), float64(b[l]), sums[l])
				}
			}
			w.eachRow(f.run, dst, stride, a, from, &b, &sum, rows)
			for i, v := range dst {
				if math.Abs(float64(v)-want[i]) > 1e-5 {
					t.Errorf("%s: value %d is %v, not %v", name, i, v, want[i])
				}
			}
			for l, v := range sum {
				if math.Abs(float64(v)-sums[l]) > 1e-5 {
					t.Errorf("%s: the sum of lane %d is %v, not %v", name, l, v, sums[l])
				}
			}
		}
	})
}
