package kernel

import (
	"fmt"
	"os"
	"strconv"

	"github.com/disdel/disdel"
)

// BlocksVariable is the environment variable that says how many values of weights a pass works with.
const BlocksVariable = "DISDEL_BLOCKS"

// Blocks is how much of its operands a convolution forward works with at a time. It is a matter of speed alone: sums
// have the same order, whatever the blocks, so that bits and memory are the same.
type Blocks struct {
	Weights int    `json:"weights"` // values of a layer's weights, which stay in the second-level cache over all pixels
	Basis   string `json:"basis"`   // what they were chosen by: table, caches, default, or DISDEL_BLOCKS
}

// The least and the most that a pass takes: a filter of many channels, and what no cache beside a core holds.
const (
	leastBlock = 8 << 10
	mostBlock  = 1 << 20
)

// measured are the blocks of processors that the engine was measured on, by family.
var measured = []struct {
	vendor  string
	family  int
	weights int
}{
	{"AuthenticAMD", 25, 96 << 10}, // Zen 3 and Zen 4
}

// BlocksFor chooses by the family of a processor where it is in the table, else three quarters of its second-level
// cache, which leaves room for the pixels.
func BlocksFor(m Machine) Blocks {
	for _, row := range measured {
		if row.vendor == m.Vendor && row.family == m.Family {
			return Blocks{row.weights, "table"}
		}
	}
	if m.Second == 0 {
		return Blocks{budget, "default"}
	}
	return Blocks{min(max(int(m.Second)/4*3/4, 64<<10), mostBlock), "caches"}
}

// chooseBlocks goes by the environment, and else by this machine. It returns Invalid for what is no number of values.
func chooseBlocks() (Blocks, error) {
	text := os.Getenv(BlocksVariable)
	if text == "" {
		return BlocksFor(ReadMachine("/")), nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < leastBlock || n > mostBlock {
		return Blocks{}, &disdel.Error{
			Kind: disdel.Invalid, Op: "choose kernels",
			Msg:  fmt.Sprintf("%s is %q, and no number from %d to %d", BlocksVariable, text, leastBlock, mostBlock),
			Hint: "unset " + BlocksVariable,
		}
	}
	return Blocks{n, BlocksVariable}, nil
}
