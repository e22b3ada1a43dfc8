package plan

import "github.com/disdel/disdel/model"

// A batch of a few rows would leave most lanes empty. For inference it is laid out by rows instead: one row of the
// batch behind the other, each [H][W][depth], the depth being the channels padded to whole vectors. Filters are the
// vector then, of the same weights in the same layout, and the sums have the same order: the bits are those of lanes.

// chooseRows decides on the layout: by rows where that costs fewer multiply-adds, and no more memory.
func (p *planner) chooseRows() {
	if p.Spec.Text {
		p.ByRows, p.Lanes = true, p.Spec.BatchSize
		return
	}
	if p.Spec.Training || p.Spec.Plain || p.Spec.BatchSize >= vector {
		return
	}
	rows, lanes, kept, wide := 0, 0, 0, 0
	for i := range p.g.Nodes {
		n := &p.g.Nodes[i]
		if kinds[n.Op].lanes {
			return
		}
		out := image(n.Out, vector)
		pixels := out.H * out.W
		kept += p.Spec.BatchSize * pixels * Padded(out.C)
		wide += out.Len()
		switch n.Op {
		case model.OpConv:
			in := n.Inputs[0]
			inner, outer := p.g.Nodes[in].Out[0]/n.Groups, n.Filters/n.Groups
			taps := n.Kernel.H * n.Kernel.W * inner * pixels * n.Groups
			if inner == 1 && outer == 1 {
				rows, lanes = rows+p.Spec.BatchSize*taps, lanes+vector*taps
				continue
			}
			rows, lanes = rows+p.Spec.BatchSize*taps*Padded(outer), lanes+vector*taps*outer
		case model.OpDense:
			in := p.g.Nodes[n.Inputs[0]].Out.Len()
			rows, lanes = rows+p.Spec.BatchSize*in*Padded(n.Units), lanes+vector*in*n.Units
		}
	}
	p.ByRows = rows*5/4 < lanes && kept <= wide // tiles of pixels are not always full
	if p.ByRows {
		p.Lanes = p.Spec.BatchSize
	}
}

// depth is how many values a pixel of a row takes, 0 where the batch is innermost.
func (p *planner) depth(i int) int {
	c := p.g.Nodes[i].Out[0]
	switch {
	case !p.ByRows:
		return 0
	case p.g.Nodes[i].Op == model.OpInput && p.tight():
		return c
	default:
		return Padded(c)
	}
}

// tight tells that an input needs no padding between its pixels: all that read it go by values, not by vectors. The
// channels of a kernel row are one run then.
func (p *planner) tight() bool {
	in := p.g.Nodes[0].Out
	for _, r := range p.consumers[0] {
		switch n := &p.g.Nodes[r]; n.Op {
		case model.OpConv:
			if n.Groups > 1 && n.Groups == in[0] && n.Filters == in[0] {
				return false
			}
		case model.OpDense:
		case model.OpFlatten:
			if in[0] > 1 || in.Len()%vector != 0 {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// view tells that a flatten's output lies in memory as its input does.
func (p *planner) view(i, in int) bool {
	from, to, permuted := p.Nodes[in].Image, p.Nodes[i].Image, p.Nodes[i].Permuted
	pixel := from.H*from.W == 1
	if from.Depth == 0 {
		return permuted || pixel
	}
	return (permuted || pixel || from.C == 1) && from.Len() == to.Len() && (pixel || from.Depth == from.C)
}

// Piece is how many rows of a batch inference computes at a time: its activations stay in a second-level cache more
// likely, and take less memory, and a network of many weights reads them for more rows at once.
func Piece(g *model.Graph) int {
	const few = 256 << 10
	weights := 0
	for _, p := range g.Params() {
		weights += p.Len()
	}
	if weights <= few {
		return 2 * vector
	}
	return 4 * vector
}
