package controller

import (
	"time"

	"github.com/disdel/disdel"
)

// Cost is DiSDeL's Eq. 6 with mu = 1, in GB-s: the time from the earliest start to the latest end, times the memory of
// all training and aggregation actions that the job kept for itself. What evaluations held is no part of it: EvaluationCost.
func Cost(activations []disdel.Activation) float64 {
	var b bill
	for _, a := range activations {
		b.add(a)
	}
	return b.total()
}

// EvaluationCost is the GB-s that evaluations held: memory limit times duration. Eq. 6 leaves them out.
func EvaluationCost(activations []disdel.Activation) float64 {
	var b bill
	for _, a := range activations {
		b.add(a)
	}
	return b.evaluations
}

// bill is Cost's sum and EvaluationCost's, activation by activation. Together they are never below what the activations held,
// limit times duration: an action that runs again and again is counted from the first start to the last end.
type bill struct {
	before      float64 // GB-s of the runs of the job before this one
	first, last time.Time
	held        map[slot]disdel.Bytes
	memory      disdel.Bytes // of all slots
	evaluations float64      // GB-s, those of the runs before this one too

	running map[slot]disdel.Bytes // memory of the newest invocation of each slot that has not ended
	seen    time.Time             // by the controller's clock: when last was told of, or when the first invocation was made
}

// invoked counts what is about to run, from now on.
func (b *bill) invoked(inv disdel.Invocation, now time.Time) {
	if b.seen.IsZero() {
		b.seen = now
	}
	if b.running == nil {
		b.running = map[slot]disdel.Bytes{}
	}
	b.running[slotOf(inv)] = inv.Limits.Memory
}

// ended counts what has run, now by the controller's clock.
func (b *bill) ended(a disdel.Activation, now time.Time) {
	delete(b.running, slotOf(a.Invocation))
	last := b.last
	if b.add(a); b.last.After(last) {
		b.seen = now
	}
}

func (b *bill) add(a disdel.Activation) {
	if a.Start.IsZero() {
		return // never ran
	}
	if a.Task == disdel.TaskEvaluate {
		b.evaluations += heldFor(a.Limits.Memory, max(a.Duration, 0))
		return
	}
	if b.first.IsZero() || a.Start.Before(b.first) {
		b.first = a.Start
	}
	if a.End.After(b.last) {
		b.last = a.End
	}
	if b.held == nil {
		b.held = map[slot]disdel.Bytes{}
	}
	s := slotOf(a.Invocation)
	if more := a.Limits.Memory - b.held[s]; more > 0 {
		b.held[s] = a.Limits.Memory
		b.memory += more
	}
}

// total is Eq. 6 of the activations that have ended.
func (b *bill) total() float64 {
	return b.before + b.last.Sub(b.first).Seconds()*gigabytes(b.memory)
}

// spent is total, what evaluations held, and what runs now by the time that has passed.
func (b *bill) spent(now time.Time) float64 {
	memory, waits := b.memory, 0.0
	for s, m := range b.running {
		if s.task != disdel.TaskEvaluate {
			memory += max(0, m-b.held[s])
		}
	}
	if len(b.running) > 0 {
		waits = max(0, now.Sub(b.seen).Seconds())
	}
	return b.before + b.evaluations + (b.last.Sub(b.first).Seconds()+waits)*gigabytes(memory)
}

// rate is what a second of the job costs, GB-s.
func (b *bill) rate() float64 {
	memory := b.memory
	for s, m := range b.running {
		memory += max(0, m-b.held[s])
	}
	return gigabytes(memory)
}

func gigabytes(b disdel.Bytes) float64 { return float64(b) / float64(disdel.GB) }

// slot is one action of Eq. 6's sum: the rounds of one worker are the same action run again.
type slot struct {
	task          disdel.Task
	level, member int
}
