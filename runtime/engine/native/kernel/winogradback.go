package kernel

import "unsafe"

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
	const most = 8 // channels
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
		for c := from; c < to; c += most {
			channels := min(most, to-c)
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
