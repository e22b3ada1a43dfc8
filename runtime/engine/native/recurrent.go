package native

import "github.com/disdel/disdel/runtime/engine/native/kernel"

// recurrent is LSTMs and GRUs: a product of the position before, and gates.
type recurrent struct {
	byLanes
	lstm bool // without it a GRU
}

// gates computes position t. Kernels are called by name: arguments of a function that is a value go to the heap.
func (k recurrent) gates(w *kernel.Worker, r *kernel.Recurrent, t int) {
	if k.lstm {
		w.LSTM(r, t)
	} else {
		w.GRU(r, t)
	}
}

// gatesBack is the way back of gates.
func (k recurrent) gatesBack(w *kernel.Worker, r *kernel.Recurrent, t int) {
	if k.lstm {
		w.LSTMBack(r, t)
	} else {
		w.GRUBack(r, t)
	}
}

// recurrent has the arrays of a layer; grad is nil on the way forward.
func (l *layer) recurrent(grad, dx []float32) kernel.Recurrent {
	position, gates := l.v.Image.Pixel(), l.node.Op.Gates()
	r := kernel.Recurrent{Sequence: l.sequence(), X: l.in[0].out, Y: l.out, DY: grad, DX: dx}
	if l.shared != nil {
		all := gates * position * l.v.Image.H
		r.Gates, r.Memories = l.shared[:all], l.shared[all:]
	}
	if grad == nil {
		r.Products, r.Zeros, r.Memory = l.work[:gates*position], l.work[gates*position:][:position],
			l.work[(gates+1)*position:][:position]
	} else {
		r.Memory = l.back[:position]
	}
	return r
}

func (k recurrent) forward(l *layer, w *kernel.Worker, _ *Engine) {
	r := l.recurrent(nil, nil)
	w.Clear(r.Zeros)
	w.Clear(r.Memory)
	w.Clear(r.Products) // of lanes without rows
	w.Sync()
	for t := range l.v.Image.H {
		w.RecurrentProducts(&r, &l.v.Conv, t, l.weight.value, l.bias.value)
		w.Sync()
		k.gates(w, &r, t)
		w.Sync()
	}
}

func (k recurrent) backward(l *layer, w *kernel.Worker, _ *Engine) {
	r := l.recurrent(l.grad, nil)
	positions, out := l.v.Image.H, l.v.Image.Pixel()
	scratch := l.back[out:]
	w.Clear(r.Memory)
	w.TurnWeights(&l.v.Conv, l.weight.value, scratch)
	w.Sync()
	gates := l.node.Op.Gates() * out
	for t := positions - 1; t >= 0; t-- {
		k.gatesBack(w, &r, t)
		w.Sync()
		if t > 0 {
			w.RecurrentBack(&r, &l.v.Conv, t, scratch)
			w.Sync()
		}
	}
	if !l.trains() {
		return
	}
	if positions > 1 {
		before := l.v.Conv.Positions(positions - 1)
		w.BackWeights(&before, l.out, r.Gates[gates:], l.weight.grad, scratch)
	} else {
		w.Clear(l.weight.grad)
	}
	w.Sync()
	all := l.v.Conv.Positions(positions)
	w.BackBias(&all, r.Gates, l.bias.grad, scratch)
	w.Sync()
}

// reverse turns the order of positions around.
type reverse struct {
	gathering
	byLanes
}

func (reverse) forward(l *layer, w *kernel.Worker, _ *Engine) {
	w.Reverse(l.sequence(), l.tokens(), l.in[0].out, l.out, false)
	w.Sync()
}

func (reverse) passGradient(l *layer, w *kernel.Worker, k int, add bool) {
	w.Reverse(l.sequence(), l.tokens(), l.grad, l.in[k].grad, add)
	w.Sync()
}

// passGradient passes on what backward left in place of the gates.
func (recurrent) passGradient(l *layer, w *kernel.Worker, k int, add bool) {
	r := l.recurrent(l.grad, l.in[k].grad)
	w.GatesBack(&r, add)
	w.Sync()
}
