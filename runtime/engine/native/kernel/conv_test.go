package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// Every path computes what the definition of a convolution says, forward and both gradients, at odd sizes, with
// asymmetric padding, strides, dilation and groups, on one thread and on three; also where taps that meet no pixel are
// idle, whose weights then have no gradient.
func TestConvolutionIsItsDefinition(t *testing.T) {
	for _, s := range plainSets() {
		for _, threads := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s/%d", s.Name, threads), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(1, uint64(threads)))
				for range some(60) {
					checkConv(t, rng, NewTeam(s, threads, 64))
				}
			})
		}
	}
}

func checkConv(t *testing.T, rng *rand.Rand, team *Team) {
	t.Helper()
	c, rows, _, _ := geometry(rng)
	in, out := c.In, c.Out()
	whole := c
	if rng.IntN(2) == 0 {
		c.Trim()
	}
	n := naive{c: &whole, rows: rows}
	x, wt, bias := random(rng, rows*in.C*in.H*in.W), random(rng, c.Filters*c.Inner()*whole.Taps()), random(rng, c.Filters)
	dy := random(rng, rows*c.Filters*c.OH*c.OW)
	n.x, n.w, n.b, n.dy = wide(x), wide(wt), wide(bias), wide(dy)
	n.y, n.dx, n.dw = make([]float64, len(dy)), make([]float64, len(x)), make([]float64, len(wt))
	for i := range n.y {
		n.y[i] = n.b[i/(c.OH*c.OW)%c.Filters]
	}
	n.each(func(y, x, w int) {
		n.y[y] += n.x[x] * n.w[w]
		n.dx[x] += n.dy[y] * n.w[w]
		n.dw[w] += n.dy[y] * n.x[x]
	})
	xi, yi, dyi, dxi := padded(in.Len()), padded(out.Len()), padded(out.Len()), padded(in.Len())
	size := c.WeightLen() + c.IdleLen()
	wi, bi, dwi, dbi := make([]float32, size), make([]float32, c.BiasLen()), make([]float32, size),
		make([]float32, c.BiasLen())
	scratch, sums := make([]float32, c.ScratchLen()), make([]float32, c.Filters*16)
	ImportWeights(&c, wi, wt)
	for k, v := range bias {
		bi[c.BiasAt(k)] = v
	}
	for i := range dxi {
		dxi[i], yi[i%len(yi)], dwi[i%c.WeightLen()] = 1e9, 1e9, 1e9
	}
	for i := range dbi {
		dbi[i] = 1e9
	}
	add := rng.IntN(2) == 0
	if add {
		clear(dxi)
	}
	team.Run(func(w *Worker) {
		w.Import(xi, in, Border{}, x, rows)
		w.Import(dyi, out, Border{}, dy, rows)
		w.Sync()
		w.Forward(&c, xi, wi, bi, yi)
		w.BackData(&c, dyi, wi, dxi, add)
		w.BackWeights(&c, xi, dyi, dwi, scratch)
		w.BackBias(&c, dyi, dbi, sums)
		w.Sync()
	})
	w := team.workers[0]
	gotY, gotDX, gotDW := make([]float32, len(n.y)), make([]float32, len(n.dx)), make([]float32, len(n.dw))
	w.Export(gotY, yi, out, rows)
	w.Export(gotDX, dxi, in, rows)
	ExportWeights(&c, gotDW, dwi)
	at := fmt.Sprintf("%+v, %d rows, add %v: ", c, rows, add)
	near(t, at+"y", gotY, n.y, c.Inner()*c.Taps())
	near(t, at+"dx", gotDX, n.dx, c.Outer()*c.Taps())
	near(t, at+"dw", gotDW, n.dw, rows*c.OH*c.OW)
	c.Each(func(_, here int) { dwi[here] = 0 })
	for i, v := range dwi[:c.WeightLen()-plan.Slack] {
		if v != 0 {
			t.Fatalf("%spadding %d of dw is %v", at, i, v)
		}
	}
	for k := range c.Filters {
		var sum float64
		for i, v := range n.dy {
			if i/(c.OH*c.OW)%c.Filters == k {
				sum += v
			}
		}
		near(t, at+"db", []float32{dbi[c.BiasAt(k)]}, []float64{sum}, rows*c.OH*c.OW)
		dbi[c.BiasAt(k)] = 0
	}
	for i, v := range dbi {
		if v != 0 {
			t.Fatalf("%spadding %d of db is %v", at, i, v)
		}
	}
}

// A convolution is linear in its input: that of 2a - 3b is twice that of a less three times that of b.
func TestConvolutionIsLinear(t *testing.T) {
	for _, s := range plainSets() {
		rng := rand.New(rand.NewPCG(9, 9))
		for range 20 {
			c, _, _, _ := geometry(rng)
			team := NewTeam(s, 1, 64)
			a, b, mixed := padded(c.In.Len()), padded(c.In.Len()), padded(c.In.Len())
			for i := range a {
				a[i], b[i] = rng.Float32()*2-1, rng.Float32()*2-1
				mixed[i] = 2*a[i] - 3*b[i]
			}
			wt := random(rng, c.WeightLen())
			var ys [3][]float32
			for i, x := range [][]float32{a, b, mixed} {
				ys[i] = padded(c.Out().Len())
				team.Run(func(w *Worker) { w.Forward(&c, x, wt, nil, ys[i]) })
			}
			want := make([]float64, c.Out().Len())
			for i := range want {
				want[i] = 2*float64(ys[0][i]) - 3*float64(ys[1][i])
			}
			near(t, fmt.Sprintf("%s %+v", s.Name, c), ys[2], want, 9*c.Inner()*c.Taps())
		}
	}
}

// Large layers are cut into slices; all of them have to come together.
func TestSlicedConvolutionsAddUp(t *testing.T) {
	old := Conv{
		In: Image{C: 300, H: 3, W: 2, Lanes: 16}, Filters: 700, KH: 3, KW: 3, SH: 1, SW: 2, DH: 1, DW: 1, Top: 1,
		Left: 1, OH: 3, OW: 1, Groups: 1,
	}
	dense := plan.Dense(1500, 1100, 16)
	rows := Conv{
		In: Image{C: 24, H: 17, W: 24, Lanes: 64}, Filters: 40, KH: 3, KW: 3, SH: 1, SW: 1, DH: 1, DW: 1, Top: 1,
		Left: 1, OH: 17, OW: 24, Groups: 1,
	}
	if rows.ChunkRows() >= rows.OH {
		t.Fatal("the weights' gradient is not cut into chunks of rows")
	}
	sets, layers := plainSets(), []Conv{old, dense, rows}
	if testing.Short() {
		sets, layers = sets[:1], layers[1:2]
	}
	for _, c := range layers {
		rng := rand.New(rand.NewPCG(2, 3))
		n := naive{c: &c, rows: 2}
		x, wt, dy := random(rng, 2*c.In.C*c.In.H*c.In.W), random(rng, c.Filters*c.Inner()*c.Taps()),
			random(rng, 2*c.Filters*c.OH*c.OW)
		n.x, n.w, n.dy = wide(x), wide(wt), wide(dy)
		n.y, n.dx, n.dw = make([]float64, len(dy)), make([]float64, len(x)), make([]float64, len(wt))
		n.each(func(y, x, w int) {
			n.y[y] += n.x[x] * n.w[w]
			n.dx[x] += n.dy[y] * n.w[w]
			n.dw[w] += n.dy[y] * n.x[x]
		})
		for _, s := range sets {
			xi, dyi, yi, dxi := padded(c.In.Len()), padded(c.Out().Len()), padded(c.Out().Len()), padded(c.In.Len())
			wi, dwi, scratch := make([]float32, c.WeightLen()), make([]float32, c.WeightLen()), make([]float32, c.ScratchLen())
			ImportWeights(&c, wi, wt)
			team := NewTeam(s, 2, 64)
			team.Run(func(w *Worker) {
				w.Import(xi, c.In, Border{}, x, 2)
				w.Import(dyi, c.Out(), Border{}, dy, 2)
				w.Sync()
				w.Forward(&c, xi, wi, nil, yi)
				w.BackData(&c, dyi, wi, dxi, false)
				w.BackWeights(&c, xi, dyi, dwi, scratch)
			})
			gotY, gotDX, gotDW := make([]float32, len(n.y)), make([]float32, len(n.dx)), make([]float32, len(n.dw))
			team.workers[0].Export(gotY, yi, c.Out(), 2)
			team.workers[0].Export(gotDX, dxi, c.In, 2)
			ExportWeights(&c, gotDW, dwi)
			near(t, s.Name+" y", gotY, n.y, 4000)
			near(t, s.Name+" dx", gotDX, n.dx, 4000)
			near(t, s.Name+" dw", gotDW, n.dw, 1000)
		}
	}
}

func TestGemmMatchesItsDefinition(t *testing.T) {
	for _, s := range plainSets() {
		rng := rand.New(rand.NewPCG(5, 6))
		w := NewTeam(s, 1, 1).workers[0]
		scratch := make([]float32, GemmLen())
		for range some(60) {
			m, n, k := 1+rng.IntN(70), 1+rng.IntN(90), rng.IntN(300)
			if rng.IntN(10) == 0 {
				m, n = 200+rng.IntN(50), 2040+rng.IntN(50)
			}
			a, b, c := Matrix{random(rng, m*k), k, rng.IntN(2) == 0}, Matrix{random(rng, k*n), n, rng.IntN(2) == 0},
				random(rng, m*n)
			at := func(x Matrix, i, j int) float64 {
				if x.T {
					i, j = j, i
				}
				return float64(x.Data[i*x.Stride+j])
			}
			if a.T {
				a.Stride = m
			}
			if b.T {
				b.Stride = k
			}
			add := rng.IntN(2) == 0
			want := make([]float64, m*n)
			for i := range m {
				for j := range n {
					if add {
						want[i*n+j] = float64(c[i*n+j])
					}
					if m*n*k > 1<<22 && (i+j)%97 != 0 {
						continue
					}
					for l := range k {
						want[i*n+j] += at(a, i, l) * at(b, l, j)
					}
				}
			}
			w.Gemm(m, n, k, a, b, c, n, add, scratch)
			for i := range want {
				if m*n*k > 1<<22 && (i/n+i%n)%97 != 0 {
					want[i] = float64(c[i])
				}
			}
			near(t, fmt.Sprintf("%s %dx%dx%d", s.Name, m, n, k), c, want, k+1)
		}
	}
}
