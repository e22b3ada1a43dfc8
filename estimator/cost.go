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

// Bill is Cost's sum and that of evaluations, activation by activation. Together they are never below what the
// activations held, limit times duration: an action that runs again and again is counted from the first start to the
// last end.
type Bill struct {
	Before      float64 // GB-s of the runs of the job before this one
	first, last time.Time
	held        map[disdel.Slot]disdel.Bytes
	memory      disdel.Bytes // of all slots
	Evaluations float64      // GB-s, those of the runs before this one too

	running map[disdel.Slot]disdel.Bytes // memory of the newest invocation of each slot that has not ended
	// by the controller's clock: when last was told of, or when the first invocation was made
	seen time.Time
}

// Invoked counts what is about to run, from now on.
func (b *Bill) Invoked(inv disdel.Invocation, now time.Time) {
	if b.seen.IsZero() {
		b.seen = now
	}
	if b.running == nil {
		b.running = map[disdel.Slot]disdel.Bytes{}
	}
	b.running[inv.Slot()] = inv.Limits.Memory
}

// Ended counts what has run, now by the controller's clock.
func (b *Bill) Ended(a disdel.Activation, now time.Time) {
	delete(b.running, a.Slot())
	last := b.last
	if b.Add(a); b.last.After(last) {
		b.seen = now
	}
}

func (b *Bill) Add(a disdel.Activation) {
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

// Spent is Total, what evaluations held, and what runs now by the time that has passed.
func (b *Bill) Spent(now time.Time) float64 {
	memory, waits := b.memory, 0.0
	for s, m := range b.running {
		if s.Task != disdel.TaskEvaluate {
			memory += max(0, m-b.held[s])
		}
	}
	if len(b.running) > 0 {
		waits = max(0, now.Sub(b.seen).Seconds())
	}
	return b.Before + b.Evaluations + (b.last.Sub(b.first).Seconds()+waits)*memory.Gigabytes()
}

// Rate is what a second of the job costs, GB-s.
func (b *Bill) Rate() float64 {
	memory := b.memory
	for s, m := range b.running {
		memory += max(0, m-b.held[s])
	}
	return memory.Gigabytes()
}
