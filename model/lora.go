package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/disdel/disdel"
)

// AdapterPart is the part of an adapter that a dense layer is. Zero is none.
type AdapterPart uint8

// The parts of an adapter. The names of their layers are PEFT's: LAYER.lora_A and LAYER.lora_B.
const (
	AdapterDown AdapterPart = 1 + iota // A: [rank in], drawn
	AdapterUp                          // B: [out rank], zero at first
)

const (
	downName = ".lora_A"
	upName   = ".lora_B"
)

// Adapt gives the dense layers that lora names an adapter (LoRA, Hu 2021): a layer with the weight W computes
// W x + alpha/rank B A x, and W stays as it was given. A is [rank in], B is [out rank]. Adapt freezes all other layers,
// but for those that init draws and those that lora.Whole names. A name is that of a layer, or of a block around
// layers; * stands for any text.
//
// It returns *disdel.Faults of the job file's fields, and changes nothing, for names without a dense layer, for a rank
// below 1 or an alpha that is not above 0, and for a network that is a program's own.
func (g *Graph) Adapt(init disdel.Init, lora disdel.LoRA) error {
	whole, unknownWhole := g.find(lora.WholeNames(), func(Param) bool { return true })
	adapted := func(p Param) bool { return g.adapts(init, p) && !whole[p.Node] }
	chosen, unknown := g.find(lora.Names(), adapted)
	var out disdel.Faults
	fault := func(wrong bool, field, msg, hint string) {
		if wrong {
			out.Faults = append(out.Faults, disdel.Fault{Path: "model.lora" + field, Msg: msg, Hint: hint})
		}
	}
	if g.Custom() != nil || g.Sparse() != nil {
		fault(true, "", "its own program computes it, and disdel cannot add adapters to its layers",
			"leave model.lora out")
		return &out
	}
	fault(lora.Rank < 1, ".rank", fmt.Sprintf("the rank is %d", lora.Rank), "use a rank of 8")
	fault(!(lora.Alpha > 0), ".alpha", fmt.Sprintf("alpha is %g", lora.Alpha), "use an alpha of 16")
	fault(len(unknownWhole) > 0, ".whole", "there is no layer with weights for "+strings.Join(unknownWhole, ", "),
		g.someOf("layers with weights", func(Param) bool { return true }))
	fault(len(unknown) > 0, ".layers", "there is no dense layer with given weights for "+strings.Join(unknown, ", "),
		g.someOf("dense layers with given weights", adapted))
	if len(out.Faults) > 0 {
		return &out
	}
	for i := range g.Nodes {
		params := g.appendTrained(nil, i)
		drawn := slices.ContainsFunc(params, func(p Param) bool { return init.Excepts(p.Name) })
		tied := g.Nodes[i].Tied
		g.Nodes[i].Frozen = len(params) > 0 && !drawn && !whole[i] || tied > 0 && g.Nodes[tied].Frozen
	}
	g.addAdapters(chosen, lora)
	return nil
}

// adapts tells whether an array is the weight of a dense layer that may get an adapter.
func (g *Graph) adapts(init disdel.Init, p Param) bool {
	return g.Nodes[p.Node].Op == OpDense && len(p.Shape) > 1 && !init.Excepts(p.Name)
}

// find returns the nodes with a wanted array that have one of the names, and the names that fit none.
func (g *Graph) find(names []string, wanted func(Param) bool) (found map[int]bool, unknown []string) {
	found = map[int]bool{}
	for _, name := range names {
		known := false
		for _, p := range g.Params() {
			if wanted(p) && covers(name, g.Nodes[p.Node].Name) {
				found[p.Node], known = true, true
			}
		}
		if !known {
			unknown = append(unknown, name)
		}
	}
	return found, unknown
}

// addAdapters rebuilds the list of nodes: behind each chosen one come two small products and a sum, which later nodes
// read in its place.
func (g *Graph) addAdapters(chosen map[int]bool, lora disdel.LoRA) {
	old := g.Nodes
	g.Nodes = make([]Node, 0, len(old)+4*len(chosen))
	place, output := make([]int, len(old)), make([]int, len(old)) // of an old node, and of what it computes
	for i, n := range old {
		n.Inputs = slices.Clone(n.Inputs)
		for k, in := range n.Inputs {
			n.Inputs[k] = output[in]
		}
		if n.Tied > 0 {
			n.Tied = place[n.Tied]
		}
		place[i] = g.append(n)
		if output[i] = place[i]; chosen[i] {
			output[i] = g.addAdapter(place[i], lora)
		}
	}
}

// append adds a node and returns its place.
func (g *Graph) append(n Node) int {
	g.Nodes = append(g.Nodes, n)
	return len(g.Nodes) - 1
}

// addAdapter adds the adapter of node i and returns the place of the sum.
func (g *Graph) addAdapter(i int, lora disdel.LoRA) int {
	n := g.Nodes[i]
	inner := slices.Clone(n.Out)
	inner[0] = lora.Rank
	at := g.append(Node{
		Name: n.Name + downName, Op: OpDense, Inputs: n.Inputs[:1:1], Out: inner, Units: lora.Rank, Adapter: AdapterDown,
	})
	if factor := lora.Factor(); factor != 1 {
		at = g.append(Node{Name: n.Name + ".lora_scale", Op: OpScale, Inputs: []int{at}, Out: inner, Factor: factor})
	}
	at = g.append(Node{
		Name: n.Name + upName, Op: OpDense, Inputs: []int{at}, Out: n.Out, Units: n.Units, Adapter: AdapterUp,
	})
	return g.append(Node{Name: n.Name + ".lora_sum", Op: OpAdd, Inputs: []int{i, at}, Out: n.Out})
}

// AdapterOf is the part of an adapter that an array belongs to, 0 for other arrays.
func (g *Graph) AdapterOf(p Param) AdapterPart { return g.Nodes[p.Node].Adapter }

// AdaptedLayers are the names of the layers with an adapter, in the order of Params.
func (g *Graph) AdaptedLayers() []string {
	var out []string
	for i := range g.Nodes {
		if n := &g.Nodes[i]; n.Adapter == AdapterDown {
			out = append(out, strings.TrimSuffix(n.Name, downName))
		}
	}
	return out
}

// AdapterArrays are the names of the weight of a layer and of the two arrays of its adapter, A and B.
func AdapterArrays(layer string) (weight, down, up string) {
	return layer + ".weight", layer + downName + ".weight", layer + upName + ".weight"
}

// WholeLayers are the names of the layers that are trained whole beside the adapters, in the order of Params.
func (g *Graph) WholeLayers() []string {
	return g.layerNames(func(p Param) bool { return p.Trainable && g.AdapterOf(p) == 0 })
}
