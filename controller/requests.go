package controller

import (
	"encoding/json"
	"fmt"

	"github.com/disdel/disdel"
)

// Spec is everything a job's requests are made of. It does not change while the job runs.
type Spec struct {
	ID      disdel.JobID
	Job     disdel.Job
	Network disdel.Network
	Data    disdel.DataRef
	Plan    disdel.Plan
	Store   disdel.Store
	Models  string // blob URL of the models
	Output  string // key of the final weights below Models
	Threads int    // of a train action
}

func invocationID(round int, task disdel.Task, level, member int) string {
	if task == disdel.TaskAggregate {
		return fmt.Sprintf("round %d/%s level %d/%d", round, task, level, member)
	}
	return fmt.Sprintf("round %d/%s/%d", round, task, member)
}

// invocation fills in what every invocation of a task has in common.
func (s *Spec) invocation(task disdel.Task, round, level, member int, params any) disdel.Invocation {
	action, _ := s.Plan.Action(task)
	body, err := json.Marshal(params)
	if err != nil {
		panic(fmt.Sprintf("controller: request of %s cannot be written as JSON: %v", task, err)) // plain data only
	}
	return disdel.Invocation{
		ID: invocationID(round, task, level, member), Task: task, Action: action.Name,
		Round: round, Level: level, Member: member, Attempt: 1,
		Limits: action.Limits, Estimate: action.Estimate.Total, Params: body,
	}
}

func (s *Spec) memory(task disdel.Task) (limit, estimate disdel.Bytes) {
	action, _ := s.Plan.Action(task)
	return action.Limits.Memory, action.Estimate.Likely
}

func (s *Spec) train(round, worker int) disdel.Invocation {
	t := s.Job.Training
	limit, estimate := s.memory(disdel.TaskTrain)
	return s.invocation(disdel.TaskTrain, round, 0, worker, disdel.TrainRequest{
		Job: s.ID, Round: round, Worker: worker, Attempt: 1,
		Network: s.Network, Data: s.Data, Shard: s.Plan.Shards[worker],
		Epochs: s.Plan.Epochs, Epoch: round * s.Plan.Epochs, JobEpochs: t.Epochs, BatchSize: t.BatchSize,
		Optimizer: t.Optimizer, Schedule: t.Schedule, ClipNorm: t.ClipNorm, Loss: t.Loss, Target: s.target(), Threads: s.Threads, Backend: t.Backend,
		Store: s.Store, Memory: limit, Estimate: estimate,
	})
}

// target is DiSDeL's epsilon: 0 where the job has none.
func (s *Spec) target() float64 {
	if e := s.Job.Training.EarlyStop; e != nil && e.Metric == "loss" {
		return e.Target
	}
	return 0
}

// aggregate makes the invocation of one cluster. publish adds the writing of the final weights.
func (s *Spec) aggregate(round, height, cluster int, publish bool) disdel.Invocation {
	level := s.Plan.Levels[height-1]
	limit, estimate := s.memory(disdel.TaskAggregate)
	req := disdel.AggregateRequest{
		Job: s.ID, Round: round, Level: height, Cluster: cluster, Attempt: 1,
		Top: height == len(s.Plan.Levels), Store: s.Store, Memory: limit, Estimate: estimate, Network: s.Network,
	}
	for _, m := range level.Clusters[cluster] {
		req.Members = append(req.Members, disdel.UpdateID{Job: s.ID, Round: round, Level: height - 1, Member: m})
	}
	if publish {
		req.Models, req.Path = s.Models, s.Output
	}
	return s.invocation(disdel.TaskAggregate, round, height, cluster, req)
}

func (s *Spec) evaluate(round int) disdel.Invocation {
	t := s.Job.Training
	limit, estimate := s.memory(disdel.TaskEvaluate)
	return s.invocation(disdel.TaskEvaluate, round, 0, 0, disdel.EvaluateRequest{
		Job: s.ID, Round: round, Network: s.Network, Data: s.Data, Rows: disdel.Rows{End: s.Plan.HeldOut},
		BatchSize: t.BatchSize, Loss: t.Loss, Threads: s.Threads * s.Plan.Parallel, Backend: t.Backend,
		Store: s.Store, Memory: limit, Estimate: estimate,
	})
}
