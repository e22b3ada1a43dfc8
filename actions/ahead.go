package actions

import "github.com/disdel/disdel"

// learn trains on a batch. An engine that takes batches ahead is handed the one that follows while it computes; for
// others it is filled meanwhile, where the feed does so. then is below 0 where nobody knows yet which that is.
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
