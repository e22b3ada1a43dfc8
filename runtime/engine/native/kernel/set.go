package kernel

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"unsafe"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine/native/winograd"
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

// available are the sets of this processor. To make them takes longer than to make an engine for a small network.
var available = sync.OnceValue(sets)

// Choose returns the fastest set, or the one that the environment names, with the blocks that suit this machine. It
// returns Invalid for a name that this processor does not have, and for blocks that there are not.
func Choose() (Set, error) {
	name := os.Getenv(Variable)
	all := available()
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

// The argument blocks of the kernels; the generator in gen has their offsets. Sizes and strides are in bytes.

// productArgs describes a tile of C = A B: for every outer, middle and inner step, row i of the tile gets
// A[i rs] times a vector of B, and A and B move on.
type productArgs struct {
	a, b, c unsafe.Pointer
	rs      int64 // from row to row of A
	ks, ldb int64 // inner step of A and of B
	k       int64 // inner steps
	middle  int64 // middle steps; then A and B move by am and bm more
	am, bm  int64
	outer   int64 // outer steps, likewise
	ao, bo  int64
	ldc     int64 // from row to row of C
	rows    int64 // rows that are stored
	mode    int64 // start from zero, from C, from bias, or from a vector of bias
	bias    unsafe.Pointer
	c2      int64 // from the first vector of a row of C to the second
	relu    int64 // not 0: store max(0, x)
	ahead   int64 // from this tile of C to one whose lines are fetched meanwhile; 0: none are
	b2      int64 // from the end of the first vector of a row of B to the second, where a tile is 32 values wide
}

// Values of productArgs.mode.
const (
	fromZero = iota
	fromC
	fromBias   // a value a row
	fromVector // the same vectors for every row
)

type transposeArgs struct {
	dst, src unsafe.Pointer
	ds, ss   int64
}

type elementArgs struct {
	dst, a, b, c unsafe.Pointer
	n            int64
	s            [12]float32
}

// exponentArgs is arrays of one length, or rows of 16 values.
type exponentArgs struct {
	dst, a, b, sum unsafe.Pointer
	n              int64 // bytes of the arrays, or rows
	stride         int64 // bytes from one row to the next
	numbers        unsafe.Pointer
	from           int64 // bytes from one row of a to the next, where kernels have a distance of its own for a
}

// recurrentArgs is one position of a recurrent layer. Gates lie gate bytes apart in x, z and gates.
type recurrentArgs struct {
	x, z, gates     unsafe.Pointer // on the way back z has what the position before kept
	memory, kept, y unsafe.Pointer
	n, gate         int64 // bytes
	numbers         unsafe.Pointer
	before          float32 // on the way back 1, or 0 at the first position: what is at z counts so much
}

type channelArgs struct {
	x, y, z        unsafe.Pointer
	p, q, r        unsafe.Pointer // one value a channel
	mask           unsafe.Pointer // one value a lane
	out            unsafe.Pointer // [channels][sums][16]
	channels       int64
	lanes          int64 // bytes of a row that count
	row            int64 // bytes of a row
	pixels         int64
	xPixel, yPixel int64
}

type tapArgs struct {
	x, y, dx unsafe.Pointer
	offs     unsafe.Pointer // int64 each
	count    int64
	bytes    int64 // of an output pixel
	scale    float32
	_        float32
	w        unsafe.Pointer
	woffs    unsafe.Pointer
	row      int64
	lanes    int64
	channels int64
	dy       unsafe.Pointer // maxPoolBack's gradient of y
	// Forward by values, of pools and of weighted: the pixels that are computed with the same offsets, and the bytes from
	// one to the next in x and in y.
	pixels, xPixel, yPixel int64
}

// winogradArgs are those of the transforms of a tile (see package winograd). The offsets of its pixels, of its outputs
// or of the kernel's taps are listed by rows, as bytes from src of an input and of weights and from dst of an output. A
// panel has a row of width bytes for each channel, and point bytes lie between the panels of two points.
type winogradArgs struct {
	src, dst  unsafe.Pointer
	offs, tmp unsafe.Pointer
	channels  int64
	width     int64 // bytes of a channel that are computed
	row       int64 // bytes from channel to channel of an image
	point     int64
	bias      unsafe.Pointer // of an output, a value a channel; nil: none
	add       int64          // not 0: an output is added to what is there
	relu      int64          // not 0: store max(0, x)
	numbers   unsafe.Pointer // of the matrix' program, float32 each
}

// tiles are the kernels for products, by rows and vectors of 16 values.
type tiles [mostRows + 1][3]func(*productArgs)

// functions is one implementation of every kernel.
type functions struct {
	product    tiles
	pairs      tiles // the same of bfloat16 alone, by instructions of its own; nil: there are none
	correlate  func(*productArgs)
	line       func(*productArgs) // one row, lineBlocks blocks of 16 columns
	transpose  func(*transposeArgs)
	transpose8 func(*transposeArgs) // of 8 x 8

	add, addRelu, relu, clamp, reluBack, clampBack, scale, squares, sgd, momentum, adam func(*elementArgs)
	affineEach, affineEachRelu                                                          func(*elementArgs)

	silu, siluBack, geluTanh, geluTanhBack, gelu, geluBack func(*exponentArgs)
	softmaxRows, softmaxRowsBack                           func(*exponentArgs)
	mulRows, addRows, dotRows, maxRows                     func(*exponentArgs)
	lstm, lstmBack, gru, gruBack                           func(*recurrentArgs)

	affine, affineRelu, normBack                   func(*channelArgs)
	layerSquares, layerNorm, layerScale            func(*channelArgs)
	layerSums, layerBack, layerGradients           func(*channelArgs)
	moments, normSums, normSumsRelu, rowSums, dots [2]func(*channelArgs) // for a block of channels, and for one

	maxPool, sumPool, maxPoolBack, sumPoolBack func(*tapArgs)
	depthwise                                  [2]func(*tapArgs) // for four channels, and for one
	weighted                                   func(*tapArgs)

	round, shorten func(*elementArgs) // to bfloat16, and its halves
	widen          func(*halvesArgs)

	winograd map[winograd.Tile]*transforms
}

// transforms are those of one Winograd algorithm.
type transforms struct {
	input, output, weights transform
	spread, gather         transform // transposed: of an output's gradient, and to that of weights
}

// transform is a kernel and the numbers that it is given.
type transform struct {
	kernel  func(*winogradArgs)
	numbers unsafe.Pointer
}

func (t *transform) run(a *winogradArgs) {
	a.numbers = t.numbers
	t.kernel(a)
}
