package actions

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/aggregator/exchange"
	"github.com/disdel/disdel/runtime/engine"
)

// exchanging is how a worker exchanges its updates with the others of its round, after every step. A worker that was
// killed goes on from its state, or from the start of the round: the deltas of the others are there still, and its own
// come out the same, so that nobody sees that it was away. nil: it exchanges nothing, and updates are averaged when the
// round ends.
type exchanging struct {
	t       *trainer
	config  exchange.Config
	replica *exchange.Replica
	deltas  *aggregator.Deltas
	arrays  []engine.Array // weights
	weights []float32      // all of them, one after another
	data    []byte         // of the own delta
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
			Combine: exchange.Combine(e.Combine),
		},
		deltas: t.session.store.Deltas(t.req.Job, t.req.Round, t.req.Members),
	}
	n := 0
	for _, a := range x.arrays {
		n += a.Len()
	}
	x.weights = make([]float32, n)
	return x
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

// before folds what the next step needs, and has the engine compute with it. paused: the deadline came first.
func (x *exchanging) before(ctx context.Context) (paused bool, err error) {
	if x == nil {
		return false, nil
	}
	begun := x.t.call.host.now()
	defer x.took(begun)
	if paused, err := x.fold(ctx, x.replica.Needed()); paused || err != nil {
		return paused, err
	}
	x.replica.Weights(x.weights)
	return false, x.write()
}

// after sends what the others are to have of the step that was made.
func (x *exchanging) after(ctx context.Context) error {
	if x == nil {
		return nil
	}
	begun := x.t.call.host.now()
	defer x.took(begun)
	if err := x.read(); err != nil {
		return err
	}
	return x.send(ctx, x.replica.Send)
}

func (x *exchanging) took(begun time.Time) {
	c := x.t.call
	c.phases[phaseExchange] += disdel.Millis(c.host.now().Sub(begun))
}

func (x *exchanging) send(ctx context.Context, of func([]float32) (exchange.Delta, error)) error {
	d, err := of(x.weights)
	if err != nil {
		return err
	}
	x.data = d.Append(x.data[:0])
	return x.t.session.store.CommitDelta(ctx, x.t.session.claim, x.replica.Made(), x.data)
}

// errPause says that a worker that waits for others has to end before its deadline.
var errPause = errors.New("the deadline is near")

// fold folds steps up to one, waiting for those that were not sent yet.
func (x *exchanging) fold(ctx context.Context, until int) (paused bool, err error) {
	for x.replica.Folded() < until {
		step := x.replica.Folded() + 1
		err := x.deltas.Wait(ctx, step, x.idle(ctx))
		if errors.Is(err, errPause) {
			x.t.res.Paused = true
			return true, x.t.save(ctx)
		}
		if err != nil {
			return false, err
		}
		deltas, err := x.fetch(ctx, step)
		if err != nil {
			return false, err
		}
		if err := x.replica.Fold(step, deltas); err != nil {
			return false, err
		}
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

func (x *exchanging) fetch(ctx context.Context, step int) ([]exchange.Delta, error) {
	data, err := x.deltas.Fetch(ctx, step)
	if err != nil {
		return nil, err
	}
	deltas := make([]exchange.Delta, len(data))
	for m := range data {
		if deltas[m], err = exchange.Read(data[m], len(x.weights)); err != nil {
			return nil, err
		}
	}
	return deltas, nil
}

// end makes all members equal: those with fewer batches than others take part in the steps that are left, everybody
// sends all that is owed, and the engine gets what all have. paused: the deadline came first; the next leg goes on
// here.
func (x *exchanging) end(ctx context.Context) (paused bool, err error) {
	if x == nil {
		return false, nil
	}
	begun := x.t.call.host.now()
	defer x.took(begun)
	last := x.t.req.Steps + 1
	for x.replica.Made() < last {
		if paused, err := x.fold(ctx, x.replica.Needed()); paused || err != nil {
			return paused, err
		}
		x.replica.Weights(x.weights)
		of := x.replica.Send
		if x.replica.Made() == last-1 {
			of = x.replica.Flush
		}
		if err := x.send(ctx, of); err != nil {
			return false, err
		}
	}
	if paused, err := x.fold(ctx, last); paused || err != nil {
		return paused, err
	}
	if err := x.replica.Settle(); err != nil {
		return false, err
	}
	x.replica.Weights(x.weights)
	return false, x.write()
}

// The names of a replica's state beside the engine's, in a worker's state.
const (
	exchangeShared = residualPrefix + "exchange.shared"
	exchangeLocal  = residualPrefix + "exchange.local"
	exchangeSent   = residualPrefix + "exchange.sent"
	exchangeAt     = residualPrefix + "exchange.at" // steps made and folded
)

// state is the replica as arrays of a worker's state.
func (x *exchanging) state() []array {
	if x == nil || x.replica == nil {
		return nil
	}
	s := x.replica.State()
	of := func(name string, data []float32) array {
		return array{Tensor: disdel.Tensor{Name: name, Shape: []int{len(data)}, Data: data}}
	}
	out := []array{
		of(exchangeShared, s.Shared), of(exchangeLocal, s.Local),
		of(exchangeAt, []float32{float32(s.Made), float32(s.Folded)}),
	}
	if s.Sent != nil {
		out = append(out, of(exchangeSent, s.Sent))
	}
	return out
}

// recall goes on from a state that was stored, whose arrays it takes out of the trainer's.
func (x *exchanging) recall(ctx context.Context) (err error) {
	if x == nil {
		return nil
	}
	var s exchange.State
	var at []float32
	kept := x.t.kept[:0:0]
	for _, v := range x.t.kept {
		switch v.Name {
		case exchangeShared:
			s.Shared = v.Data
		case exchangeLocal:
			s.Local = v.Data
		case exchangeSent:
			s.Sent = v.Data
		case exchangeAt:
			at = v.Data
		default:
			kept = append(kept, v)
		}
	}
	x.t.kept = kept
	if len(at) != 2 || len(s.Shared) != len(x.weights) {
		return &disdel.Error{
			Kind: disdel.Corrupt, Op: "read state", Job: x.t.req.Job, Msg: "it has no " + strings.TrimPrefix(exchangeAt, residualPrefix),
		}
	}
	s.Made, s.Folded = int(at[0]), int(at[1])
	var own []exchange.Delta
	for step := s.Folded + 1; step <= s.Made; step++ {
		data, err := x.deltas.Own(ctx, step, x.config.Member)
		if err != nil {
			return err
		}
		d, err := exchange.Read(data, len(x.weights))
		if err != nil {
			return err
		}
		own = append(own, d)
	}
	x.replica, err = exchange.Resume(x.config, s, own)
	return err
}
