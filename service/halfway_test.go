package service

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/disdel/disdel"
)

// A job that its budget stops in the middle of a round goes on there once it has more: no epoch is trained twice, and
// all losses are those of a job that nothing stopped.
func TestAJobGoesOnInTheRoundThatItsBudgetStopped(t *testing.T) {
	long := []string{"training.epochs=40", "distribution.sync=end", "distribution.workers=2"}
	whole, err := submit(t, opened(t, t.TempDir()), small(t, long...)).Wait(t.Context())
	if err != nil || whole.Status != disdel.StatusSucceeded {
		t.Fatalf("%v, %v: %v", whole.Status, err, whole.Failure)
	}
	s, rec, reached := stoppedByBudget(t, whole.MeteredCost(), long)
	if rec.Failure == nil || rec.Failure.Code != disdel.CodeOverBudget || rec.Halfway == nil || rec.Halfway.Mark == "" {
		t.Fatalf("%v for %g of %g GB-s: %v, %+v", rec.Status, rec.MeteredCost(), whole.MeteredCost(),
			rec.Failure, rec.Halfway)
	}
	run, err := s.Resume(t.Context(), ResumeRequest{Job: string(rec.ID), Sets: []string{"resources.maxCost=1000GB-s"}})
	if err != nil {
		t.Fatal(err)
	}
	for e := range run.Events() {
		if what, ok := e.What.(Resumed); ok && !what.Halfway {
			t.Errorf("%+v", what)
		}
	}
	eachEpoch(run, func(worker, epoch int) {
		if epoch < reached[worker] {
			t.Errorf("worker %d trained epoch %d again, and had come to %d", worker, epoch, reached[worker])
		}
	})
	if rec, err = run.Wait(t.Context()); err != nil || rec.Status != disdel.StatusSucceeded {
		t.Fatalf("%v, %v: %v", rec.Status, err, rec.Failure)
	}
	was, is := whole.Rounds[0], rec.Rounds[0]
	same := reflect.DeepEqual(was.Trained, is.Trained) && *was.Loss == *is.Loss
	if len(is.Trained) != whole.Job.Training.Epochs || !same {
		t.Errorf("losses %v and then %g, and without a stop %v and %g", is.Trained, *is.Loss, was.Trained, *was.Loss)
	}
}

// stoppedByBudget runs a job with a budget below its earlier cost. The machine may have become faster since, so a job
// that succeeds runs again with half of the budget. It returns the last epoch that each worker was seen in.
func stoppedByBudget(t *testing.T, cost float64, sets []string) (*Service, disdel.Record, map[int]int) {
	t.Helper()
	for budget := 0.4 * cost; ; budget /= 2 {
		s := pooled(t, t.TempDir(), 0, true) // whose store outlives its jobs
		run := submit(t, s, small(t, append(sets, fmt.Sprintf("resources.maxCost=%gGB-s", budget))...))
		reached := map[int]int{}
		eachEpoch(run, func(worker, epoch int) { reached[worker] = max(reached[worker], epoch) })
		rec, err := run.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if rec.Status != disdel.StatusSucceeded || budget < 0.04*cost {
			return s, rec, reached
		}
	}
}

// eachEpoch calls what for every epoch that a worker of a run is seen in, until the run ends.
func eachEpoch(run *Run, what func(worker, epoch int)) {
	for e := range run.Events() {
		p, ok := e.What.(Progress)
		if !ok {
			continue
		}
		for _, a := range p.Actions {
			if a.Task == disdel.TaskTrain {
				what(a.Member, a.Epoch)
			}
		}
	}
}
