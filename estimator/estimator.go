package estimator

import (
	"fmt"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/model/plan"
)

// Input is what an estimate is made of.
type Input struct {
	Graph       *model.Graph
	Batch       int          // rows a step
	Rows        int          // of the shard, or held out
	SampleBytes disdel.Bytes // of one row as stored
	Epochs      int
	Optimizer   disdel.Optimizer
	ClipNorm    float64 // above 0: all gradients are kept
	Backend     string  // Gorgonia, or the engine with its static plan
}

// Gorgonia is the backend whose memory is measured, not planned.
const Gorgonia = "gorgonia"

// Calibration is what was measured of this runtime and its engine; `make bench-spine` shows estimates beside peaks. Sizes
// are of resident memory on linux/amd64.
type Calibration struct {
	// Package is a runtime that has answered /init and opened its store: Go runtime, buffers, and the binary's pages, of which
	// the kernel maps 20 to 30 MB, the more of the file it has in its cache.
	Package disdel.Bytes
	// StepFactor is what gorgonia's machine keeps for a step beyond the paper's terms, as a multiple of the bytes of all
	// outputs, forward and backward: those of ReLUs, gradients that are alive at once, targets.
	StepFactor float64
	// ColumnFactor is the same for the columns that one image is unrolled into by each convolution.
	ColumnFactor float64
	MarginFloor  disdel.Bytes // least safety margin
	// MarginShare is the garbage that the collector lets pile up before it runs, as a share of the terms on the heap. It is
	// the GOGC of an action, as the runtime command sets it.
	MarginShare float64
}

// Default is the calibration of this version.
var Default = Calibration{Package: 42 * disdel.MB, StepFactor: 1.5, ColumnFactor: 2, MarginFloor: 14 * disdel.MB, MarginShare: 0.40}

const (
	float          = 4 // bytes of a value
	passes         = 2 // x of Eq. 4: forward and backward
	paperParams    = 4 // z of Eq. 3: weights, gradients and Adam's two moments
	paperMargin    = 256 * disdel.MB
	paperPassNotes = "Eq. 5 is computed as printed: it multiplies by the epochs, though memory does not grow with them"
)

// Paper is Eq. 1 to 5 as printed, kept for comparison, with Table I's activations read as the output's height, width and
// channels. pkg is what our runtime takes, since the paper's image is TensorFlow's; saf is the paper's 256 MB.
func Paper(in Input) disdel.Estimate {
	c := in.Graph.Count()
	e := disdel.Estimate{
		Method: "paper", Pkg: Default.Package, Dta: disdel.Bytes(in.Rows) * in.SampleBytes, Mod: float * disdel.Bytes(c.Trainable), Saf: paperMargin,
		Parameters: float * paperParams * disdel.Bytes(c.Trainable), Activations: float * passes * disdel.Bytes(in.Batch) * disdel.Bytes(c.ActivationsA),
		Misc: float * disdel.Bytes(in.Graph.Input().Len()) * disdel.Bytes(in.Epochs), Notes: []string{paperPassNotes},
	}
	return sum(e)
}

// sum fills in fit (Eq. 2) and the total (Eq. 1).
func sum(e disdel.Estimate) disdel.Estimate {
	e.Fit = e.Parameters + e.Activations + e.Misc + e.Workspace
	e.Total = e.Fit + e.Pkg + e.Dta + e.Mod + e.Saf
	return e
}

// Train estimates a train action: Eq. 1 with the plan of the engine's slab in the place of Eq. 2 to 4, one batch in the place
// of Eq. 5's epochs, and measured constants for the process. What is off the Go heap is exact; the margin is for the rest.
func (c Calibration) Train(in Input) disdel.Estimate {
	if in.measured() {
		return c.measuredTrain(in)
	}
	e := c.planned(in, true)
	return c.margin(e, c.heap(e))
}

// Evaluate estimates an action that only computes forwards over rows.
func (c Calibration) Evaluate(in Input) disdel.Estimate {
	if in.measured() {
		return c.measuredEvaluate(in)
	}
	e := c.planned(in, false)
	return c.margin(e, c.heap(e))
}

// heap is the terms whose garbage the collector lets pile up.
func (c Calibration) heap(e disdel.Estimate) disdel.Bytes { return e.Dta + e.Mod + e.Misc }

// planned reads the terms off the plan that the engine will lay its slab out by.
func (c Calibration) planned(in Input, training bool) disdel.Estimate {
	n := in.Graph.Count()
	batch := max(in.Batch, 1)
	e := disdel.Estimate{
		Method: "planned", Pkg: c.Package, Dta: disdel.Bytes(in.Rows) * (in.SampleBytes + float), // and its label
		Mod:  2 * float * disdel.Bytes(n.Trainable+n.NonTrainable), // weights as they come from the store or go there, and as values
		Misc: float * disdel.Bytes(batch*(in.Graph.Input().Len()+in.Graph.Output().Len())),
	}
	p, err := plan.New(in.Graph, plan.Spec{Batch: batch, Training: training, Moments: in.Optimizer.Moments(), KeepGrads: in.ClipNorm > 0})
	if err != nil {
		return e // only a batch below 1 fails
	}
	peak, gaps := p.ByCategory()
	e.Parameters = peak[plan.Weights] + peak[plan.Moments] + peak[plan.Gradients]
	e.Activations = peak[plan.Activations] + peak[plan.Backward]
	e.Workspace = peak[plan.Workspace] + gaps
	if training {
		e.Layers = plannedLayers(n, p)
	}
	return e
}

func plannedLayers(n model.Counts, p *plan.Plan) []disdel.LayerEstimate {
	out := make([]disdel.LayerEstimate, len(n.Layers))
	by := p.ByNode()
	for i, l := range n.Layers {
		b := by[i+1]
		out[i] = disdel.LayerEstimate{
			Name: l.Name, Op: l.Op, Output: l.Output, Parameters: l.Trainable, Activations: l.Outputs, MACs: l.MACs,
			ParameterBytes: b[plan.Weights] + b[plan.Moments] + b[plan.Gradients], ActivationBytes: b[plan.Activations] + b[plan.Backward] + b[plan.Workspace],
		}
	}
	return out
}

// margin adds saf: what varies from run to run and what no term knows of, heap being the bytes on the Go heap.
func (c Calibration) margin(e disdel.Estimate, heap disdel.Bytes) disdel.Estimate {
	e.Saf = c.MarginFloor + disdel.Bytes(c.MarginShare*float64(heap))
	return sum(e)
}

// Aggregate estimates an action that reduces updates one at a time, so that the fan-in does not matter: one update as it
// was received, its values, and a sum in float64.
func (c Calibration) Aggregate(in Input) disdel.Estimate {
	n := in.Graph.Count()
	update := float * disdel.Bytes(n.Trainable+n.NonTrainable)
	e := disdel.Estimate{Method: "measured", Pkg: c.Package, Mod: update, Parameters: 3 * update, Workspace: 2 * update}
	return c.margin(e, sum(e).Total-e.Pkg)
}

// Train estimates a train action with the Default calibration.
func Train(in Input) disdel.Estimate { return Default.Train(in) }

// Evaluate estimates an evaluate or infer action with the Default calibration.
func Evaluate(in Input) disdel.Estimate { return Default.Evaluate(in) }

// Aggregate estimates an aggregate action with the Default calibration.
func Aggregate(in Input) disdel.Estimate { return Default.Aggregate(in) }

// ContainerRule is DiSDeL's rule (III-B.1): start with two containers; while the estimate m_e of each is above limit M,
// add ceil((m_e - M) / M) and estimate again with the smaller shards. Only the shard shrinks: a model that alone exceeds M
// never fits, and more than most containers would leave shards without a batch; both are OverLimit with the arithmetic.
// steps tells the way.
func ContainerRule(limit disdel.Bytes, most int, estimate func(containers int) disdel.Estimate) (containers int, e disdel.Estimate, steps []string, err error) {
	containers = min(2, most)
	for {
		e = estimate(containers)
		if e.Total <= limit {
			return containers, e, append(steps, fmt.Sprintf("workers: %d need %v each, and %v are allowed", containers, e.Total, limit)), nil
		}
		if fixed := e.Total - e.Dta; fixed > limit || containers >= most {
			return 0, e, steps, overLimit(limit, most, e)
		}
		more := int((e.Total - limit + limit - 1) / limit)
		steps = append(steps, fmt.Sprintf("workers: %d would need %v each, above %v: add %d", containers, e.Total, limit, more))
		containers = min(containers+more, most)
	}
}

func overLimit(limit disdel.Bytes, most int, e disdel.Estimate) error {
	fixed := e.Total - e.Dta
	out := &disdel.Error{Kind: disdel.OverLimit, Op: "plan job", Hint: "lower training.batchSize, choose a smaller network, or raise the memory limit"}
	if fixed > limit {
		out.Msg = fmt.Sprintf("a train action needs %v without any data (fit %v, package %v, model %v, margin %v), and the limit is %v: no number of workers makes it fit",
			fixed, e.Fit, e.Pkg, e.Mod, e.Saf, limit)
		return out
	}
	out.Msg = fmt.Sprintf("a train action needs %v even with %d workers, the most that leave each a whole batch, and the limit is %v", e.Total, most, limit)
	return out
}
