package checkup

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/disdel/disdel/runtime/engine/native/kernel"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// Report is what was found.
type Report struct {
	Machine kernel.Machine `json:"processor"`
	Path    string         `json:"kernels"` // that the engine computes with
	Paths   []string       `json:"paths"`   // that this processor has, the fastest first
	Blocks  kernel.Blocks  `json:"blocks"`
	Peak    float64        `json:"peakGflops"` // multiply-adds on registers alone; 0 for plain Go, which has no such loop
	Product float64        `json:"productGflops"`
	Layers  []Layer        `json:"layers"`
	Trials  []Trial        `json:"trials"`
	Advice  string         `json:"advice,omitempty"` // where other blocks are faster by a tenth
}

// Layer is a convolution's speed, counted in the multiply-adds of its definition: beyond the peak where Winograd's
// algorithm computes it.
type Layer struct {
	Name   string  `json:"name"`
	Gflops float64 `json:"gflops"`
	Exact  float64 `json:"exactGflops"` // by the definition
}

// Trial is the speed of a layer of many weights with other blocks.
type Trial struct {
	Weights int     `json:"weights"`
	Gflops  float64 `json:"gflops"`
}

// Examine measures for about a second and a half. It returns Invalid for a path or blocks of the environment that do
// not exist.
func Examine() (Report, error) {
	set, err := kernel.Choose()
	if err != nil {
		return Report{}, err
	}
	r := Report{Machine: kernel.ReadMachine("/"), Path: set.Name, Blocks: set.Blocks}
	for _, s := range kernel.Sets() {
		r.Paths = append(r.Paths, s.Name)
	}
	r.Peak, r.Product = peak(set), product(set)
	for _, l := range []struct{ channels, side int }{{64, 32}, {128, 16}, {256, 8}} {
		c := layer(l.channels, l.side)
		r.Layers = append(r.Layers, Layer{
			Name: fmt.Sprintf("3x3, %d channels, %dx%d pixels", l.channels, l.side, l.side), Exact: forward(set, c, false),
			Gflops: forward(set, c, true),
		})
	}
	for _, n := range []int{set.Blocks.Weights / 2, set.Blocks.Weights, set.Blocks.Weights * 2} {
		other := set
		other.Blocks.Weights = n
		r.Trials = append(r.Trials, Trial{n, forward(other, layer(512, 4), false)})
	}
	r.Advice = r.advice()
	return r, nil
}

func (r Report) advice() string {
	best := slices.MaxFunc(r.Trials, func(a, b Trial) int {
		if a.Gflops < b.Gflops {
			return -1
		}
		return 1
	})
	chosen := slices.IndexFunc(r.Trials, func(t Trial) bool { return t.Weights == r.Blocks.Weights })
	if chosen < 0 || best.Gflops <= 1.1*r.Trials[chosen].Gflops {
		return ""
	}
	return fmt.Sprintf("passes of %d weights are faster here: if they are again while nothing else runs, "+
		"set %s=%d for actions",
		best.Weights, kernel.BlocksVariable, best.Weights)
}

// Print writes the report for people.
func (r Report) Print(w io.Writer) {
	fmt.Fprintf(w, "processor  %s (%s, family %d, model %d)\n", r.Machine.Name, r.Machine.Vendor, r.Machine.Family,
		r.Machine.Model)
	fmt.Fprintf(w, "caches     %v, %v and %v\n", r.Machine.First, r.Machine.Second, r.Machine.Third)
	fmt.Fprintf(w, "kernels    %s, of %v\n", r.Path, r.Paths)
	fmt.Fprintf(w, "blocks     %d weights a pass, by %s\n", r.Blocks.Weights, r.Blocks.Basis)
	fmt.Fprintf(w, "peak       %.0f GFLOP/s\n", r.Peak)
	fmt.Fprintf(w, "product    %.0f GFLOP/s%s\n", r.Product, r.share(r.Product))
	for _, l := range r.Layers {
		fmt.Fprintf(w, "layer      %s: %.0f GFLOP/s by the definition%s, %.0f as planned\n", l.Name, l.Exact,
			r.share(l.Exact),
			l.Gflops)
	}
	for _, t := range r.Trials {
		fmt.Fprintf(w, "blocks of  %d weights: %.0f GFLOP/s\n", t.Weights, t.Gflops)
	}
	if r.Advice != "" {
		fmt.Fprintf(w, "advice     %s\n", r.Advice)
	}
}

func (r Report) share(gflops float64) string {
	if r.Peak == 0 {
		return ""
	}
	return fmt.Sprintf(", %.0f %% of the peak", 100*gflops/r.Peak)
}

// speed is the fastest of some turns, each of at least so long, in units of n operations a nanosecond.
func speed(n float64, f func()) (best float64) {
	f() // caches, and pages that nobody had touched
	for range 3 {
		turns, start := 0, time.Now()
		for time.Since(start) < 30*time.Millisecond {
			f()
			turns++
		}
		best = max(best, float64(turns)*n/float64(time.Since(start).Nanoseconds()))
	}
	return best
}

func peak(s kernel.Set) float64 {
	const turns = 1 << 16
	n := s.Peak(1)
	return speed(turns*n, func() { s.Peak(turns) })
}

func product(s kernel.Set) (gflops float64) {
	const n = 384
	kernel.NewTeam(s, 1, 1).Run(func(w *kernel.Worker) {
		a := kernel.Matrix{Data: make([]float32, n*n), Stride: n}
		c, scratch := make([]float32, n*n), make([]float32, kernel.GemmLen())
		gflops = speed(2*n*n*n, func() { w.Gemm(n, n, n, a, a, c, n, false, scratch) })
	})
	return gflops
}

// layer is a 3 x 3 convolution at stride 1 on 16 rows.
func layer(channels, side int) plan.Conv {
	return plan.Conv{
		In: plan.Image{C: channels, H: side, W: side, Lanes: 16}, Filters: channels, KH: 3, KW: 3, SH: 1, SW: 1, DH: 1, DW: 1,
		Top: 1, Left: 1, OH: side, OW: side, Groups: 1,
	}
}

// forward is a convolution's speed, in multiply-adds of its definition; planned: by the algorithm that a plan chooses.
func forward(s kernel.Set, c plan.Conv, planned bool) (gflops float64) {
	if planned {
		c.Choose()
	}
	const slack = 4096
	x, y := make([]float32, c.In.Len()+slack), make([]float32, c.Out().Len()+slack)
	weights, scratch := make([]float32, c.WeightLen()), make([]float32, c.ForwardLen())
	met := 3*c.OH - 2 // taps of a side that meet the image
	kernel.NewTeam(s, 1, 1).Run(func(w *kernel.Worker) {
		do := func() { w.Forward(&c, x, weights, nil, y) }
		if c.Tile > 0 {
			do = func() { w.WinogradForward(&c, x, weights, nil, y, scratch) }
		}
		gflops = speed(2*float64(met*met*c.In.C*c.Filters*c.In.Lanes), do)
	})
	return gflops
}
