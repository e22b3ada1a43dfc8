package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/disdel/disdel"
)

// largest runs one probe with the most memory that is known to fit on one machine: what controllers allow, invokers may
// refuse.
func (d *doctor) largest(ctx context.Context) bool {
	memory := max(d.limits.MinMemory, min(d.limits.MaxMemory, d.largestNode()))
	a, err := d.probe(ctx, probing{limits: disdel.Limits{Memory: memory, Timeout: d.timeout()}})
	res, failure := resultOf(a, err)
	if failure != nil {
		d.found(Finding{
			Check: CheckMemory, State: Problem, Kind: failure.Kind,
			Found: fmt.Sprintf("an action of %v does not run: %v", memory, failure),
			Means: "controller and invokers were given different limits",
			Fix:   "the admin sets the limit for both, as the chart's value does", Key: "whisk.limits.actions.memory.max",
			Value: fmt.Sprintf("%dm", d.limits.MaxMemory.MB()),
		})
		return true
	}
	d.report.Facts.Largest = memory
	f := Finding{Check: CheckMemory, State: Good, Found: fmt.Sprintf("an action of %v runs", memory)}
	if memory < d.limits.MaxMemory {
		f.State = Note
		f.Means = fmt.Sprintf("%v are allowed, and were not tried: nothing says that a machine holds them",
			d.limits.MaxMemory)
	}
	if res.Limit > 0 && res.Limit < memory {
		f.State = Warning
		f.Found = fmt.Sprintf("an action of %v runs in a container that is held to %v", memory, res.Limit)
		f.Means = "actions are ended for memory below the limit that they were given"
		f.Fix = "the admin looks for a LimitRange, or a pod template, that bounds containers otherwise"
	}
	d.found(f)
	return true
}

// longest looks at the deadline that a container is given under the longest timeout.
func (d *doctor) longest(ctx context.Context) bool {
	want := d.limits.MaxTimeout
	a, err := d.probe(ctx, probing{limits: disdel.Limits{Memory: d.limits.MinMemory, Timeout: want}})
	res, failure := resultOf(a, err)
	f := Finding{
		Check: CheckTimeout, State: Good, Found: fmt.Sprintf("a container is given %v", time.Duration(want)),
	}
	const short = disdel.Millis(10 * time.Second) // what a start takes of it, with room
	switch {
	case failure != nil:
		f.State, f.Kind = Problem, failure.Kind
		f.Found = fmt.Sprintf("an action of %v does not run: %v", time.Duration(want), failure)
		f.Means = "controller and invokers were given different limits"
		f.Fix, f.Key = "the admin sets the limit for both, as the chart's value does", "whisk.limits.actions.time.max"
		f.Value = fmt.Sprintf("%ds", int(time.Duration(want).Seconds()))
	case res.Left > 0 && res.Left+short < want:
		f.State = Warning
		f.Found = fmt.Sprintf("a container is given %v of %v", time.Duration(res.Left).Round(time.Second),
			time.Duration(want))
		f.Means = "work that is planned for the longer time is paused and goes on in legs"
	}
	d.found(f)
	return true
}

// outOfMemory has a probe take twice what it was given.
func (d *doctor) outOfMemory(ctx context.Context) bool {
	memory := d.limits.MinMemory
	a, err := d.probe(ctx, probing{
		limits: disdel.Limits{Memory: memory, Timeout: d.timeout()},
		ask:    disdel.ProbeRequest{Touch: 2 * memory},
	})
	f := Finding{Check: CheckOutOfMemory}
	switch {
	case err != nil:
		e := disdel.AsError(err)
		f.State, f.Found, f.Kind = Unknown, e.Error(), e.Kind
	case a.Outcome == disdel.OutcomeOutOfMemory:
		f.State, f.Found = Good, "an action that takes twice its memory is ended, and it is told why"
		d.report.Facts.TellsOOM = new(true)
	case a.Outcome == disdel.OutcomeSuccess:
		f.State, f.Found = Warning, "an action took twice its memory, and nothing ended it"
		f.Means = "limits of memory are not kept: one job may take what others were promised"
		f.Fix = "the admin looks that containers run under memory control groups (docker: --memory; Kubernetes: limits)"
	default:
		d.report.Facts.TellsOOM = new(false)
		f.State, f.Found = Note, "an action that takes twice its memory is ended, and nothing says why: "+a.Outcome.String()
		f.Means = "a job tells memory from other deaths by heartbeats, and tries again with more where that is likely"
		f.Fix = "where containers are Docker's, the admin mounts its folder of containers into the invokers (/containers)"
	}
	d.found(f)
	return true
}
