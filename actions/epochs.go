package actions

import (
	"context"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// compute trains the batches that the round still needs.
func (t *trainer) compute(ctx context.Context) error {
	t.feed = newFeed(t.engine, t.shard, t.batch(), t.req.Threads)
	setThreads(t.feed.threads(t.req.Threads))
	if t.swap != nil && t.req.Estimate > 0 {
		defer roomFor(disdel.ExchangeGarbage, t.req.Memory, slab(t.engine))()
	}
	t.saved = t.call.host.now()
	for t.at.epoch < t.req.Epochs && !t.res.Reached && !t.res.Paused {
		if err := t.epoch(ctx); err != nil {
			return err
		}
	}
	if !t.res.Paused {
		if _, err := t.swap.end(ctx); err != nil {
			return err
		}
	}
	t.res.Samples = min(t.at.rows, t.shard.Len())
	t.res.Losses, t.res.Epochs, t.res.BatchesDone = t.at.losses, len(t.at.losses), t.at.done
	if n := len(t.at.losses); n > 0 {
		t.res.Loss = t.at.losses[n-1]
	}
	if !t.at.blind {
		t.res.Accuracies = t.at.accuracies
	}
	return nil
}

// roundBatches are the batches of the current epoch that belong to the round.
func (t *trainer) roundBatches() (first, end, batches int) {
	size := t.batch()
	batches = (t.shard.Len() + size - 1) / max(size, 1)
	if t.at.epoch == 0 {
		first = min(t.req.Batch, batches)
	}
	end = batches
	if t.req.Batches > 0 {
		end = min(first+t.req.Batches, batches)
	}
	return first, end, batches
}

func (t *trainer) batch() int { return min(t.req.BatchSize, t.shard.Len()) }

// epoch trains the round's batches of one epoch, in an order that depends on job, epoch and worker. It always sets the
// rate, because a warm engine may still have that of an earlier job.
func (t *trainer) epoch(ctx context.Context) error {
	epoch := t.req.Epoch + t.at.epoch
	t.engine.SetRate(t.req.Optimizer.Rate() * t.req.Schedule.Factor(epoch, t.req.JobEpochs))
	first, end, batches := t.roundBatches()
	t.shuffle(epoch)
	defer t.feed.wait() // it reads order and shard
	t.at.batch, t.staged = max(t.at.batch, first), 0
	// This heartbeat tells that the action has started.
	if err := t.beat(ctx, epoch, batches); err != nil {
		return err
	}
	for t.at.batch < end {
		if paused, err := t.swap.before(ctx); paused || err != nil {
			return err
		}
		batch, ok, err := t.swap.batch(ctx, t.at.batch)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if err := t.step(ctx, batch, end); err != nil {
			return err
		}
		if err := t.beat(ctx, epoch, batches); err != nil {
			return err
		}
		if stop, err := t.pauseOrSave(ctx, t.at.batch == end); stop || err != nil {
			return err
		}
	}
	loss := t.at.endEpoch()
	t.res.Reached = t.req.Target > 0 && end == batches && loss <= t.req.Target
	return nil
}

// shuffle sets the order of an epoch's rows for the feed.
func (t *trainer) shuffle(epoch int) {
	n, size, whose := t.shard.Len(), t.batch(), t.req.Worker
	if t.req.Exchange.Queued() { // all have the same rows, and one order of them
		whose = 0
	}
	seed := t.req.Network.Init.Seed
	t.order = dataset.Order(t.order, seed, epoch, whose, n)
	t.feed.fill = func(b *dataset.Batch, batch int) {
		t.feed.filler.FillAugmented(b, t.order[batch*size:min((batch+1)*size, n)], seed, epoch)
	}
}

// step trains a batch while the feed fills the next one. The last batch of the epoch is end-1.
func (t *trainer) step(ctx context.Context, batch, end int) error {
	begun := t.call.host.now()
	then := batch + 1
	if then >= end || t.req.Exchange.Queued() { // who draws it is not known before
		then = -1
	}
	m, err := t.learn(batch, then)
	if err != nil {
		return err
	}
	if err := t.swap.after(ctx, m); err != nil {
		return err
	}
	t.at.step(m)
	t.res.Rows += m.Rows
	t.longest = max(t.longest, t.call.host.now().Sub(begun))
	return nil
}

func (t *trainer) beat(ctx context.Context, epoch, batches int) error {
	return t.session.beat(ctx, disdel.Progress{
		Task: disdel.TaskTrain, Round: t.req.Round, Member: t.req.Worker, Epoch: epoch + 1,
		Batch: t.at.batch, Batches: batches, Loss: t.at.sum / float64(max(t.at.seen, 1)), Steps: t.swap.soFar(),
	})
}
