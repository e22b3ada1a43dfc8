package kernel

import (
	"unsafe"

	"github.com/disdel/disdel/runtime/engine/native/plan"
	"github.com/disdel/disdel/runtime/engine/native/winograd"
)

// flow is what one Winograd convolution works with: a kernel at stride 1 over an image of c channels, which gives out,
// an image of k. Its scratch is cut into the matrices of the kernel, [points][k/16][c][16] forward and
// [points][c/16][k][16] back, the panels of the image, [points][unit][c][wide], those of the output, [points][unit]
// [k][wide], and two pixels. A unit is a tile's part of wide lanes.
type flow struct {
	tile      winograd.Tile
	turns     *transforms // the tile's
	c, k      int
	in, out   Image
	top, left int  // pixels before the first tile
	back      bool // of a gradient: the kernel is turned, and its channels and filters change places
	add, relu bool
	active    int // lanes that are computed

	x, weights, bias, y []float32
	halves              Halves    // x, where it was shortened
	window              []float32 // and memory for tiles of it

	wide, units, total        int // lanes of a unit, units of a pass, and of all
	side                      int // back to weights: filters side by side
	kernels, panels, products []float32
	zeros, waste              []float32
}

// points is how many products stand for a tile.
func (f *flow) points() int { return f.tile.Points() }

// start sets the flow's tile, and where the first begins of an image with so much padding.
func (w *Worker) start(t winograd.Tile, top, left int) {
	f := &w.flow
	f.tile, f.turns, f.top, f.left = t, w.f.winograd[t], top, left
	if t.H.IsWhole() {
		f.top = 0
	}
	if t.W.IsWhole() {
		f.left = 0
	}
}

// cut finds the parts of the scratch, and how the lanes are cut into units.
func (f *flow) cut(vectors int, scratch []float32) {
	f.wide = lanes
	if vectors == 2 && f.active%(2*lanes) == 0 && f.columns() >= 2*lanes {
		f.wide = 2 * lanes
	}
	scratch = f.parts(scratch)
	f.zeros, f.waste = scratch[:f.in.Pixel()], scratch[f.in.Pixel():][:f.out.Pixel()]
}

// cutBack is cut for the gradient of weights, whose waste are pixels of the output's gradient, transposed.
func (f *flow) cutBack(vectors int, scratch []float32) {
	f.wide = lanes
	if f.side = lanes; vectors == 2 && f.k%(2*lanes) == 0 {
		f.side = 2 * lanes
	}
	scratch = f.parts(scratch)
	f.zeros, f.waste = scratch[:f.in.Pixel()], scratch[f.in.Pixel():][:f.tile.Out()*lanes*f.k]
}

func (f *flow) columns() int {
	return plan.WinogradColumns(f.tile, f.c, f.k, f.out.H, f.out.W, f.in.Lanes)
}

// parts cuts off matrices and panels, and returns the rest.
func (f *flow) parts(scratch []float32) []float32 {
	f.units = f.columns() / f.wide
	rows, columns := f.tile.Across(f.out.H, f.out.W)
	f.total = rows * columns * (f.active / f.wide)
	for _, to := range []struct {
		part *[]float32
		n    int
	}{{&f.kernels, f.c * f.k}, {&f.panels, f.c * f.columns()}, {&f.products, f.k * f.columns()}} {
		*to.part, scratch = scratch[:f.points()*to.n], scratch[f.points()*to.n:]
	}
	return scratch
}

// WinogradForward is Forward by Winograd's algorithm, for a convolution whose Tile says so; scratch has its ForwardLen.
func (w *Worker) WinogradForward(c *Conv, x, weights, bias, y, scratch []float32) {
	w.flow = flow{
		c: c.In.C, k: c.Filters, in: c.In, out: c.Out(), relu: c.ReLU, active: c.Active(), x: x, weights: weights,
		bias: bias, y: y,
	}
	w.start(c.Tile, c.Top, c.Left)
	w.flow.cut(w.vectors, scratch)
	w.winograd(c)
	w.allAfter(c.Out(), y)
}

// WinogradBackData is BackData by Winograd's algorithm, for a convolution whose BackTile says so; scratch has its
// BackDataLen.
func (w *Worker) WinogradBackData(c *Conv, dy, weights, dx, scratch []float32, add bool) {
	w.flow = flow{
		c: c.Filters, k: c.In.C, in: c.Out(), out: c.In, back: true, add: add, active: c.Active(), x: dy,
		weights: weights, y: dx,
	}
	w.start(c.BackTile, c.KH-1-c.Top, c.KW-1-c.Left)
	w.flow.cut(w.vectors, scratch)
	w.winograd(c)
}

// turnKernels transforms the weights, 16 filters and all channels at a time.
func (w *Worker) turnKernels(c *Conv) {
	f, a := &w.flow, &w.wino
	w.kernelTaps(c)
	a.width, a.point = int64(4*16*c.In.C), 4*int64(f.c*f.k)
	from, to, room := w.roundingRoom(c)
	for b := from; b < to; b++ {
		block := f.weights[b*c.BlockLen():][:c.BlockLen()]
		if w.rounds {
			w.alone(func() { w.Round(room, block) })
			block = room
		}
		a.src, a.dst = p(block, 0), p(f.kernels, b*c.In.C*16)
		f.turns.weights.run(a)
	}
}

// kernelTaps has a transform find the taps of a kernel in memory, turned back.
func (w *Worker) kernelTaps(c *Conv) {
	f, a := &w.flow, &w.wino
	inner, last := 4*16*c.In.C, c.Taps()-1
	for i := range last + 1 {
		if w.taps[i] = int64(i * inner); f.back {
			w.taps[i] = int64((last - i) * inner)
		}
	}
	a.offs, a.tmp = unsafe.Pointer(&w.taps), unsafe.Pointer(&w.half)
}

// roundingRoom is this worker's part of the blocks of filters, and memory to round one in: where the panels and
// products will be, which lie side by side. They have room for at least one block, but perhaps not for one of every
// worker.
func (w *Worker) roundingRoom(c *Conv) (from, to int, room []float32) {
	if !w.rounds {
		from, to = w.share(c.Blocks())
		return from, to, nil
	}
	n, panels := c.BlockLen(), w.flow.panels[:len(w.flow.panels)+len(w.flow.products)]
	workers := min(w.N, len(panels)/n)
	if w.ID >= workers {
		return 0, 0, nil
	}
	return c.Blocks() * w.ID / workers, c.Blocks() * (w.ID + 1) / workers, panels[w.ID*n:][:n]
}

// place is where a unit's tile begins in the output, and which lane is its first.
func (f *flow) place(unit int) (i, j, lane int) {
	parts := f.active / f.wide
	tile, across := unit/parts, (f.out.W+f.tile.W.Out-1)/f.tile.W.Out
	return tile / across * f.tile.H.Out, tile % across * f.tile.W.Out, unit % parts * f.wide
}

// turnImage transforms this worker's channels of n units.
func (w *Worker) turnImage(first, n int) {
	f, a := &w.flow, &w.wino
	from, to := w.share(f.c)
	if from == to {
		return
	}
	pixel := int64(4 * f.in.Pixel())
	a.tmp, a.channels = unsafe.Pointer(&w.half), int64(to-from)
	a.offs = unsafe.Pointer(&w.taps)
	a.width, a.row, a.point = int64(4*f.wide), int64(4*f.in.Lanes), int64(4*n*f.c*f.wide)
	for u := range n {
		i0, j0, lane := f.place(first + u)
		a.src = p(f.x, from*f.in.Lanes+lane)
		nothing := int64(uintptr(p(f.zeros, from*f.in.Lanes+lane)) - uintptr(a.src))
		for r := range f.tile.H.In {
			for q := range f.tile.W.In {
				h, v, at := i0+r-f.top, j0+q-f.left, r*f.tile.W.In+q
				w.taps[at] = nothing
				if h >= 0 && v >= 0 && h < f.in.H && v < f.in.W {
					w.taps[at] = int64(h*f.in.W+v) * pixel
				}
			}
		}
		a.dst = p(f.panels, (u*f.c+from)*f.wide)
		f.turns.input.run(a)
	}
}

// multiplyPoints multiplies the kernel's matrices and the panels of n units.
func (w *Worker) multiplyPoints(n int) {
	f := &w.flow
	w.startPoints(f.c, f.k)
	w.take(f.points()*f.k/16, func(from, to int) { w.multiplySome(n, from, to) })
}

// multiplySome computes 16 filters of a point at a time.
func (w *Worker) multiplySome(n, from, to int) {
	f, a, blocks := &w.flow, &w.prod, w.flow.k/16
	for t := from; t < to; t++ {
		point, block := t/blocks, t%blocks
		kernel := point*f.c*f.k + block*16*f.c
		if f.back {
			kernel = point*f.c*f.k + block*16*16
		}
		panel, product := point*n*f.c*f.wide, (point*n*f.k+block*16)*f.wide
		for k := 0; k < 16; {
			rows := w.Set.tile(16 - k)
			at := kernel + k
			if f.back {
				at = kernel + k*16
			}
			a.rows = int64(min(rows, 16-k))
			run := w.f.product[rows][f.wide/lanes]
			for u := range n {
				a.a, a.b, a.c = p(f.kernels, at), p(f.panels, panel+u*f.c*f.wide), p(f.products, product+(u*f.k+k)*f.wide)
				run(a)
			}
			k += rows
		}
	}
}

// turnBack transforms channels from (included) to (not) of n units' outputs.
func (w *Worker) turnBack(first, n, from, to int) {
	f, a := &w.flow, &w.wino
	if from == to {
		return
	}
	pixel := int64(4 * f.out.Pixel())
	a.tmp, a.channels = unsafe.Pointer(&w.half), int64(to-from)
	a.offs, a.bias, a.add, a.relu = unsafe.Pointer(&w.taps), nil, 0, 0
	if f.bias != nil {
		a.bias = p(f.bias, from)
	}
	if f.add {
		a.add = 1
	}
	if f.relu {
		a.relu = 1
	}
	a.width, a.row, a.point = int64(4*f.wide), int64(4*f.out.Lanes), int64(4*n*f.k*f.wide)
	for u := range n {
		i0, j0, lane := f.place(first + u)
		a.src, a.dst = p(f.products, (u*f.k+from)*f.wide), p(f.y, from*f.out.Lanes+lane)
		nowhere := int64(uintptr(p(f.waste, from*f.out.Lanes+lane)) - uintptr(a.dst))
		for r := range f.tile.H.Out {
			for q := range f.tile.W.Out {
				h, v, at := i0+r, j0+q, r*f.tile.W.Out+q
				w.taps[at] = nowhere
				if h < f.out.H && v < f.out.W {
					w.taps[at] = int64(h*f.out.W+v) * pixel
				}
			}
		}
		f.turns.output.run(a)
	}
}
