package estimator

import (
	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/model/plan"
)

// Calibration is what was measured of this runtime and its engine by `make bench-estimator`, on linux/amd64. What a process
// holds of weights on their way is a multiple of their size, and follows from how aggregator and actions handle them: who
// changes that changes these.
type Calibration struct {
	// Package is a runtime that has answered /init and opened its store, as the kernel counts it for a container: the Go runtime,
	// the program's data, buffers and page tables. The program's own pages are not in it: see Pages.
	Package disdel.Bytes
	Thread  disdel.Bytes // of each but the first: its stacks and its caches of free memory
	Chunk   disdel.Bytes // of a data set, read at once
	Part    disdel.Bytes // of an update, sent at once
	// What is held of weights at most by who pushes an update (values, encoded), fetches a reference (received, values), and
	// reduces one update or several (the first one's values, sums in float64, the next one received and its values).
	Push, Fetch, ReduceOne, Reduce carriage

	Still    disdel.Bytes // standard deviation of the peak of a process that does nothing
	Moving   float64      // and of what is on the Go heap, as a share of it
	Outgrown float64      // of what weights outgrow while they are received, as a share of all but their first part
	Measured float64      // the same as Moving where no plan knows what gorgonia allocates, as a share of all but the package
	// WatchShare is the share of the limit at which the runtime stops an action before the kernel does.
	WatchShare float64
	// Pages is room for the pages of the program that are in use. The kernel counts them for the container that first asks for
	// them and takes them back when memory is short, so that nobody is killed for them, but one without room for them crawls.
	Pages disdel.Bytes
	// Garbage is what the collector can leave at most, as a share of what is on the heap: the GOGC of an action, as the runtime
	// command sets it, and what is allocated while it works.
	Garbage float64
	// StepFactor is what gorgonia's machine keeps for a step beyond the paper's terms, as a multiple of the bytes of all
	// outputs, forward and backward: those of ReLUs, gradients that are alive at once, targets.
	StepFactor float64
	// ColumnFactor is the same for the columns that one image is unrolled into by each convolution.
	ColumnFactor float64
}

// Default is the calibration of this version.
var Default = Calibration{
	Package: 6*disdel.MB + 512*disdel.KB, Thread: 256 * disdel.KB, Chunk: 4 * disdel.MB, Part: 16 * disdel.MB,
	Push: carriage{copies: 2, parts: 1}, Fetch: carriage{copies: 2, growth: 0.3},
	ReduceOne: carriage{copies: 4}, Reduce: carriage{copies: 5, parts: 1, growth: 1.2},
	Still: 400 * disdel.KB, Moving: 0.015, Outgrown: 0.08, Measured: 0.12, WatchShare: 0.97, Pages: disdel.MB, Garbage: 1,
	StepFactor: 4.2, ColumnFactor: 2,
}

// carriage is what weights on their way take.
type carriage struct {
	copies float64 // of all of them
	parts  float64 // pieces of Calibration.Part beside them
	growth float64 // of what comes after the first part: memory that is outgrown while they are received
}

func (c Calibration) carry(by carriage, weights disdel.Bytes) disdel.Bytes {
	part := min(weights, c.Part)
	return disdel.Bytes(by.copies*float64(weights) + by.parts*float64(part) + by.growth*float64(weights-part))
}

func (in Input) weights() disdel.Bytes {
	n := in.count()
	return float * disdel.Bytes(n.Trainable+n.NonTrainable)
}

// train is Eq. 1 with the plan of the engine's slab in the place of Eq. 2 to 4, one batch in the place of Eq. 5's epochs, and
// measured constants for the process. What is off the Go heap is exact.
func (c Calibration) train(in Input) disdel.Estimate {
	if in.measured() {
		return c.measuredTrain(in)
	}
	w := in.weights()
	e := c.planned(in, true)
	e.Mod = max(c.carry(c.Push, w), c.carry(c.Fetch, w))
	return c.shard(e, in)
}

// evaluate estimates an action that only computes forwards over rows.
func (c Calibration) evaluate(in Input) disdel.Estimate {
	if in.measured() {
		return c.measuredEvaluate(in)
	}
	e := c.planned(in, false)
	e.Mod = c.carry(c.Fetch, in.weights())
	return c.shard(e, in)
}

// aggregate estimates an action that reduces updates one at a time, so that it does not matter how many there are beyond one.
func (c Calibration) aggregate(in Input) disdel.Estimate {
	w := in.weights()
	by := c.Reduce
	if in.Members == 1 {
		by = c.ReduceOne
	}
	sums := 2 * w // float64
	return disdel.Estimate{Method: MethodPlanned, Pkg: c.Package, Mod: w, Parameters: sums, Workspace: max(0, c.carry(by, w)-w-sums)}
}

// planned reads the terms off the plan that the engine will lay its slab out by.
func (c Calibration) planned(in Input, training bool) disdel.Estimate {
	batch := max(in.Batch, 1)
	e := disdel.Estimate{
		Method: MethodPlanned, Pkg: c.Package + disdel.Bytes(max(in.Threads, 1)-1)*c.Thread,
		Misc: float * disdel.Bytes(batch*(in.Graph.Input().Len()+in.Graph.Output().Len())),
	}
	p, err := plan.New(in.Graph, plan.Spec{Batch: batch, Training: training, Moments: in.Optimizer.Moments(), KeepGrads: in.ClipNorm > 0})
	if err != nil {
		return e // only a batch below 1 and a network of another binary fail
	}
	peak, gaps := p.ByCategory()
	e.Parameters = peak[plan.Weights] + peak[plan.Moments] + peak[plan.Gradients]
	e.Activations = peak[plan.Activations] + peak[plan.Backward]
	e.Workspace = peak[plan.Workspace] + gaps
	if training {
		e.Layers = plannedLayers(in.count(), p)
	}
	return e
}

// shard fills in dta: the rows with a label and a place in the epoch's order each. They are read a chunk at a time before the
// engine is made, so that a chunk counts only where all that comes later is smaller.
func (c Calibration) shard(e disdel.Estimate, in Input) disdel.Estimate {
	const label, place = 4, 8
	stored := disdel.Bytes(max(in.Rows, in.Part)) * (in.SampleBytes + label)
	chunk := min(stored, max(c.Chunk, in.SampleBytes+label))
	later := e.Parameters + e.Activations + e.Workspace + e.Misc + e.Mod
	e.Dta = disdel.Bytes(in.Rows)*(in.SampleBytes+label+place) + max(0, chunk-later)
	return e
}

func plannedLayers(n *model.Counts, p *plan.Plan) []disdel.LayerEstimate {
	out := make([]disdel.LayerEstimate, len(n.Layers))
	weights, others := p.ByNode()
	for i, l := range n.Layers {
		out[i] = disdel.LayerEstimate{
			Name: l.Name, Op: l.Op, Output: l.Output, Parameters: l.Trainable, Activations: l.Outputs, MACs: l.MACs,
			ParameterBytes: weights[i+1], ActivationBytes: others[i+1],
		}
	}
	return out
}
