package limits

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/disdel/disdel"
)

const (
	// MemoryFactor and TimeoutFactor are the least growth of a limit that was too small, where the job file says nothing.
	MemoryFactor, TimeoutFactor = 1.25, 2.0
	// peakMargin is what a measured peak is raised by: the collector and the allocator do not repeat themselves to the byte.
	peakMargin = 1.1
	// growthBound keeps a few heartbeats from being extrapolated into the absurd, in multiples of the limit.
	growthBound = 2.0
)

// Memory is the limit for another try of an activation that ran out of memory, in whole megabytes, and the arithmetic. It
// is the largest of the limit times factor (0: MemoryFactor), the measured peak with a margin, the estimate, and where the
// heartbeats grew from batch to batch, the size at the round's end. The peak of a killed process is a lower bound alone: it
// never saw the rest.
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
		{a.Estimate, fmt.Sprintf("the estimate of %v", a.Estimate)},
		grown(a),
	} {
		if c.bytes > next {
			next, why = c.bytes, c.why
		}
	}
	return disdel.Bytes(next.MB()) * disdel.MB, why
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
	from, all := Progress(a.Invocation, *first)
	to, _ := Progress(a.Invocation, *last)
	if to <= from || last.Resident <= first.Resident {
		return out
	}
	each := float64(last.Resident-first.Resident) / float64(to-from)
	end := float64(last.Resident) + each*float64(max(0, all-to))
	out.bytes = disdel.Bytes(math.Min(end*peakMargin, growthBound*float64(a.Limits.Memory)))
	out.why = fmt.Sprintf("memory grew from %v to %v in batches %d to %d of %d", first.Resident, last.Resident, from, to, all)
	return out
}

// Progress is how many batches of its round an action had trained at a heartbeat, and how many the round has. Without the
// request of a train action, the round is the epoch.
func Progress(inv disdel.Invocation, b disdel.Beat) (done, all int) {
	var r disdel.TrainRequest
	if inv.Task != disdel.TaskTrain || json.Unmarshal(inv.Params, &r) != nil || r.Epochs == 0 {
		return b.Batch, b.Batches
	}
	if r.Batches > 0 {
		return min(max(0, b.Batch-r.Batch), r.Batches), r.Batches
	}
	all = max(0, r.Epochs*b.Batches-r.Batch)
	done = max(0, b.Epoch-r.Epoch-1)*b.Batches + b.Batch - r.Batch
	return min(max(0, done), all), all
}

// Trained is how many batches of its round an activation had trained by its last heartbeat, and how many the round has.
func Trained(a disdel.Activation) (done, all int) {
	if len(a.Beats) == 0 {
		return 0, 0
	}
	return Progress(a.Invocation, a.Beats[len(a.Beats)-1])
}

// Timeout is the timeout for another try of an activation that ran out of time, and the arithmetic: the timeout times factor
// (0: TimeoutFactor), or what its progress says the whole round takes, with half of factor on top, whichever is longer.
func Timeout(a disdel.Activation, factor float64) (disdel.Millis, string) {
	if factor <= 1 {
		factor = TimeoutFactor
	}
	next, why := max(a.Limits.Timeout+1, times(a.Limits.Timeout, factor)), fmt.Sprintf("%v x %.4g", a.Limits.Timeout, factor)
	whole, told := Whole(a)
	margin := 1 + (factor-1)/2
	if by := times(whole, margin); told && by > next {
		done, all := Trained(a)
		next, why = by, fmt.Sprintf("%d of %d batches were trained: the round takes about %v, x %.4g", done, all, short(whole), margin)
	}
	return ceilSecond(next), why
}

// Whole is how long an activation would have taken by the progress in its heartbeats; false where they tell none.
func Whole(a disdel.Activation) (disdel.Millis, bool) {
	done, all := Trained(a)
	if done == 0 || all == 0 {
		return 0, false
	}
	last := a.Beats[len(a.Beats)-1]
	each := float64(last.At) / float64(done)
	for _, b := range a.Beats { // start-up is no part of a batch's time
		if from, _ := Progress(a.Invocation, b); from > 0 && from < done {
			each = float64(last.At-b.At) / float64(done-from)
			break
		}
	}
	ran := max(0, last.At-a.WaitTime)
	return ran + disdel.Millis(each*float64(all-done)), true
}

func times(m disdel.Millis, factor float64) disdel.Millis { return disdel.Millis(float64(m) * factor) }

func ceilSecond(m disdel.Millis) disdel.Millis {
	const s = disdel.Millis(time.Second)
	return (m + s - 1) / s * s
}

func short(m disdel.Millis) time.Duration { return time.Duration(m).Round(time.Second) }
