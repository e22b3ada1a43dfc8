package controller

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/disdel/disdel"
)

// Adjusted is the job of a record as its failures left it: with the batch that it was planned again with.
func Adjusted(r disdel.Record) disdel.Job {
	job := r.Job
	for _, a := range r.Adjustments {
		ofTraining := strings.Contains(a.Invocation, "/"+string(disdel.TaskTrain)+"/") // an evaluation's own is not the job's
		n, err := strconv.Atoi(a.To)
		if a.Field == "batchSize" && ofTraining && err == nil && a.From == strconv.Itoa(job.Training.BatchSize) {
			job.Training.BatchSize = n
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
	if c.Round >= spec.Plan.Rounds {
		return no("the job now has %d rounds, and its checkpoint is of round %d", spec.Plan.Rounds, c.Round+1)
	}
	before := Spec{Job: Adjusted(r), Plan: r.Plan}
	was, wasBatch, _, _ := before.stretch(c.Round)
	epoch, batch, _, _ := spec.stretch(c.Round)
	if was != epoch || wasBatch != batch {
		return no("round %d began at batch %d of epoch %d, and now begins at batch %d of epoch %d", c.Round+1, wasBatch+1, was+1, batch+1, epoch+1)
	}
	if size := before.Job.Training.BatchSize; batch > 0 && size != spec.Job.Training.BatchSize {
		return no("round %d begins in the middle of an epoch, and batches had %d rows, not %d", c.Round+1, size, spec.Job.Training.BatchSize)
	}
	if batch > 0 && r.Plan.Workers != spec.Plan.Workers {
		return no("round %d begins in the middle of an epoch, which %d workers began and not %d", c.Round+1, r.Plan.Workers, spec.Plan.Workers)
	}
	return nil
}
