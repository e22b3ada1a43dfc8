package model

import (
	"fmt"
	"math"

	"github.com/disdel/disdel"
)

// Custom describes the network if an action's own binary computes it, else nil.
func (g *Graph) Custom() *disdel.CustomNetwork { return g.Nodes[len(g.Nodes)-1].Custom }

// Fill is what every value of a parameter starts from where its binary says so; ok is false where it is drawn.
func (g *Graph) Fill(p Param) (value float32, ok bool) {
	if g.AdapterOf(p) == AdapterUp {
		return 0, true
	}
	c := g.Custom()
	switch n := &g.Nodes[p.Node]; {
	case n.Op == OpPReLU:
		return firstSlope, true
	case n.Op == OpWindowAttention && len(p.Shape) == 1:
		return firstLogarithm, true
	case n.Op == OpConv && n.Factor != 0:
		return float32(n.Factor), true
	}
	if c == nil {
		return 0, g.Nodes[p.Node].Op == OpLinear // the loss is convex: there is no better start than none
	}
	for _, q := range c.Params {
		if q.Name == p.Name && q.Fill != nil {
			return *q.Fill, true
		}
	}
	return 0, false
}

// maxCustom bounds what a description may count: sums of such numbers stay exact.
const maxCustom = math.MaxInt64 >> 16

// fromCustom is a graph of one node that stands for all a binary computes: it has the parameters and the sizes, and can
// be planned for and aggregated, but only the binary can compute it.
func fromCustom(n disdel.Network) (*Graph, error) {
	c := n.Custom
	b := NewBuilder(c.Name, Shape(n.Input))
	b.checkCustom(c)
	if b.err == nil && Shape(c.Input).Len() != Shape(n.Input).Len() {
		b.fail("input", "%s takes %v, not %v", c.Name, c.Input, n.Input)
	}
	if n.Classes != c.Classes {
		b.fail(c.Name, "it has %d outputs, and the data %d classes", c.Classes, n.Classes)
	}
	b.add(Node{Name: c.Name, Op: OpCustom, Inputs: []int{0}, Out: Shape{c.Classes}, Custom: c})
	return b.Graph()
}

// checkCustom refuses a description that no graph has.
func (b *Builder) checkCustom(c *disdel.CustomNetwork) {
	if c.Classes < 1 || len(c.Params) == 0 || c.Activations < 0 || c.Backward < 0 ||
		max(c.Activations, c.Backward) > maxCustom {
		b.fail(c.Name, "its description has %d outputs, %d parameters, %d and %d activations", c.Classes, len(c.Params),
			c.Activations, c.Backward)
	}
	checkSides := func(what string, shape []int) {
		n := int64(1)
		for _, v := range shape {
			if v < 1 || n > maxCustom/int64(v) {
				b.fail(c.Name, "%s has shape %v", what, shape)
				return
			}
			n *= int64(v)
		}
	}
	checkSides("the input", c.Input)
	names := map[string]bool{}
	for _, p := range c.Arrays() {
		if p.Name == "" || names[p.Name] {
			b.fail(c.Name, "the parameter's name %q is empty or taken", p.Name)
		}
		names[p.Name] = true
		checkSides(fmt.Sprintf("parameter %q", p.Name), p.Shape)
	}
}

func customParams(g *Graph, out []Param, i int) []Param {
	for _, p := range g.Nodes[i].Custom.Arrays() {
		out = append(out, Param{Name: p.Name, Node: i, Shape: p.Shape, Trainable: p.Trainable})
	}
	return out
}
