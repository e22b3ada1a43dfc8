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
	kind      kind // nil: nothing is computed
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
		kind: kindOf(e.g.Nodes[i].Op), node: &e.g.Nodes[i], index: i, v: v, out: e.region(v.Out), grad: e.region(v.Grad),
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
	switch l.node.Op {
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
