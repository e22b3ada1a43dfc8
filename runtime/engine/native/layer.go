package native

import (
	"cmp"
	"slices"
	"strings"

	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// layer is a node with its pieces of the slab.
type layer struct {
	kind   kind // nil: nothing is computed
	node   *model.Node
	index  int
	v      plan.Node
	in     []*layer
	out    []float32
	grad   []float32 // of out; empty where nothing needs it
	params []*param
	second bool // of layersBack: forward computes an output of this step again

	weight, bias       *param // of convolutions, dense layers and batch norms; nil where there is none
	mean, variance     *param // running statistics
	scale              *param // of an attention by cosines
	work, back, shared []float32
	norm               kernel.Norm
	state, backState   kernel.NormState
	rows               int           // of the batch
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
		kind: kindOf(&e.g.Nodes[i]), node: &e.g.Nodes[i], index: i, v: v, work: e.region(v.Work),
		back: e.region(v.BackWork), shared: e.region(v.Aux),
	}
	if e.plan.Spec.ByLoss(e.g, i) {
		l.kind = nil
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
		if owner := cmp.Or(e.g.Nodes[i].Tied, i); p.Node != owner {
			continue
		}
		switch {
		case strings.HasSuffix(p.Name, ".weight"):
			l.weight = p
		case strings.HasSuffix(p.Name, ".bias"):
			l.bias = p
		case strings.HasSuffix(p.Name, ".scale"):
			l.scale = p
		case strings.HasSuffix(p.Name, ".running_mean"):
			l.mean = p
		case strings.HasSuffix(p.Name, ".running_var"):
			l.variance = p
		}
	}
	if l.node.Op == model.OpBatchNorm {
		l.norm = kernel.Norm{Image: v.Image, Eps: l.node.Eps, Momentum: l.node.Momentum, ReLU: v.ReLU}
		l.state, l.backState = l.normState(e, l.work), l.normState(e, l.back)
	}
	if l.node.Op == model.OpPositions && l.node.Fixed {
		setSines(l.shared, l.node.Out[0], l.node.Out[1])
	}
	l.halves = l.halvesOf(e)
	return l
}

// setRows sets the rows of a call.
func (l *layer) setRows(rows int) {
	active := plan.Padded(rows)
	if l.v.Image.Fold > 0 {
		active = l.v.Image.Lanes
	}
	l.v.Conv.ActiveRows, l.v.Pool.ActiveRows = active, active
	l.rows, l.norm.Rows, l.norm0.Rows = rows, rows, rows
}

// layersBack are the layers as backward passes see them: the same, but for outputs that are computed again.
func (e *Engine) layersBack() []layer {
	if !e.plan.Spec.Recompute {
		return e.layers
	}
	out := slices.Clone(e.layers)
	for i := range out {
		l := &out[i]
		l.second = true
		l.in = make([]*layer, len(l.in))
		for k, in := range l.v.Inputs {
			l.in[k] = &out[in]
		}
		if s := l.v.Second; s != nil {
			l.out, l.work = e.region(s.Out)[:len(l.out)], e.region(s.Work)
		}
	}
	return out
}

func values(p *param) []float32 {
	if p == nil {
		return nil
	}
	return p.value
}

func gradOf(p *param) []float32 {
	if p == nil {
		return nil
	}
	return p.grad
}

// rowsOut is the output of a call's rows if they lie one behind another.
func (l *layer) rowsOut(e *Engine) []float32 { return l.out[:e.rows*l.v.Image.Row()] }

// halves is a layer's part of steps with bfloat16. Factors of products (activations, weights, gradients of outputs) are
// rounded to bfloat16; sums are float32. Activations that backward reads are kept as halves, see plan.Spec. Weights,
// their gradients, moments, statistics and the loss are float32. Evaluation and prediction compute in float32.
type halves struct {
	half  kernel.Halves // the output, on the way back
	norm0 kernel.Norm   // a batch norm without the ReLU, whose gradient comes first then
}

// halvesOf makes the halves of a layer.
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

// settle rounds a layer's output in a step before later layers read it, and shortens outputs that no layer reads any
// more.
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
