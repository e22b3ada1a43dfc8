package kernel

import "unsafe"

// After is what a convolution or a dense layer does to its outputs while they are in the cache: what inference folds of
// the layers behind it. The arithmetic is that of those layers, and so are the bits.
type After struct {
	Scale, Offset []float32 // of a batch norm, see NormScale, a value a channel; nil: none
	ReLU          bool      // behind the batch norm
	Top           float32   // above 0: outputs are cut to 0 and Top, behind all
}

// lanesAfter finishes channels from (included) to (not) of a pixel.
func (w *Worker) lanesAfter(y []float32, channels, lanes, px, from, to int) {
	s := w.after
	if s == nil || from >= to {
		return
	}
	at := (px*channels + from) * lanes
	if s.Scale != nil {
		a := &w.chn
		a.x, a.y, a.p, a.q, a.mask = p(y, at), p(y, at), p(s.Scale, from), p(s.Offset, from), nil
		a.channels, a.row, a.pixels = int64(to-from), int64(4*lanes), 1
		if s.ReLU {
			w.f.affineRelu(a)
		} else {
			w.f.affine(a)
		}
	}
	w.cut(p(y, at), (to-from)*lanes)
}

// cut bounds n values by 0 and the After's top.
func (w *Worker) cut(y unsafe.Pointer, n int) {
	if w.after.Top > 0 {
		e := &w.elem
		e.dst, e.a, e.b, e.c, e.n, e.s[0] = y, y, nil, nil, int64(4*n), w.after.Top
		w.f.clamp(e)
	}
}

// rowAfter finishes n values, in whole vectors, of a pixel of a row, from channel first on.
func (w *Worker) rowAfter(y []float32, first, n int) {
	s := w.after
	if s == nil || n == 0 {
		return
	}
	if s.Scale != nil {
		e := &w.elem
		e.dst, e.a, e.b, e.c, e.n = p(y, 0), p(y, 0), p(s.Scale, first), p(s.Offset, first), int64(4*n)
		if s.ReLU {
			w.f.affineEachRelu(e)
		} else {
			w.f.affineEach(e)
		}
	}
	w.cut(p(y, 0), n)
}

// allAfter finishes this worker's pixels of a whole image, where no pixel was at hand as it was ready.
func (w *Worker) allAfter(im Image, y []float32) {
	if w.after == nil {
		return
	}
	from, to := w.share(im.H * im.W)
	for px := from; px < to; px++ {
		w.lanesAfter(y, im.C, im.Lanes, px, 0, im.C)
	}
	w.Sync()
}

// Then has the next product finish its outputs as s says; nil: not at all.
func (w *Worker) Then(s *After) { w.after = s }
