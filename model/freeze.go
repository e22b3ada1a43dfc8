package model

import (
	"path"
	"slices"
	"strings"

	"github.com/disdel/disdel"
)

// Freeze freezes the layers that init.Freeze names: training changes neither their weights nor their statistics, and
// their batch norms use the running statistics, as PyTorch's do with requires_grad=False in eval mode. A name is that
// of a layer, or of a block around layers; * stands for any text. Layers that init draws are trained all the same.
//
// It returns Invalid, and freezes nothing, for names without a layer, and if no layer is left to train.
func (g *Graph) Freeze(init disdel.Init) error {
	if g.Custom() != nil || g.Sparse() != nil {
		return freezeError("its own program computes it, and disdel cannot freeze its layers", "leave model.init.freeze out")
	}
	frozen, unknown := g.named(init)
	trained := func(p Param) bool { return !frozen[p.Node] }
	switch params := g.Params(); {
	case len(unknown) > 0:
		return freezeError("there is no layer with given weights for "+strings.Join(unknown, ", "),
			g.someOf("layers with given weights", func(p Param) bool { return !init.Excepts(p.Name) }))
	case !slices.ContainsFunc(params, func(p Param) bool { return p.Trainable && trained(p) }):
		return freezeError("all layers with weights are frozen, and none is left to train",
			"take the last layer out of model.init.freeze, or replace it: model.init.replaceHead")
	}
	for i := range g.Nodes {
		g.Nodes[i].Frozen = frozen[i]
	}
	return nil
}

func freezeError(msg, hint string) error {
	return &disdel.Error{Kind: disdel.Invalid, Op: "freeze layers", Msg: msg, Hint: hint}
}

// HasFrozen tells whether a layer is frozen.
func (g *Graph) HasFrozen() bool {
	return slices.ContainsFunc(g.Nodes, func(n Node) bool { return n.Frozen })
}

// FrozenLayers are the names of the frozen layers, in the order of Params.
func (g *Graph) FrozenLayers() []string { return g.layerNames(func(p Param) bool { return p.Frozen }) }

// layerNames are the names of the nodes with arrays that are wanted.
func (g *Graph) layerNames(wanted func(Param) bool) []string {
	var out []string
	for _, p := range g.Params() {
		if name := g.Nodes[p.Node].Name; wanted(p) && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// someOf is a hint with the names of the layers of a kind, those with arrays that are wanted.
func (g *Graph) someOf(kind string, wanted func(Param) bool) string {
	names := g.layerNames(wanted)
	if len(names) == 0 {
		return "the network has no " + kind
	}
	return kind + ": " + strings.Join(names, ", ")
}

// named finds the nodes that init freezes, and the names that fit none.
func (g *Graph) named(init disdel.Init) (frozen map[int]bool, unknown []string) {
	frozen, unknown = g.find(init.Frozen(), func(p Param) bool { return !init.Excepts(p.Name) })
	for i := range g.Nodes {
		if tied := g.Nodes[i].Tied; tied > 0 && frozen[tied] {
			frozen[i] = true
		}
	}
	return frozen, unknown
}

// covers tells whether a pattern is the name of a layer or of a block around it.
func covers(pattern, layer string) bool {
	for end := len(layer); end > 0; end = strings.LastIndexByte(layer[:end], '.') {
		// A name of an imported network may have characters that mean more in a pattern.
		if ok, err := path.Match(pattern, layer[:end]); pattern == layer[:end] || ok && err == nil {
			return true
		}
	}
	return false
}
