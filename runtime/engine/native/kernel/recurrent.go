package kernel

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

// vec is a vector of 16 lanes.
type vec = *[lanes]float32

// gate is the vector of gate k of a channel of position t, of n gates.
func (r *Recurrent) gate(x []float32, n, t, k, c, l int) vec {
	return vec(x[((t*n+k)*r.C+c)*r.Lanes+l:])
}

// before is the vector of Before(t), nil before the first position.
func (r *Recurrent) before(x []float32, t, c, l int) vec {
	if t == 0 {
		return nil
	}
	return r.at(x, t-1, c, l)
}

// eachVector calls f for this worker's channels, 16 lanes at a time.
func (w *Worker) eachVector(r *Recurrent, f func(c, l int)) {
	from, to := w.share(r.C)
	for c := from; c < to; c++ {
		for l := 0; l < r.active(); l += lanes {
			f(c, l)
		}
	}
}

// LSTM computes the output and the memory of position t: gates i, f, g and o (Hochreiter 1997, as PyTorch has it).
func (w *Worker) LSTM(r *Recurrent, t int) {
	w.eachVector(r, func(c, l int) {
		var x, z [4]vec
		var gates [4][lanes]float32
		for k := range x {
			x[k], z[k] = r.gate(r.X, 4, t, k, c, l), r.gate(r.Products, 4, 0, k, c, l)
		}
		y, memory := r.at(r.Y, t, c, l), r.at(r.Memory, 0, c, l)
		for i := range y {
			in, forget := sigmoid32(x[0][i]+z[0][i]), sigmoid32(x[1][i]+z[1][i])
			candidate, out := tanh32(x[2][i]+z[2][i]), sigmoid32(x[3][i]+z[3][i])
			memory[i] = forget*memory[i] + in*candidate
			y[i] = out * tanh32(memory[i])
			gates[0][i], gates[1][i], gates[2][i], gates[3][i] = in, forget, candidate, out
		}
		if r.Gates == nil {
			return
		}
		*r.at(r.Memories, t, c, l) = *memory
		for k := range gates {
			*r.gate(r.Gates, 4, t, k, c, l) = gates[k]
		}
	})
}

// LSTMBack turns the gates of position t into their gradients, and the gradient of the memory into that of the memory
// before.
func (w *Worker) LSTMBack(r *Recurrent, t int) {
	w.eachVector(r, func(c, l int) {
		var g [4]vec
		for k := range g {
			g[k] = r.gate(r.Gates, 4, t, k, c, l)
		}
		dy, d, memory, before := r.at(r.DY, t, c, l), r.at(r.Memory, 0, c, l), r.at(r.Memories, t, c, l),
			r.before(r.Memories, t, c, l)
		for i := range dy {
			in, forget, candidate, out := g[0][i], g[1][i], g[2][i], g[3][i]
			m := tanh32(memory[i])
			slope, last := d[i]+dy[i]*out*(1-m*m), float32(0)
			if before != nil {
				last = before[i]
			}
			g[0][i], g[1][i] = slope*candidate*in*(1-in), slope*last*forget*(1-forget)
			g[2][i], g[3][i] = slope*in*(1-candidate*candidate), dy[i]*m*out*(1-out)
			d[i] = slope * forget
		}
	})
}

// GRU computes the output of position t: gates r and z, and the candidate n (Cho 2014, as PyTorch has it).
func (w *Worker) GRU(r *Recurrent, t int) {
	w.eachVector(r, func(c, l int) {
		var x, z [3]vec
		for k := range x {
			x[k], z[k] = r.gate(r.X, 3, t, k, c, l), r.gate(r.Products, 3, 0, k, c, l)
		}
		y, before := r.at(r.Y, t, c, l), vec(r.Before(t)[c*r.Lanes+l:])
		var reset, update, candidate [lanes]float32
		for i := range y {
			reset[i], update[i] = sigmoid32(x[0][i]+z[0][i]), sigmoid32(x[1][i]+z[1][i])
			candidate[i] = tanh32(x[2][i] + reset[i]*z[2][i])
			y[i] = (1-update[i])*candidate[i] + update[i]*before[i]
		}
		if r.Gates != nil {
			*r.gate(r.Gates, 3, t, 0, c, l), *r.gate(r.Gates, 3, t, 1, c, l) = reset, update
			*r.gate(r.Gates, 3, t, 2, c, l), *r.at(r.Memories, t, c, l) = *z[2], candidate
		}
	})
}

// GRUBack turns the gates of position t into their gradients, and adds what the position before takes over.
func (w *Worker) GRUBack(r *Recurrent, t int) {
	w.eachVector(r, func(c, l int) {
		var g [3]vec
		for k := range g {
			g[k] = r.gate(r.Gates, 3, t, k, c, l)
		}
		dy, candidate := r.at(r.DY, t, c, l), r.at(r.Memories, t, c, l)
		before, dBefore := r.before(r.Y, t, c, l), r.before(r.DY, t, c, l)
		for i := range dy {
			reset, update, hidden, n, last := g[0][i], g[1][i], g[2][i], candidate[i], float32(0)
			if before != nil {
				last = before[i]
				dBefore[i] += dy[i] * update
			}
			dn := dy[i] * (1 - update) * (1 - n*n)
			g[0][i], g[1][i], g[2][i] = dn*hidden*reset*(1-reset), dy[i]*(last-n)*update*(1-update), dn*reset
			candidate[i] = dn
		}
	})
}

// GatesBack adds the gradients of X to DX, after all positions went back.
func (w *Worker) GatesBack(r *Recurrent) {
	n := len(r.Gates) / len(r.Memories)
	from, to := r.positions(w)
	for t := from; t < to; t++ {
		for k := range n {
			src := r.Gates[(t*n+k)*r.Pixel():][:r.Pixel()]
			if n == 3 && k == 2 {
				src = r.Memories[t*r.Pixel():][:r.Pixel()]
			}
			for i, v := range src {
				r.DX[(t*n+k)*r.Pixel()+i] += v
			}
		}
	}
}
