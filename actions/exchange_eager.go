package actions

import (
	"context"

	"github.com/disdel/disdel/aggregator/exchange"
)

// takeAhead lets the next step of an eager member begin with all deltas that others have sent. A step that a killed
// attempt had made begins with the same deltas as then.
func (x *exchanging) takeAhead(ctx context.Context) error {
	if err := x.deltas.Take(ctx); err != nil {
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
		for m != self && x.replica.Has(m) < newest {
			step := x.replica.Has(m) + 1
			data, err := x.deltas.Fetch(ctx, step, m)
			if err != nil {
				return err
			}
			d, err := x.decode(ctx, step, m, data[m])
			if err != nil {
				return err
			}
			if err := x.replica.Ahead(m, step, d); err != nil {
				return err
			}
		}
	}
	x.book.lap(&x.book.step.Read)
	return nil
}

// sentByAll is the last step of which the next one begins with the deltas of all members. Members that have left send
// no more. Later knowledge must not change a step that is repeated.
func (x *exchanging) sentByAll() int {
	until := x.replica.Made()
	for m, newest := range x.began {
		if left := x.deltas.Left(m); left == 0 || left > newest {
			until = min(until, newest)
		}
	}
	return until
}

// last is the round's last step, which sends all remaining changes.
func (x *exchanging) last() int { return x.t.req.Steps + 1 }

// decode reads a member's delta of a step; nil data is an empty delta of a member that has ended.
func (x *exchanging) decode(ctx context.Context, step, member int, data []byte) (d exchange.Delta, err error) {
	if data == nil {
		return d, nil
	}
	if x.config.Eager {
		_, data, err = exchange.ReadVector(data, x.config.Members, x.last())
	}
	if x.replica != nil {
		d = x.replica.Spare()
	}
	if err == nil {
		d, err = d.Read(data, len(x.weights))
	}
	if err != nil {
		return exchange.Delta{}, x.deltas.Unreadable(ctx, step, member, err)
	}
	return d, nil
}
