package limits

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/disdel/disdel"
)

// LeastTime is the shortest timeout that is worth advising: a container takes seconds to start where images are large or the
// machine is busy.
const LeastTime = disdel.Millis(10 * time.Second)

// Timeout is the timeout for another try of an activation that ran out of time, and the arithmetic: the timeout times factor
// (0: TimeoutFactor), or what its progress says the whole round takes, with half of factor on top, whichever is longer.
func Timeout(a disdel.Activation, factor float64) (disdel.Millis, string) {
	next, why := timeout(a, factor)
	return ceilSecond(next), why
}

func timeout(a disdel.Activation, factor float64) (disdel.Millis, string) {
	if factor <= 1 {
		factor = TimeoutFactor
	}
	next, why := max(a.Limits.Timeout+1, times(a.Limits.Timeout, factor)), fmt.Sprintf("%v x %.4g", a.Limits.Timeout, factor)
	whole, told := Whole(a)
	margin := 1 + (factor-1)/2
	if by := times(whole, margin); told && by > next {
		next, why = by, fmt.Sprintf("%s: the whole takes about %v, x %.4g", DoneText(a), Span(whole), margin)
	}
	return next, why
}

// EnoughTime is the timeout for a job that is to pass at its next try, with nothing after it, and the arithmetic.
func EnoughTime(a disdel.Activation, r disdel.Retries) (disdel.Millis, string) {
	next, why := timeout(a, r.TimeoutFactor)
	if next < LeastTime {
		return LeastTime, fmt.Sprintf("%s, and %v at least", why, LeastTime)
	}
	return Readable(next), why
}

// Done is how many batches of its work an activation had done by its last heartbeat, and how many there were.
func Done(a disdel.Activation) (done, all int) {
	if len(a.Beats) == 0 {
		return 0, 0
	}
	return progress(a, a.Beats[len(a.Beats)-1])
}

// DoneText says how far an activation came: "20 of 50 batches were trained".
func DoneText(a disdel.Activation) string {
	done, all := Done(a)
	verb := "trained"
	if a.Task == disdel.TaskEvaluate {
		verb = "evaluated"
	}
	return fmt.Sprintf("%d of %d batches were %s", done, all, verb)
}

// progress is how many batches of its work an action had done at a heartbeat. Heartbeats count from the start of the epoch; where
// it is not known which part of it a train action's round is, the round is the epoch.
func progress(a disdel.Activation, b disdel.Beat) (done, all int) {
	s := StretchOf(a)
	switch {
	case s == nil || s.Epochs == 0:
		return b.Batch, b.Batches
	case s.Batches > 0:
		return min(max(0, b.Batch-s.Batch), s.Batches), s.Batches
	}
	all = max(0, s.Epochs*b.Batches-s.Batch)
	done = max(0, b.Epoch-s.Epoch-1)*b.Batches + b.Batch - s.Batch
	return min(max(0, done), all), all
}

// StretchOf is the part of the job that a train action was to do, nil where nothing says.
func StretchOf(a disdel.Activation) *disdel.Stretch {
	if a.Stretch != nil || a.Task != disdel.TaskTrain || len(a.Params) == 0 {
		return a.Stretch
	}
	var s disdel.Stretch
	if json.Unmarshal(a.Params, &s) != nil {
		return nil
	}
	return &s
}

// oneBeatTells is from how many batches on a single heartbeat tells how long one takes: earlier, most of its time was the start.
const oneBeatTells = 8

// Whole is how long an activation would have taken by the progress in its heartbeats, from the first batch that they tell of to the
// last; false where they tell none.
func Whole(a disdel.Activation) (disdel.Millis, bool) {
	done, all := Done(a)
	if done == 0 || all == 0 {
		return 0, false
	}
	last := a.Beats[len(a.Beats)-1]
	each := float64(last.At) / float64(done)
	early := done < oneBeatTells
	for _, b := range a.Beats { // start-up is no part of a batch's time
		if from, _ := progress(a, b); from > 0 && from < done {
			each, early = float64(last.At-b.At)/float64(done-from), false
			break
		}
	}
	if early {
		return 0, false
	}
	ran := max(0, last.At-a.WaitTime)
	return ran + disdel.Millis(each*float64(all-done)), true
}

// Readable makes a time that is easy to read, never a shorter one.
func Readable(m disdel.Millis) disdel.Millis {
	step := time.Minute
	for _, s := range []struct{ below, step time.Duration }{
		{20 * time.Second, time.Second}, {2 * time.Minute, 5 * time.Second}, {10 * time.Minute, 30 * time.Second},
	} {
		if time.Duration(m) <= s.below {
			step = s.step
			break
		}
	}
	return disdel.Millis((time.Duration(m) + step - 1) / step * step)
}

// Span prints a duration for reading: "44.0 s", "12m5s".
func Span(m disdel.Millis) string {
	d := time.Duration(m)
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm%ds", int(d.Minutes()), int(d.Seconds())%60)
	default:
		return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
	}
}

func times(m disdel.Millis, factor float64) disdel.Millis { return disdel.Millis(float64(m) * factor) }

func ceilSecond(m disdel.Millis) disdel.Millis {
	const s = disdel.Millis(time.Second)
	return (m + s - 1) / s * s
}
