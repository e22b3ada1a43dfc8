package native

import (
	"github.com/disdel/disdel/runtime/engine/native/kernel"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// product is convolutions and dense layers: products of matrices. With it are computed what the plan says of the layers
// behind it: a ReLU, and in inference a batch norm and a ReLU6.
type product struct{}

func (product) forward(l *layer, w *kernel.Worker, e *Engine) {
	x, short := l.in[0].out, e.training && e.plan.Spec.Halves
	w.Then(l.then)
	switch {
	case l.v.Depthwise && short:
		w.DepthwiseForward(&l.v.Pool, x, l.roundedTaps(w, l.work[2*plan.Padded(l.v.Image.C):]), l.out)
	case short && !l.v.Conv.Tile.Is():
		l.roundedParts(w, l.work, func(b0, b1 int) {
			w.ForwardPart(&l.v.Conv, b0, b1, x, l.work, values(l.bias), l.out)
		})
	case l.v.Depthwise:
		w.DepthwiseForward(&l.v.Pool, x, l.weight.value, l.out)
	case l.v.Conv.Tile.Is():
		w.WinogradForward(&l.v.Conv, x, l.weight.value, values(l.bias), l.out, l.work)
	default:
		w.Forward(&l.v.Conv, x, l.weight.value, values(l.bias), l.out)
	}
	w.Then(nil)
	if l.v.Depthwise && l.bias != nil {
		w.Bias(l.v.Image, l.out, l.bias.value, l.ones(w))
	}
}

func (product) forwardRows(l *layer, w *kernel.Worker, e *Engine) {
	x, out := l.in[0].out, l.v.Image
	w.Then(l.then)
	if !l.v.Depthwise {
		w.RowsForward(&l.v.Conv, out, e.rows, x, l.weight.value, values(l.bias), l.out)
	} else {
		w.RowsDepthwise(&l.v.Pool, out.C, e.rows, x, l.weight.value, l.out)
	}
	w.Then(nil)
	if l.v.Depthwise && l.bias != nil {
		w.RowsAffine(out, e.rows, l.out, l.out, l.ones(w), l.bias.value, l.v.ReLU)
	}
}

// backward computes the input's gradient, too: passGradient has nothing to do.
func (product) backward(l *layer, w *kernel.Worker, e *Engine) {
	x := l.in[0].out
	if e.plan.Spec.Halves {
		l.productBackHalves(w, x)
		return
	}
	flow := l.v.GradIn[0]
	c, g := &l.v.Conv, &l.v.Pool
	if flow != plan.FlowNone {
		switch add := flow == plan.FlowAdd; {
		case l.v.Depthwise:
			w.DepthwiseBackData(g, l.grad, l.weight.value, l.in[0].grad, add)
		case c.BackTile.Is():
			w.WinogradBackData(c, l.grad, l.weight.value, l.in[0].grad, l.back, add)
		default:
			w.BackData(c, l.grad, l.weight.value, l.in[0].grad, add)
		}
	}
	switch {
	case !l.trains(): // else the products of the weights' gradients wait for all workers
		w.Sync()
		return
	case l.v.Depthwise:
		w.Clear(l.weight.grad)
		w.Sync()
		w.DepthwiseBackWeights(g, x, l.grad, l.weight.grad, l.back)
		w.Sync()
	case c.Tile.Is():
		w.WinogradBackWeights(c, x, l.grad, l.weight.grad, l.back)
	case l.weight.part > 0:
		l.moveByParts(w, e, x)
	default:
		w.BackWeights(c, x, l.grad, l.weight.grad, l.back)
	}
	l.biasBack(w)
}

// moveByParts computes the gradient of a part of the filters at a time, and moves their weights by it.
func (l *layer) moveByParts(w *kernel.Worker, e *Engine, x []float32) {
	c, p, u := &l.v.Conv, l.weight, e.updateOfStep()
	for from := 0; from < c.Filters; from += p.part {
		to := min(from+p.part, c.Filters)
		w.BackWeightsPart(c, from, to, x, l.grad, p.grad, l.back)
		at, end := from/lanes*c.BlockLen(), (to+lanes-1)/lanes*c.BlockLen()
		e.move(w, &u, p, at, p.grad[:end-at])
	}
	w.Sync()
}

// trains tells whether a layer's weights have gradients; those of a frozen layer have none.
func (l *layer) trains() bool { return l.weight != nil && len(l.weight.grad) > 0 }

func (product) passGradient(*layer, *kernel.Worker, int, bool) {}

func (l *layer) biasBack(w *kernel.Worker) {
	c, g := &l.v.Conv, &l.v.Pool
	switch {
	case l.bias == nil:
		return
	case l.v.Depthwise:
		w.ChannelSums(l.v.Image, g.Active(), l.grad, l.bias.grad, l.back)
	default:
		w.BackBias(c, l.grad, l.bias.grad, l.back)
	}
	w.Sync()
}

// ones is an array of 1 a channel.
func (l *layer) ones(w *kernel.Worker) []float32 {
	ones := l.work[:plan.Padded(l.v.Image.C)]
	if w.ID == 0 {
		for i := range ones {
			ones[i] = 1
		}
	}
	w.Sync()
	return ones
}

// follow finds what a convolution or a dense layer computes of the layers behind it.
func (l *layer) follow(e *Engine) {
	if l.v.Norm == 0 && !l.v.Clamp {
		return
	}
	l.then = &kernel.After{}
	if l.v.Clamp {
		l.then.Top = top
	}
	if l.v.Norm > 0 {
		n := &e.layers[l.v.Norm]
		l.then.Scale, l.then.Offset, l.then.ReLU = n.state.Scale, n.state.Offset, n.v.ReLU
	}
}

// roundedTaps are the weights of a depthwise convolution, rounded.
func (l *layer) roundedTaps(w *kernel.Worker, scratch []float32) []float32 {
	all := l.weight.value
	w.Round(scratch[:len(all)], all)
	w.Sync()
	return scratch
}

// roundedParts rounds the weights into room, some blocks of filters at a time, and calls f with each part. f returns
// once no worker needs it any more.
func (l *layer) roundedParts(w *kernel.Worker, scratch []float32, f func(b0, b1 int)) {
	c := &l.v.Conv
	step, all := c.RoundedBlocks(), c.Groups*c.Blocks()
	for b := 0; b < all; b += step {
		end := min(b+step, all)
		w.Round(scratch[:(end-b)*c.BlockLen()], l.weight.value[b*c.BlockLen():][:(end-b)*c.BlockLen()])
		w.Sync()
		f(b, end)
	}
}

// productBackHalves is the backward pass of a product with Spec.Halves.
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
	if !l.trains() {
		w.Sync()
		return
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
