package actions

import "github.com/disdel/disdel"

// step trains on a batch of the epoch. An engine that takes batches ahead gets the next one of those before end while
// it computes, unless a queue says which that is: nobody knows it yet.
func (t *trainer) step(epoch, batch, end int) (disdel.Metrics, error) {
	ahead := t.engine.Ahead()
	if ahead == nil {
		t.fill(epoch, batch)
		t.swap.filled()
		return t.engine.Step(t.input)
	}
	if t.staged != batch+1 {
		t.fill(epoch, batch)
		if err := ahead.Stage(t.input); err != nil {
			return disdel.Metrics{}, err
		}
	}
	t.swap.filled()
	t.staged = 0
	return ahead.StepStaged(func() error {
		next := batch + 1
		if next >= end || t.swap.draws() {
			return nil
		}
		t.fill(epoch, next)
		t.staged = next + 1
		return ahead.Stage(t.input)
	})
}

// rows are those of a batch, of the epoch's order.
func (t *trainer) rows(batch int) []int32 {
	n, size := t.shard.Len(), t.batch()
	return t.order[batch*size : min((batch+1)*size, n)]
}

// fill reads a batch into the input.
func (t *trainer) fill(epoch, batch int) {
	t.shard.FillAugmented(&t.input, t.rows(batch), t.req.Network.Init.Seed, epoch)
}
