package actions

import (
	"context"
	"errors"
)

// end gives all members the same weights. Members with fewer batches take part in the remaining steps, and everybody
// sends the changes that it still owes. Batches of a queue end for all members at once. paused: the deadline came
// first; the next leg continues here.
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

// letGo tells whether this member was removed during the round. It has sent its changes, does not wait for the others
// and delivers no update.
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

// pause stores the state for the next leg, while other members are missing.
func (x *exchanging) pause(ctx context.Context) error {
	x.t.res.Paused, x.t.res.Waited = true, true
	return x.t.save(ctx)
}

// gone tells whether this member has made its last step, in this activation or an earlier one.
func (x *exchanging) gone() bool {
	self, made := x.config.Member, x.replica.Made()
	left := x.deltas.Left(self)
	return left > 0 && made >= left || !x.replica.There(self, made+1)
}
