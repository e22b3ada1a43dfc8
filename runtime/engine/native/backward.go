package native

import (
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// backward turns the gradient of the output into those of the inputs and of the parameters. When it returns all workers
// have.
func (l *layer) backward(w *kernel.Worker, e *Engine) {
	x := l.in[0].out
	switch l.op {
	case model.OpConv, model.OpDense:
		l.productBack(w, e, x)
		return
	case model.OpBatchNorm:
		l.normBack(w, e, x)
	case model.OpReLU:
		if !l.v.Fused || l.in[0].op != model.OpBatchNorm {
			l.single(w, w.ReLUBack)
		}
	case model.OpReLU6:
		l.single(w, func(dst, dy, y []float32) { w.ClampBack(dst, dy, y, top) })
	case model.OpSigmoid:
		l.single(w, w.SigmoidBack)
	case model.OpTanh:
		l.single(w, w.TanhBack)
	case model.OpDropout:
		l.drop(w, e, l.grad, l.grad)
	}
	for k, flow := range l.v.GradIn {
		if flow == plan.FlowFirst || flow == plan.FlowAdd {
			l.hand(w, k, flow == plan.FlowAdd)
		}
	}
}

// hand gives the gradient to input k, whose buffer is not this layer's. When it returns all workers have.
func (l *layer) hand(w *kernel.Worker, k int, add bool) {
	in := l.in[k]
	scatter := func() {
		if !add {
			w.Clear(in.grad)
			w.Sync()
		}
	}
	switch l.op {
	case model.OpMaxPool:
		scatter()
		if in.v.Short {
			w.MaxPoolBackHalves(&l.v.Pool, in.half, l.half, l.grad, in.grad, l.back)
		} else {
			w.MaxPoolBack(&l.v.Pool, in.out, l.out, l.grad, in.grad)
		}
	case model.OpAvgPool:
		scatter()
		w.AvgPoolBack(&l.v.Pool, l.grad, in.grad)
	case model.OpGlobalAvgPool, model.OpAdaptiveAvgPool:
		scatter()
		w.AdaptivePoolBack(in.v.Image, l.v.Image.H, l.v.Image.W, l.grad, in.grad)
	case model.OpConcat:
		first := 0
		for _, before := range l.in[:k] {
			first += before.v.Image.C
		}
		w.Split(in.grad, in.v.Image, l.grad, l.v.Image.C, first, add)
		w.Sync()
	case model.OpDownsample:
		scatter()
		w.SubsampleBack(in.grad, in.v.Image, l.grad, l.v.Image, l.node.Stride.H)
		w.Sync()
	case model.OpFlatten:
		if l.v.InPlace {
			pass(w, in.grad, l.grad, add)
		} else {
			w.Unflatten(in.grad, l.grad, in.v.Image, add)
			w.Sync()
		}
	default: // element by element: the gradient is ready
		pass(w, in.grad, l.grad, add)
	}
}

func pass(w *kernel.Worker, dst, src []float32, add bool) {
	if add {
		w.Add(dst, dst, src)
	} else {
		w.Copy(dst, src)
	}
	w.Sync()
}

func gradOf(p *param) []float32 {
	if p == nil {
		return nil
	}
	return p.grad
}

func (l *layer) normBack(w *kernel.Worker, e *Engine, x []float32) {
	for _, p := range []*param{l.weight, l.bias} {
		if p != nil && w.ID == 0 {
			clear(p.grad[l.v.Image.C:]) // what pads it; the rest is written
		}
	}
	if e.plan.Spec.Halves {
		l.normBackHalves(w, x)
		return
	}
	w.NormBack(&l.norm, &l.backState, x, l.out, l.grad, gradOf(l.weight), gradOf(l.bias))
}

func (l *layer) productBack(w *kernel.Worker, e *Engine, x []float32) {
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
	case l.v.Depthwise:
		w.Clear(l.weight.grad)
		w.Sync()
		w.DepthwiseBackWeights(g, x, l.grad, l.weight.grad, l.back)
		w.Sync()
	case c.Tile.Is():
		w.WinogradBackWeights(c, x, l.grad, l.weight.grad, l.back)
	default:
		w.BackWeights(c, x, l.grad, l.weight.grad, l.back)
	}
	l.biasBack(w)
}

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
