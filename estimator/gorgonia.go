package estimator

import (
	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
)

// measured tells whether gorgonia executes the network: by choice, or because it is a graph of the action's own binary.
func (in Input) measured() bool { return in.Backend == Gorgonia || in.Graph.Custom() != nil }

// measuredTrain estimates a train action on the gorgonia backend: the paper's terms, and measured factors for what
// gorgonia's machine allocates anew at every step.
func (c Calibration) measuredTrain(in Input) disdel.Estimate {
	n := in.count()
	batch := disdel.Bytes(max(in.Batch, 1))
	e := disdel.Estimate{
		Method: methodMeasured, Pkg: c.Package + c.Machine, Dta: disdel.Bytes(in.Rows) * (in.SampleBytes + float), // and its label
		Mod:         c.measuredMoved(in),
		Parameters:  float * kept(in.Optimizer) * disdel.Bytes(n.Trainable),
		Activations: float * passes * batch * disdel.Bytes(n.ActivationsB),
		Misc:        float * batch * disdel.Bytes(in.Graph.Input().Len()),
	}
	e.Workspace = c.Step.of(in.Graph, passes*batch, batch)
	e.Layers = layers(in, n)
	return e
}

// measuredEvaluate is the same for an action that only computes forwards.
func (c Calibration) measuredEvaluate(in Input) disdel.Estimate {
	n := in.count()
	batch := disdel.Bytes(max(1, min(in.Batch, in.Rows)))
	e := disdel.Estimate{
		Method: methodMeasured, Pkg: c.Package + c.Machine, Dta: disdel.Bytes(in.Rows) * (in.SampleBytes + float),
		Mod: in.carried(), Parameters: float * disdel.Bytes(n.Trainable),
		Activations: float * batch * disdel.Bytes(n.ActivationsB), Misc: float * batch * disdel.Bytes(in.Graph.Input().Len()),
	}
	e.Workspace = c.Forward.of(in.Graph, batch, batch)
	if in.Epochs > 1 { // a later one takes more than the first
		e.Workspace += disdel.Bytes(c.Again * float64(e.Activations+e.Workspace))
	}
	return e
}

// machine is what gorgonia's machine keeps beyond the paper's terms, as multiples of the bytes of all outputs (those of ReLUs,
// gradients that are alive at once, targets) and of the columns that the batch's rows are unrolled into by convolutions.
type machine struct{ outputs, columns float64 }

func (m machine) of(g *model.Graph, passes, batch disdel.Bytes) disdel.Bytes {
	return disdel.Bytes(m.outputs*float64(float*passes*outputs(g)) + m.columns*float64(float*batch*columns(g)))
}

// measuredMoved is the reference read and the update sent, and what upkeep and wire format add to that. Columns are within
// the spread.
func (c Calibration) measuredMoved(in Input) disdel.Bytes {
	w := in.carried()
	return w + max(w, c.moved(in)-c.Push.of(w))
}

// kept is z for an optimiser: weights, gradients and its moments.
func kept(o disdel.Optimizer) disdel.Bytes { return disdel.Bytes(2 + o.Moments()) }

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

func layers(in Input, n *model.Counts) []disdel.LayerEstimate {
	out := make([]disdel.LayerEstimate, len(n.Layers))
	for i, l := range n.Layers {
		out[i] = disdel.LayerEstimate{
			Name: l.Name, Op: l.Op, Output: l.Output, Parameters: l.Trainable, Activations: l.Outputs, MACs: l.MACs,
			ParameterBytes: float * kept(in.Optimizer) * disdel.Bytes(l.Trainable), ActivationBytes: float * passes * disdel.Bytes(in.Batch) * disdel.Bytes(l.Outputs),
		}
	}
	return out
}
