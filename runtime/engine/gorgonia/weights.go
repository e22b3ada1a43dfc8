package gorgonia

import (
	"fmt"
	"math"
	"slices"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine/native"
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
		q := param{name: n.Name(), shape: slices.Clone(n.Shape()), trainable: trainable, data: make([]float32, n.Shape().TotalSize())}
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

// Init sets the weights that a training starts from: native.InitWeights.
func (e *Engine) Init(init disdel.Init) {
	for i, t := range native.InitWeights(e.graph, init) {
		e.params[i].load(e.params[i].data, t.Data)
	}
}

// Weights returns copies of all weights in the order of the graph's Params, in PyTorch's layouts.
func (e *Engine) Weights() disdel.Weights {
	out := make(disdel.Weights, len(e.params))
	for i, p := range e.params {
		out[i] = disdel.Tensor{Name: p.name, Shape: p.shape, Data: make([]float32, len(p.data))}
		p.export(out[i].Data, p.data)
	}
	return out
}

// SetWeights takes copies of weights in the order and shapes of the graph's Params. It returns Corrupt for other names or
// shapes and Diverged for values that are not finite; then nothing was changed.
func (e *Engine) SetWeights(w disdel.Weights) error {
	if err := accept("set weights", w, e.params); err != nil {
		return err
	}
	for i, p := range e.params {
		p.load(p.data, w[i].Data)
	}
	return nil
}

// accept compares tensors with what belongs there.
func accept(op string, w disdel.Weights, want []param) error {
	if len(w) != len(want) {
		return &disdel.Error{Kind: disdel.Corrupt, Op: op, Msg: fmt.Sprintf("%d tensors, and there are %d", len(w), len(want))}
	}
	for i, p := range want {
		t := w[i]
		if t.Name != p.name || !slices.Equal(t.Shape, p.shape) || len(t.Data) != len(p.data) {
			return &disdel.Error{Kind: disdel.Corrupt, Op: op, Msg: fmt.Sprintf("%s %v where %s %v belongs", t.Name, t.Shape, p.name, p.shape)}
		}
		for k, v := range t.Data {
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				return &disdel.Error{Kind: disdel.Diverged, Op: op, Msg: fmt.Sprintf("value %d of %s is not finite", k, t.Name)}
			}
		}
	}
	return nil
}

// export copies from gorgonia's layout to PyTorch's, load the other way: they differ for dense weights only.
func (p *param) export(dst, src []float32) {
	if !p.dense {
		copy(dst, src)
		return
	}
	transpose(dst, src, p.shape[1], p.shape[0])
}

func (p *param) load(dst, src []float32) {
	if !p.dense {
		copy(dst, src)
		return
	}
	transpose(dst, src, p.shape[0], p.shape[1])
}

// transpose writes src, [rows columns], as dst, [columns rows].
func transpose(dst, src []float32, rows, columns int) {
	for r := range rows {
		for c := range columns {
			dst[c*rows+r] = src[r*columns+c]
		}
	}
}

// stepName is the tensor of an optimiser's state that counts its steps, [1].
const stepName = "step"

// moments lists an optimiser's count of steps and its arrays as parameters: "fc1.weight.exp_avg", as PyTorch names them.
func (e *Engine) moments() []param {
	if e.optimizer == nil {
		return nil
	}
	m := e.optimizer.state()
	out := []param{{name: stepName, shape: []int{1}, data: []float32{float32(m.steps)}}}
	for i, name := range m.names {
		k := 0
		for _, p := range e.params {
			if p.trainable {
				p.name, p.data = p.name+"."+name, m.arrays[i][k]
				out = append(out, p)
				k++
			}
		}
	}
	return out
}

// OptimizerState returns copies of the optimiser's count of steps, "step" of shape [1], and of its moments, in PyTorch's
// layouts; nil where the engine was made for inference.
func (e *Engine) OptimizerState() disdel.Weights {
	var out disdel.Weights
	for _, p := range e.moments() {
		t := disdel.Tensor{Name: p.name, Shape: p.shape, Data: make([]float32, len(p.data))}
		p.export(t.Data, p.data)
		out = append(out, t)
	}
	return out
}

// SetOptimizerState takes what OptimizerState gave. It returns Corrupt for other names or shapes and Diverged for values that
// are not finite; then nothing was changed.
func (e *Engine) SetOptimizerState(w disdel.Weights) error {
	list := e.moments()
	if err := accept("set the optimiser's state", w, list); err != nil {
		return err
	}
	for i, p := range list {
		p.load(p.data, w[i].Data)
	}
	if len(list) > 0 {
		e.optimizer.state().steps = int(math.Round(float64(list[0].data[0])))
	}
	return nil
}
