package controller

import (
	"encoding/json"
	"slices"
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

// An evaluation has its rows where the plan has them, and computes as many at a time as the plan estimated. A killed
// one gets half of them.
func TestAnEvaluationHasThePlansRows(t *testing.T) {
	spec := runSpec(3, 1)
	spec.Plan.OnDisk, spec.Plan.HeldOut, spec.Plan.Platform.MaxMemory = true, 9, disdel.GB
	spec.Plan.Actions = append(spec.Plan.Actions, disdel.ActionPlan{
		Task: disdel.TaskEvaluate, Name: "p/evaluate", Limits: disdel.Limits{Memory: disdel.GB, Timeout: 1e9},
		Estimate: disdel.Estimate{Rows: 4, InBlocks: true},
	})
	m := NewManager(spec)
	m.Step(StartedEvent{})
	o := m.invoke(disdel.Slot{Task: disdel.TaskEvaluate})
	a := disdel.Activation{Invocation: o.Invocation, Outcome: disdel.OutcomeOutOfMemory}
	a.Limits.Memory = disdel.GB
	a.Failure = &disdel.Error{Kind: disdel.OOM}
	orders := m.Step(EndedEvent{Activation: a})
	again := orders[len(orders)-1].(InvokeOrder).Invocation
	for rows, inv := range map[int]disdel.Invocation{4: o.Invocation, 2: again} {
		var r disdel.EvaluateRequest
		if err := json.Unmarshal(inv.Params, &r); err != nil || r.BatchSize != rows || !r.Data.OnDisk || !r.InBlocks {
			t.Errorf("%d rows at a time: batch %d, on disk: %v, in blocks: %v, %v", rows, r.BatchSize, r.Data.OnDisk,
				r.InBlocks, err)
		}
	}
}

// After a kill the job goes on in a stage whose steps save memory, with the same limit, and with its rows on disk where
// the plan had them there. A resume keeps that.
func TestAKilledJobGoesOnInSmallerSteps(t *testing.T) {
	spec := runSpec(3, 1)
	saved := disdel.StepMemory{MicroBatch: 16}
	spec.Plan.OnDisk = true
	plan := spec.Plan
	spec.Replan = func(j disdel.Job) (disdel.Plan, error) {
		p := plan
		p.StepMemory, p.OnDisk = j.Training.StepMemory, j.Data.Keep == disdel.KeepDisk
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
	if err := json.Unmarshal(last.Params, &r); err != nil || r.StepMemory != saved || !r.Data.OnDisk ||
		last.Limits.Memory < disdel.GB {
		t.Errorf("%+v with %v, on disk: %v, %v", r.StepMemory, last.Limits.Memory, r.Data.OnDisk, err)
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
	if c, err := continued(rec, spec, 0); err != nil || c.plan.StepMemory != saved || c.stage.StepMemory != saved ||
		!c.plan.OnDisk {
		t.Errorf("resumed: %+v, on disk: %v, %v", c.stage.StepMemory, c.plan.OnDisk, err)
	}
}

// After a kill the job goes on in stages, if the remedy says so. A resume keeps them.
func TestAKilledJobGoesOnInStages(t *testing.T) {
	spec := runSpec(1, 1)
	plan := spec.Plan
	spec.Replan = func(j disdel.Job) (disdel.Plan, error) {
		p := plan
		n := max(1, j.Distribution.Stages)
		for i := range n {
			p.Stages = append(p.Stages, disdel.PlannedStage{From: 1 + i, To: 2 + i})
		}
		if n == 1 {
			p.Stages = nil
		}
		p.Workers = j.Distribution.Workers * n
		p.Shards = slices.Repeat(plan.Shards[:1], p.Workers)
		return p, nil
	}
	m := NewManager(spec)
	m.Step(StartedEvent{})
	o := m.invoke(disdel.Slot{Task: disdel.TaskTrain})
	a := disdel.Activation{Invocation: o.Invocation, Outcome: disdel.OutcomeOutOfMemory}
	orders := m.remedied(a, scheduler.Remedy{Retry: true, Limits: a.Limits, Stages: 2, Why: "in stages"})
	var parts []disdel.PipelineStage
	rec := disdel.Record{Job: spec.Job, Plan: m.spec.Plan, Stages: []disdel.Stage{spec.begins()}}
	for _, o := range orders {
		if s, ok := o.(StageOrder); ok {
			rec.Stages = append(rec.Stages, s.Stage)
		}
		if i, ok := o.(InvokeOrder); ok {
			var r disdel.TrainRequest
			if err := json.Unmarshal(i.Invocation.Params, &r); err != nil || r.Pipeline == nil {
				t.Fatalf("%s: %v", i.Invocation.Params, err)
			}
			parts = append(parts, *r.Pipeline)
		}
	}
	want := []disdel.PipelineStage{{Stages: 2, From: 1, To: 2}, {Stage: 1, Stages: 2, From: 2, To: 3}}
	if !slices.Equal(parts, want) || len(rec.Stages) != 2 || rec.Stages[1].Setting.Stages != 2 {
		t.Fatalf("%+v, %d stages in the record", parts, len(rec.Stages))
	}
	if c, err := continued(rec, spec, 0); err != nil || len(c.plan.Stages) != 2 || len(c.stage.Parts) != 2 {
		t.Errorf("resumed: %+v, %v", c.stage.Setting, err)
	}
	if p := rec.Stages[0].ApplyTo(m.spec.Plan); len(p.Stages) != 0 {
		t.Errorf("the stage before has %d parts", len(p.Stages))
	}
}
