package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/disdel/disdel/runtime/engine/native/plan"
	"github.com/disdel/disdel/runtime/engine/native/winograd"
)

// BenchmarkAlgorithms times convolutions that are drawn by each algorithm there is for them, forward and back, and
// tells what is lost because the planner does not choose the fastest, one forward and for the weights, one for the
// data: the costs in package plan are fitted to its lines. `go test -bench Algorithms -benchtime 1x`.
func BenchmarkAlgorithms(b *testing.B) {
	rng := rand.New(rand.NewPCG(12, 1))
	w := NewTeam(Sets()[0], 1, 1).workers[0]
	var chosen, best time.Duration
	for range 60 {
		c := drawnShape(rng)
		planned, times := c, map[winograd.Tile][3]time.Duration{}
		planned.Choose()
		fmt.Printf("%3d -> %3d channels, %dx%d by %dx%d, %d rows:", c.In.C, c.Filters, c.In.H, c.In.W, c.KH, c.KW, c.In.Lanes)
		least := [2]time.Duration{math.MaxInt64, math.MaxInt64}
		for _, t := range append([]winograd.Tile{{}}, winograd.Tiles()...) {
			if t.Is() && !c.Fits(t) {
				continue
			}
			got := timesOf(w, c, t)
			times[t] = got
			least = [2]time.Duration{min(least[0], got[0]+got[2]), min(least[1], got[1])}
			fmt.Printf(" %v %d+%d+%d", t, got[0].Microseconds(), got[1].Microseconds(), got[2].Microseconds())
		}
		fmt.Printf(": %v, %v\n", planned.Tile, planned.BackTile)
		chosen += times[planned.Tile][0] + times[planned.BackTile][1] + times[planned.Tile][2]
		best += least[0] + least[1]
	}
	for b.Loop() { // what took its time is done
	}
	b.ReportMetric(100*(float64(chosen)/float64(best)-1), "%lost")
}

// drawnShape is a convolution with padding to its own size.
func drawnShape(rng *rand.Rand) plan.Conv {
	channels := func() int { return 16 << rng.IntN(5) }
	c := plan.Conv{
		In:      plan.Image{C: channels(), H: 2 + rng.IntN(11), Lanes: 16 * (1 + rng.IntN(4))},
		Filters: channels(), KH: 3, KW: 3, SH: 1, SW: 1, DH: 1, DW: 1, Groups: 1,
	}
	c.In.W = c.In.H
	switch rng.IntN(4) {
	case 0:
		c.KH, c.KW = 5, 5
	case 1:
		c.KH, c.KW, c.In.H, c.In.W = 1, 7, 4, 4
	case 2:
		c.In.H, c.In.W = 2, 2
	}
	c.Top, c.Left, c.OH, c.OW = c.KH/2, c.KW/2, c.In.H, c.In.W
	return c
}

// timesOf are those of a convolution forward, and back to its input and to its weights, by an algorithm, the least of
// some.
func timesOf(w *Worker, c Conv, t winograd.Tile) (out [3]time.Duration) {
	c.Tile, c.BackTile = t, t
	x, y, dx, dy := padded(c.In.Len()), padded(c.Out().Len()), padded(c.In.Len()), padded(c.Out().Len())
	wt, dw := make([]float32, c.WeightLen()), make([]float32, c.WeightLen())
	scratch := make([]float32, max(c.ForwardLen(), c.BackDataLen(), c.BackWeightsLen()))
	for turn := range 8 {
		for i, do := range []func(){
			func() { w.Forward(&c, x, wt, nil, y) },
			func() { w.BackData(&c, dy, wt, dx, false) },
			func() { w.BackWeights(&c, x, dy, dw, scratch) },
			func() { w.WinogradForward(&c, x, wt, nil, y, scratch) },
			func() { w.WinogradBackData(&c, dy, wt, dx, scratch, false) },
			func() { w.WinogradBackWeights(&c, x, dy, dw, scratch) },
		} {
			if t.Is() != (i >= 3) {
				continue
			}
			start := time.Now()
			do()
			if d := time.Since(start); turn == 0 || d < out[i%3] {
				out[i%3] = d
			}
		}
	}
	return out
}
