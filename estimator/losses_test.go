package estimator

import (
	"testing"
	"time"

	"github.com/disdel/disdel"
)

// What somebody stopped on purpose, and what goes on, is no loss.
func TestLossesCountFailuresOnly(t *testing.T) {
	var all []disdel.Activation
	for o := disdel.OutcomeUnknown; o <= disdel.OutcomeCorrupt; o++ {
		a := disdel.Activation{Outcome: o, Duration: disdel.Millis(time.Second)}
		a.Limits.Memory = disdel.GB / 2
		all = append(all, a)
	}
	if got := LossesOf(all); got.Attempts != len(all)-4 || got.Cost != float64(got.Attempts)/2 {
		t.Errorf("%+v of %d", got, len(all))
	}
}
