package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/scheduler"
)

// plainly is a job on default serverless: one train invocation of all of it, by the executor alone. There is no
// manager, no aggregation, no leg, no retry and no evaluation; what its weights come to lies in the store.
type plainly struct {
	task    task
	limits  disdel.Limits
	batches int // of the first epoch alone; 0: all epochs
	threads int // 0: all processors
	seed    int64
}

// rounding is what a limit that a try has found is rounded up to.
const rounding = 64 * disdel.MB

// found is the limit that a try finds, which is not charged: of as many rows, but of two batches, whose peak is that of
// all others. There is one try of a job.
func (r *testbed) found(ctx context.Context, t task, seed int64) (disdel.Bytes, error) {
	if limit, ok := r.limits[t.id]; ok {
		return limit, nil
	}
	most := min(largestAction, r.bounds.pool)
	o, err := r.plain(ctx, envDefault, plainly{task: t, limits: r.atMost(most), batches: 2, seed: seed}, 0)
	if err != nil {
		return 0, err
	}
	if !o.Passed {
		return 0, fmt.Errorf("a try of %s: %s", t.id, o.Why)
	}
	r.limits[t.id] = min(most, (o.Action+rounding-1)/rounding*rounding)
	return r.limits[t.id], nil
}

// tried is a run within the limit that tries find: one that is killed for memory is another try, and not charged.
func (r *testbed) tried(ctx context.Context, env string, p plainly, turn int) (o outcome, err error) {
	if p.limits.Memory, err = r.found(ctx, p.task, p.seed); err != nil {
		return o, err
	}
	for {
		o, err = r.plain(ctx, env, p, turn)
		if err != nil || o.Passed || p.limits.Memory >= largestAction {
			return o, err
		}
		p.limits.Memory = min(largestAction, p.limits.Memory+rounding)
		r.limits[p.task.id] = p.limits.Memory
	}
}

// atMost is so much memory, and as much time as the platform gives.
func (r *testbed) atMost(memory disdel.Bytes) disdel.Limits {
	return disdel.Limits{Memory: memory, Timeout: disdel.Millis(cmp.Or(r.bounds.timeout, patient))}
}

// plain runs a job on default serverless.
func (r *testbed) plain(ctx context.Context, env string, p plainly, turn int) (outcome, error) {
	inv, err := r.invocation(ctx, p)
	if err != nil {
		return outcome{}, err
	}
	return r.invoked(ctx, env, p, turn, inv)
}

// invoked makes a job's one action, invokes it and waits for its end.
func (r *testbed) invoked(ctx context.Context, env string, p plainly, turn int, inv disdel.Invocation,
) (outcome, error) {
	by := r.parts.Executor
	pkg := scheduler.Package(inv.Job)
	begun := time.Now()
	err := by.Prepare(ctx, pkg, []disdel.ActionPlan{{Task: disdel.TaskTrain, Name: inv.Action, Limits: p.limits}})
	if err != nil {
		return outcome{}, err
	}
	id, err := by.Invoke(ctx, inv)
	if err != nil {
		return outcome{}, err
	}
	a, err := by.Wait(ctx, inv, id)
	if err != nil {
		return outcome{}, err
	}
	wall := time.Since(begun)
	_, swept := r.parts.Board.Sweep(ctx, inv.Job)
	return r.ended(env, p, turn, a, begun, wall), errors.Join(by.Remove(ctx, pkg), swept)
}

// ended is what the one activation came to. One that paused before its timeout would have been killed at it.
func (r *testbed) ended(env string, p plainly, turn int, a disdel.Activation, begun time.Time, wall time.Duration,
) outcome {
	o := p.task.outcome(env, turn, begun)
	o.Passed, o.Wall, o.Limit = a.Outcome == disdel.OutcomeSuccess, wall.Seconds(), p.limits.Memory
	o.Action, o.Sum = a.Peak, a.Peak
	o.Prepare, o.Compute = a.Phases["load"].Seconds()+a.Phases["fetch"].Seconds(), a.Phases["compute"].Seconds()
	o.Activations = []activation{activationOf(&a, begun)}
	var res disdel.TrainResult
	if json.Unmarshal(a.Result, &res) == nil {
		o.Seen = res.Accuracies
	}
	switch {
	case o.Passed:
		return o
	case a.Outcome == disdel.OutcomePaused:
		o.Why = fmt.Sprintf("killed at its timeout of %v", a.Limits.Timeout)
	case a.Failure != nil:
		o.Why = a.Failure.Error()
	default:
		o.Why = a.Outcome.String()
	}
	o.Failed, o.Lost = 1, a.Duration.Seconds()
	if a.Outcome == disdel.OutcomePaused {
		o.Lost = max(o.Lost, a.Limits.Timeout.Seconds())
		o.Wall += o.Lost - a.Duration.Seconds()
	}
	return o
}

// invocation is the one of a job.
func (r *testbed) invocation(ctx context.Context, p plainly) (inv disdel.Invocation, err error) {
	if err := r.sources.add(ctx, r.parts.Data, p.task); err != nil {
		return inv, err
	}
	job, err := p.task.parse(p.seed, disdel.SyncEnd)
	if err != nil {
		return inv, err
	}
	known, err := controller.Resolve(ctx, job, r.parts.Data, p.task.id, nowhere, nil)
	if err != nil {
		return inv, err
	}
	id := r.next()
	t := job.Training
	req := disdel.TrainRequest{
		Job: id, Attempt: 1, Network: known.Network, Data: r.dataRef(known.Data, job),
		Shard:      disdel.RowRange{End: known.Data.Train},
		TrainRange: disdel.TrainRange{Epochs: t.Epochs}, JobEpochs: t.Epochs, BatchSize: t.JobBatch(), Optimizer: t.Optimizer,
		Loss: t.Loss, Threads: cmp.Or(p.threads, threads()), Store: r.parts.Store, Memory: p.limits.Memory,
		Estimate: p.limits.Memory,
	}
	if p.batches > 0 {
		req.TrainRange = disdel.TrainRange{Epochs: 1, Batches: p.batches}
	}
	params, err := json.Marshal(req)
	return disdel.Invocation{
		ID: "round 0/train/0", Job: id, Task: disdel.TaskTrain, Attempt: 1, Limits: p.limits, Params: params,
		Action: disdel.ActionName(scheduler.Package(id) + "/train"), TrainRange: &req.TrainRange,
	}, err
}

func (r *testbed) dataRef(data disdel.DataInfo, job disdel.Job) disdel.DataRef {
	return disdel.DataRef{
		URL: r.url("datasets"), Name: data.Name, Checksum: data.Checksum, Split: job.Data.Split, Resize: data.Resize,
	}
}

// nowhere is the place of every field of a job that no file has.
func nowhere(string) (line, column int) { return 0, 0 }
