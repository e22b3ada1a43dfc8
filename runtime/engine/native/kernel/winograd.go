package kernel

import (
	"unsafe"

	"github.com/disdel/disdel/runtime/engine/native/plan"
	"github.com/disdel/disdel/runtime/engine/native/winograd"
)

// flow is what one Winograd convolution works with: a kernel at stride 1 over an image of c channels, which gives out,
// an image of k. Its scratch has four parts. The matrices of the kernel are [points][k/16][c][16] forward and
// [points][c/16][k][16] back. The panels of the image are [points][unit][c][wide], those of the output
// [points][unit][k][wide]. Two pixels follow. A unit is a tile's part of wide lanes.
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
	from, to, scratch := w.roundingRoom(c)
	for b := from; b < to; b++ {
		block := f.weights[b*c.BlockLen():][:c.BlockLen()]
		if w.rounds {
			w.alone(func() { w.Round(scratch, block) })
			block = scratch
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
func (w *Worker) roundingRoom(c *Conv) (from, to int, scratch []float32) {
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

// WinogradBackWeights is BackWeights by Winograd's algorithm, for a convolution whose Tile says so: the gradient of
// what WinogradForward computes. Its matrices are sums of products of an image's panels and the gradient's, which are
// [points][filters][unit][lane][filter] with as many filters side by side as a tile takes. scratch has its
// BackWeightsLen.
func (w *Worker) WinogradBackWeights(c *Conv, x, dy, dw, scratch []float32) {
	w.flow = flow{x: x}
	w.winogradBackWeights(c, dy, dw, scratch)
}

// WinogradBackWeightsHalves is WinogradBackWeights of an input that was shortened; scratch has the WinogradWindowLen
// more.
func (w *Worker) WinogradBackWeightsHalves(c *Conv, x Halves, dy, dw, scratch []float32) {
	w.flow = flow{halves: x, window: scratch[c.BackWeightsLen():]}
	w.winogradBackWeights(c, dy, dw, scratch)
}

// winogradBackWeights goes on once the input is in the flow.
func (w *Worker) winogradBackWeights(c *Conv, dy, dw, scratch []float32) {
	f := &w.flow
	f.c, f.k, f.in, f.out, f.active, f.y = c.In.C, c.Filters, c.In, c.Out(), c.Active(), dy
	w.start(c.Tile, c.Top, c.Left)
	f.cutBack(w.vectors, scratch)
	w.clearZeros()
	if f.halves != nil { // which reads the zeros of the first channels for all of them
		w.Sync()
	}
	whole := f.whole(w.N, f.k/f.side)
	for first := 0; first < f.total; first += f.units {
		n := min(f.units, f.total-first)
		if f.halves == nil {
			w.turnImage(first, n)
		} else {
			w.turnHalves(first, n)
		}
		w.turnGradient(first, n)
		w.Sync()
		if whole {
			w.wholeBack(c, dw)
			break
		}
		w.addPoints(n, first > 0)
		w.Sync()
	}
	if !whole {
		w.turnDown(c, dw)
	}
	w.Sync()
	*f = flow{}
}

// turnGradient transforms this worker's filters of n units of the output's gradient, which it transposes first.
func (w *Worker) turnGradient(first, n int) {
	f, a := &w.flow, &w.wino
	size, pixels := lanes*f.side, f.tile.Out() // values of a pixel
	a.tmp = unsafe.Pointer(&w.half)
	a.width, a.point = int64(4*size), int64(4*n*lanes*f.k)
	for i := range pixels {
		w.taps[i] = int64(4 * i * size)
	}
	a.offs = unsafe.Pointer(&w.taps)
	from, to := w.share(f.k / f.side)
	for b := from; b < to; b++ {
		part := f.waste[b*pixels*size:][:pixels*size]
		for u := range n {
			i0, j0, lane := f.place(first + u)
			for i := range pixels {
				h, v := i0+i/f.tile.W.Out, j0+i%f.tile.W.Out
				if h >= f.out.H || v >= f.out.W {
					clear(part[i*size:][:size])
					continue
				}
				src := f.y[(h*f.out.W+v)*f.out.Pixel()+b*f.side*f.out.Lanes+lane:]
				w.Transpose(part[i*size:], f.side, src, f.out.Lanes, f.side, lanes)
			}
			a.src, a.dst = p(part, 0), p(f.products, (b*n+u)*size)
			f.turns.spread.run(a)
		}
	}
}

// addPoints adds the products of n units to the matrices, or starts them.
func (w *Worker) addPoints(n int, add bool) {
	f := &w.flow
	w.startSums(n, f.c)
	if add {
		w.prod.mode = fromC
	}
	w.take(f.points()*f.k/f.side, func(from, to int) { w.addSome(n, from, to) })
}

// addSome computes a tile's filters of a point at a time.
func (w *Worker) addSome(n, from, to int) {
	f, a, blocks := &w.flow, &w.prod, w.flow.k/w.flow.side
	for t := from; t < to; t++ {
		point, block := t/blocks, t%blocks
		for ch := 0; ch < f.c; {
			rows := w.rows(f.c - ch)
			a.rows = int64(min(rows, f.c-ch))
			a.a = p(f.panels, (point*n*f.c+ch)*lanes)
			a.b = p(f.products, (point*f.k+block*f.side)*n*lanes)
			a.c = p(f.kernels, point*f.c*f.k+(block*f.side*f.c+ch*lanes))
			w.f.product[rows][f.side/lanes](a)
			ch += rows
		}
	}
}

// turnDown makes this worker's blocks of filters of the weights' gradient of the matrices.
func (w *Worker) turnDown(c *Conv, dw []float32) {
	f, a := &w.flow, &w.wino
	w.kernelTaps(c)
	a.width, a.point = int64(4*16*f.c), 4*int64(f.c*f.k)
	from, to := w.share(c.Blocks())
	for b := from; b < to; b++ {
		a.src, a.dst = p(f.kernels, b*f.c*16), p(dw, b*c.BlockLen())
		f.turns.gather.run(a)
	}
}

// turnHalves is turnImage of an image that was shortened: a tile of some channels at a time is widened first.
func (w *Worker) turnHalves(first, n int) {
	const maximum = 8 // channels
	f, a := &w.flow, &w.wino
	from, to := w.share(f.c)
	if from == to {
		return
	}
	pixels, across := f.tile.In(), f.tile.W.In
	a.tmp, a.offs = unsafe.Pointer(&w.half), unsafe.Pointer(&w.taps)
	a.width, a.row, a.point = int64(4*f.wide), int64(4*f.wide), int64(4*n*f.c*f.wide)
	tile := f.window[from*pixels*f.wide:]
	nothing := int64(uintptr(p(f.zeros, 0)) - uintptr(p(tile, 0)))
	for u := range n {
		i0, j0, lane := f.place(first + u)
		for c := from; c < to; c += maximum {
			channels := min(maximum, to-c)
			for t := range pixels {
				h, v := i0+t/across-f.top, j0+t%across-f.left
				if w.taps[t] = nothing; h < 0 || v < 0 || h >= f.in.H || v >= f.in.W {
					continue
				}
				at := t * channels * f.wide
				w.taps[t] = int64(4 * at)
				w.widen(tile[at:], f.halves[(h*f.in.W+v)*f.in.Pixel()+c*f.in.Lanes+lane:], channels, f.wide, f.wide, f.in.Lanes)
			}
			a.src, a.dst, a.channels = p(tile, 0), p(f.panels, (u*f.c+c)*f.wide), int64(channels)
			f.turns.input.run(a)
		}
	}
}

// winograd transforms the kernels, the image and the products, in the way that suits the layer and the team. Sums have
// the same terms in the same order on every way.
func (w *Worker) winograd(c *Conv) {
	f := &w.flow
	w.clearZeros()
	switch {
	case f.whole(w.N, f.k/lanes) && !w.rounds:
		w.turnImage(0, f.total)
		w.Sync()
		w.wholePass(c)
	case f.apart(w.N):
		w.turnKernels(c)
		w.Sync()
		w.passesApart()
	default:
		w.turnKernels(c)
		if w.rounds { // weights were rounded where the panels will be
			w.Sync()
		}
		w.passes()
	}
	w.Sync()
	*f = flow{} // nothing of the caller's stays
}

// clearZeros clears this worker's channels of the pixel of zeros, which are those that it transforms.
func (w *Worker) clearZeros() {
	f := &w.flow
	from, to := w.share(f.c)
	clear(f.zeros[from*f.in.Lanes : to*f.in.Lanes])
}

// passes has workers share channels, then products, then filters of each pass.
func (w *Worker) passes() {
	f := &w.flow
	from, to := w.share(f.k)
	for first := 0; first < f.total; first += f.units {
		n := min(f.units, f.total-first)
		w.turnImage(first, n)
		w.Sync()
		w.multiplyPoints(n)
		w.Sync()
		w.turnBack(first, n, from, to)
	}
}

// apartKernels is how many values of the kernels' matrices a worker multiplies with all of rather than wait for the
// others: about what a second-level cache holds beside a unit's panels.
const apartKernels = 192 << 10

// apart tells whether each worker has passes of its own, of units that nobody else computes: there are so many passes
// then, of so little, that the barriers of common ones would be some percent of the time. There have to be panels for a
// unit of each, and units enough for equal shares.
func (f *flow) apart(workers int) bool {
	return workers > 1 && f.units >= workers && f.total >= 16*workers && f.points()*f.c*f.k <= apartKernels
}

// passesApart takes units, for passes in this worker's part of the panels.
func (w *Worker) passesApart() {
	f := &w.flow
	all, id := f.total, w.ID
	f.units /= w.N
	panel, product := f.points()*f.c*f.wide*f.units, f.points()*f.k*f.wide*f.units
	f.panels, f.products = f.panels[id*panel:][:panel], f.products[id*product:][:product]
	w.take(all, func(from, to int) {
		w.alone(func() {
			for first := from; first < to; first += f.units {
				n := min(f.units, to-first)
				w.turnImage(first, n)
				w.multiplyPoints(n)
				w.turnBack(first, n, 0, f.k)
			}
		})
	})
}

// whole tells whether one pass has all units, and blocks of filters are equal shares: then no more of the kernels'
// matrices is made at a time than is multiplied with at once. All of them are megabytes, four times the weights.
func (f *flow) whole(workers, blocks int) bool {
	return f.total <= f.units && blocks >= workers && (blocks%workers == 0 || blocks >= 4*workers)
}

// partValues bounds a part of the matrices and the panels that it is multiplied with, so that a second-level cache has
// them.
const partValues = 192 << 10

// part is how many channels a part has, whose points have so many values a channel.
func (f *flow) part(per int) int {
	return min(f.c, max(lanes, partValues/(f.points()*per)/lanes*lanes))
}

// wholePass computes this worker's blocks of 16 filters, some channels after the others. The image's panels are there.
func (w *Worker) wholePass(c *Conv) {
	f := &w.flow
	n := f.total
	step := f.part(lanes + n*f.wide)
	size := f.points() * step * lanes
	matrices := f.kernels[w.ID*size:][:size]
	from, to := w.share(f.k / lanes)
	for c0 := 0; c0 < f.c; c0 += step {
		c1 := min(c0+step, f.c)
		for b := from; b < to; b++ {
			w.turnPart(c, b, c0, c1, matrices)
			w.multiplyPart(b, c0, c1, matrices)
			if c1 == f.c {
				w.turnBack(0, n, lanes*b, lanes*(b+1))
			}
		}
	}
}

// turnPart transforms the weights of 16 filters, block b of them, from channel c0 (included) to c1 (not), to matrices
// [points][c][16] forward and [points][c/16][filters][16] back.
func (w *Worker) turnPart(c *Conv, b, c0, c1 int, matrices []float32) {
	f, a := &w.flow, &w.wino
	w.kernelTaps(c)
	a.point = int64(4 * 16 * (c1 - c0))
	if !f.back {
		a.width, a.src, a.dst = a.point, p(f.weights, b*c.BlockLen()+16*c0), p(matrices, 0)
		f.turns.weights.run(a)
		return
	}
	a.width = 4 * 16 * 16
	for block := c0 / 16; block < c1/16; block++ {
		a.src, a.dst = p(f.weights, block*c.BlockLen()+16*16*b), p(matrices, 16*16*(block-c0/16))
		f.turns.weights.run(a)
	}
}

// multiplyPart adds the products with matrices of turnPart to those of 16 filters, or starts them.
func (w *Worker) multiplyPart(b, c0, c1 int, matrices []float32) {
	f, a := &w.flow, &w.prod
	n, deep := f.total, c1-c0
	w.startPoints(deep, 16)
	if c0 > 0 {
		a.mode = fromC
	}
	for point := range f.points() {
		for k := 0; k < 16; {
			rows := w.Set.tile(16 - k)
			at := point*deep*16 + k
			if f.back {
				at = point*deep*16 + k*16
			}
			a.rows = int64(min(rows, 16-k))
			run := w.f.product[rows][f.wide/lanes]
			for u := range n {
				unit := point*n + u
				a.a, a.b = p(matrices, at), p(f.panels, (unit*f.c+c0)*f.wide)
				a.c = p(f.products, (unit*f.k+16*b+k)*f.wide)
				run(a)
			}
			k += rows
		}
	}
}

// startPoints sets up products of matrices of so many channels, which are those of so many filters side by side back.
func (w *Worker) startPoints(channels, filters int) {
	f, a := &w.flow, &w.prod
	a.ldb, a.ldc, a.relu, a.mode = int64(4*f.wide), int64(4*f.wide), 0, fromZero
	if a.c2 = 64; w.square == 8 {
		a.c2 = 32
	}
	a.outer, a.ao, a.bo, a.bm = 1, 0, 0, 0
	a.rs, a.ks, a.k, a.middle, a.am = 4, 64, int64(channels), 1, 0
	if f.back { // the matrices are those of [c/16][k][16]
		a.rs, a.ks, a.k, a.middle = 64, 4, 16, int64(channels/16)
		a.am = int64(64*filters) - 64
	}
}

// wholeBack computes this worker's blocks of filters of the weights' gradient, some channels after the others. The
// panels of the image and of the gradient are there.
func (w *Worker) wholeBack(c *Conv, dw []float32) {
	f := &w.flow
	step := f.part(f.side + f.total*f.wide)
	size := f.points() * step * f.side
	matrices := f.kernels[w.ID*size:][:size]
	from, to := w.share(f.k / f.side)
	for b := from; b < to; b++ {
		for c0 := 0; c0 < f.c; c0 += step {
			c1 := min(c0+step, f.c)
			w.addPart(b, c0, c1, matrices)
			w.turnDownPart(c, b, c0, c1, matrices, dw)
		}
	}
}

// addPart computes the matrices of side filters, block b of them, from channel c0 to c1: [points][side/16][c][16].
func (w *Worker) addPart(b, c0, c1 int, matrices []float32) {
	f, a := &w.flow, &w.prod
	n, deep := f.total, c1-c0
	w.startSums(n, deep)
	for point := range f.points() {
		for ch := c0; ch < c1; {
			rows := w.rows(c1 - ch)
			a.rows = int64(min(rows, c1-ch))
			a.a = p(f.panels, (point*n*f.c+ch)*lanes)
			a.b = p(f.products, (point*f.k+b*f.side)*n*lanes)
			a.c = p(matrices, point*deep*f.side+(ch-c0)*lanes)
			w.f.product[rows][f.side/lanes](a)
			ch += rows
		}
	}
}

// startSums sets up sums over n units for matrices of so many channels.
func (w *Worker) startSums(n, channels int) {
	f, a := &w.flow, &w.prod
	a.rs, a.ks, a.k, a.middle, a.outer = 4*lanes, 4, lanes, int64(n), 1
	a.am, a.ao, a.bm, a.bo = int64(4*lanes*(f.c-1)), 0, 0, 0
	a.ldb, a.ldc, a.relu, a.mode = int64(4*f.side), 4*lanes, 0, fromZero
	if a.c2 = int64(4 * lanes * channels); w.square == 8 {
		a.c2 = 32
	}
}

// turnDownPart makes the weights' gradient of matrices of addPart.
func (w *Worker) turnDownPart(c *Conv, b, c0, c1 int, matrices, dw []float32) {
	f, a := &w.flow, &w.wino
	deep := c1 - c0
	w.kernelTaps(c)
	a.width, a.point = int64(4*16*deep), int64(4*deep*f.side)
	for v := range f.side / lanes {
		a.src, a.dst = p(matrices, v*deep*lanes), p(dw, (b*f.side/lanes+v)*c.BlockLen()+c0*16)
		f.turns.gather.run(a)
	}
}
