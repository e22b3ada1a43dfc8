package kernel

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
