package native

import (
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
)

// activation computes value by value.
type activation struct {
	elementwise
	f       func(w *kernel.Worker, y, x []float32)
	back    func(w *kernel.Worker, dx, dy, v []float32) // v: the outputs, or the inputs
	byInput bool                                        // back reads the inputs: plan's readsInput
}

func (a activation) forward(l *layer, w *kernel.Worker, _ *Engine) {
	if !l.v.Fused {
		a.f(w, l.out, l.in[0].out)
		w.Sync()
	}
}

func (a activation) forwardRows(l *layer, w *kernel.Worker, e *Engine) {
	if !l.v.Fused {
		y := l.rowsOut(e)
		a.f(w, y, l.in[0].out[:len(y)])
		w.Sync()
	}
}

func (a activation) backward(l *layer, w *kernel.Worker, _ *Engine) {
	source := l
	if a.byInput {
		source = l.in[0]
	}
	source.single(w, a.back, l.grad)
}

// single turns the gradient of values in place: f(w, dst, dy, v) is by v, the values of layer l.
func (l *layer) single(w *kernel.Worker, f func(w *kernel.Worker, dst, dy, v []float32), grad []float32) {
	if l.v.Short {
		w.BackHalves(f, grad, l.half)
	} else {
		f(w, grad, grad, l.out)
	}
	w.Sync()
}

// rectifier is a ReLU. A batch norm before it may compute it, forward and backward.
type rectifier struct{ activation }

func (r rectifier) backward(l *layer, w *kernel.Worker, e *Engine) {
	if !l.v.Fused || l.in[0].node.Op != model.OpBatchNorm {
		r.activation.backward(l, w, e)
	}
}

// top is the upper bound of ReLU6.
const top = 6

func clamp(w *kernel.Worker, y, x []float32)          { w.Clamp(y, x, top) }
func clampBack(w *kernel.Worker, dx, dy, y []float32) { w.ClampBack(dx, dy, y, top) }

// leakyReLU is a ReLU with a slope for values below 0.
func leakyReLU(slope float32) activation {
	return activation{
		f:    func(w *kernel.Worker, y, x []float32) { w.LeakyReLU(y, x, slope) },
		back: func(w *kernel.Worker, dx, dy, y []float32) { w.LeakyReLUBack(dx, dy, y, slope) },
	}
}

// scaled multiplies with a number.
func scaled(factor float32) activation {
	return activation{
		f:    func(w *kernel.Worker, y, x []float32) { w.Scale(y, x, factor) },
		back: func(w *kernel.Worker, dx, dy, _ []float32) { w.Scale(dx, dy, factor) },
	}
}

// dropout zeroes a share of the values while training and scales the others, so that the mean stays. Which ones is a
// function of seed, step, layer and place: backward finds the same without a mask in memory.
type dropout struct{ elementwise }

func (dropout) forward(l *layer, w *kernel.Worker, e *Engine) {
	if e.training && l.node.Rate > 0 {
		l.drop(w, e, l.out, l.in[0].out)
		return
	}
	l.keep(w, l.out)
}

func (dropout) forwardRows(l *layer, w *kernel.Worker, e *Engine) { l.keep(w, l.rowsOut(e)) }

func (dropout) backward(l *layer, w *kernel.Worker, e *Engine) {
	if l.node.Rate > 0 {
		l.drop(w, e, l.grad, l.grad)
	}
}

// golden is 2^64 over the golden ratio: it spreads the passes of a step over all bits.
const golden = 0x9e3779b97f4a7c15

func (l *layer) drop(w *kernel.Worker, e *Engine, dst, x []float32) {
	period := len(dst)
	switch l.node.Op {
	case model.OpDropout2D: // whole channels: all pixels are as the first
		period = l.v.Image.Pixel()
	case model.OpDropPath: // whole rows
		period = l.v.Image.Span()
	}
	seed := uint64(e.spec.Seed) ^ uint64(e.steps)<<20 ^ uint64(e.g.Slice.Index(l.index))<<52 ^ uint64(e.first)*golden
	w.Dropout(dst, x, l.node.Rate, period, seed)
	w.Sync()
}

// keep copies the input to y, unless it is there.
func (l *layer) keep(w *kernel.Worker, y []float32) {
	if x := l.in[0].out; &y[0] != &x[0] {
		w.Copy(y, x[:len(y)])
		w.Sync()
	}
}
