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
		all := windowOf(c, px)
		if all.r0 == all.r1 || all.q0 == all.q1 {
			if s.r0 == 0 && s.q0 == 0 && s.c0 == 0 {
				w.fill(c, g, k0, k1, px, bias, y)
				w.lanesAfter(y, c.Filters, c.In.Lanes, px, g*c.Outer()+k0, g*c.Outer()+k1)
			}
			continue
		}
		t := portion{max(all.r0, s.r0), min(all.r1, s.r1), max(all.q0, s.q0), min(all.q1, s.q1), s.c0, s.c1}
		if t.r0 >= t.r1 || t.q0 >= t.q1 {
			continue
		}
		first := t.r0 == all.r0 && t.q0 == all.q0 && t.c0 == 0
		last := t.r1 == all.r1 && t.q1 == all.q1 && t.c1 == c.Inner()
		pair := w.pairsPixels(c) && px+1 < to && windowOf(c, px+1) == all
		w.forwardPixel(c, g, k0, k1, px, pair, t, first, last, x, weights, bias, y)
		for end := px + 1; ; px++ {
			if last {
				w.lanesAfter(y, c.Filters, c.In.Lanes, px, g*c.Outer()+k0, g*c.Outer()+k1)
			}
			if !pair || px == end {
				break
			}
		}
	}
}

// windowOf is the taps that meet the image at an output pixel.
func windowOf(c *Conv, px int) (p portion) {
	p.r0, p.r1 = window(px/c.OW, c.SH, c.DH, c.Top, c.KH, c.In.H)
	p.q0, p.q1 = window(px%c.OW, c.SW, c.DW, c.Left, c.KW, c.In.W)
	return p
}

// pairsPixels tells whether one tile computes two pixels, each of which fills half of its columns. Kernels for pairs of
// bfloat16 do not.
func (w *Worker) pairsPixels(c *Conv) bool {
	return w.vectors == 2 && c.In.Lanes == lanes && !(w.rounds && w.f.pairs[w.tiles[0]][1] != nil)
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

// forwardPixel computes a pixel, or a pair: it and the next.
func (w *Worker) forwardPixel(c *Conv, g, k0, k1, px int, pair bool, t portion, first, last bool, x, weights, bias,
	y []float32,
) {
	inner, lane := c.Inner(), int64(4*c.In.Lanes)
	pixel := int64(c.In.C) * lane
	input := func(px int) int64 { // where its first tap reads
		h, v := px/c.OW*c.SH-c.Top+t.r0*c.DH, px%c.OW*c.SW-c.Left+t.q0*c.DW
		return int64(h*c.In.W+v)*pixel + int64(g*inner+t.c0)*lane
	}
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
	if pair {
		a.b2, a.c2 = input(px+1)-input(px)-64, int64(c.Filters)*lane
	}
	base := unsafe.Add(p(x, 0), input(px))
	start := g*c.GroupLen() - w.shift + ((t.r0*c.KW+t.q0)*inner+t.c0)*16
	for k := k0; k < k1; {
		rows := min(w.Set.tile(min(k1-k, 16-k%16)), 16-k%16)
		w.mode(a, first, bias, g*c.Blocks()*16+k)
		a.rows = int64(min(rows, k1-k))
		w.lanes(a, rows, c.Active(), pair, p(weights, start+k/16*c.BlockLen()+k%16), base,
			p(y, (px*c.Filters+g*c.Outer()+k)*c.In.Lanes))
		k += rows
	}
	a.b2 = 0
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

// lanes runs the tile over all lanes, of a pair of pixels where b2 and c2 lead to the second.
func (w *Worker) lanes(a *productArgs, rows, active int, pair bool, wt, b, c unsafe.Pointer) {
	f := w.products(rows)
	if pair {
		a.a, a.b, a.c = wt, b, c
		f[2](a)
		return
	}
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
	for px := from; px < to; px++ {
		t := tapsBack(c, px, s, add)
		if t.rows.count == 0 || t.columns.count == 0 {
			if t.first {
				clear(dx[(px*c.In.C+g*c.Inner()+c0)*c.In.Lanes:][:(c1-c0)*c.In.Lanes])
			}
			continue
		}
		apart := 0
		if w.pairsPixels(c) && px+1 < to {
			apart = t.apart(c, tapsBack(c, px+1, s, add))
		}
		w.backPixel(c, g, c0, c1, px, apart, t, s.c0, s.c1, dy, weights, dx)
		if apart != 0 {
			px++
		}
	}
}

// backTaps are the taps of a portion that reach an input pixel. first: they are the first that do, and no sum is there.
type backTaps struct {
	rows, columns progression
	first         bool
}

func tapsBack(c *Conv, px int, s portion, add bool) (t backTaps) {
	h, v := px/c.In.W, px%c.In.W
	t.rows, t.columns = reach(h, c.Top, c.SH, c.DH, s.r0, s.r1, c.OH), reach(v, c.Left, c.SW, c.DW, s.q0, s.q1, c.OW)
	if t.first = !add; add || s == (portion{0, c.KH, 0, c.KW, 0, c.Blocks()}) {
		return t
	}
	r, q := reach(h, c.Top, c.SH, c.DH, 0, c.KH, c.OH), reach(v, c.Left, c.SW, c.DW, 0, c.KW, c.OW)
	if r.count == 0 || q.count == 0 {
		t.rows.count = 0
		t.first = s.r0 == 0 && s.q0 == 0 && s.c0 == 0
		return t
	}
	t.first = t.rows.count > 0 && t.columns.count > 0 && t.rows.first == r.first && t.columns.first == q.first && s.c0 == 0
	return t
}

// apart is how many pixels of the output lie between those that two pixels take at the same taps; 0: the taps differ.
func (t backTaps) apart(c *Conv, next backTaps) int {
	n := (next.rows.out-t.rows.out)*c.OW + next.columns.out - t.columns.out
	if next.rows.out, next.columns.out = t.rows.out, t.columns.out; next != t {
		return 0
	}
	return n
}

// backPixel sums over kernel rows (one call each), columns (outer), blocks of 16 filters (middle) and filters (inner).
// It computes a pixel and the next, unless they are apart by 0.
func (w *Worker) backPixel(c *Conv, g, c0, c1, px, apart int, t backTaps, b0, b1 int, dy, weights, dx []float32) {
	rows, columns, first := t.rows, t.columns, t.first
	lane := int64(4 * c.In.Lanes)
	pixel := int64(c.Filters) * lane
	block := int64(4 * c.BlockLen())
	a := &w.prod
	a.rs, a.ks, a.ldb, a.ldc, a.c2, a.relu = 64, 4, lane, lane, 64, 0
	if apart != 0 {
		a.b2, a.c2 = int64(apart)*pixel-64, int64(c.In.C)*lane
	}
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
				w.lanes(a, rows, c.Active(), apart != 0, p(weights, start+ch*16), base,
					p(dx, (px*c.In.C+g*c.Inner()+ch)*c.In.Lanes))
				ch += rows
			}
			first = false
		}
	}
	a.b2 = 0
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
