package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/disdel/disdel"
)

// Kept are the nodes that layers name, ascending. A training step can keep their outputs and compute all others again
// (disdel.Recompute). A name is that of a layer, or of a block around layers, whose last layer counts. A slice ignores
// names of other slices. Without names, it returns nil.
//
// It returns Invalid, with all of them, for names without a layer, and for layers in the middle of a residual block:
// later layers read more than their output.
func (g *Graph) Kept(layers []string) ([]int, error) {
	if len(layers) == 0 {
		return nil, nil
	}
	out := []int{}
	var msgs, hints []string
	for _, name := range layers {
		at := g.lastOf(name)
		switch {
		case at < 0 && g.Slice != nil:
			continue
		case at < 0:
			msgs = append(msgs, "there is no layer "+name)
			hints = append(hints, "write auto, or names that disdel model show NETWORK --layers lists")
		case !g.crosses(at):
			msgs = append(msgs, name+" is in the middle of a residual block")
			hints = append(hints, fmt.Sprintf("write %[2]s instead of %[1]s: the block ends there", name, g.endOfBlock(at)))
		}
		out = append(out, at)
	}
	if len(msgs) > 0 {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "choose kept layers", Msg: strings.Join(msgs, ", "),
			Hint: strings.Join(slices.Compact(hints), ", and "),
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// lastOf is the last node of a layer or of a block; -1: there is none.
func (g *Graph) lastOf(name string) int {
	for i := len(g.Nodes) - 1; i > 0; i-- {
		if layer := g.Nodes[i].Name; layer == name || strings.HasPrefix(layer, name+".") {
			return i
		}
	}
	return -1
}

// crosses tells whether later nodes read the output of node i, and none of an earlier node. The last node counts too.
func (g *Graph) crosses(i int) bool {
	before, one := g.crossing(i + 1)
	return i == len(g.Nodes)-1 || one && before == i
}

// endOfBlock is the name of the first layer behind node i whose output alone is read later.
func (g *Graph) endOfBlock(i int) string {
	for !g.crosses(i) {
		i++
	}
	return g.Nodes[i].Name
}
