package native

import (
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// top is where ReLU6 ends.
const top = 6

// forward computes the layer's output from its inputs'. When it returns all workers have.
func (l *layer) forward(w *kernel.Worker, e *Engine) {
	var x []float32
	if len(l.in) > 0 {
		x = l.in[0].out
	}
	switch l.op {
	case model.OpConv, model.OpDense:
		l.product(w, e, x)
	case model.OpBatchNorm:
		switch {
		case l.v.Fused:
		case e.training:
			w.NormForward(&l.norm, &l.state, l.running(), x, l.out)
		default:
			w.NormEval(&l.norm, &l.state, l.running(), x, l.out)
		}
	case model.OpReLU:
		if !l.v.Fused {
			w.ReLU(l.out, x)
			w.Sync()
		}
	case model.OpReLU6:
		if !l.v.Fused {
			w.Clamp(l.out, x, top)
			w.Sync()
		}
	case model.OpSigmoid:
		w.Sigmoid(l.out, x)
		w.Sync()
	case model.OpTanh:
		w.Tanh(l.out, x)
		w.Sync()
	case model.OpDropout:
		l.drop(w, e, l.out, x)
	case model.OpMaxPool:
		w.MaxPool(&l.v.Pool, x, l.out)
	case model.OpAvgPool:
		w.AvgPool(&l.v.Pool, x, l.out)
	case model.OpGlobalAvgPool, model.OpAdaptiveAvgPool:
		w.AdaptivePool(l.in[0].v.Image, l.v.Image.H, l.v.Image.W, x, l.out)
	case model.OpFlatten:
		if !l.v.InPlace {
			w.Flatten(l.out, x, l.in[0].v.Image)
			w.Sync()
		}
	case model.OpAdd:
		l.sum(w)
		w.Sync()
	case model.OpConcat:
		first := 0
		for _, in := range l.in {
			w.Join(l.out, l.v.Image.C, in.out, in.v.Image, first)
			first += in.v.Image.C
		}
		w.Sync()
	case model.OpDownsample:
		w.Subsample(l.out, l.v.Image, x, l.in[0].v.Image, l.node.Stride.H)
		w.Sync()
	}
}

func (l *layer) product(w *kernel.Worker, e *Engine, x []float32) {
	short := e.training && e.plan.Spec.Halves
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

// sum adds the inputs; the first may be the output already.
func (l *layer) sum(w *kernel.Worker) {
	a := l.in[0].out
	for k, in := range l.in[1:] {
		if l.v.ReLU && k == len(l.in)-2 {
			w.AddReLU(l.out, a, in.out)
		} else {
			w.Add(l.out, a, in.out)
		}
		a = l.out
	}
	if len(l.in) == 1 && !l.v.InPlace {
		w.Copy(l.out, a)
	}
}

// drop zeroes a share of the values while training and scales the others, so that the mean stays. Which ones is a
// function of seed, step, layer and place: backward finds the same without a mask in memory.
func (l *layer) drop(w *kernel.Worker, e *Engine, dst, x []float32) {
	if !e.training || l.node.Rate == 0 {
		if &dst[0] != &x[0] {
			w.Copy(dst, x)
			w.Sync()
		}
		return
	}
	w.Dropout(dst, x, l.node.Rate, uint64(e.spec.Seed)^uint64(e.steps)<<20^uint64(l.index)<<52)
	w.Sync()
}
