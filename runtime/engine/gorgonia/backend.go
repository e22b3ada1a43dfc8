package gorgonia

import (
	"fmt"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/footprint"
)

// Backend makes engines that execute gorgonia graphs: of the networks that all programs know, and of the program's own,
// if it has one.
type Backend struct {
	Own *Network // nil: the program has none
}

// Name implements engine.Backend.
func (Backend) Name() string { return disdel.BackendGorgonia }

// Supports implements engine.Backend: every network of the model package, and the program's own as it was described.
func (b Backend) Supports(g *model.Graph) error {
	if err := takesDense(g); err != nil {
		return err
	}
	asked := g.Custom()
	if asked == nil {
		return nil
	}
	if err := b.owns(asked); err != nil {
		return err
	}
	e, err := FromGraph(*b.Own, engine.Spec{BatchSize: minBatch})
	if err != nil {
		return err
	}
	defer e.Close()
	return e.sameAs(asked)
}

// takesDense refuses models of sparse rows, and layers that gorgonia's graphs lack.
func takesDense(g *model.Graph) error {
	for i := range g.Nodes {
		if n := &g.Nodes[i]; lacks(n.Op) {
			return &disdel.Error{
				Kind: disdel.Invalid, Op: "make engine",
				Msg:  fmt.Sprintf("the gorgonia backend does not compute layers of the kind %v (layer %s)", n.Op, n.Name),
				Hint: "take training.backend: native",
			}
		}
	}
	if g.Sparse() == nil {
		return nil
	}
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "make engine",
		Msg:  fmt.Sprintf("%s takes sparse rows, and this backend takes dense ones", g.Name),
		Hint: "leave training.backend out",
	}
}

// owns refuses a network that the program has not.
func (b Backend) owns(asked *disdel.CustomNetwork) error {
	switch {
	case b.Own == nil:
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "make engine", Msg: fmt.Sprintf("this binary has no network %q", asked.Name),
			Hint: "give the binary that has it: --action FILE",
		}
	case b.Own.Name != asked.Name:
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "make engine", Msg: fmt.Sprintf("this binary has network %q only", b.Own.Name),
			Hint: "submit the job with the binary that has its network: --action FILE",
		}
	}
	return nil
}

// takes returns Invalid for rows and numbers that this backend has not.
func takes(s *engine.Spec) error {
	if err := takesDense(s.Graph); err != nil {
		return err
	}
	return s.OnlyPlain(disdel.BackendGorgonia)
}

// New implements engine.Backend.
func (b Backend) New(s engine.Spec) (engine.Engine, error) {
	if err := takes(&s); err != nil {
		return nil, err
	}
	if asked := s.Graph.Custom(); asked != nil {
		return b.own(asked, s)
	}
	e, err := New(s)
	if err != nil {
		return nil, err // not a nil *Engine, which is no nil engine.Engine
	}
	return e, nil
}

// own makes an engine of the program's own network.
func (b Backend) own(asked *disdel.CustomNetwork, s engine.Spec) (engine.Engine, error) {
	if err := b.owns(asked); err != nil {
		return nil, err
	}
	e, err := FromGraph(*b.Own, s)
	if err != nil {
		return nil, err
	}
	if err := e.sameAs(asked); err != nil {
		return nil, err
	}
	return e, nil
}

// Footprint implements engine.Backend, of a network that another program has described, too.
func (Backend) Footprint(s engine.Spec) (engine.Footprint, error) {
	if s.BatchSize < 1 {
		return engine.Footprint{},
			&disdel.Error{Kind: disdel.Invalid, Op: "make engine", Msg: fmt.Sprintf("a batch of %d rows", s.BatchSize)}
	}
	if err := takes(&s); err != nil {
		return engine.Footprint{}, err
	}
	return footprintOf(s), nil
}

// factors are what gorgonia's machine keeps beyond DiSDeL's Eq. 3 to 5, as multiples of the bytes of all outputs (those
// of ReLUs, gradients that are alive at once, targets) and of the columns that the batch's rows are unrolled into by
// convolutions.
type factors struct{ outputs, columns float64 }

// They were fitted by `make bench-estimator`, on linux/amd64, to eight generated jobs and the one that a user found too
// low, and fit these within 12 %.
var (
	stepFactors    = factors{3, 1.4}
	forwardFactors = factors{3.4, 1}
)

const (
	machine     = 860 * disdel.KB // beside all networks
	deviation   = 0.12            // standard deviation of a peak, as a share of all but the process
	secondShare = 0.08            // of activations and workspace, that a second evaluation in a container takes more
	float       = 4               // bytes of a value
)

func (f factors) bytesFor(g *model.Graph, passes, batch disdel.Bytes) disdel.Bytes {
	return disdel.Bytes(f.outputs*float64(float*passes*outputs(g)) + f.columns*float64(float*batch*columns(g)))
}

// footprintOf has the paper's terms, and fitted factors for what gorgonia's machine allocates anew at every step. All
// of it is on the Go heap.
func footprintOf(s engine.Spec) engine.Footprint {
	n, batch := s.Graph.Count(), disdel.Bytes(s.BatchSize)
	weights := float * disdel.Bytes(n.Trainable)
	once := float * batch * disdel.Bytes(n.ActivationsB) // the outputs of one pass
	f := engine.Footprint{Basis: footprint.Fitted, Spread: deviation}
	add := func(c footprint.Category, n disdel.Bytes) {
		f.Parts = append(f.Parts, footprint.Part{Category: c, Memory: footprint.Heap, Bytes: n})
	}
	add(footprint.Weights, weights)
	if s.Training {
		add(footprint.Moments, disdel.Bytes(s.Optimizer.Moments())*weights)
		add(footprint.Gradients, weights)
		add(footprint.Backward, once)
		add(footprint.Workspace, stepFactors.bytesFor(s.Graph, 2*batch, batch)) // forward and backward
		f.Layers = layersOf(s, &n)
	} else {
		add(footprint.Workspace, forwardFactors.bytesFor(s.Graph, batch, batch))
		f.Later = disdel.Bytes(secondShare * float64(once+f.Sum(footprint.Workspace)))
	}
	add(footprint.Activations, once)
	add(footprint.Batch, float*batch*disdel.Bytes(s.Graph.Input().Len()))
	add(footprint.Process, machine)
	return f
}

// layersOf is the paper's terms layer by layer.
func layersOf(s engine.Spec, n *model.Counts) []footprint.Layer {
	kept := float * disdel.Bytes(2+s.Optimizer.Moments()) // of a weight: itself, its gradient and moments
	out := make([]footprint.Layer, len(s.Graph.Nodes))
	for i, l := range n.Layers {
		out[i+1] = footprint.Layer{
			Weights: kept * disdel.Bytes(l.Trainable), Others: float * 2 * disdel.Bytes(s.BatchSize) * disdel.Bytes(l.Outputs),
		}
	}
	return out
}

// outputs is every output of a sample that gorgonia makes: those of ReLU, dropout and softmax too.
func outputs(g *model.Graph) disdel.Bytes {
	if c := g.Custom(); c != nil {
		return disdel.Bytes(max(c.Activations, c.Backward))
	}
	var n int
	for _, v := range g.Nodes {
		n += v.Out.Len()
	}
	return disdel.Bytes(n)
}

// columns is the values that the convolutions of a sample are unrolled into.
func columns(g *model.Graph) disdel.Bytes {
	var n int
	for _, v := range g.Nodes {
		if v.Op == model.OpConv {
			in := g.Nodes[v.Inputs[0]].Out
			n += v.Out[1] * v.Out[2] * in[0] * v.Kernel.H * v.Kernel.W
		}
	}
	return disdel.Bytes(n)
}
