package disdel

import (
	"fmt"
	"strconv"
)

// Batch is a batch that the workers of a job share: DiSDeL's batch splitting (III-B), by which an action's memory falls
// with every worker that is added.
type Batch struct {
	Size int     `json:"size"` // rows of a step
	Of   BatchOf `json:"of"`   // whose rows they are
}

// BatchOf says whose rows a batch is.
type BatchOf string

// Of whom. A job file's batch of a worker is the same as its batchSize, and becomes that.
const (
	BatchOfWorker BatchOf = "worker" // every worker takes so many a step
	BatchOfJob    BatchOf = "job"    // all workers together do, each its share of them
)

// Shared tells whether the workers share a batch.
func (t Training) Shared() bool { return t.Batch != nil && t.Batch.Of == BatchOfJob }

// JobBatch is the rows that a job file gives: of every worker, or of the job where its workers share a batch.
func (t Training) JobBatch() int {
	if t.Batch != nil {
		return t.Batch.Size
	}
	return t.BatchSize
}

// WorkerBatch is the rows of a step on each of so many workers: the share of the job's batch, rounded up so that all
// workers are equal and none has nothing, or BatchSize where it is their own.
func (t Training) WorkerBatch(workers int) int {
	if !t.Shared() {
		return t.JobBatch()
	}
	workers = max(1, workers)
	return max(1, (t.Batch.Size+workers-1)/workers)
}

// Resized is the training with another batch, of whomever it is.
func (t Training) Resized(rows int) Training {
	t.BatchSize = rows
	if t.Batch != nil {
		t.Batch = &Batch{Size: rows, Of: t.Batch.Of}
	}
	return t
}

// WithWorkerBatch is the training with so many rows a step on each of so many workers; a batch that they share is then
// what all of them take.
func (t Training) WithWorkerBatch(rows, workers int) Training {
	if t.Shared() && t.WorkerBatch(workers) != rows {
		return t.Resized(rows * max(1, workers))
	}
	if !t.Shared() {
		return t.Resized(rows)
	}
	return t
}

// SameBatch tells whether two trainings take the same batch of the same.
func (t Training) SameBatch(other Training) bool {
	return t.JobBatch() == other.JobBatch() && t.Shared() == other.Shared()
}

// MostWorkers is how many workers rows are enough for: each needs a batch of its own.
func (t Training) MostWorkers(rows int) int {
	if t.Shared() { // a worker's share is smaller the more there are, down to a row
		return max(1, min(t.Batch.Size, rows))
	}
	return max(1, rows/max(1, t.JobBatch()))
}

// BatchField is the field of a job file that gives the batch: what advice names.
func (t Training) BatchField() string {
	if t.Batch != nil {
		return "training.batch.size"
	}
	return "training.batchSize"
}

// BatchText says what a step takes: "64", or "64 shared by 2 workers, 32 each".
func (p *Plan) BatchText(job *Job) string {
	if !job.Training.Shared() {
		return strconv.Itoa(job.Training.JobBatch())
	}
	return fmt.Sprintf("%d shared by %d workers, %d each", job.Training.JobBatch(), p.Workers, p.WorkerBatch(job))
}

// WorkerBatch is the rows of a step on each worker of the plan.
func (p *Plan) WorkerBatch(job *Job) int {
	if p.BatchSize > 0 {
		return p.BatchSize
	}
	return job.Training.WorkerBatch(p.Workers)
}
