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

// Spent is the GB-s of activations by use, including failed ones.
func Spent(activations []disdel.Activation) (gbs float64) {
	for _, a := range activations {
		gbs += a.HeldGBs()
	}
	return gbs
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

// FixedStep is the retry strategy that DiSDeL's Fig. 2 compares with: attempt i gets First + i Step, at most Most,
// until one passes. The figure uses 300 s and 240 s more for every retry. A zero limit in Most means no bound.
type FixedStep struct{ First, Step, Most disdel.Limits }

// Attempt is the limits of attempt i, counted from 0.
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

// Failures is the limits of the attempts that fail before one that has the needed limits passes. ok is false if none
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
