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

// LossesOf is what failed attempts cost: how long they ran and the GB-s that they held (DiSDeL Fig. 2's retry
// accounting). An attempt that never ran counts and cost nothing.
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

// Spent is the GB-s that activations held, failed ones included.
func Spent(activations []disdel.Activation) (gbs float64) {
	for _, a := range activations {
		gbs += a.HeldGBs()
	}
	return gbs
}

// FixedStep is the retry strategy that DiSDeL's Fig. 2 measures others by: attempt i gets First + i Step, at most Most,
// until one passes. In the figure that is 300 s and 240 s more with every retry. Zero bounds in Most mean none.
type FixedStep struct{ First, Step, Most disdel.Limits }

// Attempt is the limits of attempt i, from 0.
func (f FixedStep) Attempt(i int) disdel.Limits {
	l := disdel.Limits{
		Memory:  f.First.Memory + disdel.Bytes(i)*f.Step.Memory,
		Timeout: f.First.Timeout + disdel.Millis(i)*f.Step.Timeout,
	}
	if f.Most.Memory > 0 {
		l.Memory = min(l.Memory, f.Most.Memory)
	}
	if f.Most.Timeout > 0 {
		l.Timeout = min(l.Timeout, f.Most.Timeout)
	}
	return l
}

// Failures is the limits of the attempts that fail before one passes that needs so much, in order; ok is false if none
// ever passes.
func (f FixedStep) Failures(needs disdel.Limits) (failed []disdel.Limits, ok bool) {
	for i := 0; ; i++ {
		l := f.Attempt(i)
		if l.Memory >= needs.Memory && l.Timeout >= needs.Timeout {
			return failed, true
		}
		failed = append(failed, l)
		next := f.Attempt(i + 1)
		if l.Memory < needs.Memory && next.Memory <= l.Memory || l.Timeout < needs.Timeout && next.Timeout <= l.Timeout {
			return failed, false
		}
	}
}
