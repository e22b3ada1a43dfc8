package scheduler

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/disdel/disdel"
)

// passed is the limits that earlier jobs of this kind had come to for a task after smaller ones were too small, and the
// job with the largest; zero where no limit was. Another batch, number of workers, optimiser or engine is another kind.
func (b *planBuilder) passed(task disdel.Task) (least disdel.Limits, by disdel.JobID) {
	for i := range b.History {
		for _, stage := range b.History[i].ByStage() {
			if !b.sameKind(stage) {
				continue
			}
			l := CameTo(stage, task)
			if l.Memory > least.Memory || l.Timeout > least.Timeout {
				by = stage.ID
			}
			least.Memory, least.Timeout = max(least.Memory, l.Memory), max(least.Timeout, l.Timeout)
		}
	}
	return least, by
}

func (b *planBuilder) sameKind(r *disdel.Record) bool {
	was, is := r.Job.Training, b.Job.Training
	return r.Data.Same(b.Data) && r.Plan.Workers == b.plan.Workers &&
		r.Plan.WorkerBatch(&r.Job) == b.plan.WorkerBatch(&b.Job) &&
		was.Backend == is.Backend && was.Optimizer.Name() == is.Optimizer.Name() &&
		was.Precision.Short() == is.Precision.Short()
}

// underrated is how many times the estimate the actions of a task have needed in earlier jobs of the same network where
// they were killed at what was estimated for them, and the job that needed the most: whatever its data, batch and
// workers were, it is the estimate of this network that was too low. 1 where none was.
func (b *planBuilder) underrated(task disdel.Task, method string) (times float64, by disdel.JobID) {
	past := b.Past
	if past == nil {
		past = b.History
	}
	times = 1
	for i := range past {
		for _, stage := range past[i].ByStage() {
			a, _ := stage.Plan.Action(task)
			if !b.sameNetwork(stage) || a.Estimate.Method != method || a.Estimate.Total == 0 || !killedAtEstimate(stage, task) {
				continue
			}
			if n := float64(CameTo(stage, task).Memory) / float64(a.Estimate.Total); n > times {
				times, by = n, stage.ID
			}
		}
	}
	return times, by
}

// sameNetwork is the same network on the same engine, with an optimiser that keeps as much.
func (b *planBuilder) sameNetwork(r *disdel.Record) bool {
	was, is := r.Job, b.Job
	return was.Training.Backend == is.Training.Backend &&
		was.Training.Optimizer.Moments() == is.Training.Optimizer.Moments() && was.Model.Name == is.Model.Name &&
		was.Model.Custom == is.Model.Custom && reflect.DeepEqual(was.Model.Layers, is.Model.Layers)
}

// killedAtEstimate tells whether an action of a task was killed for memory although it had what was estimated for it.
func killedAtEstimate(r *disdel.Record, task disdel.Task) bool {
	return slices.ContainsFunc(r.Activations, func(a disdel.Activation) bool {
		return a.Task == task && a.Outcome == disdel.OutcomeOutOfMemory && a.Estimate > 0 && a.Limits.Memory >= a.Estimate
	})
}

// CameTo is the limits that a job had come to for a task: the smallest that passed above those that were too small, or,
// where none did, what the job is advised to ask for. Zero where no limit was too small.
func CameTo(r *disdel.Record, task disdel.Task) (next disdel.Limits) {
	var short disdel.Limits
	for _, a := range r.Activations {
		switch {
		case a.Task != task:
		case a.Outcome == disdel.OutcomeOutOfMemory && a.Limits.Memory > short.Memory:
			short.Memory = a.Limits.Memory
			next.Memory, _ = EnoughMemory(r, a)
		case a.Outcome == disdel.OutcomeTimeout && a.Limits.Timeout > short.Timeout:
			short.Timeout = a.Limits.Timeout
			next.Timeout, _ = EnoughTime(a, r.Job.Reliability.Retries)
		}
	}
	var enough disdel.Limits
	for _, a := range r.Activations {
		if a.Task != task || a.Outcome != disdel.OutcomeSuccess {
			continue
		}
		if m := a.Limits.Memory; m > short.Memory && (enough.Memory == 0 || m < enough.Memory) {
			enough.Memory = m
		}
		if t := a.Limits.Timeout; t > short.Timeout && (enough.Timeout == 0 || t < enough.Timeout) {
			enough.Timeout = t
		}
	}
	if short.Memory > 0 {
		next.Memory = cmp.Or(enough.Memory, next.Memory)
	}
	if short.Timeout > 0 {
		next.Timeout = cmp.Or(enough.Timeout, next.Timeout)
	}
	return next
}
