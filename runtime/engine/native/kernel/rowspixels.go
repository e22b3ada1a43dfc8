package kernel

import "unsafe"

// Few filters leave most of a vector of 16 empty. Where pixels of a single channel lie side by side, the vector is 16
// pixels of a line instead, and filters are the rows of a tile; what comes of it is transposed to where pixels belong.
// Terms and their order are the same, and so are the bits.

// transposeCost is what it costs to transpose 16 pixels, in multiply-adds of a vector, and tileCost what it costs to
// begin and end a tile for each of its rows, both measured on one core of Zen 4.
const (
	transposeCost = 90
	tileCost      = 6
)

// byPixels tells whether a patch of so many filters costs less with pixels as the vector.
func (w *Worker) byPixels(c *Conv, s *patch, filters int) bool {
	n, taps := s.j1-s.j0, (s.r1-s.r0)*(s.q1-s.q0)
	if c.Groups > 1 || c.SW > 1 || c.In.Pixel() > 1 || n < lanes || taps == 0 {
		return false
	}
	vectors := (n + lanes - 1) / lanes
	return vectors*(max(filters, leastRows)*(taps+tileCost)+transposeCost) < n*(taps+tileCost)
}

// pixels computes a block of filters at a patch, one or two vectors of pixels of a line at a time. The last vector
// begins earlier where it would be longer than what is left.
func (w *Worker) pixels(l *rowsProduct, s *patch, block, filters int) {
	c, a := l.c, &w.prod
	columns, line, pixel := int64(s.q1-s.q0), c.In.W, l.out.Pixel()
	a.rs, a.ks, a.ldb, a.ldc, a.c2 = 4, 64, int64(4*c.DW), 4*2*lanes, 4*lanes
	if w.square == 8 {
		a.c2 = 32
	}
	a.k, a.middle, a.am, a.bm, a.outer = columns, 1, 0, 0, int64(s.r1-s.r0)
	a.ao, a.bo = (int64(c.KW)-columns)*64, int64(4*c.DH*line)-columns*a.ldb
	if a.relu = 0; c.ReLU {
		a.relu = 1
	}
	weights := block*c.BlockLen() + (s.r0*c.KW+s.q0)*16
	reach := (s.r1-s.r0-1)*c.DH*line + (s.q1-s.q0-1)*c.DW // from the first value of a sum to its last
	for n := range (s.b1 - s.b0) * (s.i1 - s.i0) {
		b, i := s.b0+n/(s.i1-s.i0), s.i0+n%(s.i1-s.i0)
		x := b*c.In.Row() + (i*c.SH-c.Top+s.r0*c.DH)*line + s.q0*c.DW - c.Left
		y := b*l.out.Row() + i*l.out.W*pixel + block*16
		for j := s.j0; j < s.j1; j += lanes {
			j = min(j, s.j1-lanes)
			a.b = p(l.x, x+j)
			if w.vectors == 1 || j+lanes == s.j1 || x+j+reach+2*lanes > len(l.x) {
				w.filters(l, weights, block*16, filters, 1)
				w.turnPixels(l.y[y+j*pixel:], pixel, 0, filters)
				continue
			}
			w.filters(l, weights, block*16, filters, 2) // which may reach beyond the line: that is not used
			w.turnPixels(l.y[y+j*pixel:], pixel, 0, filters)
			second := min(j+lanes, s.j1-lanes)
			w.turnPixels(l.y[y+second*pixel:], pixel, second-j, filters)
			j = second
		}
	}
}

// turnPixels puts filters of 16 pixels, the first of them at from, where these belong.
func (w *Worker) turnPixels(y []float32, pixel, from, filters int) {
	a, f, side := &w.tr, w.f.transpose, w.square
	if filters <= 8 {
		f, side = w.f.transpose8, 8
	}
	_ = y[(lanes-1)*pixel : (lanes-1)*pixel+(filters+side-1)/side*side]
	a.ds, a.ss = int64(4*pixel), 4*2*lanes
	for k := 0; k < filters; k += side {
		for n := 0; n < lanes; n += side {
			a.dst, a.src = p(y, n*pixel+k), p(w.edge[:], k*2*lanes+from+n)
			f(a)
		}
	}
}

// filters computes filters of vectors of pixels into the worker's edge, [filters][2][16].
func (w *Worker) filters(l *rowsProduct, weights, bias, filters, vectors int) {
	a := &w.prod
	for k := 0; k < filters; {
		rows := w.Set.tile(filters - k)
		a.rows = int64(min(rows, filters-k))
		a.a, a.c = p(l.weights, weights+k), unsafe.Pointer(&w.edge[k*2*lanes])
		w.mode(a, true, l.bias, bias+k)
		w.f.product[rows][vectors](a)
		k += int(a.rows)
	}
}
