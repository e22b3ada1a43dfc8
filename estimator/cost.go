package estimator

import (
	"time"

	"github.com/disdel/disdel"
)

// Cost is DiSDeL's Eq. 6 with mu = 1, in GB-s: the time from the earliest start to the latest end, times the memory
// of all train and aggregate actions. It excludes evaluations; Bill counts them.
func Cost(activations []disdel.Activation) float64 {
	var b Bill
	for _, a := range activations {
		b.Add(a)
	}
	return b.Total()
}

// Bill adds up the cost of a job, activation by activation: Cost, evaluations, and the cost by use. Cost plus
// evaluations is never below the cost by use, since Cost counts an action from its first start to its last end.
type Bill struct {
	Before      float64 // GB-s by Eq. 6 of earlier runs of the job
	first, last time.Time
	held        map[disdel.Slot]disdel.Bytes
	memory      disdel.Bytes // of all slots
	Evaluations float64      // GB-s, earlier runs included
	Used        float64      // GB-s by use, earlier runs included
}

// Add counts an activation that has ended.
func (b *Bill) Add(a disdel.Activation) {
	b.Used += a.HeldGBs()
	if a.Start.IsZero() {
		return // it never ran
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

// LossesOf is what failed attempts cost: their number, time and GB-s (the retry accounting of DiSDeL Fig. 2). An
// attempt that never ran counts and costs nothing.
func LossesOf(activations []disdel.Activation) disdel.Losses {
	var l disdel.Losses
	for _, a := range activations {
		if !a.Outcome.Failed() {
			continue
		}
		l.Attempts++
		l.Duration += a.Duration
		l.Cost += a.HeldGBs()
	}
	return l
}
