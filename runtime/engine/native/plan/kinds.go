package plan

import "github.com/disdel/disdel/model"

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
	// passes: it turns the gradient of its output into that of its first input in place, as single ops do anyway.
	passes bool
	// What its backward pass reads.
	readsInput, readsOutput bool
	// keeps: its backward pass works after another op has overwritten its output; nil: after none.
	keeps func(over model.Op) bool
}

// kinds has a row for every Op that a plan lays out.
var kinds = [...]kind{
	model.OpInput: {shape: (*planner).shapeInput},
	model.OpConv: {
		weights: true, shape: (*planner).shapeConv, work: (*planner).workProduct, halves: (*planner).halvesProduct,
		readsInput: true, keeps: always,
	},
	model.OpDense: {
		weights: true, shape: (*planner).shapeDense, work: (*planner).workProduct, halves: (*planner).halvesProduct,
		readsInput: true, keeps: always,
	},
	model.OpBatchNorm: {
		weights: true, work: (*planner).workNorm, halves: (*planner).halvesNorm,
		passes: true, readsInput: true, keeps: always,
	},
	model.OpReLU: {
		single: true, readsOutput: true,
		keeps: func(over model.Op) bool { return over == model.OpDropout },
	},
	model.OpReLU6:     {single: true, readsOutput: true},
	model.OpSigmoid:   {single: true, readsOutput: true},
	model.OpTanh:      {single: true, readsOutput: true},
	model.OpHardSwish: {single: true, readsInput: true, keeps: always},
	model.OpSoftmax:   {},
	model.OpMaxPool: {
		shape: (*planner).shapePool, halves: (*planner).halvesMaxPool, readsInput: true, readsOutput: true,
		// It looks for its maximum again: behind a ReLU it still finds it wherever the gradient is not zero, since a ReLU
		// keeps every value above zero as it was. Ops that scale or add hide the maximum.
		keeps: func(over model.Op) bool { return over == model.OpReLU || over == model.OpReLU6 },
	},
	model.OpAvgPool:         {shape: (*planner).shapePool, keeps: always},
	model.OpAdaptiveAvgPool: {keeps: always},
	model.OpGlobalAvgPool:   {keeps: always},
	model.OpDropout:         {single: true},
	model.OpFlatten:         {},
	model.OpAdd:             {keeps: always},
	model.OpConcat:          {keeps: always},
	model.OpDownsample:      {keeps: always},
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
// backward, and from one to the other.
type memory struct{ forward, backward, kept int }

func (p *planner) shapeInput(i int) { p.Nodes[i].Border = p.border() }

func (p *planner) shapeConv(i int) { p.conv(&p.g.Nodes[i], &p.Nodes[i]) }

func (p *planner) shapeDense(i int) {
	n, v := &p.g.Nodes[i], &p.Nodes[i]
	in := n.Inputs[0]
	v.Conv = Dense(p.g.Nodes[in].Out.Len(), n.Units, p.Lanes)
	if p.ByRows {
		v.Conv.In.Depth = p.Nodes[in].Image.Row()
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
	m := memory{forward: v.Conv.ForwardLen(), backward: max(v.Conv.BackWeightsLen(), 16*Padded(c))}
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
