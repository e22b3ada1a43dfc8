package plan

import "github.com/disdel/disdel/model"

// A language model that continues a text computes the text's next positions only. With Spec.Text the plan lays out some
// positions by rows, see Image, and each attention keeps the keys and values of all positions before them.

// TextRows is how many positions of a text a pass computes at most.
const TextRows = 32

// ContinuesTexts tells whether Spec.Text is for a network: a language model in which only causal attentions read other
// positions.
func ContinuesTexts(g *model.Graph) bool {
	if !g.PredictsTokens() {
		return false
	}
	last := &g.Nodes[len(g.Nodes)-1]
	if last.Op == model.OpSoftmax {
		last = &g.Nodes[last.Inputs[0]]
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		token := n.Op == model.OpInput || n.Op == model.OpFlatten
		if !token && len(n.Out) != 2 || !(kinds[n.Op].single || kinds[n.Op].text) || n.Op == model.OpAttention && !n.Causal {
			return false
		}
	}
	return last.Op == model.OpDense
}

// textImage is the output of node i. The last layer computes one position.
func (p *planner) textImage(i int) Image {
	n := &p.g.Nodes[i]
	if n.Op == model.OpInput || n.Op == model.OpFlatten { // a token
		return Image{C: 1, H: 1, W: 1, Lanes: p.Lanes, Depth: 1}
	}
	out := Image{C: n.Out[0], H: 1, W: 1, Lanes: p.Lanes, Depth: Padded(n.Out[0])}
	if n.Op == model.OpSoftmax || len(p.consumers[i]) == 0 || p.g.Nodes[p.consumers[i][0]].Op == model.OpSoftmax {
		out.Lanes = 1
	}
	return out
}

// TextCacheLen is the number of values of the keys and values of one head, [positions/16][width][16] and
// [width/16][positions][16].
func TextCacheLen(width, positions int) int { return Padded(positions)*width + Padded(width)*positions }

// TextScratchLen is the number of values of scratch for one head of keys and the shared heads of queries that share it.
// It has queries, scores and outputs.
func TextScratchLen(width, shared, positions int) int {
	return TextRows * (shared*width + Padded(positions) + Padded(width))
}

// workTextAttention is the keys and values that a text keeps, and what a worker computes at a time.
func (p *planner) workTextAttention(n *model.Node) memory {
	width, positions := n.Out[0]/n.Heads, n.Out[1]
	return memory{
		forward: n.KVHeads * TextScratchLen(width, n.Heads/n.KVHeads, positions),
		always:  n.KVHeads * TextCacheLen(width, positions),
	}
}
