package scheduler

import (
	"fmt"
	"math"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/estimator"
)

const (
	// MemoryFactor and TimeoutFactor are the least growth of a limit that was too small, where the job file says nothing.
	MemoryFactor, TimeoutFactor = 1.25, estimator.TimeoutFactor
	// peakMargin is what a measured peak is raised by: the collector and the allocator do not repeat themselves to the
	// byte.
	peakMargin = 1.1
	// growthBound keeps a few heartbeats from being extrapolated into the absurd, in multiples of the limit.
	growthBound = 2.0
)

// Memory is the limit for another try of an activation that ran out of memory, in whole megabytes, and the arithmetic.
// It is the largest of the limit times factor (0: MemoryFactor), the measured peak with a margin, the estimate, and
// where the heartbeats grew from batch to batch, the size at the round's end. The peak of a killed process is a lower
// bound alone: it never saw the rest.
func Memory(a disdel.Activation, factor float64) (disdel.Bytes, string) {
	if factor <= 1 {
		factor = MemoryFactor
	}
	limit := a.Limits.Memory
	next, why := max(limit+1, scaled(limit, factor)), fmt.Sprintf("%v x %.4g", limit, factor)
	for _, c := range []struct {
		bytes disdel.Bytes
		why   string
	}{
		{scaled(a.Peak, peakMargin), fmt.Sprintf("measured peak %v x %.4g", a.Peak, peakMargin)},
		{a.Estimate, fmt.Sprintf("the estimate with its margin of %v", a.Estimate)},
		grown(a),
	} {
		if c.bytes > next {
			next, why = c.bytes, c.why
		}
	}
	return disdel.Bytes(next.MB()) * disdel.MB, why
}

// lastFactor is the least growth of a limit that nothing comes after.
const lastFactor = 1.5

// EnoughMemory is the limit for a job that is to pass at its next try, with nothing after it, and the arithmetic: it
// grows by half where a retry's limit grows by less, and to what the plan alone had expected where earlier jobs' peaks
// had spoken for less and this activation of r was killed for it.
func EnoughMemory(r *disdel.Record, a disdel.Activation) (disdel.Bytes, string) {
	next, why := Memory(a, max(r.Job.Reliability.Retries.MemoryFactor, lastFactor))
	plan := r.PlanOf(&a.Invocation)
	action, _ := plan.Action(a.Task)
	e := action.Estimate
	if e.Ratio <= 0 || e.Ratio >= 1 {
		return next, why
	}
	unlearned := scaled(e.Total, peakMargin/e.Ratio)
	if unlearned <= next {
		return next, why
	}
	return disdel.Bytes(unlearned.MB()) * disdel.MB, fmt.Sprintf("the plan alone expects %v x %.4g, "+
		"which earlier jobs' peaks had made %v of", scaled(e.Total, 1/e.Ratio), peakMargin, e.Total)
}

func scaled(b disdel.Bytes, factor float64) disdel.Bytes {
	return disdel.Bytes(float64(b) * factor)
}

// grown is where the memory of the heartbeats would be at the end of the round, if it grew with the batches.
func grown(a disdel.Activation) (out struct {
	bytes disdel.Bytes
	why   string
},
) {
	var first, last *disdel.Beat
	for i := range a.Beats {
		b := &a.Beats[i]
		switch {
		case b.Batch == 0:
		case first == nil:
			first, last = b, b
		case b.Resident < last.Resident:
			return out // what falls again is the collector's doing
		default:
			last = b
		}
	}
	if first == nil {
		return out
	}
	from, all := a.ProgressAt(*first)
	to, _ := a.ProgressAt(*last)
	if to <= from || last.Resident <= first.Resident {
		return out
	}
	each := float64(last.Resident-first.Resident) / float64(to-from)
	end := float64(last.Resident) + each*float64(max(0, all-to))
	out.bytes = disdel.Bytes(math.Min(end*peakMargin, growthBound*float64(a.Limits.Memory)))
	out.why = fmt.Sprintf("memory grew from %v to %v in batches %d to %d of %d", first.Resident, last.Resident, from, to,
		all)
	return out
}
