package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// each runs f with a worker of every path.
func each(t *testing.T, f func(t *testing.T, w *Worker, rng *rand.Rand)) {
	for _, s := range plainSets() {
		t.Run(s.Name, func(t *testing.T) { f(t, NewTeam(s, 1, 64).workers[0], rand.New(rand.NewPCG(7, 8))) })
	}
}

// close to a want computed in float64.
func close(t *testing.T, what string, got []float32, want func(i int) float64) {
	t.Helper()
	for i, v := range got {
		if x := want(i); !(math.Abs(float64(v)-x) <= 2e-6*(1+math.Abs(x))) {
			t.Fatalf("%s: value %d of %d is %v, want %v", what, i, len(got), v, x)
		}
	}
}

func TestElementwiseKernelsAreTheirFormulas(t *testing.T) {
	each(t, func(t *testing.T, w *Worker, rng *rand.Rand) {
		for _, n := range []int{16, 32, 80, 144, 4096 + 48} {
			a, b, y := random(rng, n), random(rng, n), make([]float32, n)
			for i := range a {
				a[i] *= 8
			}
			A, B := func(i int) float64 { return float64(a[i]) }, func(i int) float64 { return float64(b[i]) }
			relu := func(v float64) float64 { return max(v, 0) }
			for name, c := range map[string]struct {
				do   func()
				want func(i int) float64
			}{
				"add":     {func() { w.Add(y, a, b) }, func(i int) float64 { return A(i) + B(i) }},
				"addRelu": {func() { w.AddReLU(y, a, b) }, func(i int) float64 { return relu(A(i) + B(i)) }},
				"relu":    {func() { w.ReLU(y, a) }, func(i int) float64 { return relu(A(i)) }},
				"clamp":   {func() { w.Clamp(y, a, 6) }, func(i int) float64 { return min(relu(A(i)), 6) }},
				"scale":   {func() { w.Scale(y, a, 3) }, func(i int) float64 { return 3 * A(i) }},
				"sigmoid": {func() { w.Sigmoid(y, a) }, func(i int) float64 { return 1 / (1 + math.Exp(-A(i))) }},
				"tanh":    {func() { w.Tanh(y, a) }, func(i int) float64 { return math.Tanh(A(i)) }},
				"reluBack": {func() { w.ReLUBack(y, b, a) }, func(i int) float64 {
					if a[i] > 0 {
						return B(i)
					}
					return 0
				}},
				"clampBack": {func() { w.ClampBack(y, b, a, 6) }, func(i int) float64 {
					if a[i] > 0 && a[i] < 6 {
						return B(i)
					}
					return 0
				}},
				"sigmoidBack": {func() { w.SigmoidBack(y, b, a) }, func(i int) float64 { return B(i) * A(i) * (1 - A(i)) }},
				"hardSwish": {func() { w.HardSwish(y, a) }, func(i int) float64 {
					return A(i) * min(relu(A(i)+3), 6) / 6
				}},
				"leaky": {func() { w.LeakyReLU(y, a, 0.25) }, func(i int) float64 { return max(A(i), A(i)/4) }},
				"leakyBack": {func() { w.LeakyReLUBack(y, b, a, 0.25) }, func(i int) float64 {
					if a[i] > 0 {
						return B(i)
					}
					return B(i) / 4
				}},
				"elu":      {func() { w.ELU(y, a) }, func(i int) float64 { return relu(A(i)) + math.Expm1(min(A(i), 0)) }},
				"eluBack":  {func() { w.ELUBack(y, b, a) }, func(i int) float64 { return B(i) * (1 + min(A(i), 0)) }},
				"softplus": {func() { w.Softplus(y, a) }, func(i int) float64 { return math.Log1p(math.Exp(A(i))) }},
				"softplusBack": {func() { w.Softplus(y, a); w.SoftplusBack(y, b, y) }, func(i int) float64 {
					return B(i) / (1 + math.Exp(-A(i)))
				}},
				"hardSigmoid": {func() { w.HardSigmoid(y, a) }, func(i int) float64 { return min(relu(A(i)+3), 6) / 6 }},
				"hardSigmoidBack": {func() { w.HardSigmoid(y, a); w.HardSigmoidBack(y, b, y) }, func(i int) float64 {
					if a[i] <= -3 || a[i] >= 3 {
						return 0
					}
					return B(i) / 6
				}},
				"hardSwishBack": {func() { w.HardSwishBack(y, b, a) }, func(i int) float64 {
					switch {
					case a[i] <= -3:
						return 0
					case a[i] >= 3:
						return B(i)
					}
					return B(i) * (2*A(i) + 3) / 6
				}},
				"tanhBack": {func() { w.TanhBack(y, b, a) }, func(i int) float64 { return B(i) * (1 - A(i)*A(i)) }},
			} {
				c.do()
				close(t, fmt.Sprintf("%s of %d", name, n), y, c.want)
			}
			var sum float64
			for i := range a {
				sum += A(i) * A(i)
			}
			if got := w.SquareSum(a); math.Abs(got-sum) > 1e-5*sum {
				t.Errorf("squares of %d: %v, want %v", n, got, sum)
			}
		}
	})
}

// A diverged network must not look healthy: an activation of NaN is NaN.
func TestActivationsKeepNaN(t *testing.T) {
	each(t, func(t *testing.T, w *Worker, _ *rand.Rand) {
		x, y := make([]float32, 16), make([]float32, 16)
		x[3] = float32(math.NaN())
		for name, do := range map[string]func(){
			"relu": func() { w.ReLU(y, x) }, "clamp": func() { w.Clamp(y, x, 6) }, "addRelu": func() { w.AddReLU(y, x, x) },
			"hardSwish": func() { w.HardSwish(y, x) }, "leaky": func() { w.LeakyReLU(y, x, 0.1) },
			"elu": func() { w.ELU(y, x) }, "softplus": func() { w.Softplus(y, x) },
			"hardSigmoid": func() { w.HardSigmoid(y, x) },
		} {
			clear(y)
			if do(); y[3] == y[3] || y[2] != y[2] {
				t.Errorf("%s: %v", name, y)
			}
		}
	})
}

// The published update rules, step by step in float64.
func TestOptimizersFollowTheirFormulas(t *testing.T) {
	each(t, func(t *testing.T, w *Worker, rng *rand.Rand) {
		const n = 48
		type state struct{ x, v, m, s float64 }
		for name, c := range map[string]struct {
			do   func(step int, x, g, v, m, s []float32)
			want func(step int, q *state, g float64)
		}{
			"sgd": {
				func(_ int, x, g, _, _, _ []float32) { w.SGD(SGD{Rate: 0.1, Decay: 0.01, Scale: 0.5}, x, g, nil) },
				func(_ int, q *state, g float64) { q.x -= 0.1 * (0.5*g + 0.01*q.x) },
			},
			"momentum": {
				func(_ int, x, g, v, _, _ []float32) {
					w.SGD(SGD{Rate: 0.1, Momentum: 0.9, Decay: 0.01, Scale: 1}, x, g, v)
				},
				func(_ int, q *state, g float64) { q.v = 0.9*q.v + g + 0.01*q.x; q.x -= 0.1 * q.v },
			},
			"nesterov": {
				func(_ int, x, g, v, _, _ []float32) {
					w.SGD(SGD{Rate: 0.1, Momentum: 0.9, Scale: 1, Nesterov: true}, x, g, v)
				},
				func(_ int, q *state, g float64) { q.v = 0.9*q.v + g; q.x -= 0.1 * (g + 0.9*q.v) },
			},
			"adam": {
				func(k int, x, g, _, m, s []float32) {
					w.Adam(Adam{Rate: 0.1, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, Decay: 0.1, Scale: 1, Step: k}, x, g, m, s)
				},
				func(k int, q *state, g float64) { adam(q.x, k, g+0.1*q.x, &q.x, &q.m, &q.s) },
			},
			"lion": {
				func(_ int, x, g, _, m, _ []float32) {
					w.Lion(Lion{Rate: 0.1, Beta1: 0.9, Beta2: 0.99, DecoupledDecay: 0.1, Scale: 0.5}, x, g, m)
				},
				func(_ int, q *state, g float64) {
					g *= 0.5
					q.x -= 0.1 * (math.Copysign(1, 0.9*q.m+0.1*g) + 0.1*q.x)
					q.m = 0.99*q.m + 0.01*g
				},
			},
			"rmsprop": {
				func(_ int, x, g, v, m, _ []float32) {
					w.Rooted(Rooted{Rate: 0.1, Keep: 0.9, Take: 0.1, Epsilon: 1e-3, Momentum: 0.5, Decay: 0.1, Scale: 0.5}, x, g, m, v)
				},
				func(_ int, q *state, g float64) {
					g = 0.5*g + 0.1*q.x
					q.m = 0.9*q.m + 0.1*g*g
					q.v = 0.5*q.v + g/(math.Sqrt(q.m)+1e-3)
					q.x -= 0.1 * q.v
				},
			},
			"adagrad": {
				func(_ int, x, g, _, m, _ []float32) {
					w.Rooted(Rooted{Rate: 0.1, Keep: 1, Take: 1, Epsilon: 1e-3, Scale: 1}, x, g, m, nil)
				},
				func(_ int, q *state, g float64) {
					q.m += g * g
					q.x -= 0.1 * g / (math.Sqrt(q.m) + 1e-3)
				},
			},
			"lamb": {
				func(k int, x, g, _, m, s []float32) {
					o := disdel.Optimizer{LAMB: &disdel.LAMB{Epsilon: 1e-3, WeightDecay: 0.1}}
					u := Update{Optimizer: o, Rate: 0.1, Scale: 0.5, Step: k, Norms: new([2]float64)}
					w.Update(&u, x, g, m, s)
					u.Norms, u.Trust = nil, 0.7
					w.Update(&u, x, g, m, s)
				},
				func(k int, q *state, g float64) {
					q.m, q.s = 0.9*q.m+0.1*0.5*g, 0.999*q.s+0.001*0.25*g*g
					mean, square := q.m/(1-math.Pow(0.9, float64(k))), q.s/(1-math.Pow(0.999, float64(k)))
					q.x -= 0.1 * 0.7 * (mean/(math.Sqrt(square)+1e-3) + 0.1*q.x)
				},
			},
			"adamw": {
				func(k int, x, g, _, m, s []float32) {
					w.Adam(Adam{Rate: 0.1, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, DecoupledDecay: 0.1, Scale: 1, Step: k}, x, g, m,
						s)
				},
				func(k int, q *state, g float64) { adam(q.x*(1-0.1*0.1), k, g, &q.x, &q.m, &q.s) },
			},
		} {
			x, v, m, s := random(rng, n), make([]float32, n), make([]float32, n), make([]float32, n)
			want := make([]state, n)
			for i := range want {
				want[i].x = float64(x[i])
			}
			for k := 1; k <= 4; k++ {
				g := random(rng, n)
				c.do(k, x, g, v, m, s)
				for i := range want {
					c.want(k, &want[i], float64(g[i]))
				}
			}
			close(t, name, x, func(i int) float64 { return want[i].x })
		}
	})
}

// adam is Algorithm 1 of Kingma and Ba.
func adam(from float64, step int, g float64, x, m, s *float64) {
	*m, *s = 0.9**m+0.1*g, 0.999**s+0.001*g*g
	mean, square := *m/(1-math.Pow(0.9, float64(step))), *s/(1-math.Pow(0.999, float64(step)))
	*x = from - 0.1*mean/(math.Sqrt(square)+1e-8)
}

func TestTransposeMovesEveryValue(t *testing.T) {
	each(t, func(t *testing.T, w *Worker, rng *rand.Rand) {
		for range 50 {
			rows, columns := 1+rng.IntN(50), 1+rng.IntN(50)
			ss, ds := columns+rng.IntN(5), rows+rng.IntN(5)
			src, dst := random(rng, rows*ss), make([]float32, columns*ds)
			w.Transpose(dst, ds, src, ss, rows, columns)
			for r := range rows {
				for c := range columns {
					if dst[c*ds+r] != src[r*ss+c] {
						t.Fatalf("%dx%d: (%d, %d) did not move", rows, columns, r, c)
					}
				}
			}
		}
	})
}

// Batch norm is its definition, over the rows alone, whatever the other lanes hold; a mean of a thousand costs no
// digits.
func TestBatchNormIsItsDefinition(t *testing.T) {
	each(t, func(t *testing.T, w *Worker, rng *rand.Rand) {
		for _, c := range []struct{ channels, rows, pixels int }{{1, 3, 4}, {9, 16, 5}, {21, 20, 3}, {8, 33, 1}} {
			im := Image{C: c.channels, H: 1, W: c.pixels, Lanes: plan.Padded(c.rows)}
			n := Norm{Image: im, Eps: 1e-5, Momentum: 0.1, Rows: c.rows}
			x, y := random(rng, im.Len()), make([]float32, im.Len())
			for i := range x {
				x[i] += 1000
			}
			k := plan.Padded(c.channels)
			s := NormState{
				Gamma: random(rng, k), Beta: random(rng, k), Mean: make([]float32, k), Var: make([]float32, k),
				Shift: make([]float32, k),
				Scale: make([]float32, k), Offset: make([]float32, k), Third: make([]float32, k), Sums: make([]float32, 32*k),
				Mask: make([]float32, im.Lanes),
			}
			for l := range c.rows {
				s.Mask[l] = 1
			}
			running := [2][]float32{make([]float32, k), make([]float32, k)}
			w.NormForward(&n, &s, running, x, y)
			for ch := range c.channels {
				var sum, square, count float64
				visit := func(f func(i int)) {
					for px := range c.pixels {
						for l := range c.rows {
							f((px*c.channels+ch)*im.Lanes + l)
						}
					}
				}
				visit(func(i int) { sum += float64(x[i]); count++ })
				mean := sum / count
				visit(func(i int) { square += (float64(x[i]) - mean) * (float64(x[i]) - mean) })
				inv := 1 / math.Sqrt(square/count+1e-5)
				visit(func(i int) {
					want := float64(s.Gamma[ch])*(float64(x[i])-mean)*inv + float64(s.Beta[ch])
					if math.Abs(float64(y[i])-want) > 1e-3 { // x itself has three digits behind the point
						t.Fatalf("%+v: %v, want %v", c, y[i], want)
					}
				})
				if want := 0.1 * square / (count - 1); math.Abs(float64(running[1][ch])-want) > 1e-4 {
					t.Errorf("%+v: running variance %v, want %v", c, running[1][ch], want)
				}
			}
		}
	})
}
