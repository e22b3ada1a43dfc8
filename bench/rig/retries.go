package rig

import "github.com/disdel/disdel"

// Spent is the GB-s of activations by use, including failed ones.
func Spent(activations []disdel.Activation) (gbs float64) {
	for _, a := range activations {
		gbs += a.HeldGBs()
	}
	return gbs
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
