package checkup

import (
	"cmp"
	"fmt"
	"io"

	"github.com/disdel/disdel/runtime/engine/native/kernel"
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
	Best    bool           `json:"best"`             // no other block is faster by more than Margin
	Advice  string         `json:"advice,omitempty"` // where one is
}

// Margin is how much faster other blocks have to be, over the chosen ones, before they are worth a word: less than that
// two measurements of the same blocks may differ.
const Margin = 1.05

// Layer is a convolution's speed, counted in the multiply-adds of its definition: beyond the peak where Winograd's
// algorithm computes it.
type Layer struct {
	Name   string  `json:"name"`
	Gflops float64 `json:"gflops"`
	Exact  float64 `json:"exactGflops"` // by the definition
}

// Trial is the speed with one of the blocks that could have been chosen, the others being as they are.
type Trial struct {
	Block  string  `json:"block"` // weights, rows or depth, see kernel.Blocks
	Value  int     `json:"value"`
	Chosen bool    `json:"chosen"`
	Gflops float64 `json:"gflops"`
}

// Examine measures for about two seconds. It returns Invalid for a path or blocks of the environment that do not exist.
func Examine() (Report, error) {
	set, err := kernel.Choose()
	if err != nil {
		return Report{}, err
	}
	r := Report{Machine: kernel.ReadMachine("/"), Path: set.Name, Blocks: set.Blocks}
	for _, s := range kernel.Sets() {
		r.Paths = append(r.Paths, s.Name)
	}
	r.Peak, r.Product = peak(set).speed(), product(set).speed()
	for _, l := range []struct{ channels, side int }{{64, 32}, {128, 16}, {256, 8}} {
		c := layer(l.channels, l.side, 16)
		r.Layers = append(r.Layers, Layer{
			Name:  fmt.Sprintf("3x3, %d channels, %dx%d pixels", l.channels, l.side, l.side),
			Exact: forward(set, c, false).speed(), Gflops: forward(set, c, true).speed(),
		})
	}
	r.Trials = trials(set)
	r.Advice = r.advice()
	r.Best = r.Advice == ""
	return r, nil
}

// advice names the blocks that are faster than those that were chosen.
func (r Report) advice() string {
	better, found := r.Blocks, false
	for _, block := range []struct {
		name string
		to   *int
	}{{"weights", &better.Weights}, {"rows", &better.Rows}, {"depth", &better.Depth}} {
		var chosen, best Trial
		for _, t := range r.Trials {
			switch {
			case t.Block != block.name:
				continue
			case t.Chosen:
				chosen = t
			}
			if t.Gflops > best.Gflops {
				best = t
			}
		}
		if best.Gflops > Margin*chosen.Gflops {
			*block.to, found = best.Value, true
		}
	}
	if !found {
		return ""
	}
	return fmt.Sprintf("other blocks are faster here: if they are again while nothing else runs, set %s=%v for actions",
		kernel.BlocksVariable, better)
}

// Print writes the report for people.
func (r Report) Print(w io.Writer) {
	fmt.Fprintf(w, "processor  %s (%s, family %d, model %d)\n", r.Machine.Name, r.Machine.Vendor, r.Machine.Family,
		r.Machine.Model)
	fmt.Fprintf(w, "caches     %v, %v and %v\n", r.Machine.First, r.Machine.Second, r.Machine.Third)
	fmt.Fprintf(w, "kernels    %s, of %v\n", r.Path, r.Paths)
	fmt.Fprintf(w, "family     %s\n", cmp.Or(r.Blocks.Family, "not in the table"))
	fmt.Fprintf(w, "blocks     %v, by %s\n", r.Blocks, basis(r.Blocks.Basis))
	fmt.Fprintf(w, "peak       %.0f GFLOP/s\n", r.Peak)
	fmt.Fprintf(w, "product    %.0f GFLOP/s%s\n", r.Product, r.share(r.Product))
	for _, l := range r.Layers {
		fmt.Fprintf(w, "layer      %s: %.0f GFLOP/s by the definition%s, %.0f as planned\n", l.Name, l.Exact,
			r.share(l.Exact),
			l.Gflops)
	}
	for _, t := range r.Trials {
		mark := ""
		if t.Chosen {
			mark = ", chosen"
		}
		fmt.Fprintf(w, "trial      %s=%d: %.0f GFLOP/s%s\n", t.Block, t.Value, t.Gflops, mark)
	}
	if r.Best {
		fmt.Fprintf(w, "choice     the best of these, or within %.0f %% of it\n", 100*(Margin-1))
	} else {
		fmt.Fprintf(w, "advice     %s\n", r.Advice)
	}
}

// basis says what blocks were chosen by.
func basis(b string) string {
	switch b {
	case "measured":
		return "measurements of this family"
	case "family":
		return "this family's units and caches, unmeasured"
	case "caches":
		return "the second-level cache"
	case "default":
		return "default: nothing is known of this processor"
	}
	return b
}

func (r Report) share(gflops float64) string {
	if r.Peak == 0 {
		return ""
	}
	return fmt.Sprintf(", %.0f %% of the peak", 100*gflops/r.Peak)
}
