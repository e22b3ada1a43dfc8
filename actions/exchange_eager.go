package actions

import (
	"context"

	"github.com/disdel/disdel/aggregator/exchange"
)

// takeAhead has the next step of an eager member begin with all that others have sent; one that was made before, by an
// attempt that was killed, with what it began with then.
func (x *exchanging) takeAhead(ctx context.Context) error {
	if err := x.deltas.ReadNews(ctx); err != nil {
		return err
	}
	step, self := x.replica.Made()+1, x.config.Member
	x.began = x.began[:0]
	for m := range x.config.Members {
		x.began = append(x.began, x.deltas.Newest(m))
	}
	x.began[self] = x.replica.Made()
	if x.deltas.Newest(self) >= step {
		data, err := x.deltas.Own(ctx, step, self)
		if err != nil {
			return err
		}
		if x.began, _, err = exchange.ReadVector(data, x.config.Members, x.last()); err != nil {
			return x.deltas.Unreadable(ctx, step, self, err)
		}
	}
	if _, err := x.fold(ctx, x.sentByAll()); err != nil {
		return err
	}
	for m, newest := range x.began {
		for m != self && x.replica.NewestStep(m) < newest {
			step := x.replica.NewestStep(m) + 1
			data, err := x.deltas.Fetch(ctx, step, m)
			if err != nil {
				return err
			}
			d, err := x.decode(ctx, step, m, data[m])
			if err != nil {
				return err
			}
			if err := x.replica.AddEager(m, step, d); err != nil {
				return err
			}
		}
	}
	x.book.lap(&x.book.step.Read)
	return nil
}

// sentByAll is up to which step the next one begins with everybody's deltas. Who has left, as far as the step begins
// with what it left with, sends no more: what became known later has to change nothing for who makes the step again.
func (x *exchanging) sentByAll() int {
	until := x.replica.Made()
	for m, newest := range x.began {
		if left := x.deltas.LastStep(m); left == 0 || left > newest {
			until = min(until, newest)
		}
	}
	return until
}

// last is the round's last step, which sends what is still owed.
func (x *exchanging) last() int { return x.t.req.Steps + 1 }

// decode reads what a member sent of a step; nil is nothing: it was ended.
func (x *exchanging) decode(ctx context.Context, step, member int, data []byte) (d exchange.Delta, err error) {
	if data == nil {
		return d, nil
	}
	if x.config.Eager {
		_, data, err = exchange.ReadVector(data, x.config.Members, x.last())
	}
	if x.replica != nil {
		d = x.replica.NewDelta()
	}
	if err == nil {
		d, err = d.Read(data, len(x.weights))
	}
	if err != nil {
		return exchange.Delta{}, x.deltas.Unreadable(ctx, step, member, err)
	}
	return d, nil
}
