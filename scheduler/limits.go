package scheduler

import (
	"fmt"
	"math"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/estimator"
)

const (
	// MemoryFactor and TimeoutFactor are the least growth of a limit that was too small, if the job file sets none.
	MemoryFactor, TimeoutFactor = 1.25, estimator.TimeoutFactor
	// peakMargin raises a measured peak: the garbage collector and the allocator do not repeat to the byte.
	peakMargin = 1.1
	// growthBound limits the extrapolation of a few heartbeats, in multiples of the limit.
	growthBound = 2.0
)

// Memory returns the limit for another attempt of an activation that ran out of memory, in whole megabytes, and how
// it was computed. It is the largest of: the limit times factor (0: MemoryFactor), the measured peak with a margin,
// the estimate, and the size at the round's end if memory grew from batch to batch in the heartbeats. The peak of a
// killed process is only a lower bound.
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

// lastFactor is the least growth of a limit that is not raised again.
const lastFactor = 1.5

// EnoughMemory returns a limit with which the job should pass at its next attempt, and how it was computed. The limit
// grows by at least half. If earlier jobs' peaks had lowered the estimate and this activation of r was killed, it
// grows to what the plan alone had expected.
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

// grown extrapolates the memory of the heartbeats to the end of the round, if it grew with the batches.
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
			return out // memory that falls again was freed by the garbage collector
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

// LeastTime is the shortest timeout that is worth advising: a container takes seconds to start if images are large or
// the machine is busy.
const LeastTime = disdel.Millis(10 * time.Second)

// Timeout returns the timeout for another attempt of an activation that ran out of time, and how it was computed. It
// is the longer of: the timeout times factor (0: TimeoutFactor), and the whole round's time by its progress with half
// of factor on top.
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
	pace, measured := a.Pace()
	margin := 1 + (factor-1)/2
	if by := times(pace.Ends, margin); measured && by > next {
		next, why = by, fmt.Sprintf("%s: the whole takes about %v, x %.4g", a.DoneText(), pace.Ends.Text(), margin)
	}
	return next, why
}

// EnoughTime returns a timeout that is enough for the next attempt of an activation of r that ran out of time, and
// how it was computed. It uses the pace in the activation's heartbeats, and the time of the same work in other
// activations of r. It returns false if neither is known.
func EnoughTime(r *disdel.Record, a disdel.Activation) (disdel.Millis, string, bool) {
	need, factor, why := disdel.Millis(0), 0.0, ""
	if p, measured := a.Pace(); measured {
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

// longestOther is the longest time that another activation of r took for the work of a, all its legs together. It is
// 0 if none finished it.
func longestOther(r *disdel.Record, a disdel.Activation) (longest disdel.Millis) {
	legs := map[string]disdel.Millis{} // by slot and round
	for i := range r.Activations {
		o := &r.Activations[i]
		if o.Task != a.Task || o.Stage != a.Stage || o.Recovered != "" {
			continue
		}
		description := fmt.Sprintf("%v of round %d", o.Slot(), o.Round)
		switch o.Outcome {
		case disdel.OutcomePaused:
			legs[description] += o.Duration
		case disdel.OutcomeSuccess:
			longest = max(longest, legs[description]+o.Duration)
		default: // a failed activation says nothing about the whole
		}
	}
	return longest
}

func times(m disdel.Millis, factor float64) disdel.Millis { return disdel.Millis(float64(m) * factor) }

func ceilSecond(m disdel.Millis) disdel.Millis {
	const s = disdel.Millis(time.Second)
	return (m + s - 1) / s * s
}
