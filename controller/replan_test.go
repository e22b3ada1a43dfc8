package controller

import (
	"encoding/json"
	"testing"

	"github.com/disdel/disdel"
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
