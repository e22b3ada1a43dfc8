package controller

import (
	"encoding/json"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// At the ceiling of memory a batch is halved: of training with as many workers as there are, of an evaluation alone.
func TestASmallerBatchKeepsTheWorkers(t *testing.T) {
	for task, want := range map[disdel.Task][2]int{disdel.TaskTrain: {5, 5}, disdel.TaskEvaluate: {10, 5}} {
		spec := runSpec(3, 1)
		spec.Job.Training.BatchSize, spec.Plan.HeldOut, spec.Plan.Platform.MaxMemory = 10, 9, disdel.GB
		var asked disdel.Job
		plan := spec.Plan
		spec.Replan = func(j disdel.Job) (disdel.Plan, error) { asked = j; return plan, nil }
		m := NewManager(spec)
		m.Step(StartedEvent{})
		o := m.invoke(disdel.Slot{Task: task})
		a := disdel.Activation{
			Invocation: o.Invocation, Outcome: disdel.OutcomeOutOfMemory,
			Failure: &disdel.Error{Kind: disdel.OOM},
		}
		a.Limits.Memory = disdel.GB
		orders := m.Step(EndedEvent{Activation: a})
		if task == disdel.TaskTrain && asked.Distribution.Workers != 3 {
			t.Errorf("%s: planned with %d workers", task, asked.Distribution.Workers)
		}
		var r struct{ BatchSize int }
		if err := json.Unmarshal(orders[len(orders)-1].(InvokeOrder).Invocation.Params, &r); err != nil ||
			r.BatchSize != want[1] ||
			m.spec.Job.Training.BatchSize != want[0] {
			t.Errorf("%s: batch %d, the job's %d, %v", task, r.BatchSize, m.spec.Job.Training.BatchSize, err)
		}
	}
}

// After a kill the job goes on in a stage whose steps save memory, with the same limit. A resume keeps that.
func TestAKilledJobGoesOnInSmallerSteps(t *testing.T) {
	spec := runSpec(3, 1)
	saved := disdel.StepMemory{MicroBatch: 16}
	plan := spec.Plan
	spec.Replan = func(j disdel.Job) (disdel.Plan, error) {
		p := plan
		p.StepMemory = j.Training.StepMemory
		return p, nil
	}
	m := NewManager(spec)
	m.Step(StartedEvent{})
	o := m.invoke(disdel.Slot{Task: disdel.TaskTrain})
	a := disdel.Activation{Invocation: o.Invocation, Outcome: disdel.OutcomeOutOfMemory}
	a.Limits.Memory = disdel.GB
	orders := m.remedied(a, scheduler.Remedy{Retry: true, Limits: a.Limits, StepMemory: saved, Why: "smaller steps"})
	var r disdel.TrainRequest
	last := orders[len(orders)-1].(InvokeOrder).Invocation
	if err := json.Unmarshal(last.Params, &r); err != nil || r.StepMemory != saved || last.Limits.Memory < disdel.GB {
		t.Errorf("%+v with %v, %v", r.StepMemory, last.Limits.Memory, err)
	}
	rec := disdel.Record{Job: spec.Job, Plan: m.spec.Plan, Stages: []disdel.Stage{spec.begins()}}
	for _, o := range orders {
		if s, ok := o.(StageOrder); ok {
			rec.Stages = append(rec.Stages, s.Stage)
		}
	}
	if len(rec.Stages) != 2 || rec.Stages[1].Decision.Why != "smaller steps" {
		t.Fatalf("%+v", rec.Stages)
	}
	if c, err := continued(rec, spec, 0); err != nil || c.plan.StepMemory != saved || c.stage.StepMemory != saved {
		t.Errorf("resumed: %+v, %v", c.stage.StepMemory, err)
	}
}
