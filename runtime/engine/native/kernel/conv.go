package kernel

import (
	"unsafe"

	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// The geometry of layers, which also says what memory they take, is the planner's.
type (
	Conv   = plan.Conv
	Pool   = plan.Pool
	Image  = plan.Image
	Border = plan.Border
)

// ImportWeights converts weights from PyTorch's layout to the one in memory.
func ImportWeights(c *Conv, dst, src []float32) {
	clear(dst)
	c.Each(func(there, here int) { dst[here] = src[there] })
}

// ExportWeights converts weights to PyTorch's layout.
func ExportWeights(c *Conv, dst, src []float32) {
	c.Each(func(there, here int) { dst[there] = src[here] })
}

// budget is how many values of weights one pass over the pixels works with where nothing is known of the machine, so
// that they stay in the second-level cache; see Blocks.
const budget = 96 << 10

// filterBlock is the most filters of a pass.
const filterBlock = 512

// portion is a part of the reduction: kernel rows, kernel columns and channels, from and to.
type portion struct{ r0, r1, q0, q1, c0, c1 int }

// weightBudget is what a pass works with here.
func (s *Set) weightBudget() int {
	if s.Blocks.Weights > 0 {
		return s.Blocks.Weights
	}
	return budget
}

// portions calls f with each part of the forward reduction for filters at a time.
func portions(c *Conv, filters, budget int, f func(portion)) {
	all := wholeOf(c)
	switch per := filters * c.Inner(); {
	case per*c.Taps() <= budget:
		f(all)
	case per*c.KW <= budget:
		step := max(1, budget/(per*c.KW))
		for r := 0; r < c.KH; r += step {
			s := all
			s.r0, s.r1 = r, min(r+step, c.KH)
			f(s)
		}
	default:
		step := max(64, budget/filters/16*16)
		for r := range c.KH {
			for q := range c.KW {
				for ch := 0; ch < c.Inner(); ch += step {
					f(portion{r, r + 1, q, q + 1, ch, min(ch+step, c.Inner())})
				}
			}
		}
	}
}

// window clips kernel taps to an image: those from and to that meet pixels of a side, for output position o.
func window(o, stride, dilation, pad, kernel, size int) (from, to int) {
	start := o*stride - pad
	if start < 0 {
		from = (-start + dilation - 1) / dilation
	}
	if to = kernel; start+(kernel-1)*dilation >= size {
		to = max(from, (size-start+dilation-1)/dilation)
	}
	return min(from, kernel), min(to, kernel)
}

// Forward computes y = conv(x, weights) + bias, and what Then says of it; bias may be nil.
func (w *Worker) Forward(c *Conv, x, weights, bias, y []float32) {
	w.ForwardPart(c, 0, c.Groups*c.Blocks(), x, weights, bias, y)
}

// ForwardPart is Forward of the blocks of 16 filters from b0 (included) to b1 (not), whose weights alone are given.
// Where there are groups these are all.
func (w *Worker) ForwardPart(c *Conv, b0, b1 int, x, weights, bias, y []float32) {
	w.shift = b0 * c.BlockLen()
	first, last := 0, c.Outer()
	if c.Groups == 1 {
		first, last = 16*b0, min(16*b1, c.Outer())
	}
	for g := range c.Groups {
		for k := first; k < last; k += filterBlock {
			end := min(k+filterBlock, last)
			if blocks := (end - k + 15) / 16; !w.sharesWeights(c, c.OH*c.OW, blocks, c.In.Len()) {
				portions(c, end-k, w.weightBudget(), func(s portion) { w.forward(c, g, k, end, s, x, weights, bias, y) })
			} else if b0, b1 := w.share(blocks); b0 < b1 {
				k0, k1 := k+16*b0, min(k+16*b1, end)
				portions(c, k1-k0, w.weightBudget(), func(s portion) {
					w.forwardPixels(c, g, k0, k1, s, 0, c.OH*c.OW, x, weights, bias, y)
				})
			}
		}
	}
	w.shift = 0
	w.Sync()
}

// sharesWeights tells whether workers share the weights of a convolution, in so many blocks, rather than the pixels
// that they compute: there are few pixels, or more weights than values to multiply them with, and equal shares of them.
// What is not shared each worker reads all of.
func (w *Worker) sharesWeights(c *Conv, pixels, blocks, values int) bool {
	equal := blocks%w.N == 0 || blocks >= 8*w.N
	return pixels < 2*w.N || w.N > 1 && equal && c.GroupLen() > values/c.Groups
}

// forward adds one slice of the reduction to the outputs of one block of filters, at this worker's pixels.
func (w *Worker) forward(c *Conv, g, k0, k1 int, s portion, x, weights, bias, y []float32) {
	pixels := c.OH * c.OW
	if s == wholeOf(c) { // what follows adds nothing to these outputs
		w.take(pixels, func(from, to int) { w.forwardPixels(c, g, k0, k1, s, from, to, x, weights, bias, y) })
		return
	}
	from, to := w.share(pixels)
	w.forwardPixels(c, g, k0, k1, s, from, to, x, weights, bias, y)
}

// wholeOf is the whole reduction of a convolution forward.
func wholeOf(c *Conv) portion { return portion{0, c.KH, 0, c.KW, 0, c.Inner()} }

func (w *Worker) forwardPixels(c *Conv, g, k0, k1 int, s portion, from, to int, x, weights, bias, y []float32) {
	for px := from; px < to; px++ {
		i, j := px/c.OW, px%c.OW
		r0, r1 := window(i, c.SH, c.DH, c.Top, c.KH, c.In.H)
		q0, q1 := window(j, c.SW, c.DW, c.Left, c.KW, c.In.W)
		if r0 == r1 || q0 == q1 {
			if s.r0 == 0 && s.q0 == 0 && s.c0 == 0 {
				w.fill(c, g, k0, k1, px, bias, y)
				w.lanesAfter(y, c.Filters, c.In.Lanes, px, g*c.Outer()+k0, g*c.Outer()+k1)
			}
			continue
		}
		t := portion{max(r0, s.r0), min(r1, s.r1), max(q0, s.q0), min(q1, s.q1), s.c0, s.c1}
		if t.r0 >= t.r1 || t.q0 >= t.q1 {
			continue
		}
		first := t.r0 == r0 && t.q0 == q0 && t.c0 == 0
		last := t.r1 == r1 && t.q1 == q1 && t.c1 == c.Inner()
		w.forwardPixel(c, g, k0, k1, px, t, first, last, x, weights, bias, y)
		if last {
			w.lanesAfter(y, c.Filters, c.In.Lanes, px, g*c.Outer()+k0, g*c.Outer()+k1)
		}
	}
}

// fill writes the bias alone, for an output that no tap reaches.
func (w *Worker) fill(c *Conv, g, k0, k1, px int, bias, y []float32) {
	for k := k0; k < k1; k++ {
		row := y[(px*c.Filters+g*c.Outer()+k)*c.In.Lanes:][:c.In.Lanes]
		for l := range row {
			row[l] = 0
			if bias != nil {
				row[l] = bias[g*c.Blocks()*16+k]
			}
			if c.ReLU {
				row[l] = max(row[l], 0)
			}
		}
	}
}

func (w *Worker) forwardPixel(c *Conv, g, k0, k1, px int, t portion, first, last bool, x, weights, bias, y []float32) {
	inner, lane := c.Inner(), int64(4*c.In.Lanes)
	pixel := int64(c.In.C) * lane
	h, v := px/c.OW*c.SH-c.Top+t.r0*c.DH, px%c.OW*c.SW-c.Left+t.q0*c.DW
	a := &w.prod
	a.rs, a.ks, a.ldb, a.ldc, a.c2 = 4, 64, lane, lane, 64
	columns := int64(t.q1 - t.q0)
	a.k, a.middle = int64(t.c1-t.c0), columns
	a.am, a.bm = int64(inner)*64-a.k*64, int64(c.DW)*pixel-a.k*lane
	if c.Groups == 1 && c.DW == 1 && int(a.k) == inner {
		a.k, a.middle, a.am, a.bm = a.k*columns, 1, 0, 0
	}
	a.outer = int64(t.r1 - t.r0)
	a.ao = int64(c.KW*inner)*64 - a.middle*(a.k*64+a.am)
	a.bo = int64(c.DH*c.In.W)*pixel - a.middle*(a.k*lane+a.bm)
	a.relu = 0
	if last && c.ReLU {
		a.relu = 1
	}
	base := unsafe.Add(p(x, 0), int64(h*c.In.W+v)*pixel+int64(g*inner+t.c0)*lane)
	start := g*c.GroupLen() - w.shift + ((t.r0*c.KW+t.q0)*inner+t.c0)*16
	for k := k0; k < k1; {
		rows := min(w.Set.tile(min(k1-k, 16-k%16)), 16-k%16)
		w.mode(a, first, bias, g*c.Blocks()*16+k)
		a.rows = int64(min(rows, k1-k))
		w.lanes(a, rows, c.Active(), p(weights, start+k/16*c.BlockLen()+k%16), base,
			p(y, (px*c.Filters+g*c.Outer()+k)*c.In.Lanes))
		k += rows
	}
}

func (w *Worker) mode(a *productArgs, first bool, bias []float32, at int) {
	switch {
	case !first:
		a.mode = fromC
	case bias == nil:
		a.mode = fromZero
	default:
		a.mode, a.bias = fromBias, p(bias, at)
	}
}

// products are the kernels for tiles of so many rows: where both operands are rounded to bfloat16, those for it.
func (w *Worker) products(rows int) *[3]func(*productArgs) {
	if w.rounds && w.f.pairs[rows][1] != nil {
		return &w.f.pairs[rows]
	}
	return &w.f.product[rows]
}

// lanes runs the tile over all lanes.
func (w *Worker) lanes(a *productArgs, rows, active int, wt, b, c unsafe.Pointer) {
	f := w.products(rows)
	for l := 0; l < active; {
		n := 1
		if w.vectors == 2 && l+32 <= active {
			n = 2
		}
		a.a, a.b, a.c = wt, unsafe.Add(b, 4*l), unsafe.Add(c, 4*l)
		if w.square == 8 {
			a.c2 = 32
		}
		f[n](a)
		l += 16 * n
	}
}

// BackData computes the gradient of a convolution's input: dx = conv^T(dy, weights), or adds it to dx. Every input
// pixel gathers from the outputs it went into, so that nothing is scattered. Workers do not wait for each other.
func (w *Worker) BackData(c *Conv, dy, weights, dx []float32, add bool) {
	for g := range c.Groups {
		backSlices(c, func(c0, c1 int, s portion) { w.backData(c, g, c0, c1, s, dy, weights, dx, add) })
	}
}

// BackDataPart is BackData by the blocks of 16 filters from b0 (included) to b1 (not), whose weights alone are given:
// the first part writes dx, unless it adds, and the others add to it. Where there are groups these are all.
func (w *Worker) BackDataPart(c *Conv, b0, b1 int, dy, weights, dx []float32, add bool) {
	if b0 == 0 && b1 == c.Groups*c.Blocks() {
		w.BackData(c, dy, weights, dx, add)
		return
	}
	w.shift = b0 * c.BlockLen()
	for c0 := 0; c0 < c.Inner(); c0 += channelBlock {
		s := portion{0, c.KH, 0, c.KW, b0, b1}
		w.backData(c, 0, c0, min(c0+channelBlock, c.Inner()), s, dy, weights, dx, add || b0 > 0)
	}
	w.shift = 0
}

// channelBlock is the most channels of a pass: their gradients stay in the cache while the slices add up.
const channelBlock = 512

// backSlices calls f with each part of the reduction: c0 and c1 of a slice are blocks of 16 filters. The order of the
// sums depends on the parts where filters do not fill blocks, so their size is the same on every machine.
func backSlices(c *Conv, f func(c0, c1 int, s portion)) {
	all := portion{0, c.KH, 0, c.KW, 0, c.Blocks()}
	for c0 := 0; c0 < c.Inner(); c0 += channelBlock {
		c1 := min(c0+channelBlock, c.Inner())
		per := (c1 - c0) * c.Outer()
		switch {
		case per*c.Taps() <= budget:
			f(c0, c1, all)
		case per*c.KW <= budget:
			for r := range c.KH {
				s := all
				s.r0, s.r1 = r, r+1
				f(c0, c1, s)
			}
		default:
			step := max(8, budget/(c1-c0)/16)
			for r := range c.KH {
				for q := range c.KW {
					for b := 0; b < c.Blocks(); b += step {
						f(c0, c1, portion{r, r + 1, q, q + 1, b, min(b+step, c.Blocks())})
					}
				}
			}
		}
	}
}

// progression lists the kernel taps that reach input position h: first, how many, the step from one to the next, the
// output position of the first, and how far that falls with each.
type progression struct{ first, count, step, out, fall int }

// reach finds the taps in [from, to) with o*stride = h + pad - t*dilation for an output o in [0, outputs).
func reach(h, pad, stride, dilation, from, to, outputs int) progression {
	a := progression{step: stride / gcd(stride, dilation)}
	a.fall = a.step * dilation / stride
	for t := from; t < to; t++ {
		n := h + pad - t*dilation
		if n < 0 {
			break
		}
		if n%stride != 0 || n/stride >= outputs {
			continue
		}
		if a.count == 0 {
			a.first, a.out = t, n/stride
		}
		a.count++
	}
	return a
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func (w *Worker) backData(c *Conv, g, c0, c1 int, s portion, dy, weights, dx []float32, add bool) {
	pixels, everything := c.In.H*c.In.W, portion{0, c.KH, 0, c.KW, 0, c.Blocks()}
	switch blocks := (c1 - c0 + 7) / 8; {
	case w.sharesWeights(c, pixels, blocks, c.Out().Len()):
		b0, b1 := w.share(blocks)
		w.backPixels(c, g, c0+8*b0, min(c1, c0+8*b1), s, 0, pixels, dy, weights, dx, add)
	case s == everything: // what follows adds nothing to these pixels
		w.take(pixels, func(from, to int) { w.backPixels(c, g, c0, c1, s, from, to, dy, weights, dx, add) })
	default:
		from, to := w.share(pixels)
		w.backPixels(c, g, c0, c1, s, from, to, dy, weights, dx, add)
	}
}

func (w *Worker) backPixels(c *Conv, g, c0, c1 int, s portion, from, to int, dy, weights, dx []float32, add bool) {
	everything := portion{0, c.KH, 0, c.KW, 0, c.Blocks()}
	for px := from; px < to; px++ {
		h, v := px/c.In.W, px%c.In.W
		rows, columns := reach(h, c.Top, c.SH, c.DH, s.r0, s.r1, c.OH), reach(v, c.Left, c.SW, c.DW, s.q0, s.q1, c.OW)
		first := !add
		if s != everything && first {
			r, q := reach(h, c.Top, c.SH, c.DH, 0, c.KH, c.OH), reach(v, c.Left, c.SW, c.DW, 0, c.KW, c.OW)
			if r.count == 0 || q.count == 0 {
				rows.count = 0
				first = s.r0 == 0 && s.q0 == 0 && s.c0 == 0
			} else {
				first = rows.count > 0 && columns.count > 0 && rows.first == r.first && columns.first == q.first && s.c0 == 0
			}
		}
		if rows.count == 0 || columns.count == 0 {
			if first {
				clear(dx[(px*c.In.C+g*c.Inner()+c0)*c.In.Lanes:][:(c1-c0)*c.In.Lanes])
			}
			continue
		}
		w.backPixel(c, g, c0, c1, px, rows, columns, s.c0, s.c1, first, dy, weights, dx)
	}
}

// backPixel sums over kernel rows (one call each), columns (outer), blocks of 16 filters (middle) and filters (inner).
func (w *Worker) backPixel(c *Conv, g, c0, c1, px int, rows, columns progression, b0, b1 int, first bool, dy, weights,
	dx []float32,
) {
	lane := int64(4 * c.In.Lanes)
	pixel := int64(c.Filters) * lane
	block := int64(4 * c.BlockLen())
	a := &w.prod
	a.rs, a.ks, a.ldb, a.ldc, a.c2, a.relu = 64, 4, lane, lane, 64, 0
	full := min(b1, c.Outer()/16) - b0 // whole blocks; the last may have fewer filters
	rest := 0
	if b1 == c.Blocks() {
		rest = c.Outer() % 16
	}
	for r := range rows.count {
		tap := (rows.first + r*rows.step) * c.KW
		out := (rows.out - r*rows.fall) * c.OW
		for part, n := range [2]int{full, rest} {
			if n <= 0 {
				continue
			}
			a.k, a.middle, a.am = 16, int64(n), block-64
			b := b0
			if part == 1 {
				a.k, a.middle, a.am, b = int64(n), 1, 0, c.Outer()/16
			}
			a.bm = 0
			a.outer = int64(columns.count)
			a.ao = int64(columns.step*c.Inner())*64 - a.middle*(a.k*4+a.am)
			a.bo = -int64(columns.fall)*pixel - a.middle*a.k*lane
			base := unsafe.Add(p(dy, 0), int64(out+columns.out)*pixel+int64(g*c.Outer()+b*16)*lane)
			start := g*c.GroupLen() - w.shift + b*c.BlockLen() + (tap+columns.first)*c.Inner()*16
			for ch := c0; ch < c1; {
				rows := w.rows(c1 - ch)
				if a.mode = fromC; first {
					a.mode = fromZero
				}
				a.rows = int64(min(rows, c1-ch))
				w.lanes(a, rows, c.Active(), p(weights, start+ch*16), base, p(dx, (px*c.In.C+g*c.Inner()+ch)*c.In.Lanes))
				ch += rows
			}
			first = false
		}
	}
}

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

// transposeRows transposes a group of filters of some rows. A pixel of dy has so many filters, and first is the group's
// first one.
func (w *Worker) transposeRows(c *Conv, filters, first, i0, i1 int, dy, scratch []float32) {
	from, to := w.share((i1 - i0) * c.OW)
	kt, n := c.Transposed(), c.Outer()
	for px := from; px < to; px++ {
		src := dy[((i0*c.OW+px)*filters+first)*c.In.Lanes:]
		dst := scratch[px*c.In.Lanes*kt:]
		w.Transpose(dst, kt, src, c.In.Lanes, n, c.Active())
		if n < kt {
			for l := range c.Active() {
				clear(dst[l*kt+n : (l+1)*kt])
			}
		}
	}
}

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
	lane, kt := int64(4*c.In.Lanes), c.Transposed()
	pixel := int64(c.In.C) * lane
	lo, hi := outputs(i0, i1, c.SH, r*c.DH-c.Top, c.In.H)
	j0, j1 := outputs(0, c.OW, c.SW, q*c.DW-c.Left, c.In.W)
	a := &w.prod
	a.relu = 0
	a.rs, a.ks, a.ldb, a.ldc = lane, 4, int64(4*kt), 64
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
	b := unsafe.Add(p(scratch, 0), int64((lo-i0)*c.OW+j0)*dyPixel+int64(64*block))
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

// BackBias computes the gradient of the bias, in its layout: dy summed over pixels and lanes. sums is scratch of 16
// values a filter.
func (w *Worker) BackBias(c *Conv, dy, db, sums []float32) {
	w.RowSums(c.Out(), c.Active(), dy, sums)
	from, to := w.channels(c.Filters) // whose sums are its own
	for k := from; k < to; k++ {
		db[c.BiasAt(k)] = float32(total(sums[16*k:][:16]))
	}
	if w.ID > 0 {
		return
	}
	group := c.Blocks() * 16 // what pads each has no gradient
	for g := range c.Groups {
		clear(db[g*group+c.Outer() : (g+1)*group])
	}
	clear(db[c.Groups*group:])
}

func total(part []float32) float64 {
	var sum float64
	for _, v := range part {
		sum += float64(v)
	}
	return sum
}
