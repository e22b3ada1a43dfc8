package controller

import (
	"fmt"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// Adjusted is the job of a record as its failures left it: with the batch that it was planned again with.
func Adjusted(r disdel.Record) disdel.Job {
	job := r.Job
	for _, a := range r.Adjustments {
		ofTraining := a.Task == disdel.TaskTrain // an evaluation's own is not the job's
		if a.Field == disdel.FieldBatchSize && ofTraining && a.From.Count == job.Training.BatchSize {
			job.Training.BatchSize = a.To.Count
		}
	}
	return job
}

// CheckResume refuses a job that was changed so that it cannot go on from a checkpoint of its record (Conflict): one that has
// fewer rounds now, or whose rounds begin elsewhere in the data.
func CheckResume(r disdel.Record, spec Spec, c disdel.Checkpoint) error {
	no := func(why string, args ...any) error {
		return &disdel.Error{
			Kind: disdel.Conflict, Op: "resume job", Job: r.ID, Msg: fmt.Sprintf(why, args...),
			Hint: "leave training.epochs, training.batchSize and distribution as they were, or submit the job anew",
		}
	}
	over := c.Round == r.Plan.Rounds // nothing was left to train
	if over && spec.Plan.Rounds == c.Round {
		return nil
	}
	if early := len(r.Rounds); over && early > 0 && r.Rounds[early-1].Round+1 < c.Round || r.Status == disdel.StatusSucceeded {
		return no("its training has ended, and the job now has %d rounds", spec.Plan.Rounds)
	}
	if c.Round >= spec.Plan.Rounds {
		return no("the job now has %d rounds, and its checkpoint is of round %d", spec.Plan.Rounds, c.Round+1)
	}
	before := Spec{Job: Adjusted(r), Plan: r.Plan}
	was, now := scheduler.SpanOf(before.Job, before.Plan, c.Round), scheduler.SpanOf(spec.Job, spec.Plan, c.Round)
	if was.Epoch != now.Epoch || was.Batch != now.Batch {
		return no("round %d began at batch %d of epoch %d, and now begins at batch %d of epoch %d",
			c.Round+1, was.Batch+1, was.Epoch+1, now.Batch+1, now.Epoch+1)
	}
	if size := before.Job.Training.BatchSize; now.Batch > 0 && size != spec.Job.Training.BatchSize {
		return no("round %d begins in the middle of an epoch, and batches had %d rows, not %d", c.Round+1, size, spec.Job.Training.BatchSize)
	}
	if now.Batch > 0 && r.Plan.Workers != spec.Plan.Workers {
		return no("round %d begins in the middle of an epoch, which %d workers began and not %d", c.Round+1, r.Plan.Workers, spec.Plan.Workers)
	}
	return nil
}

// TakeUp has a job go on from a checkpoint of its record: with the rounds that were done, and the best of them where its weights
// are there. Those of a round after the checkpoint are not, since that round is made anew, and may come out otherwise.
func TakeUp(r disdel.Record, spec *Spec, c disdel.Checkpoint) {
	spec.From = &c
	last := c.Round - 1
	for _, round := range r.Rounds {
		if round.Round < c.Round {
			spec.Done = append(spec.Done, round)
		}
	}
	over := c.Round >= spec.Plan.Rounds
	if over {
		spec.Stopped = r.Stopped
		last = trainedLast(r)
	}
	if n := len(spec.Done); n == 0 || spec.Done[n-1].Round < last {
		if round, ok := rebuilt(r, last); ok {
			spec.Done = append(spec.Done, round)
		}
	}
	if r.Best != nil && r.Best.Round < c.Round {
		spec.Best = r.Best
	}
}

// trainedLast is the newest round that train actions have ended in.
func trainedLast(r disdel.Record) (round int) {
	for _, a := range r.Activations {
		if a.Task == disdel.TaskTrain {
			round = max(round, a.Round)
		}
	}
	return round
}

// rebuilt is a round that the controller did not live to keep, from its train actions. ok is false where not all of them are known.
func rebuilt(r disdel.Record, round int) (out disdel.Round, ok bool) {
	losses := map[int]float64{}
	for _, a := range r.Activations {
		if a.Task == disdel.TaskTrain && a.Round == round && a.Loss != nil {
			losses[a.Member] = *a.Loss
		}
	}
	if len(losses) == 0 || len(losses) != r.Plan.Workers || len(r.Plan.Shards) < r.Plan.Workers {
		return out, false
	}
	var sum, rows float64
	for w := range r.Plan.Workers {
		n := float64(r.Plan.Shards[w].Len())
		sum, rows = sum+losses[w]*n, rows+n
	}
	return disdel.Round{Round: round, TrainLoss: sum / max(rows, 1)}, true
}
