package scheduler

import (
	"testing"

	"github.com/disdel/disdel"
)

// What a job that began with given weights did on held-out rows is nothing to one that draws its own, nor the other way
// round; how long its rounds took is. The records stay as they are.
func TestWhatJobsLearnedThatBeganOtherwiseIsLeftOut(t *testing.T) {
	record := func(weights string) disdel.Record {
		r := disdel.Record{Status: disdel.StatusSucceeded}
		r.Job.Model.Init.Weights = weights
		loss := 0.5
		r.Rounds = []disdel.Round{{Observed: &disdel.Observation{
			Epoch: 1, Rows: 100, Duration: 7, HeldOut: &loss, Accuracy: &loss,
		}}}
		return r
	}
	for _, c := range []struct {
		job, past string
		known     bool
	}{{"", "", true}, {"", "a:v1", false}, {"a:v1", "", false}, {"a:v1", "b:v2", true}} {
		var job disdel.Job
		job.Model.Init.Weights = c.job
		past := []disdel.Record{record(c.past)}
		seen := PastObservations(past, job, past[0].Data)
		if len(seen) != 1 || seen[0].Duration != 7 {
			t.Fatalf("%+v: %+v", c, seen)
		}
		if known := seen[0].HeldOut != nil && seen[0].Accuracy != nil; known != c.known {
			t.Errorf("%q after %q: its evaluations are known: %v", c.job, c.past, known)
		}
		if past[0].Rounds[0].Observed.HeldOut == nil {
			t.Errorf("%q after %q: the record has lost what it knew", c.job, c.past)
		}
	}
}
