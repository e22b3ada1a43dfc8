package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

func shortMoments(n int, squares bool) ShortMoments {
	return ShortMomentsOf(make([]float32, plan.MomentValues(n)), n, squares)
}

// The codes of a block are the nearest in their table, by a search through all of it. An error is at most half of the
// widest gap: 0.71 % of the block's largest magnitude, 0.36 % for squares.
func TestShortMomentsAreTheNearest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		squares := rapid.Bool().Draw(t, "squares")
		n, scale := rapid.IntRange(1, 600).Draw(t, "n"), rapid.IntRange(-90, 120).Draw(t, "scale")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		m, x, y := shortMoments(n, squares), make([]float32, n), make([]float32, n)
		for i := range x {
			x[i] = float32(math.Ldexp(math.Pow(10, -9*rng.Float64()), scale))
			if !squares && rng.IntN(2) == 0 {
				x[i] = -x[i]
			}
		}
		m.Write(x, 0)
		m.Read(y, 0)
		table, bound := signedTable, 0.00704
		if squares {
			table, bound = squaresTable, 0.00352
		}
		for i, v := range x {
			block := x[i/plan.MomentBlock*plan.MomentBlock : min(n, (i/plan.MomentBlock+1)*plan.MomentBlock)]
			var most float64
			for _, b := range block {
				most = max(most, math.Abs(float64(b)))
			}
			if most < leastScale {
				if y[i] != 0 {
					t.Fatalf("%v of a block that is zero became %v", v, y[i])
				}
				continue
			}
			off, least := math.Abs(float64(y[i])-float64(v))/most, math.Inf(1)
			for k, c := range table.values[:] {
				if c > 0 || k == 0 {
					least = min(least, math.Abs(float64(c)-math.Abs(float64(v))/most))
				}
			}
			risen := squares && float64(v)/most < 0.5e-7 && y[i] == table.values[1]*float32(most)
			if !risen && off > least+1e-7*math.Abs(float64(v))/most+1e-12 || off > bound {
				t.Fatalf("%v became %v in a block of at most %v: %v off, the nearest is %v", v, y[i], most, off, least)
			}
			if squares && !(y[i] > 0) || math.Signbit(float64(v)) != math.Signbit(float64(y[i])) && y[i] != 0 {
				t.Fatalf("%v became %v", v, y[i])
			}
		}
		again := shortMoments(n, squares)
		again.Write(y, 0)
		if !slices.Equal(again.Codes, m.Codes) || !slices.Equal(again.Scales, m.Scales) {
			t.Fatal("what was read and written again has other bits")
		}
	})
}

// Blocks of zeros and of the smallest numbers are zero; values that are no numbers stay none, and nothing panics.
func TestShortMomentsOfOddValues(t *testing.T) {
	for _, squares := range []bool{false, true} {
		m, y := shortMoments(16, squares), make([]float32, 16)
		for _, v := range []float32{0, 1e-38, math.SmallestNonzeroFloat32} {
			m.Write([]float32{v, v / 2}, 0)
			if m.Read(y, 0); y[0] != 0 || y[1] != 0 {
				t.Errorf("%v became %v", v, y[:2])
			}
		}
		for _, v := range []float64{math.NaN(), math.Inf(1)} {
			m.Write([]float32{1, float32(v)}, 0)
			if m.Read(y, 0); y[1]-y[1] == 0 {
				t.Errorf("%v became %v", v, y[:2])
			}
		}
	}
}

// No two magnitudes have their middle where the table cannot tell them apart.
func TestMiddlesOfShortMomentsAreApart(t *testing.T) {
	for _, table := range []*dynamicTable{signedTable, squaresTable} {
		last := uint32(0)
		for i, v := range table.middle[:] {
			if v == math.MaxInt32 {
				break
			}
			bucket := v >> lower
			if bucket == last {
				t.Fatalf("middles %d and %d have the same upper bits", i-1, i)
			}
			last = bucket
		}
	}
}

// A step with moments of 8 bits is one with float32 moments that were rounded before and after, on any number of
// workers.
func TestUpdatesWithShortMoments(t *testing.T) {
	u := Update{Optimizer: disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.01}}, Rate: 0.01, Scale: 1}
	each(t, func(t *testing.T, w *Worker, rng *rand.Rand) {
		const n = 5*plan.MomentBlock + 48
		want := [3][]float32{random(rng, n), make([]float32, n), make([]float32, n)}
		teams := []*Team{NewTeam(w.Set, 1, 1), NewTeam(w.Set, 3, 1)}
		moments := make([][]Moments, len(teams))
		x := make([][]float32, len(teams))
		for k := range teams {
			x[k], moments[k] = slices.Clone(want[0]), apart(n)
		}
		for u.Step = 1; u.Step < 5; u.Step++ {
			g := random(rng, n)
			w.Update(&u, want[0], g, want[1], want[2])
			for i, squares := range []bool{false, true} {
				m := shortMoments(n, squares)
				m.Write(want[i+1], 0)
				m.Read(want[i+1], 0)
			}
			for k, team := range teams {
				team.Run(func(w *Worker) { w.UpdateApart(&u, x[k], g, moments[k], 0) })
				if !slices.Equal(x[k], want[0]) {
					t.Fatalf("step %d, %d workers: other weights", u.Step, team.Size())
				}
			}
		}
	})
}

// apart are the moments of 8 bits of Adam for n weights.
func apart(n int) []Moments {
	first, second := shortMoments(n, false), shortMoments(n, true)
	return []Moments{&first, &second}
}

func BenchmarkUpdateApart(b *testing.B) {
	const n = 1 << 16
	u := Update{Optimizer: disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.01}}, Rate: 0.01, Scale: 1, Step: 1}
	rng := rand.New(rand.NewPCG(1, 2))
	w := NewTeam(Sets()[0], 1, 1).workers[0]
	x, g, m, v := random(rng, n), random(rng, n), make([]float32, n), make([]float32, n)
	short := apart(n)
	b.Run("float32", func(b *testing.B) {
		for b.Loop() {
			w.Update(&u, x, g, m, v)
		}
	})
	b.Run("int8", func(b *testing.B) {
		for b.Loop() {
			w.UpdateApart(&u, x, g, short, 0)
		}
	})
}
