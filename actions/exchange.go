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

// exchanging exchanges a worker's updates with the other workers of its round after every step. A restarted worker
// continues from its state or from the start of the round: the deltas of the others are still in the store, and its own
// come out the same. nil: nothing is exchanged, and updates are averaged at the end of the round.
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

// newExchange makes the exchange that a request asks for, nil for none.
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

// look reads which steps of the round exist already, from an earlier attempt.
func (x *exchanging) look(ctx context.Context) error {
	if x == nil {
		return nil
	}
	return x.deltas.ReadLog(ctx)
}

// log identifies the deltas that the round is made of, "" for none.
func (x *exchanging) log() string {
	if x == nil {
		return ""
	}
	return x.deltas.LogID()
}

// named makes sure that the log has a name once this member has sent something. A member that has sent a step without
// waiting for others may not have read it yet; a state without that name would be valid for any attempt of the round.
func (x *exchanging) named(ctx context.Context) error {
	if x == nil || x.replica == nil || x.replica.Made() == 0 || x.deltas.LogID() != "" {
		return nil
	}
	return x.deltas.ReadNews(ctx)
}

// start begins with the engine's weights, which are the round's reference.
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

// read copies the engine's weights to the replica.
func (x *exchanging) read() error { return x.each(engine.Array.ReadAt) }

// write copies the replica's weights to the engine.
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

// before sets the weights with which the next step begins. paused: the deadline came first.
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

// prepare adds the deltas that the next step needs, and writes the weights that it begins with.
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

// filled records that the batch is complete.
func (x *exchanging) filled() {
	if x != nil {
		x.book.lap(&x.book.step.Fetch)
	}
}

// after sends this worker's delta of the step that was computed.
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

// send ends a step with a delta of the replica. last: it is the last one of this member.
func (x *exchanging) send(ctx context.Context, source func([]float32) (exchange.Delta, error), last bool) error {
	d, err := source(x.weights)
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

// errPause: a worker that waits for others has to end before its deadline.
var errPause = errors.New("the deadline is near")

// fold adds the deltas of all steps up to until, and waits for those that are missing.
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

// idle is called while a worker waits: it sends heartbeats and checks the deadline.
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

// fetch returns the deltas of all members for the next step; they are valid until the next call. Deltas in memory are
// not read again, and members that left have sent none.
func (x *exchanging) fetch(ctx context.Context, step int) ([]exchange.Delta, error) {
	x.missing = x.missing[:0]
	for m := range x.folding {
		if remaining := x.deltas.LastStep(m); remaining > 0 {
			x.replica.SetLastStep(m, remaining)
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

// soFar sums up this activation's steps, nil without any.
func (x *exchanging) soFar() *disdel.StepsSoFar {
	if x == nil {
		return nil
	}
	return new(x.book.soFar)
}

// course is where the time of this activation's steps went, nil without any.
func (x *exchanging) course() *disdel.StepCourse {
	if x == nil {
		return nil
	}
	return x.book.done()
}

// batch returns the next batch of this worker: its own, or one from the round's queue. ok is false if the queue is
// empty; the worker then leaves. A repeated step gets the same batch again.
func (x *exchanging) batch(ctx context.Context, next int) (batch int, ok bool, err error) {
	if !x.draws() {
		return next, true, nil
	}
	step := x.replica.Made() + 1
	// There was none for this step before.
	if remaining := x.deltas.LastStep(x.config.Member); remaining > 0 && step >= remaining {
		return 0, false, nil
	}
	_, _, batches := x.t.roundBatches()
	batch, ok, err = x.t.session.store.DrawBatch(ctx, x.t.session.claim, step, batches)
	x.book.lap(&x.book.step.Fetch)
	return batch, ok, err
}

// draws tells whether the workers share a queue of batches.
func (x *exchanging) draws() bool { return x != nil && x.queued }

// takeAhead lets the next step of an eager member begin with all deltas that others have sent. A step that a killed
// attempt had made begins with the same deltas as then.
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

// sentByAll is the last step of which the next one begins with the deltas of all members. Members that have left send
// no more. Later knowledge must not change a step that is repeated.
func (x *exchanging) sentByAll() int {
	until := x.replica.Made()
	for m, newest := range x.began {
		if remaining := x.deltas.LastStep(m); remaining == 0 || remaining > newest {
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
		source, last := x.replica.Send, x.queued || x.replica.Made() == x.last()-1
		if last {
			source = x.replica.Leave
		}
		if err := x.send(ctx, source, last); err != nil {
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
	remaining := x.deltas.LastStep(self)
	return remaining > 0 && made >= remaining || !x.replica.Participates(self, made+1)
}

// Names of the replica's arrays in a worker's state.
const (
	exchangeShared = residualPrefix + "exchange.shared"
	exchangeLocal  = residualPrefix + "exchange.local"
	exchangeSent   = residualPrefix + "exchange.sent"
	exchangeAt     = residualPrefix + "exchange.at" // steps made and folded
)

// state returns the replica as arrays of a worker's state.
func (x *exchanging) state() []array {
	if x == nil || x.replica == nil {
		return nil
	}
	s := x.replica.State()
	source := func(name string, data []float32) array {
		return array{Tensor: disdel.Tensor{Name: name, Shape: []int{len(data)}, Data: data}}
	}
	out := []array{
		source(exchangeShared, s.Shared), source(exchangeLocal, s.Local),
		source(exchangeAt, []float32{float32(s.Made), float32(s.Folded)}),
	}
	if s.Sent != nil {
		out = append(out, source(exchangeSent, s.Sent))
	}
	return out
}

// recall continues from a stored state. It takes its arrays out of the trainer's.
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
			Kind: disdel.Corrupt, Op: "read state", Job: x.t.req.Job,
			Msg: "it has no " + strings.TrimPrefix(exchangeAt, residualPrefix),
		}
	}
	s.Made, s.Folded = int(at[0]), int(at[1])
	var own []exchange.Delta
	for step := s.Folded + 1; step <= s.Made; step++ {
		data, err := x.deltas.Own(ctx, step, x.config.Member)
		if err != nil {
			return err
		}
		d, err := x.decode(ctx, step, x.config.Member, data)
		if err != nil {
			return err
		}
		own = append(own, d)
	}
	x.replica, err = exchange.Resume(x.config, s, own)
	return err
}
