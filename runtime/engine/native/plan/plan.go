package plan

import (
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
)

// Spec is what a plan is made for.
type Spec struct {
	BatchSize    int  // rows, at least 1
	Training     bool // backward too
	Moments      int  // values an optimiser keeps for every weight: 0, 1 or 2
	ShortMoments bool // moments take 8 bits, see MomentValues
	KeepGrads    bool // weights' gradients are needed all at once
	PagedMoments bool // moments are not in the slab, but in a file
	SumGrads     bool // gradients of several passes are added before weights change
	// PartGrads says that the weights of large dense layers change part by part. So a step has the gradient of only one
	// part of their filters at a time. It goes with neither KeepGrads nor SumGrads nor Halves.
	PartGrads bool
	Recompute bool // some activations are computed again on the way back; not with Halves
	// Keep are the nodes whose outputs Recompute keeps, ascending. nil: those with which a step takes least memory.
	Keep   []int
	Exact  bool // convolutions go by their definition: no Winograd
	Halves bool // what a step of training keeps for its way back is bfloat16; inference is as without
	// Plain is for an engine that computes a network by its own kernels: batches lie in lanes however few their rows are,
	// batch norms and ReLU6 are no other layer's work, and no tap is idle. It wants Exact, too.
	Plain bool
	// Text is for inference that continues a text: rows of a pass are successive positions of it, see ContinuesTexts.
	Text bool
	// Sigmoid says that the loss computes a sigmoid at the end, as it does a softmax.
	Sigmoid bool
}

// ByLoss tells whether the loss computes node i of a network, from the node's input.
func (s *Spec) ByLoss(g *model.Graph, i int) bool {
	op := g.Nodes[i].Op
	return op == model.OpSoftmax || op == model.OpSigmoid && s.Sigmoid && i == len(g.Nodes)-1
}

// MomentsApart tells whether a step reads moments by pieces from where they are kept, and writes them back.
func (s *Spec) MomentsApart() bool {
	return s.Training && s.Moments > 0 && (s.ShortMoments || s.PagedMoments)
}

func (s *Spec) momentsInSlab() int {
	if s.PagedMoments {
		return 0
	}
	return s.Moments
}

// Region is a part of the slab, in values; an empty one does not exist.
type Region struct{ Offset, Len int }

// Param is where an array of weights lies.
type Param struct {
	model.Param
	Value   Region
	Grad    Region // only where gradients are kept, or during the backward pass of its node
	Sum     Region // of the gradients of a step's passes; empty unless Spec.SumGrads. An embedding's is the same as Grad
	Moments [2]Region
	Part    int // filters whose gradient Grad has at a time; 0: all
}

// Node is where what belongs to a node of the graph lies, and how it is computed.
type Node struct {
	Image    Image  // of the output
	Border   Border // around it in memory; the input's only
	Out      Region
	Grad     Region // of the output; empty where nothing needs it
	Aux      Region // kept from forward to backward
	Work     Region // while the node is computed forward
	BackWork Region // while it is computed backward
	Inputs   []int  // the graph's, but what a sum is added to comes first

	Second *Second // of an output that is computed again; nil: it is kept

	Conv Conv // convolutions and dense layers
	Pool Pool // pools and depthwise convolutions

	Depthwise bool
	InPlace   bool // forward, on its (first) input
	ReLU      bool // computes the ReLU that follows, forward, and a batch norm also backward
	Fused     bool // is that ReLU
	Permuted  bool // a flatten that left pixels before channels; a dense layer that reads such a vector
	GradIn    []Flow

	// With Halves.
	Rounded  bool  // the output is to be rounded to bfloat16 when the node is computed
	Short    bool  // on the way back the output is halves, in the first half of Out
	Shortens []int // nodes whose outputs become halves when this one is computed

	// Inference: what a convolution or a dense layer computes of its pixels while they are in the cache.
	Norm  int  // the batch norm that follows; 0: none
	Clamp bool // the ReLU6 that follows, behind that
}

// Second is where a node's output lies that is computed again on the way back, and what that needs meanwhile.
type Second struct{ Out, Work Region }

// Flow is how a node's gradient gets to one of its inputs.
type Flow uint8

// Kinds of Flow.
const (
	FlowNone  Flow = iota // the input needs no gradient
	FlowAlias             // the same buffer
	FlowFirst             // the first gradient that the input gets: it is written
	FlowAdd               // added to what is there
)

// Category is a kind of bytes.
type Category string

// The categories of a plan, in the order they are reported.
const (
	Weights     Category = "weights"
	Moments     Category = "moments"
	Gradients   Category = "gradients"
	Activations Category = "activations"
	Backward    Category = "backward" // gradients of activations
	Workspace   Category = "workspace"
)

// Categories are all of them, in that order.
var Categories = []Category{Weights, Moments, Gradients, Activations, Backward, Workspace}

// Plan is a network's slab.
type Plan struct {
	Graph  *model.Graph
	Spec   Spec
	Lanes  int  // of the batch: padded to whole vectors, but where it is laid out by rows
	Fold   int  // positions of a sequence that share a pixel, see Image; 0: none do
	ByRows bool // activations are, one row of the batch behind the other
	Nodes  []Node
	Params []Param
	Len    int // values of the slab
	// Again are the nodes that are computed again before a node's backward pass, in their order; nil: none.
	Again map[int][]int

	buffers []*buffer
	last    int // time of the last backward pass
}

// Bytes is the size of the slab.
func (p *Plan) Bytes() disdel.Bytes { return disdel.Bytes(p.Len) * 4 }

// Bytes is the size of a region.
func (r Region) Bytes() disdel.Bytes { return disdel.Bytes(r.Len) * 4 }

// planner builds a plan.
type planner struct {
	*Plan
	g         *model.Graph
	consumers [][]int
	needs     []bool // a gradient
	outs      []*buffer
	grads     []*buffer
	works     []int   // values that a node needs while it is computed forward
	backs     []int32 // times of the backward passes
	kept      []bool  // the input and masks' tokens, which nodes all through the network read: never computed again
	lengths   []int   // with a Fold: of each node's sequence
	agains    []int32 // times at which nodes are computed again; 0: never
}

// New plans a network. It returns Invalid for a batch below 1, and for a network that only an action's own binary
// computes.
func New(g *model.Graph, spec Spec) (*Plan, error) {
	if spec.BatchSize < 1 {
		return nil, &disdel.Error{Kind: disdel.Invalid, Op: "plan network " + g.Name, Msg: "a batch has at least one row"}
	}
	if err := Supports(g); err != nil {
		return nil, err
	}
	p := build(g, spec, nil)
	best := p.Plan
	if spec.Recompute && spec.Training && !spec.Halves {
		if spec.Keep != nil {
			return build(g, spec, p.cutsAt(spec.Keep)).Plan, nil
		}
		for _, cuts := range p.choices() {
			if q := build(g, spec, cuts).Plan; q.Len < best.Len {
				best = q
			}
		}
	}
	return best, nil
}

// build plans a network whose outputs between cuts are computed again on the way back.
func build(g *model.Graph, spec Spec, cuts []int) *planner {
	n := len(g.Nodes)
	p := &planner{
		Plan: &Plan{Graph: g, Spec: spec, Lanes: Padded(spec.BatchSize), Nodes: make([]Node, n)},
		g:    g, consumers: make([][]int, n), needs: make([]bool, n), outs: make([]*buffer, n), grads: make([]*buffer, n),
		works: make([]int, n), backs: make([]int32, n), agains: make([]int32, n), kept: make([]bool, n),
	}
	p.kept[0] = true
	p.schedule(cuts)
	for i, node := range g.Nodes {
		for _, in := range node.Inputs {
			p.consumers[in] = append(p.consumers[in], i)
		}
		if node.Masked {
			p.kept[node.Inputs[len(node.Inputs)-1]] = true
		}
	}
	p.Spec.Halves = spec.Halves && spec.Training
	p.chooseRows()
	p.chooseFold()
	for i := range g.Nodes {
		p.Nodes[i].Inputs = slices.Clone(g.Nodes[i].Inputs)
		p.shape(i)
	}
	p.params()
	for i := range g.Nodes {
		p.forward(i)
		for _, in := range p.Nodes[i].Inputs { // a flatten of the input is the input
			p.kept[i] = p.kept[i] || p.kept[in] && p.outs[i] == p.outs[in]
		}
	}
	if spec.Training {
		for i := n - 1; i > 0; i-- {
			p.backward(i)
		}
		if b := p.grads[0]; b != nil { // of a slice's input: it is read when all backward passes are done
			b.live(p.end())
		}
	}
	for k := range cuts {
		p.recompute(cuts, k)
	}
	p.resolveBuffers()
	p.shorten()
	p.place()
	return p
}

// Supports returns Invalid for a network that only an action's own binary computes.
func Supports(g *model.Graph) error {
	switch {
	case g.Sparse() != nil:
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "plan network " + g.Name, Msg: "it takes sparse rows, and this backend takes dense ones",
			Hint: "leave training.backend out",
		}
	case g.Custom() == nil:
		return nil
	}
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "plan network " + g.Name, Msg: "only the binary that has this network can compute it",
		Hint: "give the binary: --action FILE",
	}
}

// end is the time of the last backward pass, and after it.
func (p *planner) end() int { return p.last }

// back is the time of a node's backward pass.
func (p *planner) back(i int) int { return int(p.backs[i]) }

// image is a shape in memory. A sequence is an image of one pixel a position.
func image(s model.Shape, lanes int) Image {
	out := Image{C: s[0], H: 1, W: 1, Lanes: lanes}
	if len(s) > 1 {
		out.H = s[1]
	}
	if len(s) > 2 {
		out.W = s[2]
	}
	return out
}

// shape works out the geometry of a node and whether it needs a gradient.
func (p *planner) shape(i int) {
	n, v := &p.g.Nodes[i], &p.Nodes[i]
	p.needs[i] = i == 0 && p.g.Slice.Enters() && p.Spec.Training
	if v.Image = image(n.Out, p.Lanes); p.Spec.Text {
		v.Image = p.textImage(i)
	} else {
		v.Image.Depth = p.depth(i)
	}
	if p.Fold > 0 && p.lengths[i] > 0 {
		length := p.lengths[i]
		v.Image = Image{C: n.Out.Len() / length, H: length / p.Fold, W: 1, Lanes: p.Lanes, Fold: p.Fold}
	}
	for _, in := range n.Inputs {
		p.needs[i] = p.needs[i] || p.needs[in]
	}
	k := &kinds[n.Op]
	p.needs[i] = p.needs[i] || k.weights && !n.Frozen && !n.Fixed
	if k.shape != nil {
		k.shape(p, i)
	}
}

func pool(n *model.Node, in, out Image) Pool {
	return Pool{
		In: in.Blocks(), KH: n.Kernel.H, KW: n.Kernel.W, SH: n.Stride.H, SW: n.Stride.W, DH: max(n.Dilation.H, 1),
		DW:  max(n.Dilation.W, 1),
		Top: n.Pad.Top, Left: n.Pad.Left, OH: out.H, OW: out.W, CountPad: n.CountPad,
	}
}

func (p *planner) conv(n *model.Node, v *Node) {
	in := p.Nodes[n.Inputs[0]]
	v.Conv = Conv{
		In: in.Border.Around(in.Image), Filters: n.Filters, KH: n.Kernel.H, KW: n.Kernel.W, SH: n.Stride.H, SW: n.Stride.W,
		DH: n.Dilation.H, DW: n.Dilation.W, Top: n.Pad.Top - in.Border.Top, Left: n.Pad.Left - in.Border.Left,
		OH: v.Image.H, OW: v.Image.W, Groups: n.Groups,
	}
	if n.Groups > 1 && n.Groups == in.Image.C && n.Filters == in.Image.C {
		v.Depthwise = true
		v.Pool = pool(n, in.Image, v.Image)
	}
	if !v.Depthwise && !p.Spec.Plain {
		v.Conv.Trim()
	}
	if !v.Depthwise && !p.ByRows && !p.Spec.Exact {
		v.Conv.Choose()
	}
}

// border puts zeros around the input where its only reader is a convolution with padding on few channels: without taps
// that leave the image the channels of a kernel row are one run, which fills tiles that three channels would not.
func (p *planner) border() Border {
	readers := p.consumers[0]
	if len(readers) != 1 || len(p.g.Input()) != 3 || p.g.Slice.Enters() { // in the whole network it is no input
		return Border{}
	}
	n := p.g.Nodes[readers[0]]
	if n.Op != model.OpConv || n.Groups > 1 || n.Dilation.H > 1 || n.Dilation.W > 1 || p.g.Input()[0]%8 == 0 {
		return Border{}
	}
	return Border{Top: n.Pad.Top, Bottom: n.Pad.Bottom, Left: n.Pad.Left, Right: n.Pad.Right}
}

// lastUse is the last node that computes with the weights of node i: the first one of a backward pass.
func (p *planner) lastUse(i int) int {
	for k := range p.g.Nodes {
		if p.g.Nodes[k].Tied == i && i > 0 {
			return k
		}
	}
	return i
}

// MomentBlock is the number of moments of 8 bits that share a scale. Four moments take a value, and a scale takes one.
const (
	MomentBlock     = 256
	momentsPerValue = 4
)

// MomentBlocks is the number of blocks of n moments of 8 bits.
func MomentBlocks(n int) int { return (n + MomentBlock - 1) / MomentBlock }

// MomentValues is what n moments of 8 bits take of the slab, in values.
func MomentValues(n int) int { return MomentBlocks(n) * (MomentBlock/momentsPerValue + 1) }

// params gives every array of weights its place; they live as long as the plan.
func (p *planner) params() {
	all := p.g.Params()
	if q, ok := p.g.Borrowed(); ok {
		all = append(all, q)
	}
	p.Params = make([]Param, 0, len(all))
	p.buffers = make([]*buffer, 0, (3+p.Spec.Moments)*len(all)/2+len(p.g.Nodes))
	for _, q := range all {
		v := &p.Nodes[q.Node]
		size, idle := Padded(q.Len()), 0
		weight := len(q.Shape) > 1
		switch op := p.g.Nodes[q.Node].Op; {
		case op == model.OpConv && v.Depthwise:
			size = Padded(q.Len())
		case v.Conv.Filters > 0 && weight:
			size, idle = v.Conv.WeightLen(), Padded(v.Conv.IdleLen())
		case v.Conv.Filters > 0:
			size = v.Conv.BiasLen()
		}
		out := Param{Param: q}
		p.Params = append(p.Params, out)
		k := len(p.Params) - 1
		p.later(&p.Params[k].Value, Weights, q.Node, size+idle, 0, p.end()+1)
		if n := &p.g.Nodes[q.Node]; p.Spec.Training && n.Borrows && !n.Frozen {
			p.later(&p.Params[k].Grad, Gradients, q.Node, size, p.back(q.Node), p.back(q.Node))
		}
		if !p.Spec.Training || !q.Trainable {
			continue
		}
		moment := size + idle
		if p.Spec.ShortMoments {
			moment = MomentValues(size) + MomentValues(idle)
		}
		for m := range p.Spec.momentsInSlab() {
			p.later(&p.Params[k].Moments[m], Moments, q.Node, moment, 0, p.end()+1)
		}
		if p.Spec.SumGrads {
			sum := p.add(Gradients, q.Node, size, 0, p.end()+1)
			sum.tell(&p.Params[k].Sum)
			if n := &p.g.Nodes[q.Node]; n.Op == model.OpEmbedding && !n.Lent && p.lastUse(q.Node) == q.Node {
				sum.tell(&p.Params[k].Grad) // tokens add to their own rows
				continue
			}
		}
		if part := p.gradPart(&q); part > 0 {
			p.Params[k].Part, size = part, part/vector*v.Conv.BlockLen()+Slack
		} else if p.Spec.MomentsApart() { // between steps, moments that are set piece by piece are gathered here
			size += idle
		}
		if p.Spec.KeepGrads && !p.Spec.SumGrads {
			p.later(&p.Params[k].Grad, Gradients, q.Node, size, len(p.g.Nodes), p.end()+1)
		} else {
			p.later(&p.Params[k].Grad, Gradients, q.Node, size, p.back(p.lastUse(q.Node)), p.back(q.Node))
		}
	}
}

// partValues bounds the gradient of a part of a dense layer's filters. A part has two blocks of filters at least: tiles
// may take two.
const partValues = 1 << 18

// gradPart is how many filters of a weight the gradient has at a time; 0: all.
func (p *planner) gradPart(q *model.Param) int {
	n, c := &p.g.Nodes[q.Node], &p.Nodes[q.Node].Conv
	if !p.Spec.PartGrads || len(q.Shape) == 1 || n.Op != model.OpDense || n.Tied > 0 || n.Borrows {
		return 0
	}
	blocks := max(2, partValues/c.BlockLen()/2*2)
	if blocks >= c.Blocks() {
		return 0
	}
	return blocks * vector
}
