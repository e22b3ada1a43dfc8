package model

import (
	"fmt"
	"slices"

	"github.com/disdel/disdel"
)

// Slice says which nodes of a network a graph of Graph.Sliced has. Node 0 is the output of an earlier node, or the
// network's own input.
type Slice struct {
	Whole *Graph
	From  int // the node of the network that is node 1 here, or node 2 behind the tokens
	To    int // the first node of the network behind the slice

	// Tokens says that node 1 is the network's tokens, which attentions behind the embedding read for their masks.
	Tokens bool
}

// Enters tells whether the slice begins behind the network's first layer, so that its input has a gradient. nil is a
// whole network.
func (s *Slice) Enters() bool { return s != nil && s.From > 1 }

// Leaves tells whether layers of the network follow the slice, so that its output is no network's output.
func (s *Slice) Leaves() bool { return s != nil && s.To < len(s.Whole.Nodes) }

// Index is the index that a node of the slice has in the network.
func (s *Slice) Index(node int) int {
	if s == nil || node == 0 {
		return node
	}
	return node + s.From - s.inputs()
}

// inputs is the number of nodes that come before the slice's own.
func (s *Slice) inputs() int {
	if s.Tokens {
		return 2
	}
	return 1
}

// FirstParam is the index of the slice's first array among the network's Params. The others follow it there.
func (s *Slice) FirstParam() int {
	return slices.IndexFunc(s.Whole.Params(), func(p Param) bool { return p.Node >= s.From })
}

// Cuts are the nodes before which a network may be cut into slices: layers of products, pools, norms of positions and
// sums whose earlier nodes hand over one array, the output of one of them. A residual block is never cut, and neither
// are a layer and the activation behind it. Each slice has weights that are trained. A pool by itself is behind the
// layers whose outputs it makes smaller. A slice trains with the bits of the whole network. An embedding is in the
// first slice, and a layer with its weight in the last one. Networks of images as outputs, sparse ones and programs
// have no cuts.
func (g *Graph) Cuts() []int {
	var out []int
	for _, at := range g.places() {
		last := len(out) - 1
		switch {
		case g.trainsBetween(out, at):
			out = append(out, at)
		case last >= 0 && g.handedOver(at) < g.handedOver(out[last]):
			out[last] = at
		}
	}
	for len(out) > 0 && !g.hasParams(out[len(out)-1], len(g.Nodes)) { // the last slice trains some, too
		out = out[:len(out)-1]
	}
	return out
}

// places are the nodes before which a network may be cut, also where a slice would have no weights.
func (g *Graph) places() (out []int) {
	if g.Custom() != nil || g.Sparse() != nil || len(g.Output()) > 2 {
		return nil
	}
	for at := 2; at < len(g.Nodes) && g.Nodes[at-1].Tied == 0; at++ {
		// A dense layer behind a flatten has its columns in the order of the image before it.
		before, one := g.crossing(at)
		if one && before > 0 && cutBefore(g.Nodes[at].Op) && g.Nodes[before].Op != OpFlatten {
			out = append(out, at)
		}
	}
	return out
}

// handedOver is the number of values of a row that cross a cut.
func (g *Graph) handedOver(at int) int {
	before, _ := g.crossing(at)
	return g.Nodes[before].Out.Len()
}

// cutBefore tells whether a slice may begin with an op.
func cutBefore(o Op) bool {
	return slices.Contains([]Op{
		OpConv, OpDense, OpMaxPool, OpAvgPool, OpFlatten, OpAdaptiveAvgPool, OpGlobalAvgPool, OpLayerNorm, OpRMSNorm,
		OpTakePosition,
	}, o)
}

// trainsBetween tells whether a node with weights that are not frozen lies between the newest cut and another one.
func (g *Graph) trainsBetween(cuts []int, at int) bool {
	from := 1
	if len(cuts) > 0 {
		from = cuts[len(cuts)-1]
	}
	return g.hasParams(from, at)
}

func (g *Graph) hasParams(from, to int) bool {
	return slices.ContainsFunc(g.Params(), func(p Param) bool { return p.Node >= from && p.Node < to && !p.Frozen })
}

// layersRead are the inputs of a node without the tokens of a mask.
func (n *Node) layersRead() []int {
	if n.Masked {
		return n.Inputs[:len(n.Inputs)-1]
	}
	return n.Inputs
}

// crossing returns the node before a cut whose output nodes behind it read. one is false if there are several. Tokens
// of masks do not count, since each slice reads them itself.
func (g *Graph) crossing(at int) (before int, one bool) {
	before = -1
	for i := at; i < len(g.Nodes); i++ {
		for _, in := range g.Nodes[i].layersRead() {
			if in >= at {
				continue
			}
			if before >= 0 && before != in {
				return 0, false
			}
			before = in
		}
	}
	return max(before, 0), before >= 0
}

// Sliced returns the nodes from (included) to (not) as a graph of their own. Both are among Cuts, or the ends 1 and
// len(g.Nodes); cuts of earlier versions, whose slices began with a pool, are taken too. It returns Invalid for others.
func (g *Graph) Sliced(from, to int) (*Graph, error) {
	cuts := g.places()
	ends := func(at int) bool { return at == 1 || at == len(g.Nodes) || slices.Contains(cuts, at) }
	if from >= to || !ends(from) || !ends(to) {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "cut network " + g.Name,
			Msg: fmt.Sprintf("there is no slice from node %d to %d", from, to),
		}
	}
	s := &Slice{Whole: g, From: from, To: to}
	out := &Graph{Name: g.Name, Slice: s}
	input := g.Nodes[0]
	if from > 1 {
		before, _ := g.crossing(from)
		input.Out = g.Nodes[before].Out
	}
	out.Nodes = append(out.Nodes, input)
	for _, n := range g.Nodes[from:to] {
		if from > 1 && n.Masked {
			s.Tokens = true
			tokens := g.Nodes[0]
			tokens.Name, tokens.Out = "tokens of masks", g.Nodes[n.Inputs[len(n.Inputs)-1]].Out
			out.Nodes = append(out.Nodes, tokens)
			break
		}
	}
	for _, n := range g.Nodes[from:to] {
		out.Nodes = append(out.Nodes, s.own(n))
	}
	return out, nil
}

// SliceRows is the number of rows that an action computes at once where it takes one slice of a network after the
// other. Kernels of images compute so many at once.
const SliceRows = 16

// Slices are the parts of a network between all of its Cuts, in their order. It returns Invalid for a network that has
// none.
func (g *Graph) Slices() ([]*Graph, error) {
	cuts := g.Cuts()
	if len(cuts) == 0 {
		return nil, &disdel.Error{Kind: disdel.Invalid, Op: "cut network " + g.Name, Msg: "the network is one piece"}
	}
	ends := append(append([]int{1}, cuts...), len(g.Nodes))
	out := make([]*Graph, 0, len(cuts)+1)
	for i := range len(cuts) + 1 {
		part, err := g.Sliced(ends[i], ends[i+1])
		if err != nil {
			return nil, err
		}
		out = append(out, part)
	}
	return out, nil
}

// own is a node of the network as a node of the slice.
func (s *Slice) own(n Node) Node {
	n.Inputs = slices.Clone(n.Inputs)
	for k, in := range n.Inputs {
		switch {
		case in >= s.From:
			n.Inputs[k] = in - s.From + s.inputs()
		case n.Masked && s.Tokens && k == len(n.Inputs)-1:
			n.Inputs[k] = 1
		default: // the only earlier one is the input
			n.Inputs[k] = 0
		}
	}
	switch whole := s.Whole.Nodes; {
	case n.Tied > 0 && n.Tied >= s.From:
		n.Tied = n.Tied - s.From + s.inputs()
	case n.Tied > 0:
		n.Tied, n.Borrows = 0, true
	case n.Op == OpEmbedding:
		n.Lent = slices.ContainsFunc(whole[s.To:], func(n Node) bool { return n.Tied > 0 })
	}
	return n
}

// ReadsTokens tells whether a slice computes with the network's tokens besides its input: for masks, or for the loss of
// a language model.
func (g *Graph) ReadsTokens() bool { return g.Slice != nil && (g.Slice.Tokens || g.PredictsTokens()) }

// Borrowed is the weight of an embedding in another slice that a dense layer of this one computes with. It is not among
// Params: the slice with the embedding trains it. ok is false if there is none.
func (g *Graph) Borrowed() (p Param, ok bool) {
	i := slices.IndexFunc(g.Nodes, func(n Node) bool { return n.Borrows })
	if i < 0 {
		return p, false
	}
	e := g.Slice.Whole.embedding()
	return Param{Name: e.Name + ".weight", Node: i, Shape: []int{e.Vocabulary, e.Units}, Frozen: true}, true
}
