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
	if s := p.g.Slice; s != nil && HasSequences(s.Whole) { // a dense layer by itself also computes positions
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

// foldLanes are the lanes of folded images that products like best: tiles are two vectors wide.
const foldLanes = 2 * vector

// chooseFold has a few rows of sequences fill vectors with several positions, where every layer of sequences computes
// positions one by one or knows of folds. Rows are padded to a power of two. A slice has the layout of its network.
func (p *planner) chooseFold() {
	if p.ByRows || p.Spec.Text || p.Spec.Plain || p.Spec.Halves || p.Spec.BatchSize > vector {
		return
	}
	whole := p.g
	if p.g.Slice != nil {
		whole = p.g.Slice.Whole
	}
	positions := foldablePositions(whole)
	if positions == 0 {
		return
	}
	span := 1
	for span < p.Spec.BatchSize {
		span *= 2
	}
	for ; span <= vector; span *= 2 {
		for width := foldLanes; width >= vector; width /= 2 {
			if fold := width / span; fold > 1 && positions%fold == 0 {
				p.Fold, p.Lanes = fold, width
				p.lengths = sequenceLengths(p.g)
				return
			}
		}
	}
}

// foldablePositions is the length of a network's sequences, all of which may be folded; 0: there are none.
func foldablePositions(g *model.Graph) int {
	if !HasSequences(g) {
		return 0
	}
	positions, lengths := 0, sequenceLengths(g)
	for i, length := range lengths {
		positions = max(positions, length)
		if length > 0 && length != positions || !foldable(g, i, lengths) {
			return 0
		}
	}
	if lengths[len(lengths)-1] > 0 && !g.PredictsTokens() {
		return 0
	}
	return positions
}

// sequenceLengths are the numbers of positions of all nodes' outputs, 0 where an output is no sequence. Tokens are a
// sequence.
func sequenceLengths(g *model.Graph) []int {
	lengths, tokens := make([]int, len(g.Nodes)), make([]bool, len(g.Nodes))
	for i := len(g.Nodes) - 1; i >= 0; i-- {
		n := &g.Nodes[i]
		switch {
		case tokens[i]:
			lengths[i] = n.Out.Len()
			for _, in := range n.Inputs {
				tokens[in] = true
			}
		case len(n.Out) == 2:
			lengths[i] = n.Out[1]
		}
		if n.Op == model.OpEmbedding || n.Masked {
			tokens[n.Inputs[len(n.Inputs)-1]] = true
		}
	}
	return lengths
}

// foldable tells that a layer computes folded sequences, or none.
func foldable(g *model.Graph, i int, lengths []int) bool {
	n := &g.Nodes[i]
	k := &kinds[n.Op]
	if lengths[i] > 0 && !k.folds && (!k.single || n.Op == model.OpDropout2D) {
		return false
	}
	for _, in := range n.Inputs {
		if lengths[in] > 0 != (lengths[i] > 0) && n.Op != model.OpTakePosition {
			return false
		}
	}
	return true
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
