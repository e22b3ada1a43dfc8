package scheduler

import (
	"fmt"
	"strings"

	"github.com/disdel/disdel"
)

// opaque returns the job's Python program if nothing is known of its memory but its weights; nil otherwise.
func (in PlanInput) opaque() *disdel.PythonNetwork {
	if c := in.Graph.Custom(); c != nil && c.Python != nil && c.Python.Basis == disdel.MemoryGiven {
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

// CheckKnownMemory returns Invalid for a program whose memory only resources.memory says: no batch can be found for it.
func CheckKnownMemory(in PlanInput, limit disdel.Bytes) error {
	if in.opaque() == nil {
		return nil
	}
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "fit job",
		Msg: fmt.Sprintf("disdel cannot find the memory of %s out, and knows no batch that fits %v",
			in.Graph.Custom().Name, limit),
		Hint: fmt.Sprintf("run a job of it once, with --set resources.memory=%dMB: later estimates learn from the peak "+
			"that it measures", limit.MB()),
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
