package kernel

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// pairedTeams runs f with the paths that have kernels for bfloat16, on one thread and on three.
func pairedTeams(t *testing.T, f func(t *testing.T, team *Team, rng *rand.Rand)) {
	ran := false
	for _, s := range Sets() {
		if s.f.pairs[2][1] == nil {
			continue
		}
		ran = true
		for _, threads := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s/%d", s.Name, threads), func(t *testing.T) {
				f(t, NewTeam(s, threads, 64), rand.New(rand.NewPCG(9, uint64(threads))))
			})
		}
	}
	if !ran {
		t.Skip("this processor has no AVX512-BF16")
	}
}

// shortValues are numbers that are bfloat16, of any size but the smallest.
func shortValues(rng *rand.Rand, x []float32) {
	for i := range x {
		x[i] = rounded(float32(rng.NormFloat64()))
	}
}

// Tiles of pairs are those of single steps, bit for bit: every height and width, odd and even numbers of steps, all
// three loops, strides, every way to begin and to end.
func TestPairsAreProducts(t *testing.T) {
	pairedTeams(t, func(t *testing.T, team *Team, rng *rand.Rand) {
		w := team.workers[0]
		for range 400 {
			rows, vectors := w.tiles[rng.IntN(len(w.tiles))], 1+rng.IntN(2)
			k, middle, outer := 1+rng.IntN(9), 1+rng.IntN(3), 1+rng.IntN(3)
			rs, ks, ldb := 1+rng.IntN(20), 1+rng.IntN(20), 16*(2+rng.IntN(2))
			am, bm, ao, bo := rng.IntN(9), 16*rng.IntN(3), rng.IntN(9), 16*rng.IntN(3)
			a, b := make([]float32, 8*20+9*20*9+999), make([]float32, 9*9*48+999)
			bias, c := make([]float32, 32), make([]float32, 8*40)
			for _, x := range [][]float32{a, b, bias, c} {
				shortValues(rng, x)
			}
			copy(c, random(rng, len(c))) // sums are no bfloat16
			want := append([]float32(nil), c...)
			mode, relu, stored := rng.IntN(4), rng.IntN(2), 1+rng.IntN(rows)
			of := func(c []float32) *productArgs {
				return &productArgs{
					a: p(a, 0), b: p(b, 0), c: p(c, 0), rs: int64(4 * rs), ks: int64(4 * ks), ldb: int64(4 * ldb),
					k: int64(k), middle: int64(middle), am: int64(4 * am), bm: int64(4 * bm), outer: int64(outer),
					ao: int64(4 * ao), bo: int64(4 * bo), ldc: 160, rows: int64(stored), mode: int64(mode),
					bias: p(bias, 0), c2: 64, relu: int64(relu),
				}
			}
			w.f.product[rows][vectors](of(want))
			w.f.pairs[rows][vectors](of(c))
			alike(t, fmt.Sprintf("%dx%d of %d, %d and %d steps, mode %d", rows, vectors, k, middle, outer, mode), c, want)
		}
	})
}

// Convolutions of bfloat16 are those of the same values as float32, forward and both gradients, bit for bit, on one
// thread and on three.
func TestConvolutionsOfPairsAreThoseOfValues(t *testing.T) {
	pairedTeams(t, func(t *testing.T, team *Team, rng *rand.Rand) {
		for range 60 {
			c, _, _, _ := geometry(rng)
			x, dy := padded(c.In.Len()), padded(c.Out().Len())
			weights, scratch := padded(c.WeightLen()), padded(c.ScratchLen())
			shortValues(rng, x[:c.In.Len()])
			shortValues(rng, dy[:c.Out().Len()])
			ImportWeights(&c, weights[:c.WeightLen()], func() []float32 {
				raw := make([]float32, c.Filters*c.Inner()*c.Taps())
				shortValues(rng, raw)
				return raw
			}())
			var out [2][3][]float32
			for i, rounds := range []bool{false, true} {
				y, dx, dw := padded(c.Out().Len()), padded(c.In.Len()), padded(c.WeightLen())
				team.Run(func(w *Worker) {
					w.Rounding(rounds)
					w.Forward(&c, x, weights, nil, y)
					w.BackData(&c, dy, weights, dx, false)
					w.Sync()
					w.BackWeights(&c, x, dy, dw, scratch)
					w.Rounding(false)
				})
				out[i] = [3][]float32{y, dx, dw}
			}
			for i, what := range []string{"outputs", "data", "weights"} {
				alike(t, fmt.Sprintf("%s of %+v", what, c), out[1][i], out[0][i])
			}
		}
	})
}

// A path with instructions of bfloat16's own differs from its plain path only in pairs: tests of other kernels leave it
// out.
func TestPathsOfBF16DifferOnlyInPairs(t *testing.T) {
	all := Sets()
	for _, s := range all {
		if s.plain == "" {
			continue
		}
		plain := all[slices.IndexFunc(all, func(other Set) bool { return other.Name == s.plain })]
		s.Name, s.plain, s.f.pairs = plain.Name, plain.plain, plain.f.pairs
		if got, want := fmt.Sprint(s), fmt.Sprint(plain); got != want {
			t.Errorf("other kernels than those of %s:\n%s\n%s", plain.Name, got, want)
		}
	}
}
