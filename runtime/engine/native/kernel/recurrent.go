package kernel

import "unsafe"

// Recurrent is the arrays of a recurrent layer, whose output has C channels. X has the products of its input for all
// gates, [positions][gates C][Lanes], and Products those of the output before, for one position.
type Recurrent struct {
	Sequence
	X, Y, DX, DY []float32
	Products     []float32
	Zeros        []float32 // one position, which stands before the first
	Memory       []float32 // of an LSTM, one position; on the way back its gradient
	// For the way back; nil: not kept. The gates of all positions become the gradients of Products. Memories has the
	// memory of an LSTM; the candidate of a GRU, which becomes the gradient of its part of X.
	Gates, Memories []float32
}

// Before is the output of the position before t.
func (r *Recurrent) Before(t int) []float32 {
	if t == 0 {
		return r.Zeros
	}
	return r.Y[(t-1)*r.Pixel():]
}

// RecurrentProducts computes Products of position t. c is the geometry of one position.
func (w *Worker) RecurrentProducts(r *Recurrent, c *Conv, t int, weights, bias []float32) {
	w.byRows(r, r.Before(t), c.In.C, weights, c.Filters, bias, r.Products)
}

// RecurrentBack adds to DY of the position before t what its products pass back. turned is of TurnWeights.
func (w *Worker) RecurrentBack(r *Recurrent, c *Conv, t int, turned []float32) {
	w.byRows(r, r.Gates[t*c.Filters*r.Lanes:], c.Filters, turned, c.In.C, nil, r.DY[(t-1)*r.Pixel():])
}

// byRows computes y, [columns][Lanes], of x, [k][Lanes]. The weights are blocks of 16 columns, [k][16]. y starts from the
// bias; nil: from what is there. Rows of the batch are rows of the tiles: there may be too few to fill their columns.
func (w *Worker) byRows(r *Recurrent, x []float32, k int, weights []float32, columns int, bias, y []float32) {
	height, width := w.tiles[0], lanes*w.vectors
	tiles := (r.Rows + height - 1) / height
	a := &w.prod
	*a = productArgs{
		rs: 4, ks: int64(4 * r.Lanes), ldb: 4 * lanes, k: int64(k), middle: 1, outer: 1,
		c: unsafe.Pointer(&w.edge), ldc: int64(4 * width), c2: 64, b2: int64(4 * lanes * (k - 1)), mode: fromC,
	}
	if w.square == 8 {
		a.c2 = 32
	}
	from, to := w.share((columns + width - 1) / width * tiles)
	for i := from; i < to; i++ {
		first, row := i/tiles*width, i%tiles*height
		rows, some := min(height, r.Rows-row), min(width, columns-first)
		part := y[first*r.Lanes+row:]
		if bias == nil {
			w.Transpose(w.edge[:], width, part, r.Lanes, some, rows)
		} else {
			a.mode, a.bias = fromVector, p(bias, first)
		}
		a.a, a.b, a.rows = p(x, row), p(weights, first*k), int64(rows)
		w.f.product[w.tile(rows)][(some+lanes-1)/lanes](a)
		w.Transpose(part, r.Lanes, w.edge[:], width, rows, some)
	}
	a.b2 = 0
}

// TurnWeights writes the weights of one position for the way back: blocks of 16 inputs, [filters][16].
func (w *Worker) TurnWeights(c *Conv, weights, turned []float32) {
	from, to := w.share((c.In.C + lanes - 1) / lanes)
	for b := from; b < to; b++ {
		for k := 0; k < c.Filters; k += lanes {
			w.Transpose(turned[(b*c.Filters+k)*lanes:], lanes, weights[(k*c.In.C+b*lanes*lanes):], lanes,
				min(lanes, c.In.C-b*lanes), min(lanes, c.Filters-k))
		}
	}
}

// vec is a vector of 16 lanes.
type vec = *[lanes]float32

// LSTM computes the output and the memory of position t: gates i, f, g and o (Hochreiter 1997, as PyTorch has it).
func (w *Worker) LSTM(r *Recurrent, t int) { w.position(w.f.lstm, r, 4, t, r.Memory) }

// GRU computes the output of position t: gates r and z, and the candidate n (Cho 2014, as PyTorch has it).
func (w *Worker) GRU(r *Recurrent, t int) { w.position(w.f.gru, r, 3, t, r.Before(t)) }

// position computes the output of position t. Gates that are not kept take the place of Products.
func (w *Worker) position(f func(*recurrentArgs), r *Recurrent, gates, t int, memory []float32) {
	a, position := &w.recur, r.Pixel()
	out, kept := r.Products, r.Memory
	if r.Gates != nil {
		out, kept = r.Gates[t*gates*position:], r.Memories[t*position:]
	}
	w.eachGate(r, a, func(at int) {
		a.x, a.z, a.gates = p(r.X, t*gates*position+at), p(r.Products, at), p(out, at)
		a.memory, a.kept, a.y = p(memory, at), p(kept, at), p(r.Y, t*position+at)
		f(a)
	})
}

// eachGate calls f with where runs of values begin that are this worker's part of a gate. Lanes without rows are left
// out, where there are whole vectors of them.
func (w *Worker) eachGate(r *Recurrent, a *recurrentArgs, f func(at int)) {
	from, to := w.share(r.C)
	a.numbers, a.gate, a.n = unsafe.Pointer(&exponentNumbers), int64(4*r.Pixel()), int64(4*r.active())
	step := 1
	if r.active() == r.Lanes {
		step, a.n = to-from, int64(4*(to-from)*r.Lanes)
	}
	for c := from; c < to; c += step {
		f(c * r.Lanes)
	}
}

// LSTMBack turns the gates of position t into their gradients, and the gradient of the memory into that of the memory
// before.
func (w *Worker) LSTMBack(r *Recurrent, t int) {
	w.positionBack(w.f.lstmBack, r, 4, t, r.Memories, nil)
}

// GRUBack turns the gates of position t into their gradients, and adds what the position before takes over.
func (w *Worker) GRUBack(r *Recurrent, t int) { w.positionBack(w.f.gruBack, r, 3, t, r.Y, r.DY) }

// positionBack is the way back of position t. before has what the forward pass kept of all positions, and dBefore its
// gradients; nil: those are in Memory. The first position has none before it: its own stands for that, and counts 0.
func (w *Worker) positionBack(f func(*recurrentArgs), r *Recurrent, gates, t int, before, dBefore []float32) {
	a, position, memory := &w.recur, r.Pixel(), r.Memory
	last := t
	a.x = nil
	if a.before = 0; t > 0 {
		last, a.before = t-1, 1
		if dBefore != nil {
			memory = dBefore[last*position:]
		}
	}
	w.eachGate(r, a, func(at int) {
		a.z, a.gates, a.memory = p(before, last*position+at), p(r.Gates, t*gates*position+at), p(memory, at)
		a.kept, a.y = p(r.Memories, t*position+at), p(r.DY, t*position+at)
		f(a)
	})
}

// recurrents are the kernels in plain Go.
func recurrents(f *functions) {
	type value func(x, z, g *[4]float32, memory, kept, y *float32, before float32)
	each := func(gates int64, value value) func(*recurrentArgs) {
		return func(a *recurrentArgs) {
			one := func(base unsafe.Pointer, at int64) *float32 { return (*float32)(ptr(base, at)) }
			for i := int64(0); i < a.n; i += 4 {
				var x, z, g [4]float32
				for k := range gates {
					if a.x != nil {
						x[k], z[k] = *one(a.x, k*a.gate+i), *one(a.z, k*a.gate+i)
					}
					g[k] = *one(a.gates, k*a.gate+i)
				}
				if a.x == nil {
					z[0] = *one(a.z, i)
				}
				value(&x, &z, &g, one(a.memory, i), one(a.kept, i), one(a.y, i), a.before)
				for k := range gates {
					*one(a.gates, k*a.gate+i) = g[k]
				}
			}
		}
	}
	f.lstm = each(4, func(x, z, g *[4]float32, memory, kept, y *float32, _ float32) {
		g[0], g[1] = sigmoid32(x[0]+z[0]), sigmoid32(x[1]+z[1])
		g[2], g[3] = tanh32(x[2]+z[2]), sigmoid32(x[3]+z[3])
		*memory = g[1]**memory + g[0]*g[2]
		*kept, *y = *memory, g[3]*tanh32(*memory)
	})
	f.lstmBack = each(4, func(_, z, g *[4]float32, d, kept, y *float32, before float32) {
		in, forget, candidate, out := g[0], g[1], g[2], g[3]
		m := tanh32(*kept)
		slope := *d + *y*out*(1-m*m)
		g[0], g[1] = slope*candidate*in*(1-in), slope*before*z[0]*forget*(1-forget)
		g[2], g[3] = slope*in*(1-candidate*candidate), *y*m*out*(1-out)
		*d = slope * forget
	})
	f.gru = each(3, func(x, z, g *[4]float32, before, kept, y *float32, _ float32) {
		g[0], g[1], g[2] = sigmoid32(x[0]+z[0]), sigmoid32(x[1]+z[1]), z[2]
		n := tanh32(x[2] + g[0]*z[2])
		*y = (1-g[1])*n + g[1]**before
		*kept = n
	})
	f.gruBack = each(3, func(_, z, g *[4]float32, dBefore, kept, y *float32, before float32) {
		reset, update, hidden, n := g[0], g[1], g[2], *kept
		*dBefore += *y * update
		dn := *y * (1 - update) * (1 - n*n)
		g[0], g[1], g[2] = dn*hidden*reset*(1-reset), *y*(before*z[0]-n)*update*(1-update), dn*reset
		*kept = dn
	})
}

// GatesBack writes the gradients of X to DX, or adds them, after all positions went back.
func (w *Worker) GatesBack(r *Recurrent, add bool) {
	n := len(r.Gates) / len(r.Memories)
	from, to := r.positions(w)
	for t := from; t < to; t++ {
		for k := range n {
			src := r.Gates[(t*n+k)*r.Pixel():][:r.Pixel()]
			if n == 3 && k == 2 {
				src = r.Memories[t*r.Pixel():][:r.Pixel()]
			}
			w.move(r.DX[(t*n+k)*r.Pixel():][:r.Pixel()], src, add)
		}
	}
}
