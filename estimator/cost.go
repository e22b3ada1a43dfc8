package estimator

import (
	"time"

	"github.com/disdel/disdel"
)

// Cost is DiSDeL's Eq. 6 with mu = 1, in GB-s: the time from the earliest start to the latest end, times the memory of
// all training and aggregation actions that the job kept for itself. What evaluations held is no part of it:
// Bill has it.
func Cost(activations []disdel.Activation) float64 {
	var b Bill
	for _, a := range activations {
		b.Add(a)
	}
	return b.Total()
}

// Bill is what a job has cost, activation by activation: Cost's sum, that of evaluations, and the cost by use. The
// first two together are never below the third: an action that runs again and again is counted from the first start
// to the last end.
type Bill struct {
	Before      float64 // GB-s by Eq. 6 of the runs of the job before this one
	first, last time.Time
	held        map[disdel.Slot]disdel.Bytes
	memory      disdel.Bytes // of all slots
	Evaluations float64      // GB-s, those of the runs before this one too
	Used        float64      // GB-s by use: what all of them held; the same
}

// Add counts an activation that has ended.
func (b *Bill) Add(a disdel.Activation) {
	b.Used += a.HeldGBs()
	if a.Start.IsZero() {
		return // never ran
	}
	if a.Task == disdel.TaskEvaluate {
		b.Evaluations += a.HeldGBs()
		return
	}
	if b.first.IsZero() || a.Start.Before(b.first) {
		b.first = a.Start
	}
	if a.End.After(b.last) {
		b.last = a.End
	}
	if b.held == nil {
		b.held = map[disdel.Slot]disdel.Bytes{}
	}
	s := a.Slot()
	if more := a.Limits.Memory - b.held[s]; more > 0 {
		b.held[s] = a.Limits.Memory
		b.memory += more
	}
}

// Total is Eq. 6 of the activations that have ended.
func (b *Bill) Total() float64 {
	return b.Before + b.last.Sub(b.first).Seconds()*b.memory.Gigabytes()
}
