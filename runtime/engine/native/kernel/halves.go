package kernel

import (
	"math"
	"unsafe"
)

// Halves are values as bfloat16: the upper halves of float32 (8 bits of exponent, 7 of fraction).
type Halves []uint16

// HalvesOf are the first n halves in the memory of values, where Shorten puts them. Whoever reads them must not read
// the values.
func HalvesOf(values []float32, n int) Halves {
	_ = values[:(n+1)/2]
	return unsafe.Slice((*uint16)(unsafe.Pointer(&values[0])), n)
}

// rounded is the bfloat16 nearest to v, of two the one whose last bit is 0 (IEEE 754's roundTiesToEven), as float32.
// What is not a number stays none, and what is beyond the largest number becomes infinite.
func rounded(v float32) float32 {
	b := math.Float32bits(v)
	if v != v {
		b |= 1 << 22 // a quiet one, as processors make it, whose bits are not all in the lower half
	} else {
		b += 0x7fff + b>>16&1
	}
	return math.Float32frombits(b &^ 0xffff)
}

// halvesArgs are those of widen: rows of n bytes at dst, of halves at src.
type halvesArgs struct {
	dst, src unsafe.Pointer
	rows, n  int64
	ds, ss   int64 // bytes from row to row
}

// tie is what round adds to the bits of a value below the middle of two bfloat16.
var tie = math.Float32frombits(0x7fff)

// Round is dst = x, each value rounded to the nearest bfloat16; ties go to the even one. dst may be x. Workers do not
// wait for each other.
func (w *Worker) Round(dst, x []float32) {
	w.elem.s[0] = tie
	w.element(w.f.round, dst, x, nil, nil)
}

// firstHalves is how many values Shorten moves before workers share.
const firstHalves = 4096

// Shorten turns values, which are rounded already, into halves in the first half of their own memory, where HalvesOf
// finds them. A multiple of 16 values. All workers call it at once; when it returns all have done their share. One
// worker walks through the memory from its start. Several share parts that are each as long as all before together:
// such a part goes where nothing is any more.
func (w *Worker) Shorten(x []float32) {
	n, first := len(x), firstHalves
	if w.N == 1 {
		first = n
	}
	for from, to := 0, min(first, n); from < n; from, to = to, min(2*to, n) {
		switch {
		case from > 0:
			a, b := w.chunk(to - from)
			w.shorten(x, from+a, from+b)
		case w.ID == 0:
			w.shorten(x, 0, to)
		}
		w.Sync()
	}
}

func (w *Worker) shorten(x []float32, from, to int) {
	if from == to {
		return
	}
	e := &w.elem
	e.dst, e.a, e.b, e.c, e.n = p(x, from/2), p(x, from), nil, nil, int64(4*(to-from))
	w.f.shorten(e)
}

// Widen is dst = x, as float32: both have one length, a multiple of 16. Workers do not wait for each other.
func (w *Worker) Widen(dst []float32, x Halves) {
	from, to := w.chunk(len(dst))
	if from < to {
		w.widen(dst[from:], x[from:], 1, to-from, 0, 0)
	}
}

// widen writes rows of n values, a multiple of 16, ds values apart in dst and ss in x.
func (w *Worker) widen(dst []float32, x Halves, rows, n, ds, ss int) {
	if rows == 0 || n == 0 {
		return
	}
	_, _ = dst[(rows-1)*ds+n-1], x[(rows-1)*ss+n-1]
	w.halves = halvesArgs{
		dst: unsafe.Pointer(&dst[0]), src: unsafe.Pointer(&x[0]), rows: int64(rows), n: int64(4 * n), ds: int64(4 * ds),
		ss: int64(2 * ss),
	}
	w.f.widen(&w.halves)
}

// blockHalves is how many halves a worker widens at a time for what goes by single values.
const blockHalves = 1024

// blocks calls f with each block of this worker's part of dst, and what stands at the same places in y.
func (w *Worker) blocks(dst []float32, y Halves, f func(dst, y []float32)) {
	from, to := w.chunk(len(dst))
	for at := from; at < to; at += blockHalves {
		n := min(blockHalves, to-at)
		block := w.room()[:n]
		w.widen(block, y[at:], 1, n, 0, 0)
		f(dst[at:at+n], block)
	}
}

// room is the worker's memory for a block, which it has once it needs it.
func (w *Worker) room() []float32 {
	if w.wide == nil {
		w.wide = make([]float32, blockHalves)
	}
	return w.wide
}

// alone has do compute all that it is given, as if there were no other workers.
func (w *Worker) alone(do func()) {
	id, n := w.ID, w.N
	defer func() { w.ID, w.N = id, n }()
	w.ID, w.N = 0, 1
	do()
}

// BackHalves turns the gradient dy of an activation's output into that of its input, in place, by values v that were
// shortened: f is the activation's way back, such as (*Worker).ReLUBack.
func (w *Worker) BackHalves(f func(w *Worker, dst, dy, v []float32), dy []float32, v Halves) {
	w.blocks(dy, v, func(dst, v []float32) { w.alone(func() { f(w, dst, dst, v) }) })
}

// portableHalves are the kernels in plain Go.
func portableHalves(f *functions) {
	f.round = func(e *elementArgs) {
		dst := slice(e.dst, e.n)
		for i, v := range slice(e.a, e.n) {
			dst[i] = rounded(v)
		}
	}
	f.shorten = func(e *elementArgs) {
		dst := unsafe.Slice((*uint16)(e.dst), e.n/4)
		for i, v := range slice(e.a, e.n) { // one by one, since they may lie in each other's memory
			dst[i] = uint16(math.Float32bits(v) >> 16)
		}
	}
	f.widen = func(a *halvesArgs) {
		for r := range a.rows {
			dst := slice(ptr(a.dst, r*a.ds), a.n)
			for i, v := range unsafe.Slice((*uint16)(ptr(a.src, r*a.ss)), a.n/4) {
				dst[i] = math.Float32frombits(uint32(v) << 16)
			}
		}
	}
}
