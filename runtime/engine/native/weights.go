package native

import (
	"fmt"
	"math"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// param is one array of weights with its pieces of the slab.
type param struct {
	model.Param
	value, grad []float32
	moments     [2][]float32
	used        int // values that an update touches

	conv      *plan.Conv // of convolutions and dense layers
	depthwise bool
	order     model.Shape // of the image that a dense layer's input was, where its columns are permuted
}

func (e *Engine) buildParams() {
	for _, p := range e.plan.Params {
		v := &e.plan.Nodes[p.Node]
		q := param{Param: p.Param, value: e.region(p.Value), grad: e.region(p.Grad), used: p.Value.Len, depthwise: v.Depthwise}
		for m, r := range p.Moments {
			q.moments[m] = e.region(r)
		}
		switch op := e.g.Nodes[p.Node].Op; {
		case v.Depthwise:
		case op == model.OpConv || op == model.OpDense:
			q.conv = &e.plan.Nodes[p.Node].Conv
			q.used = q.value0() - plan.Slack
		}
		if v.Permuted && e.g.Nodes[p.Node].Op == model.OpDense {
			q.order = e.flattened(v.Inputs[0])
		}
		e.params = append(e.params, q)
	}
}

// value0 is the exact length of the array in memory, slack included; the region may be rounded up.
func (p *param) value0() int {
	if len(p.Shape) > 1 {
		return p.conv.WeightLen()
	}
	return p.conv.BiasLen()
}

// flattened is the shape of the image that became the vector of a node.
func (e *Engine) flattened(i int) model.Shape {
	for e.g.Nodes[i].Op != model.OpFlatten {
		i = e.plan.Nodes[i].Inputs[0]
	}
	return e.g.Nodes[e.plan.Nodes[i].Inputs[0]].Out
}

// convert calls f with the index of every value in PyTorch's layout, in their order, and in memory.
func (p *param) convert(f func(there, here int)) {
	switch {
	case p.conv != nil && len(p.Shape) > 1 && p.order != nil:
		p.convertPermuted(f)
	case p.conv != nil && len(p.Shape) > 1:
		p.conv.Each(f)
	case p.conv != nil:
		for k := range p.Shape[0] {
			f(k, p.conv.BiasAt(k))
		}
	case p.depthwise && len(p.Shape) > 1: // [C][1][KH][KW] there, [KH][KW][C] here
		taps := p.Shape[2] * p.Shape[3]
		for c := range p.Shape[0] {
			for t := range taps {
				f(c*taps+t, t*p.Shape[0]+c)
			}
		}
	default:
		for i := range p.Len() {
			f(i, i)
		}
	}
}

// convertPermuted is for a dense layer whose columns are [C][H][W] there and [H][W][C] here.
func (p *param) convertPermuted(f func(there, here int)) {
	in, channels := p.Shape[1], p.order[0]
	plane := in / channels
	for k := range p.Shape[0] {
		row := k/16*p.conv.BlockLen() + k%16
		for c := range channels {
			for px := range plane {
				f(k*in+c*plane+px, row+(px*channels+c)*16)
			}
		}
	}
}

func (p *param) export(src []float32, name string) disdel.Tensor {
	t := disdel.Tensor{Name: name, Shape: p.Shape, Data: make([]float32, p.Len())}
	p.convert(func(there, here int) { t.Data[there] = src[here] })
	return t
}

func (p *param) load(dst, src []float32) {
	clear(dst)
	p.convert(func(there, here int) { dst[here] = src[there] })
}

// Weights returns copies of all weights in the order of the graph's Params, in PyTorch's layouts.
func (e *Engine) Weights() disdel.Weights {
	out := make(disdel.Weights, len(e.params))
	for i := range e.params {
		out[i] = e.params[i].export(e.params[i].value, e.params[i].Name)
	}
	return out
}

// SetWeights takes copies of weights in the order and shapes of the graph's Params. It returns Corrupt for other names or
// shapes and Diverged for values that are not finite; then nothing was changed.
func (e *Engine) SetWeights(w disdel.Weights) error {
	if len(w) != len(e.params) {
		return &disdel.Error{Kind: disdel.Corrupt, Op: "set weights", Msg: fmt.Sprintf("%d tensors, and the network has %d", len(w), len(e.params))}
	}
	for i := range e.params {
		if err := e.params[i].accepts(w[i], e.params[i].Name); err != nil {
			return err
		}
	}
	for i := range e.params {
		e.params[i].load(e.params[i].value, w[i].Data)
	}
	return nil
}

func (p *param) accepts(t disdel.Tensor, name string) error {
	if t.Name != name || fmt.Sprint(t.Shape) != fmt.Sprint(p.Shape) || len(t.Data) != p.Len() {
		return &disdel.Error{Kind: disdel.Corrupt, Op: "set weights", Msg: fmt.Sprintf("%s %v where %s %v belongs", t.Name, t.Shape, name, p.Shape)}
	}
	for k, v := range t.Data {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return &disdel.Error{Kind: disdel.Diverged, Op: "set weights", Msg: fmt.Sprintf("value %d of %s is not finite", k, t.Name)}
		}
	}
	return nil
}

// stateNames are what PyTorch calls the moments of an optimiser.
func stateNames(o disdel.Optimizer) []string {
	switch o.Moments() {
	case 2:
		return []string{"exp_avg", "exp_avg_sq"}
	case 1:
		return []string{"momentum"}
	default:
		return nil
	}
}

// OptimizerState returns copies of the optimiser's moments, "fc1.weight.exp_avg" and so on, and the number of steps, "step",
// of shape [1].
func (e *Engine) OptimizerState() disdel.Weights {
	if !e.cfg.Training {
		return nil
	}
	out := disdel.Weights{{Name: "step", Shape: []int{1}, Data: []float32{float32(e.steps)}}}
	for m, kind := range stateNames(e.cfg.Optimizer) {
		for i := range e.params {
			if p := &e.params[i]; p.Trainable {
				out = append(out, p.export(p.moments[m], p.Name+"."+kind))
			}
		}
	}
	return out
}

// SetOptimizerState takes what OptimizerState returned. It returns Corrupt and Diverged as SetWeights does.
func (e *Engine) SetOptimizerState(w disdel.Weights) error {
	type place struct {
		p   *param
		dst []float32
	}
	var places []place
	for m := range stateNames(e.cfg.Optimizer) {
		for i := range e.params {
			if p := &e.params[i]; p.Trainable {
				places = append(places, place{p, p.moments[m]})
			}
		}
	}
	if len(w) != len(places)+1 || w[0].Name != "step" || len(w[0].Data) != 1 {
		return &disdel.Error{Kind: disdel.Corrupt, Op: "set optimiser state", Msg: fmt.Sprintf("%d tensors, and the optimiser has %d", len(w), len(places)+1)}
	}
	names := stateNames(e.cfg.Optimizer)
	for i, to := range places {
		if err := to.p.accepts(w[i+1], to.p.Name+"."+names[i*len(names)/len(places)]); err != nil {
			return err
		}
	}
	for i, to := range places {
		to.p.load(to.dst, w[i+1].Data)
	}
	e.steps = int(math.Round(float64(w[0].Data[0]))) // an average of several need not be whole
	return nil
}
