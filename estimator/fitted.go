package estimator

import (
	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine/footprint"
)

// fitted tells whether the engine's footprint is factors that were fitted to measured peaks, and not a plan. Then what
// the process takes for threads and nodes is within the factors.
func (in Input) fitted() bool { return in.engine.Basis == footprint.Fitted }

// fittedTrain estimates a train action by such a footprint.
func (c calibration) fittedTrain(in Input) disdel.Estimate {
	e := c.terms(in)
	e.Shard = disdel.Bytes(in.Rows) * (in.SampleBytes + float) // and its label
	e.Model = c.fittedMoved(in) + in.exchanged()
	return e
}

// fittedEvaluate is the same for an action that only computes forwards.
func (c calibration) fittedEvaluate(in Input) disdel.Estimate {
	e := c.terms(in)
	e.Shard, e.Model = disdel.Bytes(in.Rows)*(in.SampleBytes+float), in.carried()
	if in.Epochs > 1 { // a later one takes more than the first
		e.Workspace += in.engine.Later
	}
	return e
}

// fittedMoved is the reference read and the update sent, and what upkeep and wire format add to that. Columns are
// within the spread.
func (c calibration) fittedMoved(in Input) disdel.Bytes {
	w := in.carried()
	return w + max(w, c.moved(in)-c.Push.of(w))
}
