package plan

import (
	"slices"

	"github.com/disdel/disdel/model"
)

// kind is what a plan must know of an Op. The zero value is an op without geometry, weights or memory of its own, whose
// output no other op may overwrite and whose backward pass reads no values.
type kind struct {
	weights bool // it has weights that are trained: it needs a gradient whatever is before it
	// shape fills in the geometry of node i.
	shape func(p *planner, i int)
	// work is what node i needs besides its output.
	work func(p *planner, i int) memory
	// halves is the same with Spec.Halves; m is what work says.
	halves func(p *planner, i int, m memory) memory

	// single: output value i depends on input value i only. So it works in place, forward where backward does not read
	// the input, and backward; and it does not mind the order in which values lie.
	single bool
	// inPlace: it works in place forward, though values depend on more than one.
	inPlace bool
	// lanes: it computes no batch that is laid out by rows.
	lanes bool
	// folds: it computes sequences several positions of which share a pixel, see Image; single ops do anyway.
	folds bool
	// text: it computes positions of a text by rows, see Spec.Text; single ops do anyway.
	text bool
	// passes: it turns the gradient of its output into that of its first input in place, as single ops do anyway.
	passes bool
	// What its backward pass reads: the first input, all of them, the output.
	readsInput, readsInputs, readsOutput bool
	// inputForWeights: it reads its input only for the gradients of its weights, and so not if it is frozen.
	inputForWeights bool
	// keeps: its backward pass works after another op has overwritten its output; nil: after none.
	keeps func(over model.Op) bool
}

// kinds has a row for every Op that a plan lays out.
var kinds = [...]kind{
	model.OpInput: {shape: (*planner).shapeInput, text: true, folds: true},
	model.OpConv: {
		weights: true, shape: (*planner).shapeConv, work: (*planner).workProduct, halves: (*planner).halvesProduct,
		readsInput: true, inputForWeights: true, keeps: always,
	},
	model.OpDense: {
		weights: true, shape: (*planner).shapeDense, work: (*planner).workProduct, halves: (*planner).halvesProduct,
		readsInput: true, inputForWeights: true, keeps: always, text: true, folds: true,
	},
	model.OpBatchNorm: {
		weights: true, work: (*planner).workNorm, halves: (*planner).halvesNorm,
		passes: true, readsInput: true, inputForWeights: true, keeps: always,
	},
	model.OpReLU: {
		single: true, readsOutput: true,
		keeps: func(over model.Op) bool { return over == model.OpDropout },
	},
	model.OpReLU6:       {single: true, readsOutput: true},
	model.OpSigmoid:     {single: true, readsOutput: true},
	model.OpTanh:        {single: true, readsOutput: true},
	model.OpHardSwish:   {single: true, readsInput: true, keeps: always},
	model.OpLeakyReLU:   {single: true, readsOutput: true},
	model.OpELU:         {single: true, readsOutput: true},
	model.OpSoftplus:    {single: true, readsOutput: true},
	model.OpHardSigmoid: {single: true, readsOutput: true},
	model.OpGELU:        {single: true, readsInput: true, keeps: always},
	model.OpGELUTanh:    {single: true, readsInput: true, keeps: always},
	model.OpSiLU:        {single: true, readsInput: true, keeps: always},
	model.OpSoftmax:     {text: true},
	model.OpMaxPool: {
		shape: (*planner).shapePool, halves: (*planner).halvesMaxPool, readsInput: true, readsOutput: true,
		// It looks for its maximum again: behind a ReLU it still finds it wherever the gradient is not zero, since a ReLU
		// keeps every value above zero as it was. Ops that scale or add hide the maximum.
		keeps: func(over model.Op) bool { return over == model.OpReLU || over == model.OpReLU6 },
	},
	model.OpAvgPool:         {shape: (*planner).shapePool, keeps: always},
	model.OpAdaptiveAvgPool: {keeps: always},
	model.OpGlobalAvgPool:   {keeps: always},
	model.OpPReLU: {
		weights: true, work: (*planner).workPReLU, passes: true, readsInput: true, keeps: always,
	},
	model.OpPad:          {keeps: always},
	model.OpUpsample:     {keeps: always},
	model.OpSpaceToDepth: {keeps: always, lanes: true},
	model.OpScale:        {single: true},
	model.OpDropout:      {single: true},
	model.OpDropout2D:    {single: true},
	model.OpDropPath:     {single: true},
	model.OpFlatten:      {text: true, folds: true},
	model.OpAdd:          {keeps: always, text: true, folds: true},
	model.OpMultiply:     {readsInputs: true, inPlace: true, keeps: always, text: true, folds: true},
	model.OpConcat:       {keeps: always, folds: true},
	model.OpChannels:     {keeps: always, folds: true},
	model.OpDownsample:   {keeps: always},
	model.OpEmbedding: {
		weights: true, shape: (*planner).shapeEmbedding, readsInput: true, keeps: always, lanes: true,
		text: true, folds: true,
	},
	model.OpPositions: {
		weights: true, work: (*planner).workPositions, passes: true, inPlace: true, keeps: always, lanes: true,
		text: true, folds: true,
	},
	model.OpLayerNorm: {
		weights: true, work: (*planner).workLayerNorm, passes: true, readsInput: true, keeps: always, lanes: true,
		text: true, folds: true,
	},
	model.OpRMSNorm: {
		weights: true, work: (*planner).workLayerNorm, passes: true, readsInput: true, keeps: always, lanes: true,
		text: true, folds: true,
	},
	model.OpGroupNorm: {
		weights: true, work: (*planner).workGroupNorm, passes: true, readsInput: true, keeps: always, lanes: true,
	},
	model.OpAttention: {
		work: (*planner).workAttention, readsInput: true, readsOutput: true, lanes: true, text: true, folds: true,
	},
	model.OpWindowAttention: {
		weights: true, work: (*planner).workWindowAttention, readsInput: true, readsOutput: true, lanes: true,
	},
	model.OpLSTM: {
		weights: true, shape: (*planner).shapeRecurrent, work: (*planner).workRecurrent, readsOutput: true, lanes: true,
	},
	model.OpGRU: {
		weights: true, shape: (*planner).shapeRecurrent, work: (*planner).workRecurrent, readsOutput: true, lanes: true,
	},
	model.OpSequence:     {lanes: true},
	model.OpClassToken:   {weights: true, keeps: always, lanes: true},
	model.OpReverse:      {keeps: always, lanes: true},
	model.OpTakePosition: {keeps: always, lanes: true},
}

// HasSequences tells whether a network has layers of sequences, which are laid out by lanes as float32.
func HasSequences(g *model.Graph) bool {
	return slices.ContainsFunc(g.Nodes, func(n model.Node) bool { return kinds[n.Op].lanes })
}

// MayShorten tells whether a network may be trained with Spec.Halves: sequences lie there as float32.
func MayShorten(g *model.Graph) bool {
	return !slices.ContainsFunc(g.Nodes, func(n model.Node) bool {
		return kinds[n.Op].lanes && n.Op != model.OpGroupNorm && n.Op != model.OpSpaceToDepth
	})
}

// always is keeps of ops whose backward pass reads no output.
func always(model.Op) bool { return true }

// survives tells whether the backward pass of the op that wrote a value still works after another op has overwritten
// it.
func survives(written, over model.Op) bool {
	keeps := kinds[written].keeps
	return keeps != nil && keeps(over)
}

// memory is how many values a node needs besides its output: while it is computed forward, while it is computed
// backward, from one to the other, and as long as the plan.
type memory struct{ forward, backward, kept, always int }

func (p *planner) shapeInput(i int) { p.Nodes[i].Border = p.border() }

func (p *planner) shapeConv(i int) { p.conv(&p.g.Nodes[i], &p.Nodes[i]) }

func (p *planner) shapeDense(i int) {
	n, v := &p.g.Nodes[i], &p.Nodes[i]
	in := n.Inputs[0]
	v.Conv = Dense(p.g.Nodes[in].Out.Len(), n.Units, p.Lanes)
	if n.Tied > 0 { // the embedding has the weight as products read it
		p.Nodes[n.Tied].Conv = Dense(p.g.Nodes[n.Tied].Units, n.Units, p.Lanes)
	}
	if len(n.Out) > 1 { // a product for each position
		v.Conv.In, v.Conv.OH = p.Nodes[in].Image, v.Image.H
		return
	}
	if p.ByRows {
		v.Conv.In.Depth = p.Nodes[in].Image.Row()
	}
}

// shapeEmbedding lays out the weight as products of a later slice read it.
func (p *planner) shapeEmbedding(i int) {
	if n := &p.g.Nodes[i]; n.Lent {
		p.Nodes[i].Conv = Dense(n.Units, n.Vocabulary, p.Lanes)
	}
}

func (p *planner) shapePool(i int) {
	n, v := &p.g.Nodes[i], &p.Nodes[i]
	v.Pool = pool(n, p.Nodes[n.Inputs[0]].Image, v.Image)
}

// workProduct is for convolutions and dense layers.
func (p *planner) workProduct(i int) memory {
	n, v := &p.g.Nodes[i], &p.Nodes[i]
	c := n.Out[0]
	if v.Depthwise {
		return memory{forward: 2 * Padded(c), backward: 16 * Padded(c)}
	}
	m := memory{forward: v.Conv.ForwardLen()}
	if !n.Frozen {
		m.backward = max(v.Conv.BackWeightsLen(), 16*Padded(c))
	}
	if p.needs[n.Inputs[0]] {
		m.backward = max(m.backward, v.Conv.BackDataLen())
	}
	return m
}

// workNorm is for batch norms that no other layer computes: shift, scale, offset and a third; sums; and what the
// batch's statistics were.
func (p *planner) workNorm(i int) memory {
	c := Padded(p.g.Nodes[i].Out[0])
	if p.Nodes[i].Fused {
		return memory{}
	}
	kept := 2 * c
	if p.agains[i] > 0 { // scale and offset, which give the same bits again
		kept = 4 * c
	}
	return memory{forward: 36 * c, backward: 36 * c, kept: kept}
}

// workPReLU is the sums of each channel, of which the gradients of slopes are made.
func (p *planner) workPReLU(i int) memory { return memory{backward: Padded(p.g.Nodes[i].Out[0])} }

// workPositions has the sines of positions that are not learned.
func (p *planner) workPositions(i int) memory {
	if n := &p.g.Nodes[i]; n.Fixed {
		return memory{always: n.Out.Len()}
	}
	return memory{}
}

// workLayerNorm keeps the mean and the deviation of each position.
func (p *planner) workLayerNorm(i int) memory {
	v := &p.Nodes[i].Image
	return memory{kept: 2 * v.H * v.W * v.Lanes}
}

// workGroupNorm keeps the mean and the deviation of each group.
func (p *planner) workGroupNorm(i int) memory { return memory{kept: 2 * p.g.Nodes[i].Groups * p.Lanes} }

// workAttention is blocks of scores and of their operands, whatever the number of positions, for every head of keys and
// every 16 lanes: what a worker computes at a time. It keeps a number for each query.
func (p *planner) workAttention(i int) memory {
	n := &p.g.Nodes[i]
	if p.Spec.Text {
		return p.workTextAttention(n)
	}
	tasks := n.KVHeads
	if p.Fold == 0 {
		tasks *= p.Lanes / vector
	}
	shape := p.Nodes[i].Image.Attention(n.Out[0] / n.Heads)
	return memory{
		forward: tasks * shape.Scratch(false), backward: tasks * shape.Scratch(true),
		kept: n.Heads * p.Nodes[i].Image.H * p.Lanes,
	}
}

// AttentionShape is what a worker computes of an attention at a time: one head of keys for some rows of the batch.
type AttentionShape struct {
	Width, Positions, Rows int
	Distances              int // of two positions of a window, each with a bias; 0: there are no windows
}

// Attention is the shape for a sequence: 16 rows at a time, or all rows of a folded one.
func (i Image) Attention(width int) AttentionShape {
	rows := vector
	if i.Fold > 0 {
		rows = i.Span()
	}
	return AttentionShape{Width: width, Positions: i.Positions(), Rows: rows}
}

// Queries is how many queries are in a block of scores: whole tiles of every path, and whole pixels of every fold.
func (s AttentionShape) Queries() int {
	if s.Positions <= foldLanes {
		return foldLanes
	}
	return 2 * foldLanes
}

// Keys is how many keys are in a block of scores, at most.
func (s AttentionShape) Keys() int { return min(128, s.Positions) }

// Row is how many values a position has in the matrices: its channels in whole vectors.
func (s AttentionShape) Row() int { return Padded(s.Width) }

// Matrix is the number of values of keys or of values, of all rows of the batch.
func (s AttentionShape) Matrix() int { return s.Rows * s.Positions * s.Row() }

// Block is the number of values of a block of queries, of all rows of the batch.
func (s AttentionShape) Block() int { return s.Rows * s.Queries() * s.Row() }

// Scratch is the number of values of scratch. It has keys, values and blocks of queries and scores, and on the way
// back their gradients. Tiles read up to a vector of rows behind the last, which nobody uses.
func (s AttentionShape) Scratch(backward bool) int {
	turned, scores := s.Queries()*s.Row(), s.Queries()*s.Keys()
	pixel, behind := vector*s.Row(), vector*max(s.Row(), s.Queries())
	if backward {
		biases := 2*s.Biases() + s.Sums()
		return biases + 4*s.Matrix() + 2*s.Block() + s.Rows*s.Queries() + 3*turned + 2*scores + 2*pixel + behind
	}
	return s.Biases() + 2*s.Matrix() + s.Block() + 2*turned + scores + 2*pixel + behind
}

// shapeRecurrent is the product of one position.
func (p *planner) shapeRecurrent(i int) {
	n := &p.g.Nodes[i]
	p.Nodes[i].Conv = Dense(n.Units, n.Op.Gates()*n.Units, p.Lanes)
}

// Positions is the geometry of the products of n positions at once.
func (c Conv) Positions(n int) Conv {
	c.In.H, c.OH = n, n
	return c
}

// workRecurrent is the products of a position, a position of zeros and the memory; on the way back the weights turned,
// and after them what the gradients of weights need. It keeps gates and the memory of all positions, which become their
// gradients on the way back.
func (p *planner) workRecurrent(i int) memory {
	n, v := &p.g.Nodes[i], &p.Nodes[i]
	position, gates := n.Units*p.Lanes, n.Op.Gates()
	products := v.Conv.Positions(max(1, n.Out[1]-1)) // the first position has none before it
	return memory{
		forward:  (gates + 2) * position,
		backward: position + max(Padded(n.Units)*v.Conv.Filters, products.BackWeightsLen(), 16*Padded(v.Conv.Filters)),
		kept:     (gates + 1) * position * n.Out[1],
	}
}

// halvesProduct adds rounded weights, forward and back, and windows of the input.
func (p *planner) halvesProduct(i int, m memory) memory {
	n, v := &p.g.Nodes[i], &p.Nodes[i]
	if v.Depthwise {
		weights := Padded(v.Pool.KH * v.Pool.KW * v.Pool.In.C)
		m.forward += weights
		m.backward = max(m.backward, weights, v.Pool.DepthwiseHalvesLen())
		return m
	}
	if !v.Conv.BackTile.Is() && p.needs[n.Inputs[0]] {
		m.backward = max(m.backward, v.Conv.RoundedLen())
	}
	if !v.Conv.Tile.Is() {
		m.forward = v.Conv.RoundedLen()
	}
	m.backward = max(m.backward, v.Conv.BackWeightsLen()+v.Conv.WindowLen())
	return m
}

func (p *planner) halvesNorm(i int, m memory) memory {
	m.backward += NormWindowLen(p.Nodes[i].Image)
	return m
}

func (p *planner) halvesMaxPool(i int, m memory) memory {
	m.backward += p.Nodes[i].Pool.WindowLen()
	return m
}
