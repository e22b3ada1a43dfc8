package native

import "github.com/disdel/disdel/runtime/engine/native/kernel"

type maxPool struct{ gathering }

func (maxPool) forward(l *layer, w *kernel.Worker, _ *Engine) {
	w.MaxPool(&l.v.Pool, l.in[0].out, l.out)
}

func (maxPool) forwardRows(l *layer, w *kernel.Worker, e *Engine) {
	l.eachRow(e, func(x, y []float32) { w.MaxPool(&l.v.Pool, x, y) })
}

func (maxPool) passGradient(l *layer, w *kernel.Worker, k int, add bool) {
	in := l.in[k]
	grad := cleared(w, in.grad, add)
	if in.v.Short {
		w.MaxPoolBackHalves(&l.v.Pool, in.half, l.half, l.grad, grad, l.back)
	} else {
		w.MaxPoolBack(&l.v.Pool, in.out, l.out, l.grad, grad)
	}
}

type avgPool struct{ gathering }

func (avgPool) forward(l *layer, w *kernel.Worker, _ *Engine) {
	w.AvgPool(&l.v.Pool, l.in[0].out, l.out)
}

func (avgPool) forwardRows(l *layer, w *kernel.Worker, e *Engine) {
	l.eachRow(e, func(x, y []float32) { w.AvgPool(&l.v.Pool, x, y) })
}

func (avgPool) passGradient(l *layer, w *kernel.Worker, k int, add bool) {
	w.AvgPoolBack(&l.v.Pool, l.grad, cleared(w, l.in[k].grad, add))
}

// adaptivePool is for windows that depend on the size of the input, also the global one.
type adaptivePool struct{ gathering }

func (adaptivePool) forward(l *layer, w *kernel.Worker, _ *Engine) {
	w.AdaptivePool(l.in[0].v.Image, l.v.Image.H, l.v.Image.W, l.in[0].out, l.out)
}

func (adaptivePool) forwardRows(l *layer, w *kernel.Worker, e *Engine) {
	l.eachRow(e, func(x, y []float32) {
		w.AdaptivePool(l.in[0].v.Image.Blocks(), l.v.Image.H, l.v.Image.W, x, y)
	})
}

func (adaptivePool) passGradient(l *layer, w *kernel.Worker, k int, add bool) {
	grad := cleared(w, l.in[k].grad, add)
	w.AdaptivePoolBack(l.in[k].v.Image, l.v.Image.H, l.v.Image.W, l.grad, grad)
}

// eachRow calls f with every row of a batch that lies by rows.
func (l *layer) eachRow(e *Engine, f func(x, y []float32)) {
	in, out := l.in[0].v.Image.Row(), l.v.Image.Row()
	for r := range e.rows {
		f(l.in[0].out[r*in:], l.out[r*out:e.rows*out])
	}
}
