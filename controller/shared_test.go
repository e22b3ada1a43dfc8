package controller

import (
	"encoding/json"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// sharing is runSpec's job whose workers share a batch of so many rows, planned anew as the planner does it.
func sharing(workers, rounds, rows int) Spec {
	spec := runSpec(workers, rounds)
	spec.Job.Training.BatchSize, spec.Job.Training.Batch = rows, &disdel.Batch{Size: rows, Of: disdel.BatchOfJob}
	plan := spec.Plan
	plan.Platform.MaxMemory = disdel.GB
	plan.BatchSize = spec.Job.Training.WorkerBatch(workers)
	spec.Plan = plan
	spec.Replan = func(j disdel.Job) (disdel.Plan, error) {
		p := plan
		p.Workers = j.Distribution.Workers
		p.BatchSize = j.Training.WorkerBatch(p.Workers)
		p.Shards = scheduler.Shards(100*p.Workers, p.Workers)
		p.Levels = scheduler.Tree(p.Workers, 64)
		return p, nil
	}
	return spec
}

func batchOf(t *testing.T, o Order) int {
	t.Helper()
	var r struct{ BatchSize int }
	if err := json.Unmarshal(o.(InvokeOrder).Invocation.Params, &r); err != nil {
		t.Fatal(err)
	}
	return r.BatchSize
}

// A worker is asked for its share; at the ceiling of memory the share is halved, and with it the job's batch, which
// stays
// so: the record's stage and what is planned after it go by it.
func TestARemedyHalvesTheShareOfABatch(t *testing.T) {
	spec := sharing(3, 2, 60)
	m := NewManager(spec)
	m.Step(StartedEvent{})
	o := m.invoke(disdel.Slot{Task: disdel.TaskTrain})
	if n := batchOf(t, o); n != 20 {
		t.Fatalf("a worker of three has %d of 60 rows", n)
	}
	a := disdel.Activation{
		Invocation: o.Invocation, Outcome: disdel.OutcomeOutOfMemory, Failure: &disdel.Error{Kind: disdel.OOM},
	}
	a.Limits.Memory = disdel.GB
	orders := m.Step(EndedEvent{Activation: a})
	if n := batchOf(t, orders[len(orders)-1]); n != 10 {
		t.Errorf("after a lack of memory a worker has %d rows, want 10", n)
	}
	if s := m.spec.Stage; s.BatchSize != 10 || m.spec.Job.Training.JobBatch() != 30 {
		t.Errorf("the stage has %d rows a worker, the job %d", s.BatchSize, m.spec.Job.Training.JobBatch())
	}
	if n := scheduler.ApplySetting(m.spec.Job, disdel.Setting{Workers: 2}, 0).Training.WorkerBatch(2); n != 15 {
		t.Errorf("two workers would have %d rows of 30", n)
	}
}

// A job that is taken up again goes on with the share that a remedy led to, and with the job's own where none did.
func TestAResumeKeepsTheShareOfABatch(t *testing.T) {
	for name, halved := range map[string]bool{"as it was": false, "halved": true} {
		spec := sharing(3, 4, 60)
		r := disdel.Record{ID: spec.ID, Job: spec.Job, Plan: spec.Plan}
		first := spec.Plan.AsStage(spec.Job)
		r.Stages = []disdel.Stage{first}
		want, job := 20, 60
		if halved {
			second := first.Starting(1, disdel.Position{Epoch: 1})
			second.BatchSize = 10
			r.Stages, want, job = append(r.Stages, second), 10, 30
		}
		if err := ContinueFrom(r, &spec, disdel.Checkpoint{Round: 2}); err != nil {
			t.Fatal(err)
		}
		if spec.Stage.BatchSize != want || spec.Job.Training.JobBatch() != job || spec.Plan.WorkerBatch(&spec.Job) != want {
			t.Errorf("%s: %d rows a worker and %d of the job, want %d and %d", name, spec.Stage.BatchSize,
				spec.Job.Training.JobBatch(), want, job)
		}
	}
}
