package rig

import (
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/estimator"
)

func timeoutOf(s int) disdel.Limits {
	return disdel.Limits{Memory: 2 * disdel.GB, Timeout: disdel.Millis(time.Duration(s) * time.Second)}
}

// DiSDeL Fig. 2: retries at 300, 540, 780, ... s lose 5,400, 2,640 and 1,620 s with 7, 5 and 4 attempts, through the
// fixed steps and the retry accounting of the product.
func TestPaperRetriesLoseTheirTime(t *testing.T) {
	fixed := FixedStep{First: timeoutOf(300), Step: disdel.Limits{Timeout: timeoutOf(240).Timeout}}
	for failed, want := range map[int]int{6: 5400, 4: 2640, 3: 1620} {
		needs := timeoutOf(300 + 240*failed - 1) // more than the last attempt that failed had, and within the next one
		limits, ok := fixed.Failures(needs)
		var attempts []disdel.Activation
		for _, l := range limits {
			a := disdel.Activation{Outcome: disdel.OutcomeTimeout, Duration: l.Timeout}
			a.Limits = l
			attempts = append(attempts, a)
		}
		done := disdel.Activation{Outcome: disdel.OutcomeSuccess, Duration: needs.Timeout}
		done.Limits = fixed.Attempt(len(limits))
		got := estimator.LossesOf(append(attempts, done))
		if !ok || got.Attempts != failed || got.Duration.Seconds() != float64(want) || got.Cost != 2*float64(want) {
			t.Errorf("%d failed attempts: %+v, want %d s", failed, got, want)
		}
	}
}

func TestFixedStepsEnd(t *testing.T) {
	f := FixedStep{
		First: disdel.Limits{Memory: 128 * disdel.MB, Timeout: 1}, Step: disdel.Limits{Memory: 100 * disdel.MB},
		Most: disdel.Limits{Memory: 300 * disdel.MB},
	}
	for need, want := range map[disdel.Bytes]struct {
		failed int
		ok     bool
	}{100: {0, true}, 200: {1, true}, 300: {2, true}, 301: {3, false}} {
		failed, ok := f.Failures(disdel.Limits{Memory: need * disdel.MB, Timeout: 1})
		if len(failed) != want.failed || ok != want.ok {
			t.Errorf("%d MB: %d failed, %v; want %+v", need, len(failed), ok, want)
		}
	}
	if failed, ok := f.Failures(disdel.Limits{Timeout: 2}); ok || len(failed) != 1 {
		t.Errorf("a timeout that never grows: %d failed, %v", len(failed), ok)
	}
	growing := FixedStep{First: timeoutOf(1), Step: disdel.Limits{Timeout: 1}}
	if _, ok := growing.Failures(disdel.Limits{Memory: disdel.GB * 3}); ok {
		t.Error("more time passed for more memory")
	}
}

// Failed activations are spent, too.
func TestSpentCountsFailures(t *testing.T) {
	a := disdel.Activation{Outcome: disdel.OutcomeTimeout, Duration: disdel.Millis(time.Second)}
	a.Limits.Memory = disdel.GB / 2
	if got := Spent([]disdel.Activation{a, {Outcome: disdel.OutcomeSuccess}}); got != 0.5 {
		t.Errorf("spent %v GB-s", got)
	}
}
