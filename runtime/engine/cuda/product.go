package cuda

import (
	"github.com/disdel/disdel/runtime/engine/cuda/driver"
	"github.com/disdel/disdel/runtime/engine/cuda/kernel"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// product is convolutions and dense layers.
type product struct{}

func (product) forward(l *layer, e *Engine, training bool) []driver.Launch {
	x, w, bias := l.in[0].out, l.weight.value, value(l.bias)
	c := l.product(e, training)
	switch {
	case l.v.Depthwise:
		return []driver.Launch{l.window.Depthwise(l.out, x, w, bias)}
	case l.plain(e, training):
		return c.LibraryForward(l.out, x, w, bias)
	default:
		return []driver.Launch{c.Forward(l.out, x, w, bias)}
	}
}

// backward is by the data, the weights and the bias: passGradient has nothing to do.
func (product) backward(l *layer, e *Engine) (out []driver.Launch) {
	x := l.in[0].out
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

func (product) passGradient(*layer, int, bool) []driver.Launch { return nil }

// product is the layer's convolution as a step computes it, or an evaluation.
func (l *layer) product(e *Engine, training bool) kernel.Conv {
	c := l.conv
	if training {
		c.Precision = e.memory.precision
	}
	return c
}

// plain tells whether the layer's products are the driver's library's.
func (l *layer) plain(e *Engine, training bool) bool {
	return e.memory.library && !l.v.Depthwise && l.product(e, training).Plain()
}
