package actions

import "context"

// batch is the next batch that this worker trains: its own next one, or the one that it draws from the round's queue,
// which counts them all. ok is false where the queue has none left: then it leaves. A step that is made again has the
// batch that it had.
func (x *exchanging) batch(ctx context.Context, next int) (batch int, ok bool, err error) {
	if !x.draws() {
		return next, true, nil
	}
	step := x.replica.Made() + 1
	if left := x.deltas.LastStep(x.config.Member); left > 0 && step >= left { // there was none for this step before
		return 0, false, nil
	}
	_, _, batches := x.t.roundBatches()
	batch, ok, err = x.t.session.store.DrawBatch(ctx, x.t.session.claim, step, batches)
	x.book.lap(&x.book.step.Fetch)
	return batch, ok, err
}

// draws tells that batches come from a queue that all workers share.
func (x *exchanging) draws() bool { return x != nil && x.queued }
