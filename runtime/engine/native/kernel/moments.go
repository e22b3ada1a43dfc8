package kernel

import (
	"math"
	"unsafe"

	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// ShortMoments are one of an optimiser's moments for an array of weights, in 8 bits each: block-wise dynamic
// quantisation (Dettmers et al. 2022, arXiv 2110.02861). A moment is its block's largest magnitude times the entry of a
// table. Reading all moments of a block and writing them again changes no bit.
type ShortMoments struct {
	Codes   []uint8   // one a moment, whole blocks of them
	Scales  []float32 // the largest magnitude of each block
	Squares bool      // moments are means of squares: they have no sign, and none becomes zero
}

// ShortMomentsOf makes n moments in values, which are whole blocks of them: four codes a value, then the scales.
func ShortMomentsOf(values []float32, n int, squares bool) ShortMoments {
	blocks := plan.MomentBlocks(n)
	codes := unsafe.Slice((*uint8)(unsafe.Pointer(&values[0])), blocks*plan.MomentBlock)
	return ShortMoments{Codes: codes, Scales: values[len(codes)/4:][:blocks], Squares: squares}
}

// dynamicTable has the values of codes, magnitudes first and in ascending order, and how the nearest one is found.
type dynamicTable struct {
	values [256]float32
	middle [256]uint32       // the bits of the middle between a magnitude and the next one
	first  [1 << upper]uint8 // by a magnitude's upper bits: the nearest code of the smallest one with these
}

// upper is the number of bits that find a magnitude, but for its sign. No two middles share them.
const upper, lower = 15, 16

// leastScale is the scale below which a block becomes zero: its smallest magnitudes would be no normal numbers.
const leastScale = 0x1p-100

// signedTable has 127 magnitudes of seven decades, squaresTable has 255 of eight.
var signedTable, squaresTable = newDynamicTable(7), newDynamicTable(8)

// newDynamicTable halves the number of magnitudes with every decade below one. They are evenly spaced in each.
func newDynamicTable(decades int) *dynamicTable {
	t := &dynamicTable{}
	last := 0
	for d := decades - 1; d >= 0; d-- {
		n := 1 << (decades - 1 - d)
		for i := range n {
			last++
			t.values[last] = float32(math.Pow10(-d) * (0.1 + 0.9*float64(i+1)/float64(n)))
		}
	}
	for i := range t.middle {
		t.middle[i] = math.MaxInt32 // more than any magnitude
	}
	for i := range last {
		t.middle[i] = math.Float32bits((t.values[i] + t.values[i+1]) / 2)
	}
	code := 0
	for b := range t.first {
		for uint32(b)<<lower > t.middle[code] {
			code++
		}
		t.first[b] = uint8(code)
	}
	for i := 1; i <= last && last < 128; i++ {
		t.values[256-i] = -t.values[i] // the code of a negative moment is that of its magnitude, negated
	}
	return t
}

// nearest is the code of a magnitude, given its bits. Those are compared: magnitudes have the same order. There is no
// branch, since nobody could predict it.
func (t *dynamicTable) nearest(bits uint32) uint8 {
	code := t.first[bits>>lower&(1<<upper-1)]
	return code + uint8((t.middle[code]-bits)>>31)
}

func (m *ShortMoments) table() *dynamicTable {
	if m.Squares {
		return squaresTable
	}
	return signedTable
}

// Read copies the moments from the start of a block on into dst.
func (m *ShortMoments) Read(dst []float32, from int) {
	table := m.table()
	for len(dst) > 0 {
		n := min(len(dst), plan.MomentBlock)
		scale := m.Scales[from/plan.MomentBlock]
		for i, c := range m.Codes[from:][:n] {
			dst[i] = table.values[c] * scale
		}
		dst, from = dst[n:], from+n
	}
}

// Write sets the moments from the start of a block on to src. What of the last block lies behind stays, and must be
// zero.
func (m *ShortMoments) Write(src []float32, from int) {
	for len(src) > 0 {
		n := min(len(src), plan.MomentBlock)
		m.writeBlock(src[:n], m.Codes[from:][:n], &m.Scales[from/plan.MomentBlock])
		src, from = src[n:], from+n
	}
}

func (m *ShortMoments) writeBlock(src []float32, codes []uint8, scale *float32) {
	const sign = 1 << 31
	var bits uint32
	for _, v := range src {
		bits = max(bits, math.Float32bits(v)&^sign)
	}
	maximum := math.Float32frombits(bits)
	if maximum < leastScale {
		clear(codes)
		*scale = 0
		return
	}
	*scale = maximum
	codes = codes[:len(src)]
	if m.Squares {
		for i, v := range src {
			c := squaresTable.nearest(math.Float32bits(v/maximum) &^ sign)
			if c == 0 && v > 0 {
				c = 1 // a step is never divided by less than its root
			}
			codes[i] = c
		}
		return
	}
	for i, v := range src {
		b := math.Float32bits(v / maximum)
		negative := uint8(int32(b) >> 31) // all bits or none
		codes[i] = (signedTable.nearest(b&^sign) ^ negative) - negative
	}
}

// momentPiece is the number of moments that a worker has as float32 at once.
const momentPiece = 4 * plan.MomentBlock

// Moments are one of an optimiser's moments for an array of weights that is not in memory as float32. Several workers
// use it at once, each for blocks of its own.
type Moments interface {
	// Read copies the moments from the start of a block on into dst.
	Read(dst []float32, from int)
	// Write sets the moments from the start of a block on to src.
	Write(src []float32, from int)
}

// UpdateApart is Update with moments that are kept elsewhere: those of the weights x begin at a block. The bits do not
// depend on the number of workers.
func (w *Worker) UpdateApart(u *Update, x, g []float32, moments []Moments, from int) {
	first, last := w.share(plan.MomentBlocks(len(x)))
	id, n := w.ID, w.N
	w.ID, w.N = 0, 1 // blocks are divided here, and the kernels' calls are not divided again
	for at, end := first*plan.MomentBlock, min(last*plan.MomentBlock, len(x)); at < end; at += momentPiece {
		to := min(at+momentPiece, end)
		var wide [2][]float32
		for i := range moments {
			wide[i] = w.moments[i][:to-at]
			moments[i].Read(wide[i], from+at)
		}
		w.Update(u, x[at:to], g[at:to], wide[0], wide[1])
		for i := range moments {
			if u.Trust == 0 { // LAMB's second pass changes no moment
				moments[i].Write(wide[i], from+at)
			}
		}
	}
	w.ID, w.N = id, n
}
