package kernel

import (
	"unsafe"

	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// correlate keeps 16 partial sums for every weight: [KH][row tiles][filter tiles][rows][filters][16].
func (w *Worker) correlate(c *Conv, x source, dy, dw, scratch []float32) {
	rows, filters := w.pairs[0], w.pairs[1]
	run := c.KW * c.In.C
	rt, ft := (run+rows-1)/rows, (c.Filters+filters-1)/filters
	size := rows * filters * 16
	from, to := w.share(c.KH * rt * ft)
	clear(scratch[from*size : to*size])
	if w.ID == 0 {
		clear(dw) // the filters that pad a block have no gradient
	}
	w.Sync()
	lane := int64(4 * c.In.Lanes)
	a := &w.prod
	a.rs, a.ldb, a.k, a.middle = lane, lane, int64(4*c.Active())/w.step, int64(c.OW)
	a.am, a.bm = int64(c.SW*c.In.C)*lane-a.k*w.step, int64(c.Filters)*lane-a.k*w.step
	step := c.ChunkRows()
	for i0 := 0; i0 < c.OH; i0 += step {
		i1 := min(i0+step, c.OH)
		w.open(&x, c, i0, i1)
		for i := i0; i < i1; i++ {
			for t := from; t < to; t++ {
				r, row, filter := t/(rt*ft), t/ft%rt*rows, t%ft*filters
				a.a = p(x.values, ((i*c.SH+r-x.first)*c.In.W*c.In.C+row)*c.In.Lanes)
				a.b = p(dy, (i*c.OW*c.Filters+filter)*c.In.Lanes)
				a.c = p(scratch, t*size)
				w.f.correlate(a)
			}
		}
		w.shut(&x)
	}
	for t := from; t < to; t++ {
		r, row, filter := t/(rt*ft), t/ft%rt*rows, t%ft*filters
		for i := range min(rows, run-row) {
			for k := range min(filters, c.Filters-filter) {
				dw[(r*run+row+i)*16+filter+k] = float32(total(scratch[t*size+(i*filters+k)*16:][:16]))
			}
		}
	}
	w.Sync()
}

// BackWeights computes the gradient of a convolution's weights, in their layout: the sum over pixels of x^T dy. dy is
// transposed a chunk of rows at a time, so that filters are the vector.
func (w *Worker) BackWeights(c *Conv, x, dy, dw, scratch []float32) {
	w.backWeightsOf(c, source{values: x}, dy, dw, scratch)
}

func (w *Worker) backWeightsOf(c *Conv, x source, dy, dw, scratch []float32) {
	if c.Few() {
		w.correlate(c, x, dy, dw, scratch)
		return
	}
	step := c.ChunkRows()
	for g := range c.Groups {
		for i := 0; i < c.OH; i += step {
			to := min(i+step, c.OH)
			w.transposeRows(c, c.Filters, g*c.Outer(), i, to, dy, scratch)
			w.open(&x, c, i, to)
			w.fetch(c, &x, i, to)
			w.Sync()
			w.backWeights(c, g, i, to, x, dw, scratch)
			w.Sync()
		}
	}
}

// fetch reads this worker's part of the input's rows that output rows [i0, i1) were computed of, line after line: they
// come from memory, where a step's way forward has left them, and tiles would wait for a few lines at a time. A group
// has only some of a row's channels, and is not fetched.
func (w *Worker) fetch(c *Conv, x *source, i0, i1 int) {
	if x.halves != nil || c.Groups > 1 {
		return
	}
	from, to := c.InputRows(i0, i1)
	row := c.In.W * c.In.Pixel() / lanes
	from, to = from*row, to*row
	n := to - from
	from, to = from+n*w.ID/w.N, from+n*(w.ID+1)/w.N
	w.SquareSum(x.values[from*lanes : to*lanes])
}

// BackWeightsPart is BackWeights for the filters from (included) to (not) of a layer without groups. from is a whole
// number of vectors. dw has the gradients of these filters only, with the bits of BackWeights.
func (w *Worker) BackWeightsPart(c *Conv, from, to int, x, dy, dw, scratch []float32) {
	part, in, step := *c, source{values: x}, c.ChunkRows()
	part.Filters = to - from
	for i := 0; i < c.OH; i += step {
		end := min(i+step, c.OH)
		w.transposeRows(&part, c.Filters, from, i, end, dy, scratch)
		w.open(&in, c, i, end)
		w.Sync()
		w.backWeights(&part, 0, i, end, in, dw, scratch)
		w.Sync()
	}
}

// transposeRows transposes a group of filters of some rows to panels of them, each [pixels][lanes][panelFilters]: what a
// tile reads lies in one piece. A pixel of dy has so many filters, and first is the group's first one.
func (w *Worker) transposeRows(c *Conv, filters, first, i0, i1 int, dy, scratch []float32) {
	pixels, n := (i1-i0)*c.OW, c.Outer()
	from, to := w.share(pixels)
	for px := from; px < to; px++ {
		for k := 0; k < n; k += panelFilters {
			src := dy[((i0*c.OW+px)*filters+first+k)*c.In.Lanes:]
			dst := scratch[(k*pixels+px*panelFilters)*c.In.Lanes:]
			some := min(panelFilters, n-k)
			w.Transpose(dst, panelFilters, src, c.In.Lanes, some, c.Active())
			if some < panelFilters {
				for l := range c.Active() {
					clear(dst[l*panelFilters+some : (l+1)*panelFilters])
				}
			}
		}
	}
}

// panelFilters is how many filters a panel has: those of the widest tile.
const panelFilters = 32

// backWeights adds output rows [i0, i1) to the gradient; the first rows start it.
func (w *Worker) backWeights(c *Conv, g, i0, i1 int, x source, dw, scratch []float32) {
	width := 1
	if w.vectors == 2 {
		width = 2
	}
	// A tile is rows of channels for one tap. Where channels do not fill tiles and no tap leaves the image, the channels
	// of all taps of a kernel row are one run.
	run, columns := c.Inner(), c.KW
	if c.Groups == 1 && c.DW == 1 && c.Left == 0 && (c.OW-1)*c.SW+c.KW <= c.In.W && run%8 != 0 {
		run, columns = run*c.KW, 1
	}
	panels := (c.Blocks() + width - 1) / width
	step := channelBlock
	if x.byChannels(c) {
		step = plan.WindowChannels
	}
	for c0 := 0; c0 < run; c0 += step {
		c1 := min(c0+step, run)
		w.openChannels(&x, c, g*run+c0, g*run+c1)
		parts := (c1 - c0 + tapChannels - 1) / tapChannels
		w.take(panels*c.KH*columns*parts, func(from, to int) {
			for i := from; i < to; i++ {
				lo, t := c0+i%parts*tapChannels, i/parts
				panel, tap := t/(c.KH*columns), t%(c.KH*columns)
				vectors := min(width, c.Blocks()-panel*width)
				w.tapGradient(c, g, i0, i1, lo, min(lo+tapChannels, c1), tap/columns, tap%columns, panel*width, vectors, x,
					dw, scratch)
			}
		})
	}
}

// tapChannels is how many channels of a tap a worker takes at a time: whole tiles of any height.
const tapChannels = 48

// tapGradient sums over output rows (outer), columns (middle) and lanes (inner).
func (w *Worker) tapGradient(c *Conv, g, i0, i1, c0, c1, r, q, block, vectors int, x source, dw, scratch []float32) {
	lane := int64(4 * c.In.Lanes)
	pixel := int64(c.In.C) * lane
	lo, hi := outputs(i0, i1, c.SH, r*c.DH-c.Top, c.In.H)
	j0, j1 := outputs(0, c.OW, c.SW, q*c.DW-c.Left, c.In.W)
	a := &w.prod
	a.relu = 0
	a.rs, a.ks, a.ldb, a.ldc = lane, 4, 4*panelFilters, 64
	a.c2 = int64(4 * c.BlockLen())
	if w.square == 8 {
		a.c2 = 32
	}
	a.k, a.middle, a.outer = int64(c.Active()), int64(j1-j0), int64(hi-lo)
	dyPixel := int64(c.In.Lanes) * a.ldb
	a.am, a.bm = int64(c.SW)*pixel-a.k*4, dyPixel-a.k*a.ldb
	a.ao = int64(c.SH*c.In.W)*pixel - a.middle*int64(c.SW)*pixel
	a.bo = int64(c.OW)*dyPixel - a.middle*dyPixel
	at := g*c.GroupLen() + block*c.BlockLen() + (r*c.KW+q)*c.Inner()*16
	if a.middle <= 0 || a.outer <= 0 {
		if i0 == 0 {
			for v := range vectors {
				clear(dw[at+v*c.BlockLen()+c0*16:][:(c1-c0)*16])
			}
		}
		return
	}
	first := int64((lo*c.SH+r*c.DH-c.Top-x.first)*c.In.W+j0*c.SW+q*c.DW-c.Left)*pixel + int64(g*c.Inner()-x.channel)*lane
	panel := block * 16 / panelFilters * (i1 - i0) * c.OW // pixels before it
	b := unsafe.Add(p(scratch, 0), int64(panel+(lo-i0)*c.OW+j0)*dyPixel+int64(64*block%(4*panelFilters)))
	if a.mode = fromC; i0 == 0 {
		a.mode = fromZero
	}
	for ch := c0; ch < c1; {
		rows := w.rows(c1 - ch)
		a.rows = int64(min(rows, c1-ch))
		a.a, a.b, a.c = unsafe.Add(p(x.values, 0), first+int64(ch)*lane), b, p(dw, at+ch*16)
		w.products(rows)[vectors](a)
		ch += rows
	}
}

// outputs clips output positions [from, to) to those whose input o*stride + shift lies in [0, size).
func outputs(from, to, stride, shift, size int) (lo, hi int) {
	lo, hi = from, to
	if shift < 0 {
		lo = max(lo, (-shift+stride-1)/stride)
	}
	if shift >= size {
		return lo, lo
	}
	return lo, min(hi, (size-1-shift)/stride+1)
}
