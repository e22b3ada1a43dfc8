package scheduler

import (
	"strings"

	"github.com/disdel/disdel"
)

// opaque returns the job's Python program if nothing is known of its memory but its weights; nil otherwise.
func (b *planBuilder) opaque() *disdel.PythonNetwork {
	if c := b.Graph.Custom(); c != nil && c.Python != nil && c.Python.Basis == disdel.MemoryGiven {
		return c.Python
	}
	return nil
}

// checkGiven refuses an opaque program without memory of the user's own: an estimate of its weights would be too low.
func (b *planBuilder) checkGiven() error {
	p := b.opaque()
	if p == nil || b.Job.Resources.Memory > 0 {
		return nil
	}
	msg := "resources.memory is missing, and disdel cannot find the memory of " + b.Graph.Custom().Name + " out"
	if len(p.Warnings) > 0 {
		msg += ": " + strings.Join(p.Warnings, "; ")
	}
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "plan job", Job: b.ID, Msg: msg,
		Hint: "add --set resources.memory=1GB, or another size above the " + p.Floor.String() +
			" of its process; later jobs of the program learn from the peak that this one measures",
	}
}

// given replaces the totals of an opaque program's estimate by resources.memory. An estimate above it stays, since
// weights that do not fit will not fit.
func (b *planBuilder) given(e disdel.Estimate) disdel.Estimate {
	own := b.Job.Resources.Memory
	if b.opaque() == nil || e.Total > own {
		return e
	}
	e.Method, e.Total, e.Margin = disdel.MemoryGiven, own, 0
	e.Low, e.Likely, e.High, e.Risk = 0, 0, 0, 0
	return e
}
