package actions

import "context"

// batch returns the next batch of this worker: its own, or one from the round's queue. ok is false if the queue is
// empty; the worker then leaves. A repeated step gets the same batch again.
func (x *exchanging) batch(ctx context.Context, next int) (batch int, ok bool, err error) {
	if !x.draws() {
		return next, true, nil
	}
	step := x.replica.Made() + 1
	if left := x.deltas.Left(x.config.Member); left > 0 && step >= left { // there was none for this step before
		return 0, false, nil
	}
	_, _, batches := x.t.roundBatches()
	batch, ok, err = x.t.session.store.DrawBatch(ctx, x.t.session.claim, step, batches)
	x.book.lap(&x.book.step.Fetch)
	return batch, ok, err
}

// draws tells whether the workers share a queue of batches.
func (x *exchanging) draws() bool { return x != nil && x.queued }
