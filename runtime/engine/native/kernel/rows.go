package kernel

import "unsafe"

// What follows computes with few rows of a batch, which lie one behind the other: [row][height][width][depth], see
// plan.Image. Filters are the vector, and a tile's rows are pixels, of an image's row or column or of the same place in
// several rows of the batch. Sums have the terms and the order of the batch's lanes, and so the same bits.

// axis is one way to go from output to output: how many there are, and how many values lie between two of them in x and
// in y.
type axis struct{ n, x, y int }

// patch is a set of outputs that the same taps of the kernel reach.
type patch struct {
	b0, b1         int  // rows of the batch
	i0, i1, j0, j1 int  // rows and columns of the output
	r0, r1, q0, q1 int  // taps
	done           bool // of the blocks of filters at work
}

// same finds the end of the outputs from o on that the same taps reach.
func same(o, end, stride, dilation, pad, kernel, size int) (from, to, next int) {
	from, to = window(o, stride, dilation, pad, kernel, size)
	if from == 0 && to == kernel { // and so on until one leaves the image
		return from, to, min(end, (size-1+pad-(kernel-1)*dilation)/stride+1)
	}
	for next = o + 1; next < end; next++ {
		if f, t := window(next, stride, dilation, pad, kernel, size); f != from || t != to {
			break
		}
	}
	return from, to, next
}

// RowsForward is Forward for rows of the batch, each an image of c.In and of out.
func (w *Worker) RowsForward(c *Conv, out Image, rows int, x, weights, bias, y []float32) {
	blocks := c.Groups * c.Blocks()
	k0, k1 := 0, blocks
	first, last := 0, rows*c.OH // of the outputs' rows, all rows of the batch behind each other
	if c.Groups == 1 && (blocks >= 2*w.N || last < w.N) {
		k0, k1 = w.share(blocks)
	} else {
		first, last = w.share(last)
	}
	l := rowsProduct{c: c, out: out, x: x, weights: weights, bias: bias, y: y, k0: k0, k1: k1}
	switch {
	case k0 == k1 || first == last:
	case first == 0 && last == rows*c.OH: // all rows of the batch at once
		w.patches(&l, 0, rows, 0, c.OH)
	default:
		for b := first / c.OH; b*c.OH < last; b++ {
			w.patches(&l, b, b+1, max(first-b*c.OH, 0), min(last-b*c.OH, c.OH))
		}
	}
	w.Sync()
}

// rowsProduct is one worker's part of a product of rows: some blocks of 16 filters.
type rowsProduct struct {
	c                   *Conv
	out                 Image
	x, weights, bias, y []float32
	k0, k1              int
}

// patches computes output rows from i0 (included) to i1 (not), some blocks of filters of all patches after the others:
// there may be more weights than a cache holds, and every patch reads those of its taps.
func (w *Worker) patches(l *rowsProduct, b0, b1, i0, i1 int) {
	c := l.c
	w.cutPatches(c, b0, b1, i0, i1)
	for k := l.k0; k < l.k1; k += lineBlocks {
		end := min(k+lineBlocks, l.k1)
		for n := range w.parts {
			s := &w.parts[n]
			s.done = end == k+lineBlocks && w.single(l, s, k)
		}
		for block := k; block < end; block++ {
			for n := range w.parts {
				if s := &w.parts[n]; !s.done {
					w.patch(l, s, block/c.Blocks(), block%c.Blocks())
				}
			}
		}
	}
	if w.after != nil {
		for n := range w.parts {
			w.patchAfter(l, &w.parts[n])
		}
	}
}

// cutPatches cuts output rows from i0 (included) to i1 (not) into patches.
func (w *Worker) cutPatches(c *Conv, b0, b1, i0, i1 int) {
	w.parts = w.parts[:0]
	s := patch{b0: b0, b1: b1}
	for s.i0 = i0; s.i0 < i1; s.i0 = s.i1 {
		s.r0, s.r1, s.i1 = same(s.i0, i1, c.SH, c.DH, c.Top, c.KH, c.In.H)
		for s.j0 = 0; s.j0 < c.OW; s.j0 = s.j1 {
			s.q0, s.q1, s.j1 = same(s.j0, c.OW, c.SW, c.DW, c.Left, c.KW, c.In.W)
			w.parts = append(w.parts, s)
		}
	}
}

// patch computes 16 filters of a group at a patch.
func (w *Worker) patch(l *rowsProduct, s *patch, group, block int) {
	c := l.c
	pixel, line := c.In.Pixel(), c.In.W*c.In.Pixel()
	filter := group*c.Outer() + block*16
	bias := unsafe.Pointer(nil)
	if l.bias != nil {
		bias = p(l.bias, (group*c.Blocks()+block)*16)
	}
	filters := min(16, c.Outer()-block*16)
	if w.byPixels(c, s, filters) {
		w.pixels(l, s, block, filters)
		return
	}
	if c.Groups == 1 {
		filters = 16 // what pads them may be written
	}
	ways := [3]axis{
		{s.j1 - s.j0, c.SW * pixel, l.out.Pixel()},
		{s.i1 - s.i0, c.SH * line, l.out.W * l.out.Pixel()},
		{s.b1 - s.b0, c.In.Row(), l.out.Row()},
	}
	join(&ways)
	from := s.b0*c.In.Row() + (s.i0*c.SH-c.Top+s.r0*c.DH)*line + (s.j0*c.SW-c.Left+s.q0*c.DW)*pixel + group*c.Inner()
	to := s.b0*l.out.Row() + (s.i0*l.out.W+s.j0)*l.out.Pixel() + filter
	empty := s.r0 == s.r1 || s.q0 == s.q1
	if !empty {
		w.reduction(c, s, bias, p(l.weights, group*c.GroupLen()+block*c.BlockLen()+(s.r0*c.KW+s.q0)*c.Inner()*16))
	}
	w.cutLine(ways[0])
	for m := range ways[1].n {
		for n := range ways[2].n {
			x, y := from+m*ways[1].x+n*ways[2].x, to+m*ways[1].y+n*ways[2].y
			if empty {
				w.biasAlone(l, ways[0], y, filters, bias)
				continue
			}
			w.line(l, ways[0], x, y, filters)
		}
	}
}

// lineBlocks is how many blocks of 16 filters a line takes.
const lineBlocks = 4

// single computes lineBlocks blocks of filters of a patch that is one output, from block on, and says whether it is.
func (w *Worker) single(l *rowsProduct, s *patch, block int) bool {
	c := l.c
	if c.Groups > 1 || (s.b1-s.b0)*(s.i1-s.i0)*(s.j1-s.j0) != 1 || s.r0 == s.r1 || s.q0 == s.q1 {
		return false
	}
	bias := unsafe.Pointer(nil)
	if l.bias != nil {
		bias = p(l.bias, block*16)
	}
	w.reduction(c, s, bias, p(l.weights, block*c.BlockLen()+(s.r0*c.KW+s.q0)*c.Inner()*16))
	a := &w.prod
	a.c2 = int64(4 * c.BlockLen())
	a.a = p(l.x, s.b0*c.In.Row()+((s.i0*c.SH-c.Top+s.r0*c.DH)*c.In.W+s.j0*c.SW-c.Left+s.q0*c.DW)*c.In.Pixel())
	a.c = p(l.y, s.b0*l.out.Row()+(s.i0*l.out.W+s.j0)*l.out.Pixel()+block*16)
	w.f.line(a)
	return true
}

// reduction sets up the sum over taps and channels.
func (w *Worker) reduction(c *Conv, s *patch, bias, weights unsafe.Pointer) {
	a := &w.prod
	inner, columns, pixel := int64(c.Inner()), int64(s.q1-s.q0), int64(4*c.In.Pixel())
	a.b, a.ks, a.ldb, a.c2 = weights, 4, 64, 64
	if w.square == 8 {
		a.c2 = 32
	}
	a.k, a.middle, a.am, a.bm = inner, columns, int64(c.DW)*pixel-4*inner, 0
	if 4*inner == pixel && c.DW == 1 {
		a.k, a.middle, a.am = inner*columns, 1, 0
	}
	a.outer = int64(s.r1 - s.r0)
	a.ao = int64(c.DH*c.In.W)*pixel - a.middle*(4*a.k+a.am)
	a.bo = (int64(c.KW)*inner - a.middle*a.k) * 64
	if a.mode = fromZero; bias != nil {
		a.mode, a.bias = fromVector, bias
	}
	if a.relu = 0; c.ReLU {
		a.relu = 1
	}
}

// biasAlone is for outputs that no tap reaches.
func (w *Worker) biasAlone(l *rowsProduct, way axis, y, filters int, bias unsafe.Pointer) {
	for n := range way.n {
		to := l.y[y+n*way.y:][:filters]
		clear(to)
		if bias != nil {
			copy(to, vector(bias, 0)[:])
		}
		for i, v := range to {
			if l.c.ReLU && v < 0 {
				to[i] = 0
			}
		}
	}
}

// patchAfter finishes this worker's filters of a patch.
func (w *Worker) patchAfter(l *rowsProduct, s *patch) {
	if w.after == nil {
		return
	}
	first, n := l.k0*16, (l.k1-l.k0)*16
	if l.c.Groups > 1 { // whose filters fill no vectors: all of them are this worker's
		first, n = 0, l.out.Pixel()
	}
	for b := s.b0; b < s.b1; b++ {
		for i := s.i0; i < s.i1; i++ {
			for j := s.j0; j < s.j1; j++ {
				w.rowAfter(l.y[b*l.out.Row()+(i*l.out.W+j)*l.out.Pixel()+first:], first, n)
			}
		}
	}
}
