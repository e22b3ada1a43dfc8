package actions

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
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
	if req.Pipeline != nil {
		defer debug.SetGCPercent(debug.SetGCPercent(stagePercent))
	}
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
	stage   *stage         // of the network, if the action has only a part of it; nil: it has all
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
	if err := t.cut(); err != nil {
		return err
	}
	code, err := h.code.folder(ctx, r.Models, r.Network)
	if err != nil {
		return err
	}
	t.engine, err = h.built.get(r.Backend, r.Network, engine.Spec{
		Graph: t.graph, Code: code, Context: ctx, BatchSize: r.BatchSize, Optimizer: r.Optimizer, Loss: r.Loss,
		LabelSmoothing: r.LabelSmoothing, ClassWeights: r.ClassWeights, ClipNorm: r.ClipNorm,
		Exact: r.Exact, Precision: r.Precision, StepMemory: r.StepMemory, Threads: r.Threads,
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
	if mid || t.req.Round > 0 {
		if err := t.freeze(ctx); err != nil {
			return err
		}
	}
	if mid {
		return t.swap.recall(ctx)
	}
	if err := t.begin(ctx); err != nil {
		return err
	}
	return t.swap.start()
}

// freeze sets the weights of frozen layers, unless a warm engine has them.
func (t *trainer) freeze(ctx context.Context) error {
	built := &t.call.host.built
	if built.given == t.req.Given {
		return nil
	}
	err := frozen(ctx, t.req.Models, t.req.Given, t.engine)
	if built.given = t.req.Given; err != nil {
		built.given = ""
	}
	return err
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
		if !t.req.Wire.Differences() {
			return nil
		}
		return t.difference(ctx, engine.Trained(t.engine))
	}
	if t.inBlocks() {
		return t.beginInBlocks(ctx)
	}
	reference, err := t.reference(ctx)
	if err != nil {
		return err
	}
	return t.from(ctx, reference)
}

func (t *trainer) push(ctx context.Context) error {
	if t.res.Paused || t.req.Probe || t.res.Left > 0 {
		return nil
	}
	answer, err := json.Marshal(t.res) // without its usage: the same work says the same
	if err != nil {
		return &disdel.Error{
			Kind: disdel.Diverged, Op: "push update", Job: t.req.Job, Msg: "the loss is not finite",
			Hint: "lower the learning rate",
		}
	}
	update := disdel.Update{
		ID: t.req.ID(), Samples: float64(max(1, t.rows())), // who found the queue empty has everybody's weights
		Meta: map[string]string{aggregator.ResultKey: string(answer)},
	}
	if !t.req.Wire.Differences() {
		if err := t.carry(ctx, nil); err != nil {
			return err
		}
		if t.inBlocks() {
			return t.session.pushInBlocks(ctx, update, engine.Of(t.engine.State(), engine.Weight, engine.Statistic))
		}
		update.Weights = t.update()
		return t.session.push(ctx, update, nil)
	}
	encoded, residual, err := t.encode()
	if err != nil {
		return err
	}
	t.call.host.free() // of the reference and of the copied update, which carry would come on top of
	if err := t.carry(ctx, residual); err != nil {
		return err
	}
	return t.session.push(ctx, update, encoded)
}

// inBlocks tells whether weights come and go without a copy of them beside the engine's: where moments are in a file,
// since memory is short. Differences, and moments that are averaged, need the copies.
func (t *trainer) inBlocks() bool {
	r := &t.req
	return r.StateFormat.Paged() && !r.Wire.Differences() && r.OptimizerState != disdel.StateAverage && r.Exchange == nil
}

// beginInBlocks is begin without a copy of the round's reference.
func (t *trainer) beginInBlocks(ctx context.Context) error {
	at := source{t.req.Job, t.req.Round, t.req.Models, t.req.ReferenceCheckpoint}
	like, from := t.like(), 0
	to := len(like)
	if t.stage != nil {
		like, from, to = t.stage.within()
	}
	if err := setInBlocks(ctx, t.session.store, at, t.engine, like, from, to); err != nil {
		return err
	}
	if t.req.Statistics == disdel.StateKeep {
		if err := t.setStatistics(); err != nil {
			return err
		}
	}
	return t.resetState(nil)
}

// update returns the arrays that are averaged, until the engine's next call.
func (t *trainer) update() disdel.Weights {
	w := engine.TrainedViews(t.engine)
	if t.req.OptimizerState != disdel.StateAverage {
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

// first sets the weights of the first round: random ones, and the given ones in their place.
func (t *trainer) first(ctx context.Context) error {
	init := t.req.Network.Init
	t.call.host.built.given = "" // an earlier round's are drawn anew
	if err := t.engine.Init(init); err != nil || init.Weights == "" || t.req.Probe {
		return err
	}
	if t.req.ReferenceCheckpoint == "" {
		return &disdel.Error{
			Kind: disdel.Internal, Op: "begin", Job: t.req.Job, Msg: "the request does not say where " + init.Weights + " is",
		}
	}
	arrays := engine.Of(t.engine.State(), engine.Weight, engine.Statistic, engine.Frozen)
	return setFrom(ctx, t.req.Models, t.req.ReferenceCheckpoint, arrays)
}

// learn trains on a batch. Engines that take batches ahead get the next one while they compute; for the others the feed
// may fill it meanwhile. then is the number of the next batch, below 0 if it is unknown.
func (t *trainer) learn(ctx context.Context, batch, then int) (disdel.Metrics, error) {
	if t.stage != nil {
		return t.stage.step(ctx, batch, then)
	}
	ahead := t.engine.Ahead()
	if ahead == nil {
		input := t.feed.take(batch, then)
		t.swap.filled()
		return t.engine.Step(input)
	}
	const unasked = -1 // the feed's own way would fill a batch more
	if t.staged != batch+1 {
		if err := ahead.Stage(t.feed.take(batch, unasked)); err != nil {
			return disdel.Metrics{}, err
		}
	}
	t.swap.filled()
	t.staged = 0
	return ahead.StepStaged(func() error {
		if then < 0 {
			return nil
		}
		t.staged = then + 1
		return ahead.Stage(t.feed.take(then, unasked))
	})
}

// compute trains the batches that the round still needs.
func (t *trainer) compute(ctx context.Context) error {
	t.feed = newFeed(onDevice(t.engine), t.shard, t.batch(), t.req.Threads)
	setThreads(t.feed.threads(t.req.Threads))
	switch {
	case t.swap != nil && t.req.Estimate > 0:
		defer roomFor(disdel.ExchangeGarbage, t.req.Memory, slab(t.engine))()
	case t.engine.Listener() != nil:
		defer roomFor(programGarbage, t.req.Memory, slab(t.engine))()
	}
	t.saved = t.call.host.now()
	if err := t.stage.through(ctx, t.epochs); err != nil {
		return err
	}
	if !t.res.Paused {
		if err := t.endRound(); err != nil {
			return err
		}
		if _, err := t.swap.end(ctx); err != nil {
			return err
		}
	}
	t.res.Samples = t.rows()
	t.res.Losses, t.res.Epochs, t.res.BatchesDone = t.at.losses, len(t.at.losses), t.at.done
	if n := len(t.at.losses); n > 0 {
		t.res.Loss = t.at.losses[n-1]
	}
	if !t.at.blind {
		t.res.Accuracies = t.at.accuracies
	}
	t.stage.result(&t.res)
	return nil
}

// rows are the rows that the round's update stands for.
func (t *trainer) rows() int { return min(t.at.rows, t.shard.Len()) }

// epochs trains the round's epochs that are left.
func (t *trainer) epochs(ctx context.Context) error {
	for t.at.epoch < t.req.Epochs && !t.res.Reached && !t.res.Paused {
		if err := t.epoch(ctx); err != nil {
			return err
		}
	}
	return nil
}

// endRound tells a program that its round is over.
func (t *trainer) endRound() error {
	if l := t.engine.Listener(); l != nil {
		return l.EndRound()
	}
	return nil
}

// roundBatches are the batches of the current epoch that belong to the round.
func (t *trainer) roundBatches() (first, end, batches int) {
	size := t.batch()
	batches = (t.shard.Len() + size - 1) / max(size, 1)
	if t.at.epoch == 0 {
		first = min(t.req.Batch, batches)
	}
	end = batches
	if t.req.Batches > 0 {
		end = min(first+t.req.Batches, batches)
	}
	return first, end, batches
}

func (t *trainer) batch() int { return min(t.req.BatchSize, t.shard.Len()) }

// epoch trains the round's batches of one epoch, in an order that depends on job, epoch and worker. It always sets the
// rate, because a warm engine may still have that of an earlier job.
func (t *trainer) epoch(ctx context.Context) error {
	epoch := t.req.Epoch + t.at.epoch
	t.engine.SetRate(t.req.Optimizer.Rate() * t.req.Schedule.Factor(epoch, t.req.JobEpochs))
	if l := t.engine.Listener(); l != nil {
		l.BeginEpoch(engine.Course{Worker: t.req.Worker, Epoch: epoch, Epochs: t.req.JobEpochs})
	}
	first, end, batches := t.roundBatches()
	t.shuffle(epoch)
	defer t.feed.wait() // it reads order and shard
	t.at.batch, t.staged = max(t.at.batch, first), 0
	// This heartbeat tells that the action has started.
	if err := t.beat(ctx, epoch, batches); err != nil {
		return err
	}
	for t.at.batch < end {
		if paused, err := t.swap.before(ctx); paused || err != nil {
			return err
		}
		if err := t.stage.before(ctx); err != nil {
			return err
		}
		batch, ok, err := t.swap.batch(ctx, t.at.batch)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if err := t.step(ctx, batch, end); err != nil {
			return err
		}
		if err := t.beat(ctx, epoch, batches); err != nil {
			return err
		}
		if stop, err := t.pauseOrSave(ctx, t.at.batch == end); stop || err != nil {
			return err
		}
	}
	loss := t.at.endEpoch()
	t.res.Reached = t.req.Target > 0 && end == batches && loss <= t.req.Target
	return nil
}

// shuffle sets the order of an epoch's rows for the feed.
func (t *trainer) shuffle(epoch int) {
	n, size, whose := t.shard.Len(), t.batch(), t.req.Worker
	if t.req.Exchange.Queued() { // all have the same rows, and one order of them
		whose = 0
	}
	seed := t.req.Network.Init.Seed
	t.order = dataset.Order(t.order, seed, epoch, whose, n)
	t.feed.fill = func(b *dataset.Batch, batch int) {
		t.feed.filler.FillAugmented(b, t.order[batch*size:min((batch+1)*size, n)], seed, epoch)
	}
}

// step trains a batch while the feed fills the next one. The last batch of the epoch is end-1.
func (t *trainer) step(ctx context.Context, batch, end int) error {
	begun := t.call.host.now()
	then := batch + 1
	if then >= end || t.req.Exchange.Queued() { // who draws it is not known before
		then = -1
	}
	m, err := t.learn(ctx, batch, then)
	if err != nil {
		return err
	}
	if err := t.swap.after(ctx, m); err != nil {
		return err
	}
	t.at.step(m)
	t.res.Rows += m.Rows
	t.longest = max(t.longest, t.call.host.now().Sub(begun))
	return nil
}

func (t *trainer) beat(ctx context.Context, epoch, batches int) error {
	return t.session.beat(ctx, disdel.Progress{
		Task: disdel.TaskTrain, Round: t.req.Round, Member: t.req.ID().Member, Epoch: epoch + 1,
		Batch: t.at.batch, Batches: batches, Loss: t.at.sum / float64(max(t.at.seen, 1)), Steps: t.swap.soFar(),
	})
}
