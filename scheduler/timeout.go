package scheduler

import (
	"fmt"
	"time"

	"github.com/disdel/disdel"
)

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
