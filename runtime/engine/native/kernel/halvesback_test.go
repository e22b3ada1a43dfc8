package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/disdel/disdel/runtime/engine/native/plan"
	"github.com/disdel/disdel/runtime/engine/native/winograd"
)

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
		for _, tile := range winograd.Tiles() {
			c, _ := winogradGeometry(rng, tile)
			c.ActiveRows = 0
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
		for name, f := range map[string]func(w *Worker, dst, dy, y []float32){
			"relu": (*Worker).ReLUBack, "tanh": (*Worker).TanhBack, "sigmoid": (*Worker).SigmoidBack,
			"hardSwish": (*Worker).HardSwishBack,
		} {
			copy(dy, random(rng, n))
			copy(want, dy)
			team.Run(func(w *Worker) {
				f(w, want, want, y)
				w.BackHalves(f, dy, short)
			})
			alike(t, name, dy, want)
		}
	})
}
