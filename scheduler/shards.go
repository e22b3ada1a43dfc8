package scheduler

import "github.com/disdel/disdel"

// Shards deals rows out to workers: contiguous, every row once, sizes differing by at most one.
func Shards(rows, workers int) []disdel.RowRange {
	out := make([]disdel.RowRange, workers)
	for w := range out {
		out[w] = disdel.RowRange{Start: w * rows / workers, End: (w + 1) * rows / workers}
	}
	return out
}

// SpanOf is the part of a worker's training that a round of a plan is: where it starts, and how far it goes.
func SpanOf(job disdel.Job, p disdel.Plan, round int) disdel.Span {
	whole := p.Whole(job)
	return whole.Span(round)
}
