package expr

import (
	"fmt"
	"math"

	"github.com/disdel/disdel"
)

// Weights returns copies of all weights in the order of the graph's Params, in PyTorch's layouts.
func (e *Engine) Weights() disdel.Weights {
	out := make(disdel.Weights, len(e.params))
	for i, p := range e.params {
		out[i] = disdel.Tensor{Name: p.Name, Shape: p.Shape, Data: make([]float32, len(p.data))}
		p.export(out[i].Data, p.data)
	}
	return out
}

// SetWeights takes copies of weights in the order and shapes of the graph's Params. It returns Corrupt for other names or
// shapes and Diverged for values that are not finite; then nothing was changed.
func (e *Engine) SetWeights(w disdel.Weights) error {
	if len(w) != len(e.params) {
		return &disdel.Error{Kind: disdel.Corrupt, Op: "set weights", Msg: fmt.Sprintf("%d tensors, and the network has %d", len(w), len(e.params))}
	}
	for i, p := range e.params {
		if err := p.accepts(w[i]); err != nil {
			return err
		}
	}
	for i, p := range e.params {
		p.load(p.data, w[i].Data)
	}
	return nil
}

func (p *param) accepts(t disdel.Tensor) error {
	if t.Name != p.Name || fmt.Sprint(t.Shape) != fmt.Sprint(p.Shape) || len(t.Data) != len(p.data) {
		return &disdel.Error{Kind: disdel.Corrupt, Op: "set weights", Msg: fmt.Sprintf("%s %v where %s %v belongs", t.Name, t.Shape, p.Name, p.Shape)}
	}
	for k, v := range t.Data {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return &disdel.Error{Kind: disdel.Diverged, Op: "set weights", Msg: fmt.Sprintf("value %d of %s is not finite", k, t.Name)}
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
	transpose(dst, src, p.Shape[1], p.Shape[0])
}

func (p *param) load(dst, src []float32) {
	if !p.dense {
		copy(dst, src)
		return
	}
	transpose(dst, src, p.Shape[0], p.Shape[1])
}

// transpose writes src, [rows columns], as dst, [columns rows].
func transpose(dst, src []float32, rows, columns int) {
	for r := range rows {
		for c := range columns {
			dst[c*rows+r] = src[r*columns+c]
		}
	}
}

// OptimizerState returns copies of the optimiser's moments, named as PyTorch names them: "fc1.weight.exp_avg".
func (e *Engine) OptimizerState() disdel.Weights {
	var out disdel.Weights
	if e.optimizer == nil {
		return nil
	}
	state := e.optimizer.state()
	for _, kind := range []string{"momentum", "exp_avg", "exp_avg_sq"} {
		for i, v := range state[kind] {
			p := e.params[i]
			t := disdel.Tensor{Name: p.Name + "." + kind, Shape: p.Shape, Data: make([]float32, len(v))}
			p.export(t.Data, v)
			out = append(out, t)
		}
	}
	return out
}
