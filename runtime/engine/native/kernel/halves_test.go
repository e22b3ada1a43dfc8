package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/disdel/disdel/runtime/engine/native/plan"
	"github.com/disdel/disdel/runtime/engine/native/winograd"
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

// Rounding has Winograd's products forward and back take rounded weights, as if the caller had rounded them.
func TestWinogradRoundsItsWeights(t *testing.T) {
	everyTeam(t, func(t *testing.T, team *Team, rng *rand.Rand) {
		for _, size := range []struct{ m, channels, filters, side int }{
			{2, 32, 48, 5}, {4, 32, 48, 6}, {3, 32, 48, 7}, {2, 64, 16, 2},
		} {
			m, in := winograd.Square(winograd.Short(size.m, 3)), Image{C: size.channels, H: size.side, W: size.side, Lanes: 16}
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
