package cuda

import (
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine/cuda/driver"
	"github.com/disdel/disdel/runtime/engine/cuda/kernel"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// backward are the launches that turn the gradient of the output into those of the inputs and of the parameters.
func (l *layer) backward(e *Engine) (out []driver.Launch) {
	x := l.in[0].out
	switch l.op {
	case model.OpConv, model.OpDense:
		return l.productBack(e, x)
	case model.OpBatchNorm:
		n := worksIn(l.norm, e.region(l.v.BackWork), plan.Padded(l.v.Image.C))
		out = n.Back(l.grad, x, l.out)
	case model.OpReLU, model.OpReLU6, model.OpSigmoid, model.OpTanh:
		if l.op != model.OpReLU || !l.v.Fused || l.in[0].op != model.OpBatchNorm {
			out = append(out, kernel.Pointwise(activations[l.op][1], l.grad, l.grad, l.out, l.values()))
		}
	case model.OpDropout:
		out = l.drop(e, l.grad, l.grad, true)
	}
	for k, flow := range l.v.GradIn {
		if flow == plan.FlowFirst || flow == plan.FlowAdd {
			out = append(out, l.hand(k, flow == plan.FlowAdd))
		}
	}
	return out
}

// hand gives the gradient to input k, whose buffer is not this layer's.
func (l *layer) hand(k int, add bool) driver.Launch {
	in := l.in[k]
	switch l.op {
	case model.OpMaxPool:
		return l.window.MaxPoolBack(in.grad, in.out, l.out, l.grad, add)
	case model.OpAvgPool:
		return l.window.AvgPoolBack(in.grad, l.grad, add)
	case model.OpGlobalAvgPool, model.OpAdaptiveAvgPool:
		return l.window.AdaptiveBack(in.grad, l.grad, add)
	case model.OpConcat:
		return l.part(k).Split(in.grad, l.grad, add)
	case model.OpDownsample:
		return l.sampling().Back(in.grad, l.grad, add)
	case model.OpFlatten:
		if !l.v.InPlace {
			return kernel.Unflatten(in.grad, l.grad, in.v.Image, add)
		}
	}
	// Element by element: the gradient is ready.
	if add {
		return kernel.Pointwise(kernel.Add, in.grad, in.grad, l.grad, l.values())
	}
	return kernel.Pointwise(kernel.Copy, in.grad, l.grad, 0, l.values())
}

// productBack are those of a convolution or dense layer: by the data, the weights and the bias.
func (l *layer) productBack(e *Engine, x driver.Pointer) (out []driver.Launch) {
	c, plain := l.product(e, true), l.plain(e, true)
	if flow := l.v.GradIn[0]; flow != plan.FlowNone {
		add, dx := flow == plan.FlowAdd, l.in[0].grad
		switch {
		case l.v.Depthwise:
			out = append(out, l.window.DepthwiseData(dx, l.grad, l.weight.value, add))
		case plain:
			out = append(out, c.LibraryData(dx, l.grad, l.weight.value, add))
		default:
			out = append(out, c.Data(dx, l.grad, l.weight.value, add))
		}
	}
	one, ok := driver.Launch{}, false
	if plain {
		one, ok = c.LibraryWeights(l.weight.grad, x, l.grad)
	}
	switch {
	case l.v.Depthwise:
		out = append(out, l.window.DepthwiseWeights(l.weight.grad, x, l.grad))
	case ok:
		out = append(out, one)
	default:
		out = append(out, c.Weights(l.weight.grad, x, l.grad, e.place(e.memory.parts))...)
	}
	if l.bias != nil {
		control, sums := e.place(e.memory.control), e.place(e.memory.sums)
		out = append(out, kernel.BiasBack(l.bias.grad, l.grad, control, sums, l.v.Image)...)
	}
	return out
}
