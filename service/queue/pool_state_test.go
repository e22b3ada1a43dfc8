package queue

import (
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// What a platform has at work beyond all that the jobs of the queue hold is others': a gang waits until they have gone,
// and what the jobs hold themselves is not counted twice.
func TestJobsWaitBehindOthers(t *testing.T) {
	gang := func(memory disdel.Bytes) scheduler.Gang {
		return scheduler.Gang{{Task: disdel.TaskTrain, Count: 1, Each: scheduler.Capacity{Memory: memory}}}
	}
	whole := scheduler.Capacity{Memory: disdel.GB}
	admission := scheduler.NewAdmission(scheduler.Gangs{}, whole)
	l := poolState{Owners: map[disdel.JobID]string{}}
	ask := func(job disdel.JobID, memory disdel.Bytes) {
		t.Helper()
		if err := admission.Enqueue(scheduler.Demand{Job: job, Gang: gang(memory)}); err != nil {
			t.Fatal(err)
		}
		l.Owners[job] = "me"
	}
	decide := func(busy disdel.Bytes) *scheduler.Admission {
		l.decide(admission, "me", 0, busy)
		admission = scheduler.RestoreAdmission(scheduler.Gangs{}, whole, l.Books)
		return admission
	}
	ask("first", 600*disdel.MB)
	if decide(500 * disdel.MB).Has("first") {
		t.Error("600 MB were granted beside 500 of others")
	}
	if !decide(100 * disdel.MB).Has("first") {
		t.Error("600 MB were not granted beside 100 of others")
	}
	ask("second", 300*disdel.MB)
	if !decide(600 * disdel.MB).Has("second") {
		t.Error("what the first job has at work was taken for others'")
	}
}
