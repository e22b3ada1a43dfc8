package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// naive is a convolution straight from its definition, in float64, on [rows][C][H][W].
type naive struct {
	c                      *Conv
	rows                   int
	x, w, b, y, dy, dx, dw []float64
}

func (n *naive) each(f func(y, x, w int)) {
	c := n.c
	inner, outer := c.Inner(), c.Outer()
	for r := range n.rows {
		for k := range c.Filters {
			for i := range c.OH {
				for j := range c.OW {
					for ch := range inner {
						for a := range c.KH {
							for b := range c.KW {
								h, v := i*c.SH-c.Top+a*c.DH, j*c.SW-c.Left+b*c.DW
								if h < 0 || v < 0 || h >= c.In.H || v >= c.In.W {
									continue
								}
								f(((r*c.Filters+k)*c.OH+i)*c.OW+j, ((r*c.In.C+k/outer*inner+ch)*c.In.H+h)*c.In.W+v, ((k*inner+ch)*c.KH+a)*c.KW+
									b)
							}
						}
					}
				}
			}
		}
	}
}

func random(rng *rand.Rand, n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = rng.Float32()*2 - 1
	}
	return out
}

func wide(x []float32) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}

func near(t *testing.T, what string, got []float32, want []float64, terms int) {
	t.Helper()
	bound := 3e-7 * math.Sqrt(float64(terms)) * 8
	for i := range want {
		if d := math.Abs(float64(got[i]) - want[i]); !(d <= bound*(1+math.Abs(want[i]))) {
			t.Fatalf("%s: value %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

// padded is an array with room behind it, as the engine's slab has.
func padded(n int) []float32 { return make([]float32, n+2048) }

func geometry(rng *rand.Rand) (c Conv, rows, bottom, right int) {
	for {
		c = Conv{
			KH: 1 + rng.IntN(5), KW: 1 + rng.IntN(5), SH: 1 + rng.IntN(3), SW: 1 + rng.IntN(3), DH: 1 + rng.IntN(2), DW: 1 +
				rng.IntN(2),
			Top: rng.IntN(4), Left: rng.IntN(4), Groups: 1, Filters: 1 + rng.IntN(40),
		}
		rows, bottom, right = 1+rng.IntN(40), rng.IntN(4), rng.IntN(4)
		c.In = Image{C: 1 + rng.IntN(40), H: 1 + rng.IntN(9), W: 1 + rng.IntN(9), Lanes: plan.Padded(rows)}
		if rng.IntN(3) == 0 {
			c.Groups = 1 + rng.IntN(3)
			c.In.C, c.Filters = c.Groups*(1+rng.IntN(9)), c.Groups*(1+rng.IntN(20))
		}
		if rng.IntN(4) == 0 { // the path for few filters
			c.Groups, c.Filters, c.DH, c.DW, c.Top, c.Left, bottom, right = 1, 1+rng.IntN(11), 1, 1, 0, 0, 0, 0
			c.In = Image{C: 1 + rng.IntN(7), H: 6 + rng.IntN(9), W: 6 + rng.IntN(9), Lanes: plan.Padded(rows)}
		}
		oh, ow := c.In.H+c.Top+bottom-(c.KH-1)*c.DH-1, c.In.W+c.Left+right-(c.KW-1)*c.DW-1
		if oh < 0 || ow < 0 {
			continue
		}
		c.OH, c.OW = oh/c.SH+1, ow/c.SW+1
		return c, rows, bottom, right
	}
}

// some is how many of n drawn cases a test takes: with -short, as under an emulator, a quarter. `make test-arm64 ALL=1`
// takes all there, too.
func some(n int) int {
	if testing.Short() {
		return (n + 3) / 4
	}
	return n
}

// plainSets are the sets of this processor without those that have only pairs of their own.
func plainSets() []Set {
	return slices.DeleteFunc(Sets(), func(s Set) bool { return s.plain != "" })
}
