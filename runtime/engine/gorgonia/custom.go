package gorgonia

import (
	"fmt"

	"gorgonia.org/gorgonia"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
)

// Network is a user's own expression graph.
type Network struct {
	Name    string
	Sample  []int // shape of one input: [channels height width] or [units]
	Classes int   // outputs
	Build   Builder
}

// FromGraph makes an engine of a user's own graph, with the weights that its nodes start with. Its weights are named as
// their nodes are and have their shapes. s.Loss counts for nothing: the graph has its own. It returns Invalid for a
// graph that does not fit the network's shapes, or cannot be differentiated.
func FromGraph(n Network, s engine.Spec) (*Engine, error) {
	if err := n.check(); err != nil {
		return nil, err
	}
	e := newEngine(n.Name, model.Shape(n.Sample).Len(), n.Classes, s)
	e.builder = n.Build
	if err := e.start(); err != nil {
		return nil, err
	}
	d := e.describe(n)
	g, err := model.Build(disdel.Network{Custom: &d, Input: n.Sample, Classes: n.Classes})
	if err != nil {
		return nil, err
	}
	if e.graph = g; s.Graph == nil {
		e.spec.Graph = g
	}
	return e, nil
}

// describe has a network's weights, with what they start from.
func (e *Engine) describe(n Network) disdel.CustomNetwork {
	d := disdel.CustomNetwork{Name: n.Name, Input: n.Sample, Classes: n.Classes}
	for _, p := range e.params {
		d.Params = append(d.Params, disdel.CustomParam{Name: p.name, Shape: p.shape, Trainable: p.trainable, Fill: p.fill()})
	}
	return d
}

func (n *Network) check() error {
	if n.Name == "" || n.Classes < 1 || model.Shape(n.Sample).Len() < 1 || n.Build == nil {
		return invalid(n.Name, "it needs a name, a sample's shape, classes and what builds it, and has %q, %v, %d", n.Name,
			n.Sample, n.Classes)
	}
	return nil
}

// Describe tells the controller what it must know of a network that only this process can compute. A parameter whose
// first value is the same everywhere (gorgonia.Zeroes, Ones) starts from that value. Every other parameter starts from
// engine.InitWeights, by the job's model.init. All workers must start alike, and gorgonia's own draws differ from
// process to process.
func Describe(n Network) (d disdel.CustomNetwork, err error) {
	e, err := FromGraph(n, engine.Spec{BatchSize: minBatch, Training: true})
	if err != nil {
		return d, err
	}
	defer e.Close()
	d = *e.graph.Custom()
	d.Activations, d.Backward, err = e.count()
	return d, err
}

// fill is the value that a user's node had everywhere, nil if it differed or there was none.
func (p *param) fill() *float32 {
	for _, x := range p.data {
		if x != p.data[0] {
			return nil
		}
	}
	if !p.isInput {
		return nil
	}
	first := p.data[0] // the array changes while training
	return &first
}

// count is how many values the nodes of a training step have for one sample, forward and backward: what a batch of four
// has more than one of two.
func (e *Engine) count() (forward, backward int64, err error) {
	const small, large = minBatch, 2 * minBatch
	var sizes [2][2]int64
	for i, rows := range []int{small, large} {
		if sizes[i], err = e.countRows(rows); err != nil {
			return 0, 0, err
		}
	}
	per := func(k int) int64 { return max(0, sizes[1][k]-sizes[0][k]) / (large - small) }
	return per(0), per(1), nil
}

func (e *Engine) countRows(rows int) (sizes [2]int64, err error) {
	building.Lock()
	defer building.Unlock()
	defer guard(e.name, &err)
	o, err := NewOps(OpsConfig{Rows: rows, Training: true})
	if err != nil {
		return sizes, err
	}
	p, err := e.build(o)
	if err != nil {
		return sizes, err
	}
	sizes[0] = computed(p.Graph)
	if _, err := gorgonia.Grad(p.Loss, p.Params...); err != nil {
		return sizes, invalid(e.name, "there is no gradient: %v", err)
	}
	sizes[1] = computed(p.Graph) - sizes[0]
	return sizes, nil
}

// computed is how many values the nodes of a graph have that a machine computes.
func computed(g *gorgonia.ExprGraph) int64 {
	var n int64
	for _, v := range g.AllNodes() {
		if v.Op() != nil {
			n += int64(v.Shape().TotalSize())
		}
	}
	return n
}

// sameAs refuses a network that has changed since the job was planned: its weights would not fit the other workers'.
func (e *Engine) sameAs(asked *disdel.CustomNetwork) error {
	changed := len(e.params) != len(asked.Params)
	for i := 0; !changed && i < len(e.params); i++ {
		p, q := e.params[i], asked.Params[i]
		changed = p.name != q.Name || fmt.Sprint(p.shape) != fmt.Sprint(q.Shape) || p.trainable != q.Trainable
	}
	if !changed {
		return nil
	}
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "make engine",
		Msg: fmt.Sprintf("network %q is not as it was described", e.name), Hint: "submit the job again with this binary",
	}
}
