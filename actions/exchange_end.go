package actions

import (
	"context"
	"errors"
)

// end makes all members equal: those with fewer batches than others take part in the steps that are left, everybody
// sends all that is owed and leaves, and the engine gets what all have. Batches of a queue are over for all at once,
// so that nobody goes on for the others there. paused: the deadline came first; the next leg goes on here.
func (x *exchanging) end(ctx context.Context) (paused bool, err error) {
	if x == nil {
		return false, nil
	}
	defer x.took(x.t.call.host.now())
	x.book.begin()
	for !x.gone() {
		if paused, err := x.prepare(ctx); paused || err != nil {
			return paused, err
		}
		x.book.lap(&x.book.step.Apply)
		of, last := x.replica.Send, x.queued || x.replica.Made() == x.last()-1
		if last {
			of = x.replica.Leave
		}
		if err := x.send(ctx, of, last); err != nil {
			return false, err
		}
	}
	if gone, err := x.letGo(ctx); gone || err != nil {
		return false, err
	}
	until, err := x.deltas.WaitEnd(ctx, x.idle(ctx))
	if errors.Is(err, errPause) {
		return true, x.pause(ctx)
	}
	if err != nil {
		return false, err
	}
	x.book.lap(&x.book.step.Wait)
	if paused, err := x.fold(ctx, until); paused || err != nil {
		return paused, err
	}
	if err := x.replica.Settle(); err != nil {
		return false, err
	}
	x.replica.Weights(x.weights)
	return false, x.write()
}

// letGo tells whether this member was let go while the round ran. It has sent what it owes, and does not wait for what
// the others make of it: they end with what all have, and it delivers nothing.
func (x *exchanging) letGo(ctx context.Context) (bool, error) {
	if !x.queued {
		return false, nil
	}
	req := x.t.req
	gone, err := x.t.session.store.IsLetGo(ctx, req.Job, req.Round, req.Worker)
	if gone {
		x.t.res.Left = x.replica.Made()
	}
	return gone, err
}

// pause stores the state, for the next leg, while others are waited for.
func (x *exchanging) pause(ctx context.Context) error {
	x.t.res.Paused, x.t.res.Waited = true, true
	return x.t.save(ctx)
}

// gone tells whether this member has made its last step, in this activation or in an earlier one.
func (x *exchanging) gone() bool {
	self, made := x.config.Member, x.replica.Made()
	left := x.deltas.LastStep(self)
	return left > 0 && made >= left || !x.replica.Participates(self, made+1)
}
