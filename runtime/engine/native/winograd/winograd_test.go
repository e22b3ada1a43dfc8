package winograd_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/disdel/disdel/runtime/engine/native/winograd"
)

func times(m winograd.Matrix, x []float64) []float64 {
	out := make([]float64, len(m))
	for i, row := range m {
		for j, v := range row {
			out[i] += v * x[j]
		}
	}
	return out
}

func drawn(rng *rand.Rand, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = rng.NormFloat64()
	}
	return out
}

// Each side's algorithm is a convolution, exactly: of a tile with its pixels around it, and of a whole side, around
// which there is nothing.
func TestSidesAreConvolutions(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, s := range []winograd.Side{
		winograd.Short(1, 1), winograd.Short(2, 3), winograd.Short(3, 3), winograd.Short(4, 3), winograd.Short(3, 5),
		winograd.Short(2, 2), winograd.Short(4, 4), winograd.Whole(2), winograd.Whole(3), winograd.Whole(4),
	} {
		x, w := drawn(rng, s.In), drawn(rng, s.Taps)
		m := s.Matrices()
		a, b := times(m.Input, x), times(m.Kernel, w)
		for i := range a {
			a[i] *= b[i]
		}
		for o, got := range times(m.Output, a) {
			var want float64
			for tap := range w {
				at := o + tap
				if s.IsWhole() {
					at -= s.In - 1
				}
				if at >= 0 && at < s.In {
					want += w[tap] * x[at]
				}
			}
			if math.Abs(got-want) > 1e-12 {
				t.Errorf("%+v: output %d is %v, not %v", s, o, got, want)
			}
		}
	}
}

// The matrices of F(4, 3) are those of Lavin and Gray, 4.3, for the points 0, 1, -1, 2, -2 and infinity, with the signs
// of their later tables.
func TestMatricesAreThoseOfThePaper(t *testing.T) {
	m := winograd.Short(4, 3).Matrices()
	if got, want := fmt.Sprint(m.Input), "[[4 0 -5 0 1 0] [0 -4 -4 1 1 0] [0 4 -4 -1 1 0] [0 -2 -1 2 1 0] "+
		"[0 2 -1 -2 1 0] [0 4 0 -5 0 1]]"; got != want {
		t.Errorf("the image's matrix is %s, not %s", got, want)
	}
	if got, want := fmt.Sprint(m.Output), "[[1 1 1 1 1 0] [0 1 -1 2 -2 0] [0 1 1 4 4 0] [0 1 -1 8 -8 1]]"; got != want {
		t.Errorf("the output's matrix is %s, not %s", got, want)
	}
	for i, row := range [][]float64{
		{1. / 4, 0, 0},
		{-1. / 6, -1. / 6, -1. / 6},
		{-1. / 6, 1. / 6, -1. / 6},
		{1. / 24, 1. / 12, 1. / 6},
		{1. / 24, -1. / 12, 1. / 6},
		{0, 0, 1},
	} {
		for j, want := range row {
			if math.Abs(m.Kernel[i][j]-want) > 1e-15 {
				t.Errorf("element %d, %d of the kernel's matrix is %v, not %v", i, j, m.Kernel[i][j], want)
			}
		}
	}
}

// A tile has as many products as the definition's, or fewer: that is what it is for.
func TestTilesHaveFewerProducts(t *testing.T) {
	for _, tile := range winograd.Tiles() {
		if products := tile.Out() * tile.Taps(); tile.Points() >= products {
			t.Errorf("%v has %d products, and the definition %d", tile, tile.Points(), products)
		}
	}
}

// There is one assembly for a side, which knows whether it is along both sides of a tile, which are alike then, or
// along one.
func TestASideIsAlongBothOrAlongOne(t *testing.T) {
	ones := map[winograd.Side]bool{}
	for _, tile := range winograd.Tiles() {
		side, one := tile.Side()
		if !one && tile.H != tile.W {
			t.Errorf("%v has two sides, and the assembly of one", tile)
		}
		if before, seen := ones[side]; seen && before != one {
			t.Errorf("%v has the assembly of another kind of tile", tile)
		}
		ones[side] = one
	}
}

func ExampleTile() {
	t := winograd.Square(winograd.Short(4, 3))
	rows, columns := t.Across(9, 9)
	fmt.Println(t, "has", t.Points(), "products for", t.Out(), "outputs;", rows*columns, "tiles for 9x9")
	// Output: F(4x4, 3x3) has 36 products for 16 outputs; 9 tiles for 9x9
}

func ExampleSide_Matrices() {
	m := winograd.Whole(2).Matrices()
	fmt.Println(m.Input, m.Kernel, m.Output)
	// Output: [[1 0] [1 1] [1 -1]] [[1 0 -1] [0 0.5 0.5] [0 -0.5 0.5]] [[0 1 -1] [1 1 1]]
}
