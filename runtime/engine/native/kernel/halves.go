package kernel

import (
	"math"
	"unsafe"

	"github.com/disdel/disdel/runtime/engine/native/plan"
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
		block := w.scratch()[:n]
		w.widen(block, y[at:], 1, n, 0, 0)
		f(dst[at:at+n], block)
	}
}

// scratch is the worker's memory for a block, which it has once it needs it.
func (w *Worker) scratch() []float32 {
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

// source is the image that a pass back reads rows of: values, or halves that are widened into a window a few rows at a
// time.
type source struct {
	values  []float32
	first   int // row that values begin with
	channel int // of a single pixel, likewise
	halves  Halves
	window  []float32
}

// byChannels tells that a single pixel is widened some channels at a time.
func (s *source) byChannels(c *Conv) bool { return s.halves != nil && c.Single() }

// open has rows at hand that the outputs from i0 (included) to i1 (not) of a convolution were computed of. Of halves
// this is this worker's share of them: all wait for each other before they read.
func (w *Worker) open(s *source, c *Conv, i0, i1 int) {
	if s.halves == nil || c.Single() {
		return
	}
	from, to := c.InputRows(i0, i1)
	row := c.In.W * c.In.Pixel()
	s.first, s.values = from, s.window[:(to-from)*row]
	w.Widen(s.values, s.halves[from*row:])
	if c.Few() { // which has no other reason to wait
		w.Sync()
	}
}

// openChannels has channels from (included) to (not) of a single pixel at hand, once all have read those before.
func (w *Worker) openChannels(s *source, c *Conv, from, to int) {
	if !s.byChannels(c) {
		return
	}
	w.Sync()
	wide := c.In.Lanes
	s.channel, s.values = from, s.window[:(to-from)*wide]
	w.Widen(s.values, s.halves[from*wide:])
	w.Sync()
}

// shut waits until all have read what is open.
func (w *Worker) shut(s *source) {
	if s.halves != nil {
		w.Sync()
	}
}

// Rounding has the products to come round their weights to bfloat16, or not. Callers see to the other operands, and to
// the weights of those that go by their definition: these products may read the upper halves of values alone.
func (w *Worker) Rounding(on bool) { w.rounds = on }

// BackWeightsHalves is BackWeights of an input that was shortened; scratch has the WindowLen more.
func (w *Worker) BackWeightsHalves(c *Conv, x Halves, dy, dw, scratch []float32) {
	n := c.ScratchLen()
	w.backWeightsOf(c, source{halves: x, window: scratch[n:]}, dy, dw, scratch[:n])
}

// MaxPoolBackHalves is MaxPoolBack of an input and an output that were shortened; window has the pool's WindowLen.
func (w *Worker) MaxPoolBackHalves(g *Pool, x, y Halves, dy, dx, window []float32) {
	from, bytes := w.depths(g.In)
	n, pixel := int(bytes/4), g.In.Pixel()
	row := g.In.W * pixel
	out := window[:g.OW*pixel]
	in := window[len(out):]
	a := &w.tap
	a.bytes = bytes
	for i := range g.OH {
		r0, r1 := g.InputRows(i)
		if n == 0 || r0 >= r1 {
			continue
		}
		w.widen(in[from:], x[r0*row+from:], (r1-r0)*g.In.W, n, pixel, pixel)
		w.widen(out[from:], y[i*len(out)+from:], g.OW, n, pixel, pixel)
		a.x, a.dx = p(in, from), p(dx, r0*row+from)
		for j := range g.OW {
			taps := w.gather(g, i, j)
			if taps == 0 {
				continue
			}
			for t := range taps {
				w.offs[t] -= int64(4 * r0 * row)
			}
			a.y, a.dy = p(out, j*pixel+from), p(dy, (i*g.OW+j)*pixel+from)
			w.f.maxPoolBack(a)
		}
	}
	w.Sync()
}

// DepthwiseBackWeightsHalves is DepthwiseBackWeights of an input that was shortened; scratch has the pool's
// DepthwiseHalvesLen.
func (w *Worker) DepthwiseBackWeightsHalves(g *Pool, x Halves, dy, dw, scratch []float32) {
	from, to := w.channels(g.In.C)
	if from == to {
		return
	}
	all, wide := g.In.C*lanes, g.In.Lanes
	row := g.In.W * g.In.Pixel()
	sums, window := scratch[:g.KW*all], scratch[g.KW*all:]
	a := &w.chn
	a.row, a.lanes = int64(4*wide), int64(4*g.Active())
	a.xPixel, a.yPixel = int64(4*g.SW*g.In.Pixel()), int64(4*g.In.Pixel())
	for r := range g.KH {
		for q := range g.KW {
			clear(sums[q*all+from*lanes : q*all+to*lanes])
		}
		i0, i1 := outputs(0, g.OH, g.SH, r*g.DH-g.Top, g.In.H)
		for i := i0; i < i1; i++ {
			h := i*g.SH + r*g.DH - g.Top
			w.widen(window[from*wide:], x[h*row+from*wide:], g.In.W, (to-from)*wide, g.In.Pixel(), g.In.Pixel())
			for q := range g.KW {
				if j0, j1 := outputs(0, g.OW, g.SW, q*g.DW-g.Left, g.In.W); j0 < j1 {
					a.pixels = int64(j1 - j0)
					w.dotRow(g.In, window, dy, sums[q*all:], j0*g.SW+q*g.DW-g.Left, i*g.OW+j0, from, to)
				}
			}
		}
		for q := range g.KW {
			for c := from; c < to; c++ {
				dw[(r*g.KW+q)*g.In.C+c] = float32(total(sums[q*all+c*lanes:][:lanes]))
			}
		}
	}
}

// NormBackHalves is NormBack of an input that was shortened, where dy is behind the ReLU already; window has
// NormWindowLen.
func (w *Worker) NormBackHalves(n *Norm, s *NormState, x Halves, dy, dGamma, dBeta, window []float32) {
	deep := plan.NormPixels(n.Image)
	w.normSums(n, s, x, dy, window, deep)
	w.slopes(n, s, dGamma, dBeta)
	from, to := w.channels(n.C)
	if from == to {
		w.Sync()
		return
	}
	pixels, pixel, first := n.H*n.W, n.Pixel(), from*n.Lanes
	window = window[first*deep:] // its own part, which others do not write
	if to-from < n.C {           // what it has of one pixel and of the next do not lie side by side
		deep = 1
	}
	a := &w.chn
	a.p, a.q, a.r, a.mask = p(s.Scale, from), p(s.Offset, from), p(s.Third, from), p(s.Mask, 0)
	a.channels, a.row = int64(to-from), int64(4*n.Lanes)
	for px := 0; px < pixels; px += deep {
		some := min(deep, pixels-px)
		w.widen(window, x[px*pixel+first:], 1, (some-1)*pixel+(to-from)*n.Lanes, 0, 0)
		a.x, a.y, a.pixels = p(window, 0), p(dy, px*pixel+first), int64(some)
		w.f.normBack(a)
	}
	w.Sync()
}

// normSums sums dy and dy (x - mean) of this worker's channels, some pixels of some channels at a time.
func (w *Worker) normSums(n *Norm, s *NormState, x Halves, dy, window []float32, deep int) {
	from, to := w.channels(n.C)
	pixels, pixel := n.H*n.W, n.Pixel()
	a := &w.chn
	a.row, a.lanes, a.yPixel, a.mask = int64(4*n.Lanes), int64(4*plan.Padded(n.Rows)), int64(4*pixel), nil
	for c := from; c < to; {
		some, kernel := w.block, w.f.normSums[0]
		if c+some > to {
			some, kernel = 1, w.f.normSums[1]
		}
		width, sums := some*n.Lanes, s.Sums[c*2*lanes:][:some*2*lanes]
		part := window[c*n.Lanes*deep:][:width*deep]
		clear(sums)
		a.p, a.out, a.xPixel = p(s.Mean, c), p(sums, 0), int64(4*width)
		for px := 0; px < pixels; px += deep {
			count, at := min(deep, pixels-px), px*pixel+c*n.Lanes
			w.widen(part, x[at:], count, width, width, pixel)
			a.x, a.y, a.pixels = p(part, 0), p(dy, at), int64(count)
			a.z = a.y
			kernel(a)
		}
		c += some
	}
}
