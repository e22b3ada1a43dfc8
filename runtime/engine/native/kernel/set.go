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
	tiles     []int  // rows of the product's tiles that blocks of 16 filters are cut into, largest first
	line      []int  // rows of those, one block of filters wide, that lines of outputs are cut into, largest first
	tall      int    // rows of one that is higher than these; 0: there is none
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
// returns Invalid for a name that this processor does not have, and for blocks that there are not.
func Choose() (Set, error) {
	name := os.Getenv(Variable)
	all := sets()
	var names []string
	for _, s := range all {
		if s.Name == name || name == "" {
			blocks, err := chooseBlocks(s.Heights())
			if err != nil {
				return Set{}, err
			}
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

// mostRows is how many rows a tile has at most, and tallRows those of the tile that not every path has.
const (
	mostRows = tallRows
	tallRows = 12
)

// Heights are the rows that tiles may have where they are channels (Blocks.Rows), the usual one first.
func (s Set) Heights() []int {
	if s.tall == 0 {
		return s.tiles[:1:1]
	}
	return []int{s.tiles[0], s.tall}
}

// height is how many rows the highest tile has here.
func (s *Set) height() int {
	if s.tall > 0 && s.Blocks.Rows == s.tall {
		return s.tall
	}
	return s.tiles[0]
}

// rows is how many rows the next tile takes of n that are channels, one after the other. What two usual tiles just hold
// they take; the highest tile takes no more than there is. Products of pairs have the usual tiles.
func (w *Worker) rows(n int) int {
	usual := w.tiles[0]
	if t := w.height(); t > usual && n >= t && n != 2*usual && !(w.rounds && w.f.pairs[usual][1] != nil) {
		return t
	}
	return w.tile(n)
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
