package kernel

import (
	"fmt"
	"os"
	"strings"

	"github.com/disdel/disdel"
)

// Variable is the environment variable that forces a path.
const Variable = "DISDEL_KERNELS"

// Set is one implementation of all kernels.
type Set struct {
	Name      string
	plain     string // the path that computes the same bits where nothing is rounded to bfloat16; "": itself
	Blocks    Blocks
	tiles     []int  // rows of the product's tiles, largest first
	vectors   int    // of 16 values, the widest tile
	pairs     [2]int // rows of x and of dy that correlate takes
	step      int64  // bytes of lanes that it takes at once
	block     int    // channels of a reduction
	square    int    // side of a transposed block
	f         functions
	exact     exactFunctions
	peak      func(int)
	peakFlops int // of one turn of peak
}

// Sets lists what this processor can run, the fastest first; the last is always portable. Their blocks are the default.
func Sets() []Set { return sets() }

// Choose returns the fastest set, or the one that the environment names, with the blocks that suit this machine. It
// returns Invalid for a name that this processor does not have.
func Choose() (Set, error) {
	name := os.Getenv(Variable)
	all := sets()
	blocks, err := chooseBlocks()
	if err != nil {
		return Set{}, err
	}
	var names []string
	for _, s := range all {
		if s.Name == name || name == "" {
			s.Blocks = blocks
			return s, nil
		}
		names = append(names, s.Name)
	}
	return Set{}, &disdel.Error{
		Kind: disdel.Invalid, Op: "choose kernels",
		Msg:  fmt.Sprintf("%s is %q, and this processor has %s", Variable, name, strings.Join(names, ", ")),
		Hint: "unset " + Variable,
	}
}

// Peak runs multiply-adds on registers and returns how many floating-point operations they were: what the core can do
// at most.
func (s Set) Peak(turns int) float64 {
	s.peak(turns)
	return float64(turns) * float64(s.peakFlops)
}

// tile is the most rows of a product's tile that are worth it for n rows.
func (s *Set) tile(n int) int {
	last := s.tiles[0]
	for _, t := range s.tiles {
		if t < n {
			break
		}
		last = t
	}
	return last
}
