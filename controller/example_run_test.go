package controller_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/scheduler"
)

// instant is all that a job talks to, where every activation ends at once and well. A program has executor.Executor,
// aggregator.Store and the others here; service puts them together.
type instant struct{}

func (instant) Prepare(context.Context, string, []disdel.ActionPlan) error { return nil }
func (instant) Remove(context.Context, string) error                       { return nil }
func (instant) Outage() (disdel.Outage, bool)                              { return disdel.Outage{}, false }
func (instant) Quota(disdel.JobID) disdel.Quota                            { return disdel.Quota{} }
func (instant) Save(context.Context, *disdel.Record) error                 { return nil }
func (instant) Cancel(context.Context, disdel.JobID) error                 { return nil }
func (instant) Check(context.Context, disdel.JobID) error                  { return nil }
func (instant) EndMember(context.Context, disdel.JobID, int, int) error    { return nil }
func (instant) LetGo(context.Context, disdel.JobID, int, int) error        { return nil }
func (instant) Forget(context.Context, disdel.JobID, int) error            { return nil }
func (instant) Sweep(context.Context, disdel.JobID) (int, error)           { return 0, nil }
func (instant) Keep(context.Context, disdel.JobID, string) error           { return nil }
func (instant) Discard(context.Context, string) error                      { return nil }

func (instant) Delivered(context.Context, disdel.UpdateID) (json.RawMessage, bool, error) {
	return nil, false, nil
}

func (instant) TakeUp(context.Context, disdel.JobID, string) (bool, error) { return false, nil }

func (instant) Invoke(_ context.Context, inv disdel.Invocation) (disdel.ActivationID, error) {
	return disdel.ActivationID(inv.ID), nil
}

func (instant) Wait(_ context.Context, inv disdel.Invocation, id disdel.ActivationID) (disdel.Activation, error) {
	a := disdel.Activation{ID: id, Invocation: inv, Outcome: disdel.OutcomeSuccess}
	var result any = disdel.AggregateResult{Checksum: "sha256:..."}
	if inv.Task == disdel.TaskTrain {
		result = disdel.TrainResult{Loss: 1 / float64(inv.Round+1), Samples: 60}
	}
	var err error
	a.Result, err = json.Marshal(result)
	return a, err
}

func (instant) Progress(context.Context, disdel.JobID) ([]disdel.Progress, error) { return nil, nil }

func (instant) Commit(_ context.Context, _ *disdel.Record, _ disdel.Network, w disdel.ModelRef,
) (disdel.ModelRef, error) {
	w.Version = 1
	return w, nil
}

// twoWorkers is a job of two workers for some epochs, with its plan.
func twoWorkers(epochs int) controller.Spec {
	var job disdel.Job
	job.Training.Epochs, job.Training.BatchSize, job.Output.Model = epochs, 10, "digits"
	return controller.Spec{
		ID: "job-1", Job: job, Models: "mem://", Output: "weights/digits/job-1.safetensors", Threads: 1,
		Plan: disdel.Plan{
			Workers: 2, Rounds: epochs, Epochs: 1, Parallel: 2,
			Shards: scheduler.Shards(120, 2), Levels: scheduler.Tree(2, 4),
		},
	}
}

// A Controller runs a planned job: it invokes, waits, and carries out what the job's Manager says.
func ExampleController_Run() {
	log := logrus.New()
	log.SetOutput(io.Discard)
	c := controller.New(controller.Config{
		Invoker: instant{}, Recorder: instant{}, Store: instant{}, Models: instant{}, Log: log,
		Observe: func(n controller.Notice) {
			if n.Round != nil {
				fmt.Printf("round %d: loss %.2f\n", n.Round.Round, n.Round.TrainLoss)
			}
		},
	})
	rec, err := c.Run(context.Background(), twoWorkers(3), disdel.DataInfo{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%v: %s, version %d, of %d activations\n", rec.Status, rec.Model.Name, rec.Model.Version,
		len(rec.Activations))
	// Output:
	// round 0: loss 1.00
	// round 1: loss 0.50
	// round 2: loss 0.33
	// succeeded: digits, version 1, of 9 activations
}

// A job that failed in its third round goes on from the checkpoint of the second, with the limits that it had come to.
func ExampleContinueFrom() {
	spec := twoWorkers(4)
	checkpoint := disdel.Checkpoint{Round: 2, Path: controller.CheckpointFolder(spec.ID) + "/000002/reference.safetensors"}
	rec := disdel.Record{
		ID: spec.ID, Status: disdel.StatusFailed, Job: spec.Job, Plan: spec.Plan,
		Rounds: []disdel.Round{{Round: 0, TrainLoss: 1}, {Round: 1, TrainLoss: 0.5}},
	}
	spec.Job, spec.Resumes = controller.AdjustedJob(rec), 1
	controller.RaiseLimits(&spec.Plan, spec.Job, rec)
	if err := controller.CheckResume(rec, spec, checkpoint); err != nil {
		fmt.Println(err)
		return
	}
	if err := controller.ContinueFrom(rec, &spec, checkpoint); err != nil {
		fmt.Println(err)
		return
	}
	for _, o := range controller.NewManager(spec).Step(controller.StartedEvent{}) {
		if o, ok := o.(controller.InvokeOrder); ok {
			fmt.Println(o.Invocation.ID)
		}
	}
	// Output:
	// round 2/train/0
	// round 2/train/1
}

// One that never came to a checkpoint begins anew, as its record says that it began.
func ExampleStartOver() {
	spec := twoWorkers(4)
	rec := disdel.Record{ID: spec.ID, Status: disdel.StatusFailed, Job: spec.Job, Plan: spec.Plan}
	spec.Resumes = 1
	if err := controller.StartOver(rec, &spec); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(spec.Stage.First, spec.Stage.Decision.Why)
	// Output: 0 the job was taken up again
}

// folders prints what is deleted of a store of models.
type folders struct{}

func (folders) Discard(_ context.Context, folder string) error {
	fmt.Println("deleted:", folder)
	return nil
}

// A job that has its model needs no checkpoint any more. One that failed continues from it.
func ExampleDiscardCheckpoints() {
	for id, status := range []disdel.Status{disdel.StatusSucceeded, disdel.StatusFailed} {
		rec := disdel.Record{ID: disdel.JobID(fmt.Sprintf("job-%d", id+1)), Status: status}
		if err := controller.DiscardCheckpoints(context.Background(), folders{}, &rec); err != nil {
			fmt.Println(err)
		}
	}
	// Output: deleted: checkpoints/job-1
}

// What a job file alone cannot tell is found out with the data set and the network that it names, all of it at once.
func ExampleResolve() {
	ctx := context.Background()
	store, err := dataset.OpenStore(ctx, "mem://")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	digits, err := dataset.Digits()
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := store.Add(ctx, digits, false); err != nil {
		fmt.Println(err)
		return
	}
	var job disdel.Job
	job.Model.Name, job.Data.Source, job.Training.BatchSize = "lenet-5", "dataset://digits", 64
	line := func(path string) (line, column int) { return map[string]int{"model.name": 3}[path], 1 }
	_, err = controller.Resolve(ctx, job, store, "job.yaml", line, nil)
	fmt.Println(controller.DataName(job.Data.Source), "is there;", err)

	job.Resources.Memory = disdel.GB
	err = controller.CheckPlatform(job, disdel.PlatformLimits{MaxMemory: 512 * disdel.MB, MaxTimeout: 1e9})
	fmt.Println(err)
	// Output:
	// digits is there; job.yaml:3:1: model.name: there is no network "lenet-5"; did you mean "lenet5"?; disdel model list
	// check job against the platform: resources.memory is 1.00 GB, and the platform allows at most 512 MB an action
}
