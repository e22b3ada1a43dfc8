package actions

import "github.com/disdel/disdel"

// learn trains on a batch. Engines that take batches ahead get the next one while they compute; for the others the feed
// may fill it meanwhile. then is the number of the next batch, below 0 if it is unknown.
func (t *trainer) learn(batch, then int) (disdel.Metrics, error) {
	ahead := t.engine.Ahead()
	if ahead == nil {
		input := t.feed.take(batch, then)
		t.swap.filled()
		return t.engine.Step(input)
	}
	const unasked = -1 // the feed's own way would fill a batch more
	if t.staged != batch+1 {
		if err := ahead.Stage(t.feed.take(batch, unasked)); err != nil {
			return disdel.Metrics{}, err
		}
	}
	t.swap.filled()
	t.staged = 0
	return ahead.StepStaged(func() error {
		if then < 0 {
			return nil
		}
		t.staged = then + 1
		return ahead.Stage(t.feed.take(then, unasked))
	})
}
