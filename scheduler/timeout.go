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
	whole, told := a.Whole()
	margin := 1 + (factor-1)/2
	if by := times(whole, margin); told && by > next {
		next, why = by, fmt.Sprintf("%s: the whole takes about %v, x %.4g", a.DoneText(), whole.Text(), margin)
	}
	return next, why
}

// EnoughTime is the timeout for a job that is to pass at its next try, with nothing after it, and the arithmetic.
func EnoughTime(a disdel.Activation, r disdel.Retries) (disdel.Millis, string) {
	next, why := timeout(a, r.TimeoutFactor)
	if next < LeastTime {
		return LeastTime, fmt.Sprintf("%s, and %v at least", why, LeastTime)
	}
	return next.Readable(), why
}

func times(m disdel.Millis, factor float64) disdel.Millis { return disdel.Millis(float64(m) * factor) }

func ceilSecond(m disdel.Millis) disdel.Millis {
	const s = disdel.Millis(time.Second)
	return (m + s - 1) / s * s
}
