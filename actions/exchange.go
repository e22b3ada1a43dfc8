package actions

import (
	"context"
	"errors"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/aggregator/exchange"
	"github.com/disdel/disdel/runtime/engine"
)

// exchanging is how a worker exchanges its updates with the others of its round, after every step. A worker that was
// killed continues from its state, or from the start of the round: the deltas of the others are there still, and its
// own come out the same, so that nobody sees that it was away. nil: it exchanges nothing, and updates are averaged when
// the round ends.
type exchanging struct {
	t       *trainer
	config  exchange.Config
	queued  bool // batches are drawn from the round's queue
	replica *exchange.Replica
	deltas  *aggregator.Deltas
	arrays  []engine.Array  // weights
	weights []float32       // all of them, one after another
	began   exchange.Vector // of an eager step: what it began with
	data    []byte          // of the own delta
	folding []exchange.Delta
	missing []int // members whose deltas are to be read
	book    *stepBook
}

// phaseExchange is the time that a worker's steps wait, read, fold and send: part of compute's.
const phaseExchange = "exchange"

// newExchange is how a request wants its worker to exchange.
func (t *trainer) newExchange() *exchanging {
	e := t.req.Exchange
	if e == nil || t.req.Members < 2 || t.req.Probe {
		return nil
	}
	x := &exchanging{
		t: t, arrays: engine.Of(t.engine.State(), engine.Weight),
		config: exchange.Config{
			Members: t.req.Members, Member: t.req.Worker, Threshold: e.Threshold, Slack: e.Slack,
			Combine: exchange.Combine(e.Combine), Values: e.Values, Eager: e.Order == disdel.OrderEager,
		},
		deltas:  t.session.store.Deltas(t.req.Job, t.req.Round, t.req.Members),
		folding: make([]exchange.Delta, t.req.Members),
		queued:  e.Queued(),
	}
	steps := t.req.Steps + 1
	if x.queued { // of which each takes its part
		steps = 1 + steps/t.req.Members
	}
	x.book = newStepBook(t.call.host.now, steps)
	n := 0
	for _, a := range x.arrays {
		n += a.Len()
	}
	x.weights = make([]float32, n)
	return x
}

// look finds out what of the round there is already: an earlier attempt may have begun before.
func (x *exchanging) look(ctx context.Context) error {
	if x == nil {
		return nil
	}
	return x.deltas.ReadLog(ctx)
}

// log names the deltas that the round is made of, "" where none are.
func (x *exchanging) log() string {
	if x == nil {
		return ""
	}
	return x.deltas.LogID()
}

// named sees to it that the log has a name once this member has sent something. Who has sent a step and has not waited
// for others yet need not have read of it: a state without that name would be taken for one of any try of the round.
func (x *exchanging) named(ctx context.Context) error {
	if x == nil || x.replica == nil || x.replica.Made() == 0 || x.deltas.LogID() != "" {
		return nil
	}
	return x.deltas.ReadNews(ctx)
}

// start begins at the engine's weights, which are the round's reference.
func (x *exchanging) start() (err error) {
	if x == nil {
		return nil
	}
	if err := x.read(); err != nil {
		return err
	}
	x.replica, err = exchange.New(x.config, x.weights)
	return err
}

// read takes the engine's weights.
func (x *exchanging) read() error { return x.each(engine.Array.ReadAt) }

// write sets them.
func (x *exchanging) write() error { return x.each(engine.Array.WriteAt) }

func (x *exchanging) each(f func(a engine.Array, values []float32, at int) error) error {
	rest := x.weights
	for _, a := range x.arrays {
		if err := f(a, rest[:a.Len()], 0); err != nil {
			return err
		}
		rest = rest[a.Len():]
	}
	return nil
}

// before has the engine compute the next step with what it is to begin with. paused: the deadline came first.
func (x *exchanging) before(ctx context.Context) (paused bool, err error) {
	if x == nil {
		return false, nil
	}
	defer x.took(x.t.call.host.now())
	x.book.begin()
	if paused, err := x.prepare(ctx); paused || err != nil {
		return paused, err
	}
	defer x.book.lap(&x.book.step.Apply)
	return false, x.write()
}

// prepare folds what the next step needs, and writes the weights that it begins with.
func (x *exchanging) prepare(ctx context.Context) (paused bool, err error) {
	if paused, err := x.fold(ctx, x.replica.Needed()); paused || err != nil {
		return paused, err
	}
	if x.config.Eager {
		if err := x.takeAhead(ctx); err != nil {
			return false, err
		}
	}
	x.replica.Weights(x.weights)
	return false, nil
}

// filled notes that the batch is put together.
func (x *exchanging) filled() {
	if x != nil {
		x.book.lap(&x.book.step.Fetch)
	}
}

// after sends what the others are to have of the step that was made.
func (x *exchanging) after(ctx context.Context, m disdel.Metrics) error {
	if x == nil {
		return nil
	}
	defer x.took(x.t.call.host.now())
	x.book.lap(&x.book.step.Compute)
	x.book.trained(m)
	if err := x.read(); err != nil {
		return err
	}
	return x.send(ctx, x.replica.Send, false)
}

func (x *exchanging) took(begun time.Time) {
	c := x.t.call
	c.phases[phaseExchange] += disdel.Millis(c.host.now().Sub(begun))
}

// send ends a step by what the replica gives of it. last: it is this member's last.
func (x *exchanging) send(ctx context.Context, of func([]float32) (exchange.Delta, error), last bool) error {
	d, err := of(x.weights)
	if err != nil {
		return err
	}
	x.data = x.data[:0]
	if x.config.Eager {
		x.data = x.began.Append(x.data)
	}
	x.data = d.Append(x.data)
	x.book.lap(&x.book.step.Select)
	err = x.deltas.Commit(ctx, x.t.session.claim, x.replica.Made(), x.data, last)
	x.book.lap(&x.book.step.Write)
	x.book.sent(x.replica.Made(), d.Len(), len(x.data))
	return err
}

// errPause says that a worker that waits for others has to end before its deadline.
var errPause = errors.New("the deadline is near")

// fold folds steps up to one, waiting for those that were not sent yet.
func (x *exchanging) fold(ctx context.Context, until int) (paused bool, err error) {
	for x.replica.Folded() < until {
		step := x.replica.Folded() + 1
		err := x.deltas.Wait(ctx, step, x.idle(ctx))
		if errors.Is(err, errPause) {
			return true, x.pause(ctx)
		}
		if err != nil {
			return false, err
		}
		x.book.lap(&x.book.step.Wait)
		deltas, err := x.fetch(ctx, step)
		if err != nil {
			return false, err
		}
		x.book.lap(&x.book.step.Read)
		if err := x.replica.Fold(step, deltas); err != nil {
			return false, err
		}
		x.replica.Recycle(deltas)
		x.book.lap(&x.book.step.Apply)
		x.deltas.Forget(step)
	}
	return false, nil
}

// idle is what a worker does while it waits: it tells that it is alive, and looks at the time.
func (x *exchanging) idle(ctx context.Context) func() error {
	t := x.t
	return func() error {
		_, _, batches := t.roundBatches()
		if err := t.beat(ctx, t.req.Epoch+t.at.epoch, batches); err != nil {
			return err
		}
		if t.near(ctx) {
			return errPause
		}
		return nil
	}
}

// fetch is everybody's delta of the next step to be folded, good until it is called again. Those that are here are not
// read again, and who has left has sent none.
func (x *exchanging) fetch(ctx context.Context, step int) ([]exchange.Delta, error) {
	x.missing = x.missing[:0]
	for m := range x.folding {
		if left := x.deltas.LastStep(m); left > 0 {
			x.replica.SetLastStep(m, left)
		}
		var here bool
		if x.folding[m], here = x.replica.Next(m); !here && x.replica.Participates(m, step) {
			x.missing = append(x.missing, m)
		}
	}
	if len(x.missing) == 0 {
		return x.folding, nil
	}
	data, err := x.deltas.Fetch(ctx, step, x.missing...)
	if err != nil {
		return nil, err
	}
	for _, m := range x.missing {
		if x.folding[m], err = x.decode(ctx, step, m, data[m]); err != nil {
			return nil, err
		}
	}
	return x.folding, nil
}

// soFar is what this activation's steps have come to, nil where it makes none.
func (x *exchanging) soFar() *disdel.StepsSoFar {
	if x == nil {
		return nil
	}
	return new(x.book.soFar)
}

// course is where the time of this activation's steps went, nil where it made none.
func (x *exchanging) course() *disdel.StepCourse {
	if x == nil {
		return nil
	}
	return x.book.done()
}
