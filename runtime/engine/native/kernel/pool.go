package kernel

import (
	"math"
	"unsafe"
)

func sqrt(x float64) float64 { return math.Sqrt(x) }

// gather lists the taps of output pixel (i, j): byte offsets from the first pixel of the input, and weight offsets.
func (w *Worker) gather(g *Pool, i, j int) int {
	r0, r1 := window(i, g.SH, g.DH, g.Top, g.KH, g.In.H)
	q0, q1 := window(j, g.SW, g.DW, g.Left, g.KW, g.In.W)
	n := 0
	for r := r0; r < r1; r++ {
		for q := q0; q < q1; q++ {
			px := (i*g.SH-g.Top+r*g.DH)*g.In.W + j*g.SW - g.Left + q*g.DW
			w.offs[n], w.woffs[n] = int64(4*px*g.In.Pixel()), int64(4*(r*g.KW+q)*g.In.C)
			n++
		}
	}
	w.tap.offs, w.tap.woffs, w.tap.count = unsafe.Pointer(&w.offs[0]), unsafe.Pointer(&w.woffs[0]), int64(n)
	return n
}

// run lists the taps of output pixel px, as gather does. They serve px and the pixels to its right, in its row and
// before to, that the same taps reach. run returns the numbers of taps and pixels. A kernel that takes several pixels
// computes them at once: where a pixel is a vector or two, calls would cost more than what they compute.
func (w *Worker) run(g *Pool, px, to int) (taps, pixels int) {
	i, j := px/g.OW, px%g.OW
	_, _, next := same(j, min(g.OW, j+to-px), g.SW, g.DW, g.Left, g.KW, g.In.W)
	a := &w.tap
	a.pixels, a.xPixel, a.yPixel = int64(next-j), int64(4*g.SW*g.In.Pixel()), int64(4*g.In.Pixel())
	return w.gather(g, i, j), next - j
}

// MaxPool computes y. An output that only padding reaches is minus infinity.
func (w *Worker) MaxPool(g *Pool, x, y []float32) {
	from, to := w.share(g.OH * g.OW)
	a := &w.tap
	a.x, a.bytes = p(x, 0), int64(4*g.In.Pixel())
	for px := from; px < to; {
		taps, pixels := w.run(g, px, to)
		if taps > 0 {
			a.y, a.scale = p(y, px*g.In.Pixel()), float32(math.Inf(-1))
			w.f.maxPool(a)
		}
		px += pixels
	}
	w.Sync()
}

// depths is this worker's part of the values of every pixel. Backward passes of pools add to pixels that windows share,
// so workers share values, not pixels.
func (w *Worker) depths(in Image) (from int, bytes int64) {
	from, to := w.chunk(in.Pixel())
	return from, int64(4 * (to - from))
}

// MaxPoolBack adds the gradient dy of y to dx; of equal inputs the first gets it.
func (w *Worker) MaxPoolBack(g *Pool, x, y, dy, dx []float32) {
	from, bytes := w.depths(g.In)
	a := &w.tap
	if a.bytes = bytes; bytes > 0 {
		a.x, a.dx = p(x, from), p(dx, from)
		for px := range g.OH * g.OW {
			if w.gather(g, px/g.OW, px%g.OW) == 0 {
				continue
			}
			a.y = p(y, px*g.In.Pixel()+from)
			a.dy = p(dy, px*g.In.Pixel()+from)
			w.f.maxPoolBack(a)
		}
	}
	w.Sync()
}

// factor is what a sum over taps is multiplied with.
func factor(g *Pool, taps int) float32 {
	if g.CountPad {
		taps = g.KH * g.KW
	}
	return 1 / float32(taps)
}

// AvgPool computes y: the mean over the window's pixels, or over the window where CountPad is set.
func (w *Worker) AvgPool(g *Pool, x, y []float32) {
	from, to := w.share(g.OH * g.OW)
	a := &w.tap
	a.x, a.bytes = p(x, 0), int64(4*g.In.Pixel())
	for px := from; px < to; {
		taps, pixels := w.run(g, px, to)
		if taps == 0 {
			clear(y[px*g.In.Pixel():][:pixels*g.In.Pixel()])
		} else {
			a.y, a.scale = p(y, px*g.In.Pixel()), factor(g, taps)
			w.f.sumPool(a)
		}
		px += pixels
	}
	w.Sync()
}

// AvgPoolBack adds the gradient dy to dx.
func (w *Worker) AvgPoolBack(g *Pool, dy, dx []float32) {
	from, bytes := w.depths(g.In)
	a := &w.tap
	if a.bytes = bytes; bytes > 0 {
		a.dx = p(dx, from)
		for px := range g.OH * g.OW {
			n := w.gather(g, px/g.OW, px%g.OW)
			if n == 0 {
				continue
			}
			a.y, a.scale = p(dy, px*g.In.Pixel()+from), factor(g, n)
			w.f.sumPoolBack(a)
		}
	}
	w.Sync()
}

// bins is where adaptive bin b of n over size pixels starts and ends (PyTorch's rule).
func bins(b, n, size int) (from, to int) { return b * size / n, ((b+1)*size + n - 1) / n }

// adaptive calls f with every output pixel's window as gather leaves it.
func (w *Worker) adaptive(in Image, oh, ow, from, to int, f func(px, taps int)) {
	for px := from; px < to; px++ {
		h0, h1 := bins(px/ow, oh, in.H)
		v0, v1 := bins(px%ow, ow, in.W)
		n := 0
		for h := h0; h < h1; h++ {
			for v := v0; v < v1; v++ {
				w.offs[n] = int64(4 * (h*in.W + v) * in.Pixel())
				n++
			}
		}
		w.tap.offs, w.tap.count = unsafe.Pointer(&w.offs[0]), int64(n)
		f(px, n)
	}
}

// AdaptivePool averages to oh x ow pixels; one pixel is the global average.
func (w *Worker) AdaptivePool(in Image, oh, ow int, x, y []float32) {
	from, bytes := w.depths(in)
	a := &w.tap
	if a.bytes, a.pixels = bytes, 1; bytes > 0 {
		a.x = p(x, from)
		w.adaptive(in, oh, ow, 0, oh*ow, func(px, n int) {
			a.y, a.scale = p(y, px*in.Pixel()+from), 1/float32(n)
			w.f.sumPool(a)
		})
	}
	w.Sync()
}

// AdaptivePoolBack adds the gradient dy to dx.
func (w *Worker) AdaptivePoolBack(in Image, oh, ow int, dy, dx []float32) {
	from, bytes := w.depths(in)
	a := &w.tap
	if a.bytes = bytes; bytes > 0 {
		a.dx = p(dx, from)
		w.adaptive(in, oh, ow, 0, oh*ow, func(px, n int) {
			a.y, a.scale = p(dy, px*in.Pixel()+from), 1/float32(n)
			w.f.sumPoolBack(a)
		})
	}
	w.Sync()
}

// DepthwiseForward computes a depthwise convolution; weights are [KH KW][C], bias [C] or nil is added by the caller.
func (w *Worker) DepthwiseForward(g *Pool, x, weights, y []float32) {
	w.tap.dx = nil
	from, to := w.share(g.OH * g.OW)
	for px := from; px < to; px++ {
		if w.gather(g, px/g.OW, px%g.OW) == 0 {
			clear(y[px*g.In.Pixel():][:g.In.Pixel()])
		} else {
			w.depthwise(g, x, weights, y, px)
		}
		w.lanesAfter(y, g.In.C, g.In.Lanes, px, 0, g.In.C)
	}
	w.Sync()
}

func (w *Worker) depthwise(g *Pool, x, weights, y []float32, px int) {
	a, in := &w.tap, g.In
	a.row, a.lanes = int64(4*in.Lanes), int64(4*g.Active())
	four := in.C / 4 * 4
	for b, n := range [2]int{four, in.C - four} {
		if n == 0 {
			continue
		}
		first := b * four
		a.channels = int64(n)
		a.x, a.y, a.w = p(x, first*in.Lanes), p(y, px*in.Pixel()+first*in.Lanes), p(weights, first)
		w.f.depthwise[b](a)
	}
}

// DepthwiseBackData computes dx, or adds to it.
func (w *Worker) DepthwiseBackData(g *Pool, dy, weights, dx []float32, add bool) {
	if w.tap.dx = nil; add {
		w.tap.dx = p(dx, 0) // any address will do
	}
	from, to := w.share(g.In.H * g.In.W)
	for px := from; px < to; px++ {
		rows := reach(px/g.In.W, g.Top, g.SH, g.DH, 0, g.KH, g.OH)
		columns := reach(px%g.In.W, g.Left, g.SW, g.DW, 0, g.KW, g.OW)
		n := 0
		for r := range rows.count {
			for q := range columns.count {
				out := (rows.out-r*rows.fall)*g.OW + columns.out - q*columns.fall
				w.offs[n] = int64(4 * out * g.In.Pixel())
				w.woffs[n] = int64(4 * ((rows.first+r*rows.step)*g.KW + columns.first + q*columns.step) * g.In.C)
				n++
			}
		}
		if n == 0 {
			if !add {
				clear(dx[px*g.In.Pixel():][:g.In.Pixel()])
			}
			continue
		}
		w.tap.offs, w.tap.woffs, w.tap.count = unsafe.Pointer(&w.offs[0]), unsafe.Pointer(&w.woffs[0]), int64(n)
		w.depthwise(g, dy, weights, dx, px)
	}
	w.Sync()
}

// DepthwiseBackWeights computes dw, [KH KW][C]; sums is scratch of [C][16].
func (w *Worker) DepthwiseBackWeights(g *Pool, x, dy, dw, sums []float32) {
	from, to := w.channels(g.In.C)
	if from == to {
		return
	}
	a := &w.chn
	a.row, a.lanes = int64(4*g.In.Lanes), int64(4*g.Active())
	a.xPixel, a.yPixel = int64(4*g.SW*g.In.Pixel()), int64(4*g.In.Pixel())
	for r := range g.KH {
		for q := range g.KW {
			clear(sums[from*lanes : to*lanes])
			i0, i1 := outputs(0, g.OH, g.SH, r*g.DH-g.Top, g.In.H)
			j0, j1 := outputs(0, g.OW, g.SW, q*g.DW-g.Left, g.In.W)
			a.pixels = int64(j1 - j0)
			for i := i0; i < i1 && j0 < j1; i++ {
				in := (i*g.SH+r*g.DH-g.Top)*g.In.W + j0*g.SW + q*g.DW - g.Left
				w.dotRow(g.In, x, dy, sums, in, i*g.OW+j0, from, to)
			}
			for c := from; c < to; c++ {
				dw[(r*g.KW+q)*g.In.C+c] = float32(total(sums[c*lanes:][:lanes]))
			}
		}
	}
}

func (w *Worker) dotRow(in Image, x, dy, sums []float32, xPixel, yPixel, from, to int) {
	a := &w.chn
	for c := from; c < to; {
		n, kernel := w.block, w.f.dots[0]
		if c+n > to {
			n, kernel = 1, w.f.dots[1]
		}
		a.x, a.y, a.out = p(x, xPixel*in.Pixel()+c*in.Lanes), p(dy, yPixel*in.Pixel()+c*in.Lanes), p(sums, c*lanes)
		a.z = a.y
		kernel(a)
		c += n
	}
}
