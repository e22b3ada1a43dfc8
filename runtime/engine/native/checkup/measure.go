package checkup

import (
	"time"

	"github.com/disdel/disdel/runtime/engine/native/kernel"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// work is something to measure: so many operations.
type work struct {
	operations float64
	do         func()
}

// turn is its speed in operations a nanosecond, done for so long at least.
func (w work) turn(minimum time.Duration) float64 {
	turns, start := 0, time.Now()
	for time.Since(start) < minimum {
		w.do()
		turns++
	}
	return float64(turns) * w.operations / float64(time.Since(start).Nanoseconds())
}

// speed is the fastest of some turns.
func (w work) speed() (best float64) {
	w.do() // caches, and pages that nobody had touched
	for range 3 {
		best = max(best, w.turn(30*time.Millisecond))
	}
	return best
}

// trials measures the blocks that could have been chosen, those of a kind in turns, so that whatever else the machine
// does meets all of them alike.
func trials(s kernel.Set) (all []Trial) {
	for _, c := range s.Choices() {
		first, works := len(all), []work{}
		for _, v := range c.Values {
			with := s.With(c.Block, v)
			all = append(all, Trial{Block: c.Block, Value: v, Chosen: with.Blocks == s.Blocks})
			works = append(works, tried(with, c.Block))
		}
		for range 5 {
			for i, w := range works {
				t := &all[first+i]
				t.Gflops = max(t.Gflops, w.turn(20*time.Millisecond))
			}
		}
	}
	return all
}

// tried is what shows a kind of block: a layer of many weights, the way back to channels, a large product.
func tried(s kernel.Set, block string) work {
	switch block {
	case "weights":
		return forward(s, layer(512, 4, 16), false)
	case "rows":
		return back(s, layer(128, 16, 32))
	default:
		return product(s)
	}
}

// peak is multiply-adds on registers.
func peak(s kernel.Set) work {
	const turns = 1 << 16
	return work{turns * s.Peak(1), func() { s.Peak(turns) }}
}

// product is a large matrix product.
func product(s kernel.Set) work {
	const n = 512
	a := kernel.Matrix{Data: make([]float32, n*n), Stride: n}
	c, scratch, team := make([]float32, n*n), make([]float32, kernel.GemmLen()), kernel.NewTeam(s, 1, 1)
	return work{2 * n * n * n, func() {
		team.Run(func(w *kernel.Worker) { w.Gemm(n, n, n, a, a, c, n, false, scratch) })
	}}
}

// layer is a 3 x 3 convolution at stride 1.
func layer(channels, side, rows int) plan.Conv {
	return plan.Conv{
		In: plan.Image{C: channels, H: side, W: side, Lanes: rows}, Filters: channels, KH: 3, KW: 3, SH: 1, SW: 1, DH: 1,
		DW: 1, Top: 1, Left: 1, OH: side, OW: side, Groups: 1,
	}
}

// slack is what kernels may read behind an image.
const slack = 4096

// operations are a layer's by its definition: 3 taps of a side meet the image, but 2 at its ends.
func operations(c *plan.Conv) float64 {
	met := 3*c.OH - 2
	return 2 * float64(met*met*c.In.C*c.Filters*c.In.Lanes)
}

// forward is a convolution; planned: by the algorithm that a plan chooses.
func forward(s kernel.Set, c plan.Conv, planned bool) work {
	if planned {
		c.Choose()
	}
	x, y := make([]float32, c.In.Len()+slack), make([]float32, c.Out().Len()+slack)
	weights, scratch := make([]float32, c.WeightLen()), make([]float32, c.ForwardLen())
	team := kernel.NewTeam(s, 1, 1)
	return work{operations(&c), func() {
		team.Run(func(w *kernel.Worker) {
			if c.Tile.Is() {
				w.WinogradForward(&c, x, weights, nil, y, scratch)
			} else {
				w.Forward(&c, x, weights, nil, y)
			}
		})
	}}
}

// back is the gradient of a convolution's input, by its definition.
func back(s kernel.Set, c plan.Conv) work {
	dx, dy := make([]float32, c.In.Len()+slack), make([]float32, c.Out().Len()+slack)
	weights, team := make([]float32, c.WeightLen()), kernel.NewTeam(s, 1, 1)
	return work{operations(&c), func() {
		team.Run(func(w *kernel.Worker) { w.BackData(&c, dy, weights, dx, false) })
	}}
}
