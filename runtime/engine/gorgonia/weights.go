package gorgonia

import (
	"slices"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
)

type node = gorgonia.Node

// param is one array of weights as gorgonia holds it.
type param struct {
	name      string
	shape     []int // outside
	trainable bool
	value     *tensor.Dense // shares data
	data      []float32
	given     bool // a user's node came with a value
	dense     bool // stored [in out], the transpose of PyTorch's layout: gorgonia multiplies it as it is
}

// graphParams are the weights of a model graph, zero.
func graphParams(g *model.Graph) []param {
	var out []param
	for _, p := range g.Params() {
		n := g.Nodes[p.Node]
		q := param{name: p.Name, shape: p.Shape, trainable: p.Trainable, data: make([]float32, p.Len())}
		shape := tensor.Shape(p.Shape).Clone()
		switch {
		case n.Op == model.OpDense && len(p.Shape) == 2:
			q.dense, shape = true, tensor.Shape{p.Shape[1], p.Shape[0]}
		case len(p.Shape) == 1 && len(n.Out) == 3:
			shape = tensor.Shape{1, p.Shape[0], 1, 1}
		case len(p.Shape) == 1:
			shape = tensor.Shape{1, p.Shape[0]}
		}
		q.value = tensor.New(tensor.WithShape(shape...), tensor.WithBacking(q.data))
		out = append(out, q)
	}
	return out
}

// paramsOf are the weights of a user's graph, with the values that its nodes have.
func paramsOf(p *Program) []param {
	var out []param
	add := func(n *node, trainable bool) {
		q := param{
			name: n.Name(), shape: slices.Clone(n.Shape()), trainable: trainable,
			data: make([]float32, n.Shape().TotalSize()),
		}
		if v := n.Value(); v != nil {
			values, _ := v.Data().([]float32)
			q.given = copy(q.data, values) == len(q.data)
		}
		q.value = tensor.New(tensor.WithShape(n.Shape().Clone()...), tensor.WithBacking(q.data))
		out = append(out, q)
	}
	for _, n := range p.Params {
		add(n, true)
	}
	for _, n := range p.State {
		add(n, false)
	}
	return out
}

// Init sets the weights that a training starts from: engine.InitWeights.
func (e *Engine) Init(init disdel.Init) error {
	return engine.SetWeights(e, engine.InitWeights(e.graph, init))
}
