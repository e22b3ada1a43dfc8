package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// nearest is the bfloat16 nearest to v by its definition: of all that there are, in float64, the even one of two.
func nearest(v float32) float32 {
	if v != v || math.IsInf(float64(v), 0) {
		return v
	}
	low := math.Float32bits(v) &^ 0xffff // towards zero
	best, away := float32(0), math.Inf(1)
	for _, bits := range []uint32{low, low + 1<<16} {
		value := float64(math.Float32frombits(bits))
		if math.IsInf(value, 0) { // stands for the power of two behind the largest number
			value = math.Copysign(math.Ldexp(1, 128), value)
		}
		d := math.Abs(value - float64(v))
		if d < away || d == away && bits>>16&1 == 0 {
			best, away = math.Float32frombits(bits), d
		}
	}
	return best
}

// oddValues are those that rounding goes wrong at first, and any bits besides.
func oddValues(rng *rand.Rand, n int) []float32 {
	bits := []uint32{
		0, 1, 0x7fff, 0x8000, 0x8001, 0xffff, 0x3f800000, 0x3f808000, 0x3f818000, 0x3f80ffff, 0x7f7fffff, 0x7f7f8000,
		0x7f7f7fff, 0x7f800000, 0x7f800001, 0x7fffffff, 0x7fc00000, 0x00400000, 0x007fffff,
	}
	out := make([]float32, n)
	for i := range out {
		b := rng.Uint32()
		if i < 2*len(bits) {
			b = bits[i/2] | uint32(i%2)<<31
		}
		out[i] = math.Float32frombits(b)
	}
	return out
}

func TestRoundingIsToTheNearestEven(t *testing.T) {
	each(t, func(t *testing.T, w *Worker, rng *rand.Rand) {
		for _, n := range []int{16, 48, 64, 4096 + 16} {
			x, y := oddValues(rng, n), make([]float32, n)
			w.Round(y, x)
			for i, v := range x {
				want := nearest(v)
				if got := y[i]; math.Float32bits(got) != math.Float32bits(want) && (want == want || got == got) {
					t.Fatalf("%x became %x, not %x", math.Float32bits(v), math.Float32bits(got), math.Float32bits(want))
				}
				if bits := math.Float32bits(y[i]); bits&0xffff != 0 || bits != math.Float32bits(rounded(v)) {
					t.Fatalf("%x became %x", math.Float32bits(v), bits)
				}
			}
		}
	})
}

// Halves lie where the values lay, whoever moved them, and widen to the same bits.
func TestHalvesAreTheValues(t *testing.T) {
	for _, s := range Sets() {
		for _, threads := range []int{1, 2, 3, 5} {
			rng := rand.New(rand.NewPCG(3, 4))
			for _, n := range []int{16, 80, 4096, 4096 + 16, 3*4096 + 48, 1 << 16} {
				team := NewTeam(s, threads, 1)
				x, back := oddValues(rng, n), make([]float32, n)
				team.Run(func(w *Worker) { w.Round(x, x) })
				want := slices.Clone(x)
				team.Run(func(w *Worker) {
					w.Shorten(x)
					w.Widen(back, HalvesOf(x, n))
				})
				for i := range want {
					if math.Float32bits(want[i]) != math.Float32bits(back[i]) {
						t.Fatalf("%s, %d threads, %d values: value %d is %x, was %x", s.Name, threads, n, i,
							math.Float32bits(back[i]), math.Float32bits(want[i]))
					}
				}
			}
		}
	}
}

// Rows are widened alone: what lies between them stays.
func TestWideningRowsLeavesTheRest(t *testing.T) {
	each(t, func(t *testing.T, w *Worker, rng *rand.Rand) {
		const rows, n, ds, ss = 3, 48, 70, 53
		x, y := make(Halves, rows*ss), make([]float32, rows*ds)
		for i := range x {
			x[i] = uint16(rng.Uint32()) & 0x3fff
		}
		w.widen(y, x, rows, n, ds, ss)
		for i, v := range y {
			want := float32(0)
			if r, k := i/ds, i%ds; k < n {
				want = math.Float32frombits(uint32(x[r*ss+k]) << 16)
			}
			if v != want {
				t.Fatalf("value %d is %v, not %v", i, v, want)
			}
		}
	})
}

// kept is an array in a piece of memory, rounded, and its halves.
func kept(rng *rand.Rand, take func(n int) []float32, n int) ([]float32, Halves) {
	x, short := take(n), take(n)
	for i := range x {
		x[i] = rounded(rng.Float32()*2 - 1)
	}
	copy(short, x)
	w := NewTeam(portable(), 1, 1).workers[0]
	w.Shorten(short)
	return x, HalvesOf(short, n)
}

// slab hands out parts of one piece of memory, as an engine's, with what was there before.
func slab(n int) (take func(n int) []float32) {
	all := make([]float32, n)
	for i := range all {
		all[i] = float32(math.NaN())
	}
	return func(n int) (part []float32) {
		n = plan.Padded(n)
		part, all = all[:n:n], all[n:]
		return part
	}
}

// alike compares bits.
func alike(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("%s: value %d of %d is %v, and %v of values", what, i, len(want), got[i], want[i])
		}
	}
}

// everyTeam runs f with every path on one thread and on three.
func everyTeam(t *testing.T, f func(t *testing.T, team *Team, rng *rand.Rand)) {
	for _, s := range Sets() {
		for _, threads := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s/%d", s.Name, threads), func(t *testing.T) {
				f(t, NewTeam(s, threads, 64), rand.New(rand.NewPCG(5, uint64(threads))))
			})
		}
	}
}

// A pass back that reads halves comes to the bits of one that reads the same values.
func TestWeightsGradientsOfHalvesAreThoseOfValues(t *testing.T) {
	everyTeam(t, func(t *testing.T, team *Team, rng *rand.Rand) {
		for range 40 {
			c, _, _, _ := geometry(rng)
			take := slab(4*c.In.Len() + 2*c.Out().Len() + 4*c.WeightLen() + 4*c.ScratchLen() + 4*c.WindowLen() + 1<<16)
			x, short := kept(rng, take, c.In.Len())
			dy := take(c.Out().Len())
			copy(dy, random(rng, len(dy)))
			a, b, scratch := take(c.WeightLen()), take(c.WeightLen()), take(c.ScratchLen()+c.WindowLen())
			clear(a)
			clear(b)
			team.Run(func(w *Worker) {
				w.BackWeights(&c, x, dy, a, scratch)
				w.BackWeightsHalves(&c, short, dy, b, scratch)
			})
			n := c.WeightLen() - plan.Slack
			alike(t, fmt.Sprintf("%+v", c), b[:n], a[:n])
		}
	})
}

func TestWinogradGradientsOfHalvesAreThoseOfValues(t *testing.T) {
	everyTeam(t, func(t *testing.T, team *Team, rng *rand.Rand) {
		for _, m := range []int{2, 4} {
			c := Conv{
				In: Image{C: 16 + 16*rng.IntN(3), H: 5 + rng.IntN(5), W: 4 + rng.IntN(5), Lanes: 16 * (1 + rng.IntN(2))},
				KH: 3, KW: 3, SH: 1, SW: 1, DH: 1, DW: 1, Top: 1, Left: 1, Groups: 1, Filters: 32, Tile: m, BackTile: m,
			}
			c.OH, c.OW = c.In.H, c.In.W
			take := slab(4*c.In.Len() + 2*c.Out().Len() + 3*c.WeightLen() + c.BackWeightsLen() + c.WindowLen() + 1<<14)
			x, short := kept(rng, take, c.In.Len())
			dy, a, b := take(c.Out().Len()), take(c.WeightLen()), take(c.WeightLen())
			copy(dy, random(rng, len(dy)))
			scratch := take(c.BackWeightsLen() + c.WindowLen())
			team.Run(func(w *Worker) {
				w.WinogradBackWeights(&c, x, dy, a, scratch)
				w.WinogradBackWeightsHalves(&c, short, dy, b, scratch)
			})
			alike(t, fmt.Sprintf("%+v", c), b[:c.WeightLen()-plan.Slack], a[:c.WeightLen()-plan.Slack])
		}
	})
}

// Rounding has Winograd's products forward and back take rounded weights, as if the caller had rounded them.
func TestWinogradRoundsItsWeights(t *testing.T) {
	everyTeam(t, func(t *testing.T, team *Team, rng *rand.Rand) {
		for _, size := range []struct{ m, channels, filters, side int }{{2, 32, 48, 5}, {4, 32, 48, 6}, {2, 64, 16, 2}} {
			m, in := size.m, Image{C: size.channels, H: size.side, W: size.side, Lanes: 16}
			c := Conv{
				In: in, KH: 3, KW: 3, SH: 1, SW: 1, DH: 1, DW: 1, Top: 1, Left: 1, OH: size.side, OW: size.side, Groups: 1,
				Filters: size.filters, Tile: m, BackTile: m,
			}
			need := max(c.ForwardLen(), c.BackDataLen())
			take := slab(4*c.In.Len() + 4*c.Out().Len() + 3*c.WeightLen() + need + 1<<14)
			x, weights, whole := take(c.In.Len()), take(c.WeightLen()), take(c.WeightLen())
			y, want, dx, wantDx := take(c.Out().Len()), take(c.Out().Len()), take(c.In.Len()), take(c.In.Len())
			scratch := take(need)
			copy(x, random(rng, len(x)))
			copy(weights, random(rng, len(weights)))
			team.Run(func(w *Worker) {
				w.Round(whole, weights)
				w.Sync()
				w.WinogradForward(&c, x, whole, nil, want, scratch)
				w.WinogradBackData(&c, want, whole, wantDx, scratch, false)
				w.Rounding(true)
				w.WinogradForward(&c, x, weights, nil, y, scratch)
				w.WinogradBackData(&c, want, weights, dx, scratch, false)
				w.Rounding(false)
			})
			alike(t, "forward", y, want)
			alike(t, "back", dx, wantDx)
		}
	})
}

func TestPoolsAndDepthwiseGradientsOfHalvesAreThoseOfValues(t *testing.T) {
	everyTeam(t, func(t *testing.T, team *Team, rng *rand.Rand) {
		for range 40 {
			g := Pool{
				KH: 1 + rng.IntN(3), KW: 1 + rng.IntN(3), SH: 1 + rng.IntN(4), SW: 1 + rng.IntN(3), DH: 1 + rng.IntN(2),
				DW: 1 + rng.IntN(2),
				In: Image{C: 1 + rng.IntN(20), H: 5 + rng.IntN(6), W: 5 + rng.IntN(6), Lanes: 16 * (1 + rng.IntN(2))},
			}
			g.Top, g.Left = rng.IntN(g.KH), rng.IntN(g.KW)
			g.OH = (g.In.H+2*g.Top-(g.KH-1)*g.DH-1)/g.SH + 1
			g.OW = (g.In.W+2*g.Left-(g.KW-1)*g.DW-1)/g.SW + 1
			weights := g.KH * g.KW * g.In.C
			take := slab(8*g.In.Len() + 8*g.Out().Len() + g.WindowLen() + g.DepthwiseHalvesLen() + 4*weights + 32*g.In.C + 4096)
			x, short := kept(rng, take, g.In.Len())
			y, dy, halves := take(g.Out().Len()), take(g.Out().Len()), take(g.Out().Len())
			dx, want := take(len(x)), take(len(x))
			dw, wantDw := take(weights), take(weights)
			window, scratch := take(g.WindowLen()), take(max(g.DepthwiseHalvesLen(), 16*g.In.C))
			copy(dy, random(rng, len(dy)))
			for _, v := range [][]float32{dx, want, dw, wantDw, y} {
				clear(v)
			}
			team.Run(func(w *Worker) {
				w.MaxPool(&g, x, y)
				w.Copy(halves, y)
				w.Sync()
				w.Shorten(halves)
				w.MaxPoolBack(&g, x, y, dy, want)
				w.MaxPoolBackHalves(&g, short, HalvesOf(halves, len(y)), dy, dx, window)
				w.DepthwiseBackWeights(&g, x, dy, wantDw, scratch)
				w.Sync()
				w.DepthwiseBackWeightsHalves(&g, short, dy, dw, scratch)
				w.Sync()
			})
			alike(t, fmt.Sprintf("max pool %+v", g), dx, want)
			alike(t, fmt.Sprintf("depthwise %+v", g), dw, wantDw)
		}
	})
}

func TestNormGradientsOfHalvesAreThoseOfValues(t *testing.T) {
	everyTeam(t, func(t *testing.T, team *Team, rng *rand.Rand) {
		for _, size := range []struct{ channels, rows, pixels int }{{1, 3, 4}, {9, 16, 50}, {21, 20, 3}, {40, 48, 60}} {
			im := Image{C: size.channels, H: 1, W: size.pixels, Lanes: plan.Padded(size.rows)}
			n, k := Norm{Image: im, Eps: 1e-5, Momentum: 0.1, Rows: size.rows}, plan.Padded(size.channels)
			take := slab(8*im.Len() + plan.NormWindowLen(im) + 100*k + 4096)
			x, short := kept(rng, take, im.Len())
			s := NormState{
				Gamma: random(rng, k), Mean: random(rng, k), Var: random(rng, k), Scale: take(k), Offset: take(k), Third: take(k),
				Sums: take(32 * k), Mask: make([]float32, im.Lanes),
			}
			for l := range size.rows {
				s.Mask[l] = 1
			}
			dy, want, window := take(im.Len()), take(im.Len()), take(plan.NormWindowLen(im))
			copy(dy, random(rng, len(dy)))
			copy(want, dy)
			a, b := [2][]float32{take(k), take(k)}, [2][]float32{take(k), take(k)}
			team.Run(func(w *Worker) {
				w.NormBack(&n, &s, x, x, want, a[0], a[1])
				w.NormBackHalves(&n, &s, short, dy, b[0], b[1], window)
			})
			alike(t, "dx", dy, want)
			alike(t, "gamma", b[0], a[0][:size.channels])
			alike(t, "beta", b[1], a[1][:size.channels])
		}
	})
}

func TestSingleValuesGoBackThroughHalves(t *testing.T) {
	everyTeam(t, func(t *testing.T, team *Team, rng *rand.Rand) {
		const n = 3*blockHalves + 48
		take := slab(8 * n)
		y, short := kept(rng, take, n)
		dy, want := take(n), take(n)
		for name, f := range map[string]func(w *Worker) func(dst, dy, y []float32){
			"relu":    func(w *Worker) func(dst, dy, y []float32) { return w.ReLUBack },
			"tanh":    func(w *Worker) func(dst, dy, y []float32) { return w.TanhBack },
			"sigmoid": func(w *Worker) func(dst, dy, y []float32) { return w.SigmoidBack },
		} {
			copy(dy, random(rng, n))
			copy(want, dy)
			team.Run(func(w *Worker) {
				f(w)(want, want, y)
				w.BackHalves(f(w), dy, short)
			})
			alike(t, name, dy, want)
		}
	})
}

// The generator has these offsets as numbers.
func TestArgumentsOfHalvesLieWhereTheAssemblyLooks(t *testing.T) {
	var a halvesArgs
	for name, c := range map[string]struct{ got, want uintptr }{
		"rows": {unsafe.Offsetof(a.rows), 16}, "n": {unsafe.Offsetof(a.n), 24}, "ds": {unsafe.Offsetof(a.ds), 32},
		"ss": {unsafe.Offsetof(a.ss), 40},
	} {
		if c.got != c.want {
			t.Errorf("%s lies at %d, not at %d", name, c.got, c.want)
		}
	}
}
