package controller

import (
	"encoding/json"
	"fmt"
	"path"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// Spec is everything a job's requests are made of. A Manager has a copy of its own, whose Plan, Stage, batch and
// threads are those of the stage that its round belongs to.
type Spec struct {
	ID      disdel.JobID
	Job     disdel.Job
	Network disdel.Network
	Data    disdel.DataRef
	Plan    disdel.Plan
	Store   disdel.Store
	Models  string // blob URL of the models and checkpoints
	Output  string // key of the final weights below Models
	Threads int    // of a train action
	Origin  *disdel.Origin

	ClassNames []string // by class; nil: the data set has none

	// Replan makes the plan of the job under another setting or with another batch, which a policy or a failure asked
	// for. nil: plans are not made anew. It is pure.
	Replan func(disdel.Job) (disdel.Plan, error)
	// Planned is the input that Plan was made from. Remedies and advice after failures are planned from it, too. nil:
	// unknown.
	Planned *scheduler.PlanInput
	Policy  scheduler.Policy     // nil: the one that the job names
	Past    []disdel.Observation // of earlier jobs of this kind, for the policy

	// Gangs says that the job was granted the containers of Plan, and asks for those of a stage before it begins.
	Gangs bool

	// Keeps says that the store outlives the job, so that what a budget stops halfway is of use to a later run.
	Keeps bool

	// Of a resumed job, or, From, that begins with weights it was given.
	From    *disdel.Checkpoint // where it goes on; of round 0: what it begins with; nil: drawn weights
	Done    []disdel.Round     // what was done before
	Resumes int                // times that it was taken up, this one included
	Best    *disdel.Best       // whose weights are written; nil: nobody's before From
	Stopped string             // why training had ended before its last epoch
	Began   int                // workers that the job began with; 0: those of Plan

	Stage     *disdel.Stage     // that it continues with; nil: the whole plan is one
	Before    int               // stages that its record has already: Stage's number
	Decisions []disdel.Decision // that were made of rounds to come, and hold: a policy is not asked again
	Kept      *disdel.Halfway   // what the store has of the round that it continues with; nil: nothing
}

// optimizer is the job's optimizer for the workers of the round. Workers that average their updates after every step
// share a batch. With fewer workers than the job began with, that batch has fewer rows, and the learning rate falls in
// proportion. A sum of updates falls with the workers by itself.
func (s *Spec) optimizer() disdel.Optimizer {
	o, x := s.Job.Training.Optimizer, s.Job.Distribution.Exchange
	if x == nil || x.Combine == disdel.CombineSum || s.Plan.Workers >= s.Began {
		return o
	}
	return o.WithRate(o.Rate() * float64(s.Plan.Workers) / float64(s.Began))
}

// span is the part of a worker's training that a round is.
func (s *Spec) span(round int) disdel.Span {
	if s.Stage == nil {
		return scheduler.SpanOf(s.Job, s.Plan, round)
	}
	return s.Stage.Span(round)
}

// work is one invocation of a slot in a round.
type work struct {
	round, attempt, leg int
	limits              disdel.Limits // zero: the plan's
	hold                disdel.Millis // by the budget; 0: for as long as the timeout
}

// attemptsPerRun keeps the attempts of a resumed job above those of the controller that died.
const attemptsPerRun = 1000

// claim is the attempt as the store sees it: a later run of the job is above an earlier one.
func (s *Spec) claim(w work) int { return s.Resumes*attemptsPerRun + w.attempt }

func invocationID(w work, s disdel.Slot) string {
	id := fmt.Sprintf("round %d/%s/%d", w.round, s.Task, s.Member)
	if s.Task == disdel.TaskAggregate {
		id = fmt.Sprintf("round %d/%s level %d/%d", w.round, s.Task, s.Level, s.Member)
	}
	if w.attempt > 1 {
		id += fmt.Sprintf("/attempt %d", w.attempt)
	}
	if w.leg > 0 {
		id += fmt.Sprintf("/leg %d", w.leg)
	}
	return id
}

// limits are those of a task: raised ones, or the plan's.
func (s *Spec) limits(task disdel.Task, w work) (disdel.Limits, disdel.ActionPlan) {
	action, _ := s.Plan.Action(task)
	if w.limits == (disdel.Limits{}) {
		return action.Limits, action
	}
	return w.limits, action
}

// estimate is what the collector keeps a process within: a limit that was raised because the estimate was too low is
// not to be held back by it.
func estimate(limits disdel.Limits, a disdel.ActionPlan) disdel.Bytes {
	if limits.Memory > a.Limits.Memory {
		return limits.Memory
	}
	return a.Estimate.Likely
}

// invocation fills in what every invocation of a task has in common.
func (s *Spec) invocation(at disdel.Slot, w work, params any) disdel.Invocation {
	limits, action := s.limits(at.Task, w)
	body, err := json.Marshal(params)
	if err != nil {
		panic(fmt.Sprintf("controller: request of %s cannot be written as JSON: %v", at.Task, err)) // plain data only
	}
	return disdel.Invocation{
		ID: invocationID(w, at), Job: s.ID, Task: at.Task, Action: actionName(action, limits),
		Round: w.round, Level: at.Level, Member: at.Member, Attempt: w.attempt, Leg: w.leg, Stage: s.Before,
		Limits: limits, Hold: w.hold, Estimate: action.Estimate.Total, Likely: action.Estimate.Likely,
		Params: body, Queue: s.queue(limits),
	}
}

// queue is the longest that an invocation waits for train actions of the job where the platform runs only some at once.
func (s *Spec) queue(own disdel.Limits) disdel.Millis {
	if s.Plan.Parallel <= 0 {
		return 0
	}
	train, _ := s.Plan.Action(disdel.TaskTrain)
	return disdel.Millis((s.Plan.Workers-1)/s.Plan.Parallel) * max(train.Limits.Timeout, own.Timeout)
}

// actionName is the plan's action, or one of its own for other limits: changing an action's limits would start all its
// containers anew.
func actionName(a disdel.ActionPlan, l disdel.Limits) disdel.ActionName {
	if l == a.Limits {
		return a.Name
	}
	name := fmt.Sprintf("%s-%dmb-%dms", a.Name, l.Memory.MB(), time.Duration(l.Timeout).Milliseconds())
	if l.Device != a.Limits.Device {
		name += fmt.Sprintf("-gpu%dmb", l.Device.MB())
	}
	return disdel.ActionName(name)
}

// saveEvery is the time between states that a worker stores inside a round, so that a failure costs no more than that.
const saveEvery = disdel.Millis(20 * time.Second)

func (s *Spec) train(w work, worker int, from string) disdel.Invocation {
	req := s.trainRequest(w, worker, from)
	out := s.invocation(disdel.Slot{Task: disdel.TaskTrain, Member: worker}, w, req)
	out.Span = &req.Span
	return out
}

func (s *Spec) trainRequest(w work, worker int, from string) disdel.TrainRequest {
	t, a := s.Job.Training, s.Job.Distribution.Aggregation
	limits, action := s.limits(disdel.TaskTrain, w)
	req := disdel.TrainRequest{
		Job: s.ID, Round: w.round, Worker: worker, Attempt: s.claim(w), Leg: w.leg,
		Network: s.Network, Data: s.Data, Shard: s.Plan.Shards[worker],
		JobEpochs: t.Epochs, BatchSize: s.Plan.WorkerBatch(&s.Job),
		Optimizer: s.optimizer(), Schedule: t.Schedule, ClipNorm: t.ClipNorm, Loss: t.Loss, Target: s.target(),
		Threads: s.Threads, Backend: t.Backend, Exact: t.Exact, Precision: t.Precision,
		Wire: a.Wire, Threshold: a.Threshold, Moments: a.Moments, Statistics: a.Statistics,
		Models: s.Models, ReferenceCheckpoint: from, Store: s.Store, Memory: limits.Memory,
		Estimate: estimate(limits, action), Device: limits.Device, Hold: w.hold,
	}
	req.Span = s.span(w.round)
	if x := s.Job.Distribution.Exchange; x != nil {
		req.Exchange, req.Members, req.Steps = x, s.Plan.Workers, Steps(&s.Job, &s.Plan, req.Span)
		if x.Queued() {
			req.Shard = whole(&s.Plan)
		}
	}
	if s.Job.Reliability.CheckpointEvery > 0 {
		req.SaveEvery = saveEvery
	}
	if s.checkpointDue(w.round) {
		req.StateCheckpoint = s.checkpoint(w.round+1, fmt.Sprintf("worker-%d", worker)) // where actions.WorkerState has it
	}
	return req
}

// whole is the rows of all workers.
func whole(plan *disdel.Plan) disdel.RowRange {
	return disdel.RowRange{Start: plan.Shards[0].Start, End: plan.Shards[len(plan.Shards)-1].End}
}

// Steps is how many steps a span is on the worker that has the most rows. Of a queue one worker might take all.
func Steps(job *disdel.Job, plan *disdel.Plan, span disdel.Span) (most int) {
	for _, rows := range shardsOf(job, plan) {
		most = max(most, stepsIn(job, plan, span, rows))
	}
	return most
}

// shardsOf are the rows that no two workers train; a queue is one shard.
func shardsOf(job *disdel.Job, plan *disdel.Plan) []disdel.RowRange {
	if job.Distribution.Exchange.Queued() && len(plan.Shards) > 0 {
		return []disdel.RowRange{whole(plan)}
	}
	return plan.Shards
}

// stepsIn is how many steps a span is on a shard.
func stepsIn(job *disdel.Job, plan *disdel.Plan, span disdel.Span, rows disdel.RowRange) int {
	size := max(1, min(plan.WorkerBatch(job), rows.Len()))
	batches := (rows.Len() + size - 1) / size
	n := span.Epochs*batches - min(span.Batch, batches)
	if span.Batches > 0 {
		n = min(n, span.Batches)
	}
	return max(0, n)
}

func (s *Spec) firstRound() int {
	if s.From == nil {
		return 0
	}
	return s.From.Round
}

// checkpointDue tells whether the state after a round goes to the blob store. After the last one the model is there.
func (s *Spec) checkpointDue(round int) bool {
	every := s.Job.Reliability.CheckpointEvery
	return every > 0 && (round+1)%every == 0 && round+1 < s.Plan.Rounds
}

// checkpoint is the key of a part of the state that round starts from.
func (s *Spec) checkpoint(round int, part string) string {
	return path.Join(CheckpointFolder(s.ID), fmt.Sprintf("%06d", round), part+".safetensors")
}

// CheckpointFolder is where the checkpoints of a job are, below the models.
func CheckpointFolder(id disdel.JobID) string { return path.Join("checkpoints", string(id)) }

// keepsBest tells whether the model gets the weights of the best evaluation. That is the default for jobs whose workers
// leave past the knee of the loss: their last round need not be the best.
func (s *Spec) keepsBest() bool {
	e := s.Job.Training.Stop()
	if e == nil && s.Job.Distribution.Policy == (scheduler.MLLess{}).Name() {
		return s.Plan.HeldOut > 0 && s.Job.Training.ValidateEvery > 0
	}
	return s.stopsByEvaluations() && e.Keep == disdel.KeepBest
}

// stopsByEvaluations tells whether the job stops by what held-out rows say.
func (s *Spec) stopsByEvaluations() bool {
	e := s.Job.Training.Stop()
	return e != nil && e.Metric != disdel.MetricLoss && s.Plan.HeldOut > 0
}

// target is DiSDeL's epsilon: 0 where the job has none.
func (s *Spec) target() float64 {
	if e := s.Job.Training.Stop(); e != nil && e.Metric == disdel.MetricLoss {
		return e.Target
	}
	return 0
}

// written is what an aggregation writes beside its update: the final weights, and a checkpoint where one is named; from
// is the checkpoint that there is of what it comes to, "" where there is none yet.
type written struct {
	final      bool
	from       string
	checkpoint string
}

// aggregate makes the invocation of one cluster, of the members that are there.
func (s *Spec) aggregate(w work, height, cluster int, members []int, to written) disdel.Invocation {
	limits, action := s.limits(disdel.TaskAggregate, w)
	a := s.Job.Distribution.Aggregation
	req := disdel.AggregateRequest{
		Job: s.ID, Round: w.round, Level: height, Cluster: cluster, Attempt: s.claim(w),
		Top: height == len(s.Plan.Levels), Store: s.Store, Memory: limits.Memory, Estimate: estimate(limits, action),
		Network: s.Network, Wire: a.Wire, Hold: w.hold,
	}
	req.Averaged = s.averaged()
	for _, m := range members {
		req.Members = append(req.Members, disdel.UpdateID{Job: s.ID, Round: w.round, Level: height - 1, Member: m})
	}
	if to.final {
		req.Models, req.WeightsKey, req.ReferenceCheckpoint = s.Models, s.Output, to.from
	}
	if to.checkpoint != "" {
		req.Models, req.NextCheckpoint = s.Models, to.checkpoint
	}
	return s.invocation(disdel.Slot{Task: disdel.TaskAggregate, Level: height, Member: cluster}, w, req)
}

// averaged is the optimiser whose moments are averaged with the weights, nil where none are.
func (s *Spec) averaged() *disdel.Optimizer {
	if s.Job.Distribution.Aggregation.Moments != disdel.StateAverage {
		return nil
	}
	return &s.Job.Training.Optimizer
}

// evaluate measures what came out of a round, so many rows at a time; from is its checkpoint, "" where there is none.
func (s *Spec) evaluate(w work, batch int, from string) disdel.Invocation {
	t := s.Job.Training
	limits, action := s.limits(disdel.TaskEvaluate, w)
	return s.invocation(disdel.Slot{Task: disdel.TaskEvaluate}, w, disdel.EvaluateRequest{
		Job: s.ID, Round: w.round, Network: s.Network, Data: s.Data, Rows: disdel.RowRange{End: s.Plan.HeldOut},
		BatchSize: batch, Loss: t.Loss, Threads: s.Threads * s.Plan.Parallel, Backend: t.Backend, Exact: t.Exact,
		Averaged: s.averaged(), Models: s.Models, ReferenceCheckpoint: from,
		Store: s.Store, Memory: limits.Memory, Estimate: estimate(limits, action), Device: limits.Device, Hold: w.hold,
	})
}
