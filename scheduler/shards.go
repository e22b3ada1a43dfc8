package scheduler

import "github.com/disdel/disdel"

// Shards deals rows out to workers: contiguous, every row once, sizes differing by at most one.
func Shards(rows, workers int) []disdel.Rows {
	out := make([]disdel.Rows, workers)
	for w := range out {
		out[w] = disdel.Rows{Start: w * rows / workers, End: (w + 1) * rows / workers}
	}
	return out
}

// SpanOf is the part of a worker's training that a round of a plan is: where it starts, and how far it goes.
func SpanOf(job disdel.Job, p disdel.Plan, round int) disdel.Span {
	if p.Batches == 0 {
		return disdel.Span{Epoch: round * p.Epochs, Epochs: p.Epochs}
	}
	per := max(1, p.Rounds/max(1, job.Training.Epochs)) // rounds of an epoch
	i := round % per
	out := disdel.Span{Epoch: round / per, Batch: i * p.Batches, Epochs: 1}
	if i < per-1 {
		out.Batches = p.Batches // the last round of an epoch takes what is left
	}
	return out
}
