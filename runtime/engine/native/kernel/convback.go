package kernel

import "unsafe"

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
	pixels, whole := c.In.H*c.In.W, portion{0, c.KH, 0, c.KW, 0, c.Blocks()}
	switch blocks := (c1 - c0 + 7) / 8; {
	case w.sharesWeights(c, pixels, blocks, c.Out().Len()):
		b0, b1 := w.share(blocks)
		w.backPixels(c, g, c0+8*b0, min(c1, c0+8*b1), s, 0, pixels, dy, weights, dx, add)
	case s == whole: // what follows adds nothing to these pixels
		w.take(pixels, func(from, to int) { w.backPixels(c, g, c0, c1, s, from, to, dy, weights, dx, add) })
	default:
		from, to := w.share(pixels)
		w.backPixels(c, g, c0, c1, s, from, to, dy, weights, dx, add)
	}
}

func (w *Worker) backPixels(c *Conv, g, c0, c1 int, s portion, from, to int, dy, weights, dx []float32, add bool) {
	whole := portion{0, c.KH, 0, c.KW, 0, c.Blocks()}
	for px := from; px < to; px++ {
		h, v := px/c.In.W, px%c.In.W
		rows, columns := reach(h, c.Top, c.SH, c.DH, s.r0, s.r1, c.OH), reach(v, c.Left, c.SW, c.DW, s.q0, s.q1, c.OW)
		first := !add
		if s != whole && first {
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
