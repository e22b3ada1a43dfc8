package actions

import (
	"context"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/runtime/engine"
)

// pauseOrSave stores the worker's state if it is due, and tells whether the activation must end now. last: the epoch
// has no more batches of the round, so that a push is better than a pause.
func (t *trainer) pauseOrSave(ctx context.Context, last bool) (stop bool, err error) {
	if t.req.Probe {
		return t.probed(), nil
	}
	now := t.call.host.now()
	if t.near(ctx) && !(last && t.at.epoch+1 == t.req.Epochs) {
		t.res.Paused = true
		return true, t.save(ctx)
	}
	if every := time.Duration(t.req.SaveEvery); every > 0 && now.Sub(t.saved) >= max(every, saveShare*t.storing) {
		// A full store costs only what a failure would.
		if err := t.saveTimed(ctx, now); disdel.KindOf(err) != disdel.OverLimit {
			return false, err
		}
	}
	return false, nil
}

// near tells whether the deadline is so close that the worker must store its state and end.
func (t *trainer) near(ctx context.Context) bool {
	deadline, limited := ctx.Deadline()
	reserve := 2*t.longest + max(3*t.fetched, 2*t.storing) + deadline.Sub(t.start)/20
	if t.swap != nil { // it looks at the time so often while it waits for others
		reserve += 2 * aggregator.IdleEvery
	}
	return limited && deadline.Sub(t.call.host.now()) < reserve
}

// saveShare is how many times the duration of storing its state a worker trains before it stores again. Over a slow
// network, storing a large state takes longer than SaveEvery.
const saveShare = 4

// saveTimed stores the worker's state and measures the time. The next one is due SaveEvery after its end.
func (t *trainer) saveTimed(ctx context.Context, begun time.Time) error {
	err := t.save(ctx)
	t.saved = t.call.host.now()
	t.storing = t.saved.Sub(begun)
	return err
}

// Bounds of a probe: enough batches that the slow first ones hardly count, and not longer than a person waits.
const (
	probeBatches = 50
	probeTime    = 2 * time.Second
)

func (t *trainer) probed() bool {
	t.res.Paused = t.at.done >= probeBatches || t.call.host.now().Sub(t.saved) >= probeTime
	return t.res.Paused
}

// save stores the worker's complete state inside its round.
func (t *trainer) save(ctx context.Context) error {
	all := t.arrays(func(engine.Role) bool { return true })
	defer t.call.host.free() // what it went through would be there still when the update is copied, which takes as much
	all = append(all, t.swap.state()...)
	return t.store(ctx, t.midway(), false, newWritten(append(all, of(t.kept, residualPrefix)...)))
}

// carry stores the state that passes to this worker's next round. It comes before the update: the round's checkpoint
// needs it.
func (t *trainer) carry(ctx context.Context, residual disdel.Weights) error {
	if !t.carries() {
		return nil
	}
	all := t.arrays(func(r engine.Role) bool {
		return r == engine.Moment && t.req.Moments == disdel.StateKeep ||
			r == engine.Statistic && t.req.Statistics == disdel.StateKeep
	})
	all = append(all, of(renamed(residual, residualPrefix, ""), residualPrefix)...)
	next := t.req.ID()
	next.Round++
	defer t.call.host.free() // as in save
	state := newWritten(all)
	if err := t.store(ctx, next, true, state); err != nil || t.req.StateCheckpoint == "" {
		return err
	}
	text, err := t.note(true)
	if err != nil {
		return err
	}
	return t.session.checkpointState(ctx, t.req, text, state.shapes, state.read)
}

// residual is the rounding error of the last round's update.
func (t *trainer) residual() disdel.Weights {
	_, _, r := split(t.kept)
	if r == nil {
		return nil
	}
	return renamed(r, "", residualPrefix)
}
