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
