package native

import (
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// forwardRows is forward, of all workers, for activations that lie by rows, see plan.Image: inference of a few of them.
func (l *layer) forwardRows(w *kernel.Worker, e *Engine) {
	in, rows := l.in[0], e.rows
	im, out := in.v.Image, l.v.Image
	x, y := in.out, l.out[:rows*out.Row()]
	values := func() []float32 { return x[:len(y)] } // of layers that go by values
	switch l.op {
	case model.OpConv, model.OpDense:
		l.productRows(w, e, x)
	case model.OpBatchNorm:
		if !l.v.Fused {
			w.NormScale(&l.norm, &l.state, l.running())
			w.Sync()
			w.RowsAffine(out, rows, x, y, l.state.Scale, l.state.Offset, l.v.ReLU)
		}
	case model.OpReLU:
		if !l.v.Fused {
			w.ReLU(y, values())
			w.Sync()
		}
	case model.OpReLU6:
		if !l.v.Fused {
			w.Clamp(y, values(), top)
			w.Sync()
		}
	case model.OpSigmoid:
		w.Sigmoid(y, values())
		w.Sync()
	case model.OpTanh:
		w.Tanh(y, values())
		w.Sync()
	case model.OpDropout:
		if &y[0] != &x[0] {
			w.Copy(y, values())
			w.Sync()
		}
	case model.OpMaxPool, model.OpAvgPool, model.OpGlobalAvgPool, model.OpAdaptiveAvgPool:
		for r := range rows {
			l.poolRow(w, x[r*im.Row():], y[r*out.Row():])
		}
	case model.OpFlatten:
		if !l.v.InPlace {
			w.RowsFlatten(y, out, x, im, rows, l.v.Permuted)
			w.Sync()
		}
	case model.OpAdd:
		l.sum(w)
		w.Sync()
	case model.OpConcat:
		first := 0
		for _, part := range l.in {
			w.RowsJoin(y, out, part.out, part.v.Image, rows, first)
			first += part.v.Image.C
		}
		w.Sync()
	case model.OpDownsample:
		w.RowsSubsample(y, out, x, im, rows, l.node.Stride.H)
		w.Sync()
	}
}

// poolRow pools one row.
func (l *layer) poolRow(w *kernel.Worker, x, y []float32) {
	switch l.op {
	case model.OpMaxPool:
		w.MaxPool(&l.v.Pool, x, y)
	case model.OpAvgPool:
		w.AvgPool(&l.v.Pool, x, y)
	default:
		w.AdaptivePool(l.in[0].v.Image.Blocks(), l.v.Image.H, l.v.Image.W, x, y)
	}
}

func (l *layer) productRows(w *kernel.Worker, e *Engine, x []float32) {
	out := l.v.Image
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
