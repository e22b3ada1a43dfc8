package scheduler

import (
	"github.com/disdel/disdel"
)

// sideBySide is how many jobs share the processors, this one among them: of those that were submitted together, as many
// as the pool holds at once if all are of this one's size, with so many workers.
func (b *planBuilder) sideBySide(workers int) int {
	if b.Beside <= 0 {
		return 1
	}
	at := b.Beside + 1
	pool := b.Platform.Pool
	if pool <= 0 {
		return at
	}
	one := *b
	one.plan.Workers, one.side = workers, at
	train := b.limit(one.estimate(workers).Total)
	if own := b.Job.Resources.Memory; own > 0 {
		train = own
	}
	room := disdel.Bytes(workers)*train + b.limit(b.Estimator.Aggregate(one.input(0, 1)).Total)
	if b.Data.HeldOut > 0 {
		room += b.limit(b.Estimator.Evaluate(one.input(b.Data.HeldOut, 1)).Total)
	}
	return min(at, max(1, int(pool/room)))
}

// want is how many processors train actions of so many jobs take, with so many workers each.
func (b *planBuilder) want(jobs, workers int) float64 {
	each := 1.0
	if most := b.Platform.Millicores; most > 0 {
		each = min(1, float64(most)/1000)
	}
	return float64(jobs*workers) * each
}

// plenty is how many times the processors are wanted by jobs that begin with fewer workers: the last ones of a batch
// leave some idle otherwise, and so do jobs of very different lengths.
const plenty = 1.5

// fairShare takes back workers of a job of a batch where the processors are plentily wanted without them: nothing is
// faster for workers that take turns, and each of them moves all of the weights. What its memory needs stays.
func (b *planBuilder) fairShare(limit disdel.Bytes) {
	rule := b.plan.Workers
	b.side = b.sideBySide(rule)
	if b.Beside <= 0 || b.Processors <= 0 {
		return
	}
	for n := rule - 1; n > 0; n-- {
		side, e := b.sideBySide(n), b.estimate(n)
		if b.want(side, n) < plenty*float64(b.Processors) || e.Total > limit {
			break
		}
		b.plan.Workers, b.train, b.side = n, e, side
	}
	if n := b.plan.Workers; n < rule {
		b.because("workers: %d of these %d, since %d jobs of a batch share %d processors", n, rule, b.side, b.Processors)
	}
}

// besideOf is how many jobs an earlier one was submitted with: with its workers it was one of so many.
func besideOf(r *disdel.Record) int {
	if r.Planning == nil {
		return 0
	}
	return r.Planning.Beside
}
