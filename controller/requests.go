package controller

import (
	"encoding/json"
	"fmt"
	"path"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// Spec is everything that a job's requests are made of. A Manager has its own copy, whose Plan, Stage, batch and
// threads are those of the stage of its round.
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
	// Continued is the job whose model this one trains further; nil: none. A resume takes it from the record.
	Continued *disdel.Continued

	ClassNames []string // by class; nil: the data set has none

	// Replan plans the job again with another setting or batch, for a policy or a failure. It has no side effects. nil:
	// the job is not planned again.
	Replan func(disdel.Job) (disdel.Plan, error)
	// Planned is the input of Plan. Remedies and advice after failures use it, too. nil: unknown.
	Planned *scheduler.PlanInput
	Policy  scheduler.Policy     // nil: the job's
	Past    []disdel.Observation // of earlier jobs of this kind, for the policy

	// Gangs says that the job was granted the containers of Plan, and requests those of a stage before it starts.
	Gangs bool

	// Keeps says that the store outlives the job, so that a later run can use an unfinished round.
	Keeps bool

	// For a resumed job; From also for a job that starts with given weights.
	From    *disdel.Checkpoint // where it continues; for round 0: its first weights; nil: drawn weights
	Done    []disdel.Round     // finished before
	Resumes int                // including this one
	Best    *disdel.Best       // whose weights are written; nil: none before From
	Stopped string             // why training had ended before its last epoch
	Began   int                // workers at the job's start; 0: those of Plan

	Stage     *disdel.Stage     // in which it continues; nil: the whole plan is one
	Before    int               // stages in its record so far: Stage's number
	Decisions []disdel.Decision // about later rounds: the policy does not decide again
	Kept      *disdel.Halfway   // in the store, of the round in which it continues; nil: nothing
}

// optimizer is the job's optimizer for the workers of the round. Workers that average their updates after every step
// share a batch. With fewer workers than at the job's start that batch has fewer rows, and the learning rate falls in
// proportion. A sum of updates falls with the workers by itself.
func (s *Spec) optimizer() disdel.Optimizer {
	o, x := s.Job.Training.Optimizer, s.Job.Distribution.Exchange
	if x == nil || x.Combine == disdel.CombineSum || s.Plan.Workers >= s.Began {
		return o
	}
	return o.WithRate(o.Rate() * float64(s.Plan.Workers) / float64(s.Began))
}

// span is the part of a worker's training in a round.
func (s *Spec) span(round int) disdel.TrainRange {
	if s.Stage == nil {
		return scheduler.SpanOf(s.Job, s.Plan, round)
	}
	return s.Stage.TrainRange(round)
}

// work is one invocation of a slot in a round.
type work struct {
	round, attempt, leg int
	limits              disdel.Limits // zero: the plan's
	hold                disdel.Millis // by the budget; 0: the timeout
}

// attemptsPerRun keeps the attempts of a resumed job above those of the dead controller.
const attemptsPerRun = 1000

// claim is the attempt in the store: a later run of the job is above an earlier one.
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

// estimate is the memory that the garbage collector keeps a process within. A limit that was raised because the
// estimate was too low replaces it.
func estimate(limits disdel.Limits, a disdel.ActionPlan) disdel.Bytes {
	if limits.Memory > a.Limits.Memory {
		return limits.Memory
	}
	return a.Estimate.Likely
}

// invocation fills in what all invocations have in common.
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

// queue is the longest that an invocation waits for other train actions of the job if the platform runs only some at
// once.
func (s *Spec) queue(own disdel.Limits) disdel.Millis {
	if s.Plan.Parallel <= 0 {
		return 0
	}
	train, _ := s.Plan.Action(disdel.TaskTrain)
	return disdel.Millis((s.Plan.Workers-1)/s.Plan.Parallel) * max(train.Limits.Timeout, own.Timeout)
}

// actionName is the plan's action, or one of its own for other limits: changing an action's limits would restart all
// its containers.
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

// saveEvery is the time between states that a worker stores inside a round: a failure costs no more than that.
const saveEvery = disdel.Millis(20 * time.Second)

// rows says where an action finds its rows, and where it keeps them.
func (s *Spec) rows() disdel.DataRef {
	d := s.Data
	d.OnDisk = d.OnDisk || s.Plan.OnDisk
	return d
}

func (s *Spec) train(w work, worker int, from string) disdel.Invocation {
	req := s.trainRequest(w, worker, from)
	out := s.invocation(disdel.Slot{Task: disdel.TaskTrain, Member: worker}, w, req)
	out.TrainRange = &req.TrainRange
	return out
}

func (s *Spec) trainRequest(w work, worker int, from string) disdel.TrainRequest {
	t, a := s.Job.Training, s.Job.Distribution.Aggregation
	limits, action := s.limits(disdel.TaskTrain, w)
	req := disdel.TrainRequest{
		Job: s.ID, Round: w.round, Worker: worker, Attempt: s.claim(w), Leg: w.leg,
		Network: s.Network, Data: s.rows(), Shard: s.Plan.Shards[worker],
		JobEpochs: t.Epochs, BatchSize: s.Plan.WorkerBatch(&s.Job),
		Optimizer: s.optimizer(), Schedule: t.Schedule, ClipNorm: t.ClipNorm, Loss: t.Loss,
		LabelSmoothing: t.LabelSmoothing, ClassWeights: t.ClassWeights.Values(), Target: s.target(),
		Threads: s.Threads, Backend: t.Backend, Exact: t.Exact, Precision: t.Precision, StepMemory: s.Plan.StepMemory,
		Wire: a.Wire, Threshold: a.Threshold, OptimizerState: a.OptimizerState, Statistics: a.Statistics,
		Models: s.Models, ReferenceCheckpoint: from, Given: s.given(), Store: s.Store, Memory: limits.Memory,
		Estimate: estimate(limits, action), Device: limits.Device, Hold: w.hold,
	}
	if n := len(s.Plan.Stages); n > 0 {
		part := s.Plan.Stages[worker%n]
		req.Worker = worker / n
		req.Pipeline = &disdel.PipelineStage{Stage: worker % n, Stages: n, From: part.From, To: part.To}
	}
	req.TrainRange = s.span(w.round)
	if x := s.Job.Distribution.Exchange; x != nil {
		req.Exchange, req.Members, req.Steps = x, s.Plan.Workers, Steps(&s.Job, &s.Plan, req.TrainRange)
		if x.Queued() {
			req.Shard = allRows(&s.Plan)
		}
	}
	if s.Job.Reliability.CheckpointEvery > 0 {
		req.SaveEvery = saveEvery
	}
	if s.checkpointDue(w.round) {
		req.StateCheckpoint = s.checkpoint(w.round+1, fmt.Sprintf("worker-%d", worker)) // as in actions.WorkerState
	}
	return req
}

// allRows is the rows of all workers.
func allRows(plan *disdel.Plan) disdel.RowRange {
	return disdel.RowRange{Start: plan.Shards[0].Start, End: plan.Shards[len(plan.Shards)-1].End}
}

// Steps is the number of steps in a span on the worker with the most rows. Of a queue one worker might take all.
func Steps(job *disdel.Job, plan *disdel.Plan, span disdel.TrainRange) (maximum int) {
	for _, rows := range shardsOf(job, plan) {
		maximum = max(maximum, stepsIn(job, plan, span, rows))
	}
	return maximum
}

// shardsOf returns the rows that no two workers train; a queue is one shard.
func shardsOf(job *disdel.Job, plan *disdel.Plan) []disdel.RowRange {
	if job.Distribution.Exchange.Queued() && len(plan.Shards) > 0 {
		return []disdel.RowRange{allRows(plan)}
	}
	return plan.Shards
}

// stepsIn is the number of steps in a span on a shard.
func stepsIn(job *disdel.Job, plan *disdel.Plan, span disdel.TrainRange, rows disdel.RowRange) int {
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

// checkpoint is the key of a part of the state that a round starts from.
func (s *Spec) checkpoint(round int, part string) string {
	return path.Join(CheckpointFolder(s.ID), fmt.Sprintf("%06d", round), part+".safetensors")
}

// given is the checkpoint of the weights that training began with, which has those of frozen layers. These are in no
// update, reference and later checkpoint. "" if no layer is frozen.
func (s *Spec) given() string {
	if !s.Network.HasFrozen() {
		return ""
	}
	return s.checkpoint(0, "reference") // as in modelstore.CopyToCheckpoint
}

// CheckpointFolder is the folder of a job's checkpoints below the models.
func CheckpointFolder(id disdel.JobID) string { return path.Join("checkpoints", string(id)) }

// keepsBest tells whether the model gets the weights of the best evaluation. That is the default for jobs whose
// workers leave past the knee of the loss: their last round need not be the best.
func (s *Spec) keepsBest() bool {
	e := s.Job.Training.Stop()
	if e == nil && s.Job.Distribution.Policy == (scheduler.MLLess{}).Name() {
		return s.Plan.HeldOut > 0 && s.Job.Training.ValidateEvery > 0
	}
	return s.stopsByEvaluations() && e.Keep == disdel.KeepBest
}

// stopsByEvaluations tells whether the job stops by its evaluations.
func (s *Spec) stopsByEvaluations() bool {
	e := s.Job.Training.Stop()
	return e != nil && e.Metric != disdel.MetricLoss && s.Plan.HeldOut > 0
}

// target is DiSDeL's epsilon, 0 if the job has none.
func (s *Spec) target() float64 {
	if e := s.Job.Training.Stop(); e != nil && e.Metric == disdel.MetricLoss && e.Target != nil {
		return *e.Target
	}
	return 0
}

// outputs are what an aggregation writes besides its update: the final weights, and a checkpoint if one is named;
// from is the existing checkpoint of its result, "" if there is none.
type outputs struct {
	final      bool
	from       string
	checkpoint string
}

// aggregate makes the invocation of one cluster with the given members.
func (s *Spec) aggregate(w work, height, cluster int, members []int, to outputs) disdel.Invocation {
	limits, action := s.limits(disdel.TaskAggregate, w)
	a := s.Job.Distribution.Aggregation
	req := disdel.AggregateRequest{
		Job: s.ID, Round: w.round, Level: height, Cluster: cluster, Attempt: s.claim(w),
		Top: height == len(s.Plan.Levels), Store: s.Store, Memory: limits.Memory, Estimate: estimate(limits, action),
		Network: s.Network, Wire: a.Wire, Hold: w.hold, Given: s.given(),
	}
	level := s.Plan.Levels[height-1]
	req.Averaged, req.Join, req.JoinShards = s.averaged(), level.Join, level.JoinShards
	if level.Shards > 1 {
		req.Shard, req.Shards, req.Next = level.Shard(cluster), level.Shards, s.Plan.Levels[height].JoinShards
	}
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

// averaged is the optimiser whose moments are averaged with the weights, nil if none are.
func (s *Spec) averaged() *disdel.Optimizer {
	if s.Job.Distribution.Aggregation.OptimizerState != disdel.StateAverage {
		return nil
	}
	return &s.Job.Training.Optimizer
}

// evaluate makes the invocation that evaluates a round, with so many rows at a time; from is its checkpoint, "" if
// there is none.
func (s *Spec) evaluate(w work, batch int, from string) disdel.Invocation {
	t := s.Job.Training
	limits, action := s.limits(disdel.TaskEvaluate, w)
	return s.invocation(disdel.Slot{Task: disdel.TaskEvaluate}, w, disdel.EvaluateRequest{
		Job: s.ID, Round: w.round, Network: s.Network, Data: s.rows(), Rows: disdel.RowRange{End: s.Plan.HeldOut},
		BatchSize: batch, Loss: t.Loss, Threads: s.Threads * s.Plan.Parallel, Backend: t.Backend, Exact: t.Exact,
		Averaged: s.averaged(), Models: s.Models, ReferenceCheckpoint: from, Given: s.given(),
		Store: s.Store, Memory: limits.Memory, Estimate: estimate(limits, action), Device: limits.Device, Hold: w.hold,
		InBlocks: action.Estimate.InBlocks, ByLayers: action.Estimate.ByLayers,
	})
}
