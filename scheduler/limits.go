package scheduler

import (
	"fmt"
	"math"
	"time"

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

// LeastTime is the shortest timeout that is worth advising: a container takes seconds to start where images are large
// or the machine is busy.
const LeastTime = disdel.Millis(10 * time.Second)

// Timeout is the timeout for another try of an activation that ran out of time, and the arithmetic: the timeout times
// factor (0: TimeoutFactor), or what its progress says the whole round takes, with half of factor on top, whichever is
// longer.
func Timeout(a disdel.Activation, factor float64) (disdel.Millis, string) {
	next, why := timeout(a, factor)
	return ceilSecond(next), why
}

func timeout(a disdel.Activation, factor float64) (disdel.Millis, string) {
	if factor <= 1 {
		factor = TimeoutFactor
	}
	next, why := max(a.Limits.Timeout+1, times(a.Limits.Timeout, factor)),
		fmt.Sprintf("%v x %.4g", a.Limits.Timeout, factor)
	pace, told := a.Pace()
	margin := 1 + (factor-1)/2
	if by := times(pace.Ends, margin); told && by > next {
		next, why = by, fmt.Sprintf("%s: the whole takes about %v, x %.4g", a.DoneText(), pace.Ends.Text(), margin)
	}
	return next, why
}

// EnoughTime is a timeout that is enough for the next try of an activation of r that ran out of time, and the
// arithmetic. It follows from the pace in the activation's heartbeats, and from the time of the same work in other
// activations of r. It returns false if neither is known.
func EnoughTime(r *disdel.Record, a disdel.Activation) (disdel.Millis, string, bool) {
	need, factor, why := disdel.Millis(0), 0.0, ""
	if p, told := a.Pace(); told {
		need, factor = p.Whole, p.Margin()
		why = fmt.Sprintf("%s: the whole takes about %v", a.DoneText(), need.Text())
	}
	if other := longestOther(r, a); other > need {
		need, factor = other, disdel.PacedMargin
		why = fmt.Sprintf("another %s action took %v", a.Task, other.Text())
	}
	if need == 0 {
		return 0, "", false
	}
	if a.Limits.Timeout > need { // it was slower than that
		need, factor = a.Limits.Timeout, max(factor, disdel.PacedMargin)
		why += fmt.Sprintf(", and it takes more than %v", need)
	}
	next := times(need, factor)
	why += fmt.Sprintf(", x %.4g", factor)
	if next < LeastTime {
		return LeastTime, fmt.Sprintf("%s, and %v at least", why, LeastTime), true
	}
	return next.Readable(), why, true
}

// longestOther is the longest that the work of a took another activation of r, all its legs together; 0 where none
// finished it.
func longestOther(r *disdel.Record, a disdel.Activation) (longest disdel.Millis) {
	legs := map[string]disdel.Millis{} // by slot and round
	for i := range r.Activations {
		o := &r.Activations[i]
		if o.Task != a.Task || o.Stage != a.Stage || o.Recovered != "" {
			continue
		}
		of := fmt.Sprintf("%v of round %d", o.Slot(), o.Round)
		switch o.Outcome {
		case disdel.OutcomePaused:
			legs[of] += o.Duration
		case disdel.OutcomeSuccess:
			longest = max(longest, legs[of]+o.Duration)
		default: // what failed says nothing of the whole
		}
	}
	return longest
}

func times(m disdel.Millis, factor float64) disdel.Millis { return disdel.Millis(float64(m) * factor) }

func ceilSecond(m disdel.Millis) disdel.Millis {
	const s = disdel.Millis(time.Second)
	return (m + s - 1) / s * s
}
