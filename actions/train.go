package actions

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
)

// train learns from one shard for one round: it starts from the round's reference weights, trains the round's batches
// and pushes its weights as an update. An epoch with a mean loss of at most the target ends the round (DiSDeL III-B.3).
// Before its deadline it stores its state and pauses; the next leg or attempt continues from there with the same bits.
func (h *Host) train(ctx context.Context, c *call, req disdel.TrainRequest) (res disdel.TrainResult, err error) {
	h.limitHeap(req.Memory, req.Estimate, 0)
	setThreads(1)
	start := h.now()
	ctx, over := within(ctx, req.Hold)
	defer over()
	ctx, s, err := h.begin(ctx, c, req.Store, req.ID(), req.Attempt)
	if err != nil {
		return res, err
	}
	defer s.close(ctx)
	if s.committed {
		return delivered(ctx, s, req.ID())
	}
	t := trainer{call: c, req: req, session: s, start: start}
	steps := []struct {
		phase string
		do    func(context.Context) error
	}{{"load", t.load}, {"fetch", t.fetch}, {"compute", t.compute}, {"push", t.push}}
	for _, step := range steps {
		if err := c.phase(step.phase, func() error { return step.do(ctx) }); err != nil {
			return res, causeOf(ctx, err)
		}
	}
	t.res.Usage = c.usage()
	t.res.Usage.Steps = t.swap.course()
	return t.res, nil
}

type trainer struct {
	call    *call
	req     disdel.TrainRequest
	session *session
	start   time.Time
	fetched time.Duration // what reading state from the store took: writing it takes about as long
	storing time.Duration // what writing it took last; 0: not done yet
	longest time.Duration // batch
	saved   time.Time     // when state was stored last
	graph   *model.Graph
	shard   *dataset.Shard
	engine  engine.Engine
	order   []int32 // of the epoch's rows
	feed    *feed
	staged  int // one more than the batch that is on its way to where the engine computes; 0: none is
	at      position
	swap    *exchanging    // with the others, after every step; nil: nothing
	kept    disdel.Weights // of the round before: see carried
	own     bool           // the optimiser has the state that this worker stored
	ref     disdel.Weights // that updates are differences to; nil: updates are weights
	res     disdel.TrainResult
}

// load reads the shard and builds the engine, or takes both from the caches.
func (t *trainer) load(ctx context.Context) (err error) {
	h, r := t.call.host, t.req
	if t.shard, err = h.rows(ctx, shardKey{data: r.Data, rows: r.Shard, part: disdel.PartTrain}); err != nil {
		return err
	}
	if first, end, _ := t.roundBatches(); first == end { // a loss of nothing would be 0, and reach any target
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "train", Job: r.Job,
			Msg:  fmt.Sprintf("worker %d has no rows in round %d", r.Worker, r.Round),
			Hint: "lower distribution.workers",
		}
	}
	t.graph, err = model.Build(r.Network)
	if err != nil {
		return err
	}
	t.engine, err = h.built.get(r.Backend, r.Network, engine.Spec{
		Graph: t.graph, BatchSize: r.BatchSize, Optimizer: r.Optimizer, Loss: r.Loss, ClipNorm: r.ClipNorm,
		Exact: r.Exact, Precision: r.Precision, Threads: r.Threads,
		Seed: r.Network.Init.Seed + int64(r.Worker), Memory: r.Memory, Device: r.Device, Place: r.Worker, Training: true,
	})
	if err != nil {
		return err
	}
	t.call.computes(t.engine)
	t.engine.SetSeed(roundSeed(r))
	h.limitHeap(r.Memory, r.Estimate, slab(t.engine))
	return nil
}

// roundSeed spreads rounds over all bits, since dropout combines the seed with the count of steps by exclusive or.
func roundSeed(r disdel.TrainRequest) int64 {
	const golden = 0x9e3779b97f4a7c15 // 2^64 over the golden ratio
	return r.Network.Init.Seed + int64(r.Worker) + int64(uint64(r.Round)*golden)
}

// fetch loads the weights and the state that the round starts from, or those of an earlier leg or attempt.
func (t *trainer) fetch(ctx context.Context) error {
	start := t.call.host.now()
	defer func() { t.fetched = t.call.host.now().Sub(start) }()
	defer t.call.host.free()
	t.swap = t.newExchange()
	if err := t.swap.look(ctx); err != nil {
		return err
	}
	mid, err := t.recall(ctx)
	if err != nil {
		return err
	}
	if mid {
		return t.swap.recall(ctx)
	}
	if err := t.begin(ctx); err != nil {
		return err
	}
	return t.swap.start()
}

// begin loads the weights and the state that the round starts from.
func (t *trainer) begin(ctx context.Context) error {
	if t.req.Round == 0 {
		if err := t.first(ctx); err != nil {
			return err
		}
		if err := t.engine.Reset(engine.Moment); err != nil {
			return err
		}
		return t.difference(ctx, engine.Weights(t.engine))
	}
	reference, err := t.session.reference(ctx, t.req, t.like())
	if err != nil {
		return err
	}
	return t.from(ctx, reference)
}

func (t *trainer) push(ctx context.Context) error {
	if t.res.Paused || t.req.Probe || t.res.Left > 0 {
		return nil
	}
	said, err := json.Marshal(t.res) // without its usage: the same work says the same
	if err != nil {
		return &disdel.Error{
			Kind: disdel.Diverged, Op: "push update", Job: t.req.Job, Msg: "the loss is not finite",
			Hint: "lower the learning rate",
		}
	}
	update := disdel.Update{
		ID: t.req.ID(), Samples: float64(max(1, t.res.Samples)), // who found the queue empty has everybody's weights
		Meta: map[string]string{aggregator.ResultKey: string(said)},
	}
	if !t.req.Wire.Differences() {
		if err := t.carry(ctx, nil); err != nil {
			return err
		}
		update.Weights = t.update()
		return t.session.push(ctx, update, nil)
	}
	encoded, residual, err := t.encode()
	if err != nil {
		return err
	}
	if err := t.carry(ctx, residual); err != nil {
		return err
	}
	return t.session.push(ctx, update, encoded)
}

// update copies the arrays that are averaged.
func (t *trainer) update() disdel.Weights {
	w := engine.Weights(t.engine)
	if t.req.Moments != disdel.StateAverage {
		return w
	}
	return append(w, t.optimizerState()...)
}

// encode encodes the update in the job's wire format. residual is the rounding error. The reference is not valid after
// it.
func (t *trainer) encode() (e *aggregator.Encoded, residual disdel.Weights, err error) {
	format := aggregator.Format{Wire: t.req.Wire, Threshold: t.req.Threshold, Round: t.req.Round}
	f, err := aggregator.NewFeedback(format, t.residual())
	if err != nil {
		return nil, nil, err
	}
	e, err = f.Encode(t.update(), t.ref)
	t.ref = nil
	return e, f.Residual(), err
}
