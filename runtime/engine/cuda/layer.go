package cuda

import (
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/cuda/driver"
	"github.com/disdel/disdel/runtime/engine/cuda/kernel"
	"github.com/disdel/disdel/runtime/engine/footprint"
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
	if e.plan.Spec.ByLoss(e.g, i) { // a sigmoid, which has kernels elsewhere
		l.kind = nil
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

const device = footprint.Device

// memory is how an engine's device memory is laid out: the plan's slab, and behind it what the kernels need beside it.
// Places are in bytes from its start.
type memory struct {
	plan *plan.Plan

	host    disdel.Bytes // of the process, for the driver
	pinned  disdel.Bytes // of the process, that copies go through
	context disdel.Bytes // of the device, for the driver

	workspace disdel.Bytes // of the device, for the driver's library

	precision kernel.Precision // of a step's products
	library   bool             // plain ones are the driver's library's

	control, result  disdel.Bytes
	slots            []slot
	right            disdel.Bytes // [lanes]
	losses           disdel.Bytes // [lanes]
	output           disdel.Bytes // [rows][classes]
	segments         disdel.Bytes
	sums, parts, end disdel.Bytes // sums by channel; parts of weights' gradients
}

// slot is where a batch lies as it was handed over.
type slot struct {
	input  disdel.Bytes // [rows] of samples
	labels disdel.Bytes // [lanes]
}

// slotsOf is how many batches have room: of a training, whose next one comes while one is computed with, two.
func slotsOf(s *plan.Spec) int {
	if s.Training {
		return 2
	}
	return 1
}

// unit is what every place is a multiple of.
const unit = 64

// layMemory lays out what an engine by this plan needs.
func layMemory(p *plan.Plan) *memory {
	m := &memory{plan: p, slots: make([]slot, slotsOf(&p.Spec))}
	at := disdel.Bytes(0)
	next := func(place *disdel.Bytes, size disdel.Bytes) {
		*place = at
		at += (size + unit - 1) / unit * unit
	}
	next(new(disdel.Bytes), p.Bytes())
	next(&m.control, controlLen)
	next(&m.result, resultLen)
	for i := range m.slots {
		next(&m.slots[i].input, disdel.Bytes(4*p.Spec.BatchSize*p.Graph.Input().Len()))
		next(&m.slots[i].labels, disdel.Bytes(4*p.Lanes))
	}
	next(&m.right, disdel.Bytes(4*p.Lanes))
	next(&m.losses, disdel.Bytes(8*p.Lanes))
	next(&m.output, disdel.Bytes(4*p.Spec.BatchSize*p.Graph.Output().Len()))
	next(&m.segments, kernel.SegmentLen*disdel.Bytes(len(p.Params)))
	next(&m.sums, max(sumsOf(p), kernel.ClipWork(len(p.Params))))
	next(&m.parts, partsOf(p))
	next(&m.end, 0)
	return m
}

// Sizes of what the host and the kernels tell each other.
const (
	controlLen = 48
	resultLen  = 24
)

// sumsOf is the most that sums over the channels of an image take.
func sumsOf(p *plan.Plan) disdel.Bytes {
	var maximum disdel.Bytes
	for i := range p.Nodes {
		switch p.Graph.Nodes[i].Op {
		case model.OpConv, model.OpDense, model.OpBatchNorm:
			maximum = max(maximum, kernel.SumWork(p.Nodes[i].Image))
		}
	}
	return maximum
}

// partsOf is the most that a weights' gradient takes beside itself.
func partsOf(p *plan.Plan) disdel.Bytes {
	var maximum disdel.Bytes
	for i := range p.Nodes {
		if p.Spec.Training && isProduct(p, i) {
			maximum = max(maximum, kernel.Conv{Conv: convOf(p, i)}.Work())
		}
	}
	return maximum
}

// hasProducts tells whether a library of products computes any of the plan: of evaluations, which every engine is made
// ready for, it has all that are plain, whatever the precision of steps.
func hasProducts(p *plan.Plan) bool {
	for i := range p.Nodes {
		if isProduct(p, i) && (kernel.Conv{Conv: convOf(p, i)}).Plain() {
			return true
		}
	}
	return false
}

// isProduct tells whether a node is computed as a product of matrices.
func isProduct(p *plan.Plan, i int) bool {
	op := p.Graph.Nodes[i].Op
	return (op == model.OpConv || op == model.OpDense) && !p.Nodes[i].Depthwise
}

// convOf is the geometry of a convolution or dense layer for weights in PyTorch's order. A dense layer behind an image
// that was flattened as it lies, [H][W][C], is a convolution by a kernel of the whole image.
func convOf(p *plan.Plan, i int) plan.Conv {
	v := &p.Nodes[i]
	if p.Graph.Nodes[i].Op != model.OpDense || !v.Permuted {
		return v.Conv
	}
	from := v.Inputs[0]
	for p.Graph.Nodes[from].Op != model.OpFlatten {
		from = p.Nodes[from].Inputs[0]
	}
	c, im := v.Conv, p.Nodes[p.Nodes[from].Inputs[0]].Image
	c.In, c.KH, c.KW = im, im.H, im.W
	return c
}

// inSlab are the categories of a plan. What its layout cannot use is workspace.
var inSlab = map[plan.Category]footprint.Category{
	plan.Weights: footprint.Weights, plan.Moments: footprint.Moments, plan.Gradients: footprint.Gradients,
	plan.Activations: footprint.Activations, plan.Backward: footprint.Backward, plan.Workspace: footprint.Workspace,
}

// footprint is the bytes of the one allocation by category, and a batch as it is handed over on the host.
func (m *memory) footprint() engine.Footprint {
	p := m.plan
	peak, gaps := p.ByCategory()
	batch := m.segments - m.control
	peak[plan.Workspace] += gaps + m.end - p.Bytes() - batch
	f := engine.Footprint{Basis: footprint.Planned}
	for _, c := range plan.Categories {
		f.Parts = append(f.Parts, footprint.Part{Category: inSlab[c], Memory: device, Bytes: peak[c]})
	}
	rows := disdel.Bytes(p.Spec.BatchSize)
	f.Parts = append(f.Parts,
		footprint.Part{Category: footprint.Batch, Memory: device, Bytes: batch},
		footprint.Part{
			Category: footprint.Batch, Memory: footprint.Heap,
			Bytes: 4*rows*disdel.Bytes(p.Graph.Input().Len()+p.Graph.Output().Len()) + listBytes*disdel.Bytes(len(p.Nodes)),
		})
	if m.context > 0 {
		f.Parts = append(f.Parts, footprint.Part{Category: footprint.Process, Memory: device, Bytes: m.context})
	}
	if m.workspace > 0 {
		f.Parts = append(f.Parts, footprint.Part{Category: footprint.Library, Memory: device, Bytes: m.workspace})
	}
	if m.host > 0 {
		f.Parts = append(f.Parts, footprint.Part{Category: footprint.Process, Memory: footprint.Host, Bytes: m.host})
	}
	if m.pinned > 0 {
		f.Parts = append(f.Parts, footprint.Part{Category: footprint.Batch, Memory: footprint.Host, Bytes: m.pinned})
	}
	if p.Spec.Training {
		weights, others := p.ByNode()
		for i := range weights {
			f.Layers = append(f.Layers, footprint.Layer{Weights: weights[i], Others: others[i]})
		}
	}
	return f
}

// listBytes is what the launches of a node take on the heap: ten of them, twice, with their arguments.
const listBytes = 4 * disdel.KB

// region is where a part of the slab lies, 0 for one that does not exist.
func (e *Engine) region(r plan.Region) driver.Pointer {
	if r.Len == 0 {
		return 0
	}
	return e.base.At(r.Offset)
}

// place is where a piece behind the slab lies.
func (e *Engine) place(at disdel.Bytes) driver.Pointer { return e.base + driver.Pointer(at) }
