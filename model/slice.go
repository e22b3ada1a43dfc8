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
	From  int // the node of the network that is node 1 here
	To    int // the first node of the network behind the slice
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
	return node + s.From - 1
}

// FirstParam is the index of the slice's first array among the network's Params. The others follow it there.
func (s *Slice) FirstParam() int {
	return slices.IndexFunc(s.Whole.Params(), func(p Param) bool { return p.Node >= s.From })
}

// Cuts are the nodes before which a network may be cut into slices: layers of products, pools and sums whose earlier
// nodes hand over one array, the output of one of them. A residual block is never cut, and neither are a layer and the
// activation behind it. A slice trains with the bits of the whole network. Networks with shared weights, those of
// sequences, sparse ones and programs have no cuts.
func (g *Graph) Cuts() []int {
	if g.Custom() != nil || g.Sparse() != nil || g.HasTokens() || len(g.Output()) != 1 {
		return nil
	}
	var out []int
	for at := 2; at < len(g.Nodes); at++ {
		// A dense layer behind a flatten has its columns in the order of the image before it.
		before, one := g.crossing(at)
		op := g.Nodes[before].Op
		if one && before > 0 && cutBefore(g.Nodes[at].Op) && op != OpFlatten && g.trainsBetween(out, at) {
			out = append(out, at)
		}
	}
	for len(out) > 0 && !g.hasParams(out[len(out)-1], len(g.Nodes)) { // the last slice has weights, too
		out = out[:len(out)-1]
	}
	return out
}

// cutBefore tells whether a slice may begin with an op.
func cutBefore(o Op) bool {
	return slices.Contains([]Op{
		OpConv, OpDense, OpMaxPool, OpAvgPool, OpFlatten, OpAdaptiveAvgPool, OpGlobalAvgPool,
	}, o)
}

// trainsBetween tells whether a node with weights lies between the newest cut and another one.
func (g *Graph) trainsBetween(cuts []int, at int) bool {
	from := 1
	if len(cuts) > 0 {
		from = cuts[len(cuts)-1]
	}
	return g.hasParams(from, at)
}

func (g *Graph) hasParams(from, to int) bool {
	return slices.ContainsFunc(g.Params(), func(p Param) bool { return p.Node >= from && p.Node < to })
}

// crossing returns the node before a cut whose output nodes behind it read. one is false if there are several.
func (g *Graph) crossing(at int) (before int, one bool) {
	before = -1
	for _, n := range g.Nodes[at:] {
		for _, in := range append(slices.Clone(n.Inputs), n.Tied) {
			if in >= at || in == 0 && n.Tied == 0 && !slices.Contains(n.Inputs, 0) {
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
// len(g.Nodes). It returns Invalid for others.
func (g *Graph) Sliced(from, to int) (*Graph, error) {
	cuts := g.Cuts()
	ends := func(at int) bool { return at == 1 || at == len(g.Nodes) || slices.Contains(cuts, at) }
	if from >= to || !ends(from) || !ends(to) {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "cut network " + g.Name,
			Msg: fmt.Sprintf("there is no slice from node %d to %d", from, to),
		}
	}
	out := &Graph{Name: g.Name, Slice: &Slice{Whole: g, From: from, To: to}}
	input := g.Nodes[0]
	if from > 1 {
		before, _ := g.crossing(from)
		input.Out = g.Nodes[before].Out
	}
	out.Nodes = append(out.Nodes, input)
	for _, n := range g.Nodes[from:to] {
		n.Inputs = slices.Clone(n.Inputs)
		for k, in := range n.Inputs {
			n.Inputs[k] = max(0, in-from+1) // the only earlier one is the input
		}
		out.Nodes = append(out.Nodes, n)
	}
	return out, nil
}
