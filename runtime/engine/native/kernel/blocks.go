package kernel

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/disdel/disdel"
)

// BlocksVariable is the environment variable that says what blocks are used: weights=98304,rows=8,depth=256, or some of
// these. A number alone is that of weights.
const BlocksVariable = "DISDEL_BLOCKS"

// Blocks is how much of its operands a product works with at a time. It is a matter of speed alone: sums have the same
// terms in the same order, whatever the blocks, so that bits and memory are the same.
type Blocks struct {
	Weights int    `json:"weights"`          // values of a layer's weights, which stay in the second-level cache
	Rows    int    `json:"rows"`             // of a tile of a product, where they are channels; see Set.Heights
	Depth   int    `json:"depth"`            // inner steps of Gemm's panels, one of which stays in the first-level cache
	Family  string `json:"family,omitempty"` // of the processor, where the table knows it
	Basis   string `json:"basis"`            // chosen by: measured, family, caches, default, or DISDEL_BLOCKS
}

// What Blocks were chosen by.
const (
	byMeasurement = "measured" // the engine was measured on this family
	byFamily      = "family"   // by what is known of its units and caches
	byCaches      = "caches"
	byDefault     = "default"
)

// The least and the most that a pass takes: a filter of many channels, and what no cache beside a core holds. Likewise
// Gemm's panels: fewer steps would store a tile more often than it pays, more would need more memory.
const (
	leastBlock = 8 << 10
	mostBlock  = 1 << 20
	leastDepth = 64
	mostDepth  = 512
	usualDepth = 256
)

// BlocksFor chooses by the family of a processor where the table has it, else by its second-level cache: three quarters
// of that, which leaves room for the pixels. A cache that the processor does not tell is its family's. Rows are 0 where
// those of the path will do.
func BlocksFor(m Machine) Blocks {
	b, second := Blocks{Weights: budget, Depth: usualDepth, Basis: byDefault}, m.Second
	if f := familyOf(m); f != nil {
		b.Family, b.Rows, b.Basis = f.name, f.rows(), byFamily
		if second == 0 {
			second = f.second
		}
		if f.weights > 0 {
			b.Weights, b.Basis = f.weights, byMeasurement
			return b
		}
	} else if second > 0 {
		b.Basis = byCaches
	}
	if second > 0 {
		b.Weights = min(max(int(second)/4*3/4, 64<<10), mostBlock)
	}
	return b
}

// Choice is a block, and what could be chosen for it.
type Choice struct {
	Block  string // weights, rows or depth
	Values []int
}

// Choices lists the blocks that a measurement may compare: what was chosen and what is around it, of those for which
// there is more than that.
func (s Set) Choices() (all []Choice) {
	for _, c := range []Choice{
		{"weights", within(leastBlock, mostBlock, s.Blocks.Weights/2, s.Blocks.Weights, s.Blocks.Weights*2)},
		{"rows", s.Heights()},
		{"depth", within(leastDepth, mostDepth, s.Blocks.Depth/2, s.Blocks.Depth, s.Blocks.Depth*3/2)},
	} {
		if len(c.Values) > 1 {
			all = append(all, c)
		}
	}
	return all
}

// within are those of some values that lie between two.
func within(least, most int, values ...int) []int {
	return slices.DeleteFunc(values, func(v int) bool { return v < least || v > most })
}

// With is the set with one block of Choices as given.
func (s Set) With(block string, value int) Set {
	switch block {
	case "weights":
		s.Blocks.Weights = value
	case "rows":
		s.Blocks.Rows = value
	case "depth":
		s.Blocks.Depth = value
	}
	return s
}

// String is how the environment variable says it.
func (b Blocks) String() string {
	return fmt.Sprintf("weights=%d,rows=%d,depth=%d", b.Weights, b.Rows, b.Depth)
}

// chooseBlocks goes by this machine, and by the environment where that says otherwise, for a path that has tiles of
// some heights, its usual one first. It returns Invalid for what is no block, all faults at once.
func chooseBlocks(heights []int) (Blocks, error) {
	b := BlocksFor(ReadMachine("/"))
	if !slices.Contains(heights, b.Rows) {
		b.Rows = heights[0]
	}
	text := os.Getenv(BlocksVariable)
	if text == "" {
		return b, nil
	}
	like := b
	b.Basis = BlocksVariable
	var faults []error
	for part := range strings.SplitSeq(text, ",") {
		faults = append(faults, b.set(part, heights))
	}
	if err := errors.Join(faults...); err != nil {
		return Blocks{}, &disdel.Error{
			Kind: disdel.Invalid, Op: "choose kernels",
			Msg:  fmt.Sprintf("%s is %q: %s", BlocksVariable, text, strings.ReplaceAll(err.Error(), "\n", "; ")),
			Hint: fmt.Sprintf("write it like %s, or unset it", like),
		}
	}
	return b, nil
}

// set takes one part of the environment's text.
func (b *Blocks) set(part string, heights []int) error {
	name, value, named := strings.Cut(strings.TrimSpace(part), "=")
	if !named {
		name, value = "weights", name
	}
	n, err := strconv.Atoi(value)
	if err != nil {
		n = -1 // which nothing takes
	}
	switch name {
	case "weights":
		if b.Weights = n; n < leastBlock || n > mostBlock {
			return fmt.Errorf("weights are a number from %d to %d, and not %q", leastBlock, mostBlock, value)
		}
	case "rows":
		if b.Rows = n; !slices.Contains(heights, n) {
			return fmt.Errorf("rows are one of %v on this path, and not %q", heights, value)
		}
	case "depth":
		if b.Depth = n; n < leastDepth || n > mostDepth {
			return fmt.Errorf("depth is a number from %d to %d, and not %q", leastDepth, mostDepth, value)
		}
	default:
		return fmt.Errorf("there is no block %q: there are weights, rows and depth", name)
	}
	return nil
}
