package scheduler_test

import (
	"fmt"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine/backends"
	"github.com/disdel/disdel/scheduler"
)

// lenet is what a plan for LeNet-5 on 60,000 images of 28 x 28 is made of, on a platform that gives an action 512 MB at
// the most and all actions 2 GB.
func lenet() (in scheduler.PlanInput, err error) {
	in = scheduler.PlanInput{
		ID: "job-1", Estimator: estimator.Planned(backends.Standard(nil)),
		Data: disdel.DataInfo{
			Name: "fashion-mnist", Train: 60000, HeldOut: 10000, Sample: []int{1, 28, 28}, Classes: 10, SampleSize: 784,
		},
		Platform: disdel.PlatformLimits{
			MinMemory: 128 * disdel.MB, MaxMemory: 512 * disdel.MB, Pool: 2 * disdel.GB, Concurrent: 30,
			MinTimeout: disdel.Millis(100 * time.Millisecond), MaxTimeout: disdel.Millis(5 * time.Minute), PerMinute: 60,
		},
	}
	in.Job.Training = disdel.Training{
		Epochs: 5, BatchSize: 64, Optimizer: disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.001}},
	}
	in.Job.Distribution.Sync = disdel.SyncEpoch
	in.Graph, err = model.Build(disdel.Network{Name: "lenet5", Input: []int{1, 28, 28}, Classes: 10})
	return in, err
}

func ExampleNewPlan() {
	in, err := lenet()
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := scheduler.NewPlan(in)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d workers, %d rounds, in the package %s\n", plan.Workers, plan.Rounds, scheduler.Package(in.ID))
	most, whose := scheduler.MemoryCeiling(in)
	for _, a := range plan.Actions {
		fmt.Println(a.Name, a.Limits.Memory <= most, a.Estimate.Total <= a.Limits.Memory)
	}
	fmt.Println(most, whose)

	in.Platform.MaxMemory = 8 * disdel.MB
	_, err = scheduler.NewPlan(in)
	fmt.Println(disdel.KindOf(err))
	// Output:
	// 2 workers, 5 rounds, in the package disdel-job-1
	// disdel-job-1/train true true
	// disdel-job-1/aggregate true true
	// disdel-job-1/evaluate true true
	// 512 MB the platform's maximum
	// overLimit
}

// A network is refused before it is planned where its backend cannot train it as the job says.
func ExampleCheckNetwork() {
	in, err := lenet()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(scheduler.CheckNetwork(in))
	in.Job.Training.Backend, in.Job.Training.Precision = "gorgonia", disdel.PrecisionBF16
	fmt.Println(scheduler.CheckNetwork(in))
	// Output:
	// <nil>
	// make engine: gorgonia computes with float32 alone, not with bf16
}

// A job that does not fit is planned without ceilings, to see what it needs, and for what makes it fit.
func ExampleSmallerLimits() {
	in, err := lenet()
	if err != nil {
		fmt.Println(err)
		return
	}
	in.Platform.MinMemory, in.Platform.MaxMemory = disdel.MB, 8*disdel.MB
	plan, err := scheduler.NewPlan(scheduler.WithoutMemoryLimits(in))
	if err != nil {
		fmt.Println(err)
		return
	}
	train, _ := plan.Action(disdel.TaskTrain)
	peak := train.Estimate.Peak()
	fmt.Println("an interval:", peak.Low <= peak.Likely && peak.Likely <= peak.High)
	for _, smaller := range scheduler.SmallerLimits(in, plan) {
		for _, c := range smaller.Changes {
			if c.Limit > smaller.Limit {
				fmt.Println(c.Set, "does not make it fit", smaller.Limit)
			}
		}
	}
	// Output:
	// an interval: true
}

func ExampleFit_Fits() {
	in, err := lenet()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, limit := range []disdel.Bytes{disdel.MB, 256 * disdel.MB} {
		fit := scheduler.FitMemory(in, limit, 2)
		fmt.Printf("into %v: %v\n", limit, fit.Fits())
	}
	// Output:
	// into 1.00 MB: false
	// into 256 MB: true
}

func ExampleCell_Basis() {
	in, err := lenet()
	if err != nil {
		fmt.Println(err)
		return
	}
	in.Rate = &estimator.Rate{RowsPerSecond: 5000} // of a probe
	grid := scheduler.Grid{Workers: []int{1, 2, 4}, Batches: []int{64}}
	for _, c := range scheduler.WhatIf(in, grid, scheduler.AgainstCost) {
		fmt.Printf("%d workers: %d at once, by %s\n", c.Workers, c.Parallel, c.Basis())
	}
	// Output:
	// 1 workers: 1 at once, by probe
	// 2 workers: 2 at once, by probe
	// 4 workers: 4 at once, by probe
}

// Nine workers in clusters of at most four: three of three, and one above them.
func ExampleTree() {
	for _, level := range scheduler.Tree(9, 4) {
		fmt.Println(level.Height, level.Clusters)
	}
	fmt.Println("of 300 MB each, an action is given", scheduler.FanIn(300*disdel.MB))
	// Output:
	// 1 [[0 1 2] [3 4 5] [6 7 8]]
	// 2 [[0 1 2]]
	// of 300 MB each, an action is given 6
}

// Three workers in clusters of at most two, and the weights in two shards: each shard has a tree, and the last level
// joins them.
func ExampleSharded() {
	for _, level := range scheduler.Sharded(scheduler.Tree(3, 2), 2) {
		fmt.Println(level.Height, level.Clusters, level.Shards, level.JoinShards)
	}
	// Output:
	// 1 [[0] [1 2] [0] [1 2]] 2 false
	// 2 [[0 1] [2 3]] 2 false
	// 3 [[0 1]] 0 true
}

func ExampleShards() {
	for _, rows := range scheduler.Shards(10, 3) {
		fmt.Print(rows.Start, "-", rows.End, " ")
	}
	// Output: 0-3 3-6 6-10
}

// Rounds of three batches: two workers with 60 rows each have six batches of ten an epoch. The last round of an epoch
// takes what is left of it, which 0 stands for.
func ExampleSpanOf() {
	job := disdel.Job{}
	job.Training.Epochs, job.Training.BatchSize = 2, 10
	plan := disdel.Plan{Workers: 2, Rounds: 4, Batches: 3, Shards: scheduler.Shards(120, 2)}
	for round := range plan.Rounds {
		span := scheduler.SpanOf(job, plan, round)
		fmt.Printf("round %d: epoch %d from batch %d on, %d batches\n", round, span.Epoch, span.Batch, span.Batches)
	}
	// Output:
	// round 0: epoch 0 from batch 0 on, 3 batches
	// round 1: epoch 0 from batch 3 on, 0 batches
	// round 2: epoch 1 from batch 0 on, 3 batches
	// round 3: epoch 1 from batch 3 on, 0 batches
}

// killed is a train activation that the kernel ended at its limit.
func killed() disdel.Activation {
	return disdel.Activation{
		Invocation: disdel.Invocation{
			ID: "round 0/train/0", Task: disdel.TaskTrain, Limits: disdel.Limits{
				Memory: 256 * disdel.MB, Timeout: disdel.Millis(time.Minute),
			},
		},
		Outcome: disdel.OutcomeOutOfMemory, Failure: &disdel.Error{Kind: disdel.OOM}, Peak: 250 * disdel.MB,
	}
}

// What ran out of memory is tried again with more, as long as the job has retries.
func ExampleFindRemedy() {
	in := scheduler.RemedyInput{
		Activation: killed(),
		Plan:       disdel.Plan{Workers: 1, Platform: disdel.PlatformLimits{MaxMemory: disdel.GB}},
	}
	r := scheduler.FindRemedy(in)
	fmt.Println(r.Retry, r.Limits.Memory, r.Why)
	in.Attempts = scheduler.Attempts{Job: 6}
	r = scheduler.FindRemedy(in)
	fmt.Println(r.Retry, r.Why)
	// Output:
	// true 320 MB memory 256MB -> 320MB: 256 MB x 1.25
	// false the job's 6 retries are used up (reliability.retries.limit)
}

func ExampleMemory() {
	next, why := scheduler.Memory(killed(), 1.5)
	fmt.Println(next, "by", why)
	next, why = scheduler.EnoughMemory(&disdel.Record{}, killed())
	fmt.Println(next, "by", why)
	// Output:
	// 384 MB by 256 MB x 1.5
	// 384 MB by 256 MB x 1.5
}

func ExampleTimeout() {
	a := killed()
	a.Outcome = disdel.OutcomeTimeout
	next, why := scheduler.Timeout(a, 2)
	fmt.Println(next, "by", why)
	_, _, known := scheduler.EnoughTime(&disdel.Record{}, a)
	fmt.Println("known how long it takes:", known)
	a.Task, a.Beats = disdel.TaskTrain, []disdel.Beat{
		{At: disdel.Millis(20 * time.Second), Epoch: 1, Batch: 10, Batches: 60},
		{At: disdel.Millis(40 * time.Second), Epoch: 1, Batch: 20, Batches: 60},
		{At: disdel.Millis(60 * time.Second), Epoch: 1, Batch: 30, Batches: 60},
	}
	next, why, _ = scheduler.EnoughTime(&disdel.Record{}, a)
	fmt.Println(next, "by", why)
	// Output:
	// 2m0s by 1m0s x 2
	// known how long it takes: false
	// 3m0s by 30 of 60 batches were trained: the whole takes about 2m0s, x 1.3
}

// A later job like this one begins with the limits that passed in the end.
func ExampleLimitsReached() {
	passed := killed()
	passed.Outcome, passed.Failure, passed.Limits.Memory = disdel.OutcomeSuccess, nil, 384*disdel.MB
	rec := disdel.Record{Activations: []disdel.Activation{killed(), passed}}
	fmt.Println(scheduler.LimitsReached(&rec, disdel.TaskTrain).Memory)
	// Output: 384 MB
}

// Who is to blame says what is done: nobody, the action itself, or what another action has left in the store.
func ExamplePlatformFault() {
	throttled := disdel.Activation{Outcome: scheduler.Refused(&disdel.Error{
		Kind: disdel.Unavailable, Code: disdel.CodeQuotaMinute,
	})}
	crashed := disdel.Activation{Outcome: disdel.OutcomeDeveloperError, Failure: &disdel.Error{Kind: disdel.Crashed}}
	lost := disdel.Activation{Outcome: disdel.OutcomeApplicationError, Failure: &disdel.Error{
		Kind: disdel.NotFound, Code: disdel.CodeLostUpdate,
	}}
	lost.Task = disdel.TaskAggregate
	for _, a := range []disdel.Activation{throttled, crashed, lost} {
		fmt.Println(a.Outcome, scheduler.PlatformFault(a), scheduler.CrashedItself(a), scheduler.LostUpdate(a),
			scheduler.LostReference(a))
	}
	// Output:
	// throttled true false false false
	// developerError false true false false
	// applicationError false false true false
}

func ExampleCheckBudget() {
	job, plan := disdel.Job{}, disdel.Plan{Forecast: &disdel.Forecast{
		Cost: disdel.Interval[float64]{Low: 80, Likely: 100, High: 123.4}, Source: "history",
	}}
	job.Resources.MaxCost = 90
	err := disdel.AsError(scheduler.CheckBudget("job-1", job, plan))
	fmt.Println(err.Kind, err.Msg)
	fmt.Println(err.Hint)
	fmt.Println(scheduler.RoundedUp(123.4))
	// Output:
	// overLimit the job is likely to cost 100 GB-s (80 to 123.4, by history), and resources.maxCost is 90 GB-s
	// --set resources.maxCost=130GB-s, or fewer training.epochs
	// 130
}

func ExamplePolicyOf() {
	var job disdel.Job
	for _, named := range scheduler.Policies() {
		job.Distribution.Policy = named.Name()
		if p, err := scheduler.PolicyOf(job); err != nil || p.Name() != named.Name() {
			fmt.Println(p, err)
		}
	}
	fmt.Println(len(scheduler.PolicyNames()) == len(scheduler.Policies()))
	job.Distribution.Policy = "guess"
	_, err := scheduler.PolicyOf(job)
	fmt.Println(err)
	// Output:
	// true
	// find policy: there is no policy "guess"
}

// epochs asks a policy after each of some epochs, which take so many seconds, and prints how it goes on.
func epochs(p scheduler.Policy, seconds ...float64) {
	job := disdel.Job{}
	job.Training.BatchSize, job.Distribution.MaxWorkers = 10, 8
	plan := disdel.Plan{Workers: 2, Shards: scheduler.Shards(1000, 2)}
	in := scheduler.Input{
		Boundary: disdel.BoundaryEpoch, Now: disdel.Setting{Workers: 2}, Bounds: scheduler.BoundsOf(job, plan),
		Goal: scheduler.Goal{Epochs: 10},
	}
	for i, s := range seconds {
		in.Seed = scheduler.Seed("job-1", i+1)
		in.Seen = append(in.Seen, disdel.Observation{
			Round: i, Setting: in.Now, Rows: 1000, Epoch: float64(i + 1), Duration: disdel.Millis(s * float64(time.Second)),
		})
		d := scheduler.DecideInBounds(p, in)
		fmt.Printf("%d workers: %s\n", d.Next.Workers, d.Why)
		in.Now = d.Next
	}
}

func ExampleStatic() {
	epochs(scheduler.Static{}, 12)
	// Output:
	// 2 workers:
}

func ExampleKubeML() {
	epochs(scheduler.KubeML{}, 12, 9, 11)
	// Output:
	// 3 workers: the first epoch took 12.0 s: one worker more
	// 4 workers: an epoch took 9.00 s, after one of 12.0 s: one worker more
	// 3 workers: an epoch took 11.0 s, after one of 9.00 s: one worker less
}

// A loss that does not fall for three epochs, as here where none is told, halves the workers.
func ExamplePlateau() {
	epochs(scheduler.Plateau{}, 12, 12, 12, 12)
	// Output:
	// 2 workers: train loss 0.0000 in the first epoch: as many workers
	// 2 workers: train loss 0.0000: not more than 1 % below 0.0000 for 1 of 3 epochs: as many workers
	// 2 workers: train loss 0.0000: not more than 1 % below 0.0000 for 2 of 3 epochs: as many workers
	// 1 workers: train loss 0.0000: not more than 1 % below 0.0000 for 3 of 3 epochs: half as many workers
}

func ExampleElastic() {
	epochs(scheduler.Elastic{}, 12, 9, 9)
	// Output:
	// 4 workers: 12.0 s for 1,000 rows with 2 workers: next with 4 workers
	// 8 workers: 9.00 s for 1,000 rows with 4 workers, 12.0 s with 2: next with 8 workers
	// 8 workers: 9.00 s for 1,000 rows with 8 workers, 9.00 s with 4: the same is measured once more
}

// A decision changes a job, which is planned again, and the plan goes on where the stages before it end.
func ExampleContinuePlan() {
	job := disdel.Job{}
	job.Training.Epochs, job.Training.BatchSize = 4, 10
	job.Distribution.Aggregation.OptimizerState = disdel.StateKeep
	job = scheduler.ApplySetting(job, disdel.Setting{Workers: 3}, 0)
	plan := disdel.Plan{Workers: 3, Rounds: 4, Epochs: 1, Shards: scheduler.Shards(120, 3)}
	stage := plan.AsStage(job).Starting(1, disdel.Position{Epoch: 1}) // after one epoch with two workers
	plan = scheduler.ContinuePlan(plan, stage)
	fmt.Printf("%d workers from round %d to %d\n", job.Distribution.Workers, stage.First, plan.Rounds)
	fmt.Println(scheduler.LeavingReasons(job, 2, 3))
	// Output:
	// 3 workers from round 1 to 4
	// [1 worker comes, and begins with nothing of its own: moments are reset, statistics are the others' mean]
}

// A job of which nothing is known but its timeouts is no longer than all of them, one after another.
func ExampleLongestTime() {
	plan := disdel.Plan{Workers: 4, Parallel: 2, Rounds: 3, Actions: []disdel.ActionPlan{
		{Task: disdel.TaskTrain, Limits: disdel.Limits{Timeout: disdel.Millis(time.Minute)}},
	}}
	fmt.Println(scheduler.LongestTime(plan))
	// Output: 6m0s
}

// A train action of LeNet-5 was killed and is likely to need 300 MB. Each of more workers stays within 192 MB.
func ExampleFitKilled() {
	in, err := lenet()
	if err != nil {
		fmt.Println(err)
		return
	}
	killed := scheduler.KilledAction{Task: disdel.TaskTrain, Need: 300 * disdel.MB, Batch: 64, Workers: 2}
	for _, c := range scheduler.FitKilled(in, killed, 192*disdel.MB) {
		fmt.Println(c.Set)
	}
	// Output:
	// [distribution.workers=2 data.keep=disk]
	// [distribution.workers=5]
}

// With six workers, which exchange updates for most of an epoch, an earlier job was slower than with one: one pays.
func ExampleScalingOf() {
	in, err := lenet()
	if err != nil {
		fmt.Println(err)
		return
	}
	in.Data.Checksum = "c"
	for _, seen := range []struct {
		workers int
		epoch   time.Duration
	}{{1, 2 * time.Second}, {6, 10 * time.Second}} {
		r := disdel.Record{Status: disdel.StatusSucceeded, Data: in.Data, Job: in.Job}
		for epoch := range 4 {
			r.Rounds = append(r.Rounds, disdel.Round{Round: epoch, Observed: &disdel.Observation{
				Setting: disdel.Setting{Workers: seen.workers}, Round: epoch, Epoch: float64(epoch + 1),
				Rows: in.Data.Train, Duration: disdel.Millis(seen.epoch),
			}})
		}
		in.History = append(in.History, r)
	}
	s := scheduler.ScalingOf(in)
	fmt.Println(s.Workers)
	// Output: 1
}

// Any batch may be looked for where the memory of the network is known.
func ExampleCheckKnownMemory() {
	in, err := lenet()
	if err == nil {
		err = scheduler.CheckKnownMemory(in, 300*disdel.MB)
	}
	fmt.Println(err)
	// Output: <nil>
}
