package controller_test

import (
	"encoding/json"
	"fmt"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/scheduler"
)

// A Manager decides and does nothing: it is told what happened, and says what is to be done. Here KubeML's rule has a
// third worker after the first epoch.
func ExampleManager_Step() {
	var job disdel.Job
	job.Training.Epochs, job.Training.BatchSize, job.Distribution.Policy = 2, 10, disdel.PolicyKubeML
	plan := func(job disdel.Job) (disdel.Plan, error) {
		n := job.Distribution.Workers
		shards, levels := scheduler.Shards(120, n), scheduler.Tree(n, 4)
		return disdel.Plan{Workers: n, Rounds: 2, Epochs: 1, Parallel: n, Shards: shards, Levels: levels}, nil
	}
	planned := job
	planned.Distribution.Workers = 2
	first, _ := plan(planned)
	m := controller.NewManager(controller.Spec{ID: "job-1", Job: job, Plan: first, Replan: plan})

	open := m.Step(controller.StartedEvent{})
	for second := 1; len(open) > 0; second++ {
		next := open[0]
		open = open[1:]
		switch o := next.(type) {
		case controller.InvokeOrder:
			fmt.Println(o.Invocation.ID)
			a := disdel.Activation{Invocation: o.Invocation, Outcome: disdel.OutcomeSuccess}
			a.Result, _ = json.Marshal(disdel.TrainResult{Loss: 1, Samples: 10})
			open = append(open, m.Step(controller.EndedEvent{
				Moment: controller.Moment{At: disdel.Millis(second * 1e9)}, Activation: a,
			})...)
		case controller.StageOrder:
			fmt.Printf("stage %d: %d workers\n", o.Number, o.Stage.Workers)
		case controller.FinishOrder:
			fmt.Println(o.Status)
		}
	}
	// Output:
	// round 0/train/0
	// round 0/train/1
	// round 0/aggregate level 1/0
	// stage 1: 3 workers
	// round 1/train/0
	// round 1/train/1
	// round 1/train/2
	// round 1/aggregate level 1/0
	// succeeded
}
