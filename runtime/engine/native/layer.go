package native

import (
	"strings"

	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// layer is a node with its pieces of the slab.
type layer struct {
	op     model.Op
	node   *model.Node
	index  int
	v      plan.Node
	in     []*layer
	out    []float32
	grad   []float32 // of out; empty where nothing needs it
	params []*param

	weight, bias       *param // of convolutions, dense layers and batch norms; nil where there is none
	mean, variance     *param // running statistics
	work, back, shared []float32
	norm               kernel.Norm
	state, backState   kernel.NormState
	then               *kernel.After // what it computes of the layers behind it; nil: nothing
	halves
}

func (e *Engine) region(r plan.Region) []float32 {
	if r.Len == 0 {
		return nil
	}
	return e.mem.Values()[r.Offset : r.Offset+r.Len]
}

func (e *Engine) layer(i int) layer {
	v := e.plan.Nodes[i]
	l := layer{
		op: e.g.Nodes[i].Op, node: &e.g.Nodes[i], index: i, v: v, work: e.region(v.Work),
		back: e.region(v.BackWork), shared: e.region(v.Aux),
	}
	for _, k := range v.Inputs {
		l.in = append(l.in, &e.layers[k])
	}
	// A slab's region may be longer than the image, which is what element-wise kernels walk; the tail behind an image
	// belongs to nobody.
	if size := v.Border.Around(v.Image).Len(); v.Out.Len > 0 {
		l.out = e.region(v.Out)[:size]
	}
	if v.Grad.Len > 0 {
		l.grad = e.region(v.Grad)[:v.Image.Len()]
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
	if l.op == model.OpBatchNorm {
		l.norm = kernel.Norm{Image: v.Image, Eps: l.node.Eps, Momentum: l.node.Momentum, ReLU: v.ReLU}
		l.state, l.backState = l.normState(e, l.work), l.normState(e, l.back)
	}
	l.halves = l.halvesOf(e)
	return l
}

// normState cuts a batch norm's working memory into its arrays.
func (l *layer) normState(e *Engine, work []float32) kernel.NormState {
	c := plan.Padded(l.v.Image.C)
	var s kernel.NormState
	if l.weight != nil {
		s.Gamma = l.weight.value
	}
	if l.bias != nil {
		s.Beta = l.bias.value
	}
	if work != nil {
		s.Shift, s.Scale, s.Offset, s.Third, s.Sums = work[:c], work[c:2*c], work[2*c:3*c], work[3*c:4*c], work[4*c:]
	}
	switch {
	case l.v.Fused:
		s.Scale, s.Offset = l.shared[:c], l.shared[c:2*c]
	case l.shared != nil:
		s.Mean, s.Var = l.shared[:c], l.shared[c:2*c]
	}
	s.Mask = e.mask
	return s
}

func values(p *param) []float32 {
	if p == nil {
		return nil
	}
	return p.value
}

// running are a batch norm's running statistics.
func (l *layer) running() [2][]float32 { return [2][]float32{l.mean.value, l.variance.value} }

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
