package cuda

import (
	"strings"

	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine/cuda/driver"
	"github.com/disdel/disdel/runtime/engine/cuda/kernel"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// param is one array of weights with its pieces of the slab, in PyTorch's order.
type param struct {
	model.Param
	value, grad driver.Pointer
	moments     [2]driver.Pointer
}

// layer is a node with its pieces of the slab; those that do not exist are 0.
type layer struct {
	op        model.Op
	node      *model.Node
	index     int
	v         *plan.Node
	in        []*layer
	out, grad driver.Pointer

	weight, bias, mean, variance *param // nil where there is none
	conv                         kernel.Conv
	window                       kernel.Window
	norm                         kernel.Norm
	segments                     kernel.Segments
}

func (e *Engine) layer(i int) layer {
	v := &e.plan.Nodes[i]
	l := layer{
		op: e.g.Nodes[i].Op, node: &e.g.Nodes[i], index: i, v: v, out: e.region(v.Out), grad: e.region(v.Grad),
	}
	for _, k := range v.Inputs {
		l.in = append(l.in, &e.layers[k])
	}
	for k := range e.params {
		p := &e.params[k]
		if p.Node != i {
			continue
		}
		switch {
		case strings.HasSuffix(p.Name, ".weight"):
			l.weight = p
		case strings.HasSuffix(p.Name, ".bias"):
			l.bias = p
		case strings.HasSuffix(p.Name, ".running_mean"):
			l.mean = p
		case strings.HasSuffix(p.Name, ".running_var"):
			l.variance = p
		}
	}
	control := e.place(e.memory.control)
	l.window = kernel.Window{Pool: v.Pool, Control: control}
	switch l.op {
	case model.OpConv, model.OpDense:
		l.conv = kernel.Conv{Conv: convOf(e.plan, i), Control: control}
	case model.OpBatchNorm:
		l.norm = e.norm(&l)
	case model.OpGlobalAvgPool, model.OpAdaptiveAvgPool:
		l.window.Pool = plan.Pool{In: l.in[0].v.Image, OH: v.Image.H, OW: v.Image.W}
	}
	l.segments = e.segmentsOf(i)
	return l
}

func value(p *param) driver.Pointer {
	if p == nil {
		return 0
	}
	return p.value
}

func gradient(p *param) driver.Pointer {
	if p == nil {
		return 0
	}
	return p.grad
}

// norm gives a batch norm its arrays: of the work that the plan has for it forward and backward, the first three values
// a channel; and what it keeps in between.
func (e *Engine) norm(l *layer) kernel.Norm {
	c := plan.Padded(l.v.Image.C)
	n := kernel.Norm{
		Image: l.v.Image, Epsilon: l.node.Eps, Momentum: l.node.Momentum, ReLU: l.v.ReLU,
		RunningMean: value(l.mean), RunningVar: value(l.variance), Gamma: value(l.weight), Beta: value(l.bias),
		DGamma: gradient(l.weight), DBeta: gradient(l.bias),
		Work: e.place(e.memory.sums), Control: e.place(e.memory.control), Result: e.place(e.memory.result),
	}
	if kept := e.region(l.v.Aux); kept != 0 {
		n.Mean, n.Inverse = kept, kept.At(c)
	}
	return worksIn(n, e.region(l.v.Work), c)
}

// worksIn is a norm that works in a piece of the slab, of c values an array.
func worksIn(n kernel.Norm, work driver.Pointer, c int) kernel.Norm {
	n.Scale, n.Offset, n.Third = work, work.At(c), work.At(2*c)
	return n
}

// values is how many values the layer's output has.
func (l *layer) values() int { return l.v.Image.Len() }

// activations are the layers that compute value by value, forward and backward.
var activations = map[model.Op][2]kernel.Op{
	model.OpReLU: {kernel.ReLU, kernel.ReLUBack}, model.OpReLU6: {kernel.Clamp, kernel.ClampBack},
	model.OpSigmoid: {kernel.Sigmoid, kernel.SigmoidBack}, model.OpTanh: {kernel.Tanh, kernel.TanhBack},
}

// forward are the launches that compute the layer's output from its inputs'.
func (l *layer) forward(e *Engine, training bool) []driver.Launch {
	x := l.in[0].out
	switch l.op {
	case model.OpConv, model.OpDense:
		if l.v.Depthwise {
			return []driver.Launch{l.window.Depthwise(l.out, x, l.weight.value, value(l.bias))}
		}
		c := l.product(e, training)
		if l.plain(e, training) {
			return c.LibraryForward(l.out, x, l.weight.value, value(l.bias))
		}
		return []driver.Launch{c.Forward(l.out, x, l.weight.value, value(l.bias))}
	case model.OpBatchNorm:
		if training {
			return l.norm.Forward(l.out, x)
		}
		return l.norm.Infer(l.out, x)
	case model.OpReLU, model.OpReLU6, model.OpSigmoid, model.OpTanh:
		if l.v.Fused {
			return nil
		}
		return []driver.Launch{kernel.Pointwise(activations[l.op][0], l.out, x, 0, l.values())}
	case model.OpDropout:
		return l.drop(e, l.out, x, training)
	case model.OpMaxPool:
		return []driver.Launch{l.window.MaxPool(l.out, x)}
	case model.OpAvgPool:
		return []driver.Launch{l.window.AvgPool(l.out, x)}
	case model.OpGlobalAvgPool, model.OpAdaptiveAvgPool:
		return []driver.Launch{l.window.Adaptive(l.out, x)}
	case model.OpFlatten:
		if l.v.InPlace {
			return nil
		}
		return []driver.Launch{kernel.Flatten(l.out, x, l.in[0].v.Image)}
	case model.OpAdd:
		return l.sum()
	case model.OpConcat:
		return l.join()
	case model.OpDownsample:
		return []driver.Launch{l.sampling().Forward(l.out, x)}
	}
	return nil // softmax is the loss's
}

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
	product := l.op == model.OpConv || l.op == model.OpDense
	return e.memory.library && product && !l.v.Depthwise && l.product(e, training).Plain()
}

// sum adds the inputs; the first may be the output already.
func (l *layer) sum() (out []driver.Launch) {
	a := l.in[0].out
	for k, in := range l.in[1:] {
		op := kernel.Add
		if l.v.ReLU && k == len(l.in)-2 {
			op = kernel.AddReLU
		}
		out = append(out, kernel.Pointwise(op, l.out, a, in.out, l.values()))
		a = l.out
	}
	return out
}

func (l *layer) join() (out []driver.Launch) {
	for k, in := range l.in {
		out = append(out, l.part(k).Join(l.out, in.out))
	}
	return out
}

// part is where input k of a concatenation lies in its output.
func (l *layer) part(k int) kernel.Part {
	p := kernel.Part{Image: l.in[k].v.Image, Total: l.v.Image.C}
	for _, before := range l.in[:k] {
		p.First += before.v.Image.C
	}
	return p
}

func (l *layer) sampling() kernel.Sampling {
	return kernel.Sampling{In: l.in[0].v.Image, Out: l.v.Image, Stride: l.node.Stride.H}
}

// drop zeroes a share of the values while training and scales the others, so that the mean stays. Backward finds the
// same without a mask in memory.
func (l *layer) drop(e *Engine, out, x driver.Pointer, training bool) []driver.Launch {
	switch {
	case training && l.node.Rate > 0:
		d := kernel.Dropping{Control: e.place(e.memory.control), Node: l.index, Rate: l.node.Rate}
		return []driver.Launch{d.Do(out, x, l.values())}
	case out != x:
		return []driver.Launch{kernel.Pointwise(kernel.Copy, out, x, 0, l.values())}
	}
	return nil
}
