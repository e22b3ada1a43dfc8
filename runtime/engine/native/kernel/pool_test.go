package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// Pools are their definitions; of equal values the first gets the gradient.
func TestPoolsAreTheirDefinitions(t *testing.T) {
	each(t, func(t *testing.T, w *Worker, rng *rand.Rand) {
		for range 40 {
			g := Pool{
				KH: 1 + rng.IntN(3), KW: 1 + rng.IntN(3), SH: 1 + rng.IntN(3), SW: 1 + rng.IntN(3), DH: 1, DW: 1,
				CountPad: rng.IntN(2) == 0,
			}
			g.In = Image{C: 1 + rng.IntN(9), H: 3 + rng.IntN(6), W: 3 + rng.IntN(6), Lanes: 16 * (1 + rng.IntN(2))}
			g.Top, g.Left = rng.IntN(g.KH), rng.IntN(g.KW)
			g.OH, g.OW = (g.In.H+2*g.Top-g.KH)/g.SH+1, (g.In.W+2*g.Left-g.KW)/g.SW+1
			x, dy := random(rng, g.In.Len()), random(rng, g.Out().Len())
			for i := range x {
				x[i] = float32(math.Round(float64(x[i] * 3))) // ties
			}
			top, mean := make([]float32, g.Out().Len()), make([]float32, g.Out().Len())
			dTop, dMean := make([]float32, len(x)), make([]float32, len(x))
			w.MaxPool(&g, x, top)
			w.AvgPool(&g, x, mean)
			w.MaxPoolBack(&g, x, top, dy, dTop)
			w.AvgPoolBack(&g, dy, dMean)
			wantTop, wantMean, wantDTop, wantDMean := make([]float64, len(top)), make([]float64, len(mean)),
				make([]float64, len(x)), make([]float64, len(x))
			for o := range top {
				px, at := o/g.In.Pixel(), o%g.In.Pixel()
				best, first, sum, n := math.Inf(-1), -1, 0.0, 0
				var seen []int
				for r := range g.KH {
					for q := range g.KW {
						h, v := px/g.OW*g.SH-g.Top+r, px%g.OW*g.SW-g.Left+q
						if h < 0 || v < 0 || h >= g.In.H || v >= g.In.W {
							continue
						}
						i := (h*g.In.W+v)*g.In.Pixel() + at
						if float64(x[i]) > best {
							best, first = float64(x[i]), i
						}
						sum, n, seen = sum+float64(x[i]), n+1, append(seen, i)
					}
				}
				if g.CountPad {
					n = g.KH * g.KW
				}
				wantTop[o], wantMean[o] = best, sum/float64(n)
				wantDTop[first] += float64(dy[o])
				for _, i := range seen {
					wantDMean[i] += float64(dy[o]) / float64(n)
				}
			}
			for name, c := range map[string]struct {
				got  []float32
				want []float64
			}{
				"max": {top, wantTop}, "average": {mean, wantMean}, "max back": {dTop, wantDTop},
				"average back": {dMean, wantDMean},
			} {
				close(t, fmt.Sprintf("%s %+v", name, g), c.got, func(i int) float64 { return c.want[i] })
			}
		}
	})
}
