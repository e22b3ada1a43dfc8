package native

import (
	"github.com/disdel/disdel/runtime/engine/native/kernel"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// halves is what a layer has besides where a step computes with bfloat16. What products multiply (activations, weights,
// gradients of outputs) is rounded to bfloat16 before, sums are float32, and activations that the way back reads are
// kept as halves, see plan.Spec. Weights, their gradients, moments, statistics and the loss are float32. Evaluation and
// prediction know nothing of it: they compute as an engine for inference does.
type halves struct {
	half  kernel.Halves // the output, on the way back
	norm0 kernel.Norm   // a batch norm without the ReLU, whose gradient comes first then
}

// halvesOf is that of a layer that is made.
func (l *layer) halvesOf(e *Engine) (h halves) {
	if !e.plan.Spec.Halves {
		return h
	}
	if l.v.Short {
		h.half = kernel.HalvesOf(e.region(l.v.Out), len(l.out))
	}
	h.norm0 = l.norm
	h.norm0.ReLU = false
	return h
}

// settle rounds what a layer of a step has computed, once it is what the layers behind it read, and shortens what none
// of them reads any more.
func (e *Engine) settle(w *kernel.Worker, l *layer) {
	if !e.training {
		return
	}
	if l.v.Rounded {
		w.Round(l.out, l.out)
		w.Sync()
	}
	for _, i := range l.v.Shortens {
		w.Shorten(e.layers[i].out)
	}
}

// roundedTaps are the weights of a depthwise convolution, rounded.
func (l *layer) roundedTaps(w *kernel.Worker, room []float32) []float32 {
	all := l.weight.value
	w.Round(room[:len(all)], all)
	w.Sync()
	return room
}

// roundedParts rounds the weights into room, some blocks of filters at a time, and calls f with each part. f returns
// once no worker needs it any more.
func (l *layer) roundedParts(w *kernel.Worker, room []float32, f func(b0, b1 int)) {
	c := &l.v.Conv
	step, all := c.RoundedBlocks(), c.Groups*c.Blocks()
	for b := 0; b < all; b += step {
		end := min(b+step, all)
		w.Round(room[:(end-b)*c.BlockLen()], l.weight.value[b*c.BlockLen():][:(end-b)*c.BlockLen()])
		w.Sync()
		f(b, end)
	}
}

// productBackHalves is productBack.
func (l *layer) productBackHalves(w *kernel.Worker, x []float32) {
	w.Round(l.grad, l.grad)
	w.Sync()
	if flow := l.v.GradIn[0]; flow != plan.FlowNone {
		dx, add := l.in[0].grad, flow == plan.FlowAdd
		switch c := &l.v.Conv; {
		case l.v.Depthwise:
			w.DepthwiseBackData(&l.v.Pool, l.grad, l.roundedTaps(w, l.back), dx, add)
		case c.BackTile.Is():
			w.WinogradBackData(c, l.grad, l.weight.value, dx, l.back, add)
		default:
			l.roundedParts(w, l.back, func(b0, b1 int) {
				w.BackDataPart(c, b0, b1, l.grad, l.back, dx, add)
				w.Sync()
			})
		}
	}
	l.weightsBackHalves(w, x)
	l.biasBack(w)
}

// weightsBackHalves computes the gradient of weights. An input with a border is no halves.
func (l *layer) weightsBackHalves(w *kernel.Worker, x []float32) {
	c, g, in, dw := &l.v.Conv, &l.v.Pool, l.in[0], l.weight.grad
	switch {
	case l.v.Depthwise:
		w.Clear(dw)
		w.Sync()
		if in.v.Short {
			w.DepthwiseBackWeightsHalves(g, in.half, l.grad, dw, l.back)
		} else {
			w.DepthwiseBackWeights(g, x, l.grad, dw, l.back)
		}
		w.Sync()
	case c.Tile.Is() && in.v.Short:
		w.WinogradBackWeightsHalves(c, in.half, l.grad, dw, l.back)
	case c.Tile.Is():
		w.WinogradBackWeights(c, x, l.grad, dw, l.back)
	case in.v.Short:
		w.BackWeightsHalves(c, in.half, l.grad, dw, l.back)
	default:
		w.BackWeights(c, x, l.grad, dw, l.back)
	}
}

// normBackHalves computes the gradients of a batch norm behind that of its ReLU.
func (l *layer) normBackHalves(w *kernel.Worker, x []float32) {
	if l.v.ReLU {
		l.single(w, w.ReLUBack)
	}
	gamma, beta := gradOf(l.weight), gradOf(l.bias)
	if in := l.in[0]; in.v.Short {
		w.NormBackHalves(&l.norm0, &l.backState, in.half, l.grad, gamma, beta, l.back[36*plan.Padded(l.v.Image.C):])
	} else {
		w.NormBack(&l.norm0, &l.backState, x, l.out, l.grad, gamma, beta)
	}
}

// single turns the gradient of the output into that of the input, value by value: f(dst, dy, y) is of the output y.
func (l *layer) single(w *kernel.Worker, f func(dst, dy, y []float32)) {
	if l.v.Short {
		w.BackHalves(f, l.grad, l.half)
	} else {
		f(l.grad, l.grad, l.out)
	}
	w.Sync()
}
