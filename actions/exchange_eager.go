package actions

import (
	"context"
	"slices"

	"github.com/disdel/disdel/aggregator/exchange"
)

// takeAhead has the next step of an eager member begin with all that others have sent; one that was made before, by an
// attempt that was killed, with what it began with then.
func (x *exchanging) takeAhead(ctx context.Context) error {
	if err := x.deltas.Look(ctx); err != nil {
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
			return err
		}
	}
	if _, err := x.fold(ctx, slices.Min(x.began)); err != nil {
		return err
	}
	for m, newest := range x.began {
		for m != self && x.replica.Has(m) < newest {
			step := x.replica.Has(m) + 1
			data, err := x.deltas.Fetch(ctx, step, m)
			if err != nil {
				return err
			}
			d, err := x.decode(data[m])
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

// last is the round's last step, which sends what is still owed.
func (x *exchanging) last() int { return x.t.req.Steps + 1 }

// decode reads what a member sent of a step.
func (x *exchanging) decode(data []byte) (d exchange.Delta, err error) {
	if x.config.Eager {
		if _, data, err = exchange.ReadVector(data, x.config.Members, x.last()); err != nil {
			return d, err
		}
	}
	return exchange.Read(data, len(x.weights))
}
