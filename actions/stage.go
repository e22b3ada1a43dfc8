package actions

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
)

// stage is a train action's part in a network that several actions train together. Each has consecutive layers: their
// weights, moments and activations. The micro-batches of a step go through all stages forward, and then backward, in
// GPipe's order.
//
// The stages of a replica work in step. If one is started again, all of them begin the round again, or continue where
// all of them stored their state. The first stage pauses all.
type stage struct {
	t        *trainer
	passes   engine.Passes
	queues   *aggregator.Pipeline
	deadline time.Time // the earliest of all stages; zero: there is none
	begun    int       // batches of the round that were done when this leg began
	shared   []float32 // of a weight that the first and the last stage share
	lent     bool      // the other stage has a shared weight that is frozen
	asked    time.Time // when the others were last looked for
}

// phaseWait is the time that a stage waits for others: part of compute's.
const phaseWait = "wait"

// errOutOfTime ends a leg that waits for other stages.
var errOutOfTime = errors.New("the activation's time is over")

// cut reduces the network to the stage's layers.
func (t *trainer) cut() (err error) {
	if p := t.req.Pipeline; p != nil {
		t.stage = &stage{t: t}
		t.graph, err = t.graph.Sliced(p.From, p.To)
	}
	return err
}

// part says which layers the action trains. State of other layers is not its own: a failure may change the stages.
func (t *trainer) part() (p disdel.PipelineStage) {
	if t.req.Pipeline != nil {
		p = *t.req.Pipeline
	}
	return p
}

// reference reads the weights that the round starts from; a stage keeps those of its layers.
func (t *trainer) reference(ctx context.Context) (disdel.Weights, error) {
	if t.stage == nil {
		return t.session.reference(ctx, t.req, t.like())
	}
	return t.stage.reference(ctx)
}

// within is the arrays of the whole network, of which the stage's are those from (included) to (not).
func (s *stage) within() (all disdel.Weights, from, to int) {
	slice := s.t.graph.Slice
	before := slices.DeleteFunc(slice.Whole.Params(), func(p model.Param) bool { return p.Frozen || p.Node >= slice.From })
	return shapes(slice.Whole), len(before), len(before) + len(shapes(s.t.graph))
}

func (s *stage) reference(ctx context.Context) (disdel.Weights, error) {
	t := s.t
	own := shapes(t.graph)
	all, before, _ := s.within()
	first := lengthOf(all[:before])
	values := make([]float32, 0, lengthOf(own))
	at := 0
	take := func(block []float32) error {
		from, to := max(first-at, 0), min(first+cap(values)-at, len(block))
		if from < to {
			values = append(values, block[from:to]...)
		}
		at += len(block)
		return nil
	}
	err := t.session.store.StreamReference(ctx, t.req.Job, t.req.Round, all, take)
	if disdel.KindOf(err) == disdel.NotFound && t.req.ReferenceCheckpoint != "" {
		at, values = 0, values[:0]
		err = checkpointValues(ctx, t.req.Models, t.req.ReferenceCheckpoint, all, take)
	}
	if err != nil {
		return nil, err
	}
	for i := range own {
		n := model.Shape(own[i].Shape).Len()
		own[i].Data, values = values[:n:n], values[n:]
	}
	return own, nil
}

// place is the stage's place in the job.
func (s *stage) place() aggregator.Place {
	r := s.t.req
	return aggregator.Place{Round: r.Round, Replica: r.Worker, Stage: r.Pipeline.Stage, Stages: r.Pipeline.Stages}
}

func (s *stage) first() bool { return s.t.req.Pipeline.Stage == 0 }

func (s *stage) last() bool { return s.t.req.Pipeline.Stage == s.t.req.Pipeline.Stages-1 }

// through trains the round's steps together with the other stages. If one of them starts again, it begins again.
func (s *stage) through(ctx context.Context, epochs func(context.Context) error) error {
	if s == nil {
		return epochs(ctx)
	}
	if s.passes = s.t.engine.Passes(); s.passes == nil {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "train stage", Job: s.t.req.Job, Msg: "the backend computes whole networks only",
			Hint: "leave distribution.stages or training.backend out",
		}
	}
	s.queues = s.t.session.store.Pipeline(s.t.session.claim, s.place())
	defer func() { s.t.call.phases[phaseWait] = disdel.Millis(s.queues.Waited()) }()
	for again := false; ; again = true {
		err := s.attempt(ctx, again, epochs)
		switch {
		case errors.Is(err, aggregator.ErrStageRestarted):
			continue
		case errors.Is(err, aggregator.ErrStagesPaused):
			s.t.res.Paused = true
			return s.t.save(ctx)
		case errors.Is(err, errOutOfTime): // the next leg begins where this one began
			s.t.res.Paused, s.t.res.Waited = true, true
			return nil
		}
		return err
	}
}

// attempt trains the steps with the stages that are there now.
func (s *stage) attempt(ctx context.Context, again bool, epochs func(context.Context) error) error {
	if again {
		if err := s.reload(ctx); err != nil {
			return err
		}
	}
	told := aggregator.Joined{Done: s.t.at.done}
	told.Deadline, _ = ctx.Deadline()
	all, err := s.queues.Join(ctx, told, func() error { return s.idle(ctx) })
	if err != nil {
		return err
	}
	s.deadline = told.Deadline
	same := true
	for _, j := range all {
		same = same && j.Done == told.Done
		if !j.Deadline.IsZero() && (s.deadline.IsZero() || j.Deadline.Before(s.deadline)) {
			s.deadline = j.Deadline
		}
	}
	if !same && told.Done > 0 {
		if err := s.anew(ctx); err != nil {
			return err
		}
	}
	s.begun, s.lent = s.t.at.done, false
	if err := epochs(ctx); err != nil || s.t.res.Paused {
		return err
	}
	return s.queues.End(ctx, func() error { return s.timely(ctx) }) // those that have seen it end deliver
}

// reload goes back to where this leg began.
func (s *stage) reload(ctx context.Context) error {
	t := s.t
	t.at, t.own, t.kept = position{}, false, nil
	mid, err := t.recall(ctx)
	if err != nil || mid {
		return err
	}
	return t.begin(ctx)
}

// anew goes back to the round's beginning, since another stage has no state of where this one is.
func (s *stage) anew(ctx context.Context) error {
	t := s.t
	t.at, t.own, t.kept = position{}, false, nil
	if t.carries() {
		if _, err := t.recallFrom(ctx, t.req.ID()); err != nil {
			return err
		}
	}
	return t.begin(ctx)
}

// before pauses all stages before a step, if the time of one is nearly over.
func (s *stage) before(ctx context.Context) error {
	if s == nil || !s.first() || s.t.at.done == s.begun {
		return nil
	}
	if s.deadline.IsZero() || s.deadline.Sub(s.t.call.host.now()) >= s.t.reserve(s.deadline)+2*aggregator.IdleEvery {
		return nil
	}
	if err := s.queues.SendPause(ctx); err != nil {
		return err
	}
	return aggregator.ErrStagesPaused
}

// partnersEvery is the time between two looks at whether other stages have delivered.
const partnersEvery = time.Second

// idle is called while the stage waits for values of others.
func (s *stage) idle(ctx context.Context) error {
	if now := s.t.call.host.now(); now.Sub(s.asked) >= partnersEvery {
		s.asked = now
		if err := s.abandoned(ctx); err != nil {
			return err
		}
	}
	return s.timely(ctx)
}

// timely ends the leg before the activation's time is over.
func (s *stage) timely(ctx context.Context) error {
	t := s.t
	deadline, limited := ctx.Deadline()
	if limited && deadline.Sub(t.call.host.now()) < 2*aggregator.IdleEvery+deadline.Sub(t.start)/20 {
		return errOutOfTime
	}
	return t.beat(ctx, t.req.Epoch+t.at.epoch, 0)
}

// abandoned returns an error if another stage has delivered its update of this round, and so has ended: the stage
// cannot compute the round without it, and the round starts again.
func (s *stage) abandoned(ctx context.Context) error {
	t := s.t
	id := t.req.ID()
	for other := range t.req.Pipeline.Stages {
		id.Member = t.req.Worker*t.req.Pipeline.Stages + other
		_, there, err := t.session.store.Delivered(ctx, id)
		if err != nil {
			return err
		}
		if there && other != t.req.Pipeline.Stage {
			return &disdel.Error{
				Kind: disdel.NotFound, Code: disdel.CodeLostUpdate, Op: "train stage", Job: t.req.Job, Subject: &id,
				Msg: fmt.Sprintf("stage %d has ended its round, and stage %d was started again", other+1, t.req.Pipeline.Stage+1),
			}
		}
	}
	return nil
}

// step trains a batch: all micro-batches forward, then all of them backward.
func (s *stage) step(ctx context.Context, batch, then int) (m disdel.Metrics, err error) {
	var b dataset.Batch
	if s.first() || s.last() || s.t.graph.ReadsTokens() {
		b = s.t.feed.take(batch, then)
	}
	if weight, trained := s.passes.Shared(); weight != nil && s.first() && (trained || !s.lent) {
		if err := s.queues.SendShared(ctx, weight); err != nil {
			return m, err
		}
		s.lent = true
	}
	size := s.t.batch()
	rows := min((batch+1)*size, s.t.shard.Len()) - batch*size
	micro := rows
	if n := s.t.req.MicroBatch; n > 0 {
		micro = min(n, rows)
	}
	for first := 0; first < rows; first += micro {
		if m, err = s.forward(ctx, s.pass(b, rows, first, micro), b); err != nil {
			return m, err
		}
	}
	if s.last() {
		return m, s.clip(ctx)
	}
	for first := 0; first < rows; first += micro {
		if m, err = s.backward(ctx, s.pass(b, rows, first, micro)); err != nil {
			return m, err
		}
	}
	return m, s.clip(ctx)
}

// clip scales the gradients of a step by their norm over all stages. The sums of squares of all arrays go to the first
// stage, and from there to all others, which add them up in the order of one action.
func (s *stage) clip(ctx context.Context) error {
	own := s.passes.Squares()
	if own == nil {
		return nil
	}
	slice := s.t.graph.Slice
	all, from := make([]float64, len(slice.Whole.Params())), slice.FirstParam()
	copy(all[from:], own)
	if !s.last() {
		if err := s.receiveSquares(ctx, false, all[from+len(own):]); err != nil {
			return err
		}
	}
	if !s.first() {
		err := s.queues.Send(ctx, false, aggregator.Values(pack(all[from:])))
		if err == nil {
			err = s.receiveSquares(ctx, true, all)
		}
		if err != nil {
			return err
		}
	}
	if !s.last() {
		if err := s.queues.Send(ctx, true, aggregator.Values(pack(all))); err != nil {
			return err
		}
	}
	return s.passes.Clip(all)
}

// packedParts is how many values of a message a float64 takes: each has 16 of its bits.
const packedParts = 4

func pack(values []float64) []float32 {
	out := make([]float32, 0, packedParts*len(values))
	for _, v := range values {
		bits := math.Float64bits(v)
		for k := range packedParts {
			out = append(out, float32(bits>>(16*k)&0xffff))
		}
	}
	return out
}

func (s *stage) receiveSquares(ctx context.Context, forward bool, to []float64) error {
	packed := make(aggregator.Values, packedParts*len(to))
	err := s.queues.Receive(ctx, forward, packed, func() error { return s.idle(ctx) })
	for i := range to {
		var bits uint64
		for k, part := range packed[packedParts*i:][:packedParts] {
			bits |= uint64(part) << (16 * k)
		}
		to[i] = math.Float64frombits(bits)
	}
	return err
}

// pass is the micro-batch of a step that begins with a row. The first stage takes rows of the batch.
func (s *stage) pass(b dataset.Batch, rows, first, micro int) engine.Pass {
	p := engine.Pass{Rows: rows, First: first, Tokens: b.Input.Values}
	p.Input.Rows = min(micro, rows-first)
	if s.first() {
		n := s.t.graph.Input().Len()
		p.Input.Values = b.Input.Values[first*n:][:p.Input.Rows*n]
	}
	return p
}

// forward computes a micro-batch and sends the outputs on. The last stage computes it backward, too. Inputs stay in
// Redis until the micro-batch comes back.
func (s *stage) forward(ctx context.Context, p engine.Pass, b dataset.Batch) (m disdel.Metrics, err error) {
	if err := s.take(ctx, p.Input.Rows); err != nil {
		return m, err
	}
	if s.last() {
		return s.end(ctx, p, b)
	}
	out, err := s.passes.Forward(p)
	if err != nil {
		return m, err
	}
	return m, s.queues.Send(ctx, true, out)
}

// take reads the inputs of a micro-batch that the stage before sends.
func (s *stage) take(ctx context.Context, rows int) error {
	if s.first() {
		return nil
	}
	idle := func() error { return s.idle(ctx) }
	if s.last() {
		return s.queues.Receive(ctx, true, s.passes.Inputs(rows), idle)
	}
	err := s.queues.ReceiveKept(ctx, s.passes.Inputs(rows), idle)
	if errors.Is(err, aggregator.ErrStagesPaused) {
		return errors.Join(s.queues.SendPause(ctx), err)
	}
	return err
}

// end computes a micro-batch in the last stage, forward and backward. A weight that the first stage changes comes with
// the first micro-batch, and its gradients go back.
func (s *stage) end(ctx context.Context, p engine.Pass, b dataset.Batch) (m disdel.Metrics, err error) {
	p.Target = b.Target
	weight, trained := s.passes.Shared()
	if weight != nil && p.First == 0 && (trained || !s.lent) {
		if err := s.queues.ReceiveShared(ctx, weight, func() error { return s.idle(ctx) }); err != nil {
			return m, err
		}
		s.lent = true
	}
	p.Shared = s.sharedGradient()
	back, m, err := s.passes.Backward(p)
	if err == nil && trained {
		err = s.queues.SendShared(ctx, p.Shared)
	}
	if err == nil && !s.first() {
		err = s.queues.Send(ctx, false, back)
	}
	return m, err
}

// sharedGradient is the buffer of the gradient of a shared weight; nil: there is none.
func (s *stage) sharedGradient() []float32 {
	if weight, trained := s.passes.Shared(); trained && s.shared == nil {
		s.shared = make([]float32, len(weight))
	}
	return s.shared
}

// backward computes a micro-batch again and then backward, and sends the gradients on.
func (s *stage) backward(ctx context.Context, p engine.Pass) (m disdel.Metrics, err error) {
	idle := func() error { return s.idle(ctx) }
	if !s.first() {
		if err := s.queues.ReceiveAgain(ctx, s.passes.Inputs(p.Input.Rows)); err != nil {
			return m, err
		}
	}
	p.Shared = s.sharedGradient()
	gradient, err := s.passes.Recompute(p)
	if err == nil {
		err = s.queues.Receive(ctx, false, gradient, idle)
	}
	if err == nil && len(p.Shared) > 0 {
		err = s.queues.ReceiveShared(ctx, p.Shared, idle)
	}
	if err != nil {
		return m, err
	}
	back, m, err := s.passes.Backward(p)
	if err == nil && !s.first() {
		err = s.queues.Send(ctx, false, back)
	}
	return m, err
}

// result leaves loss, rows and accuracy of the round to the last stage, which alone knows them.
func (s *stage) result(r *disdel.TrainResult) {
	if s != nil && !s.last() {
		r.Samples, r.Loss, r.Losses, r.Accuracies = 0, 0, nil, nil
	}
}
