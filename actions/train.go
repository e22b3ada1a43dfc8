package actions

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
)

// train learns from one shard for one round: it starts from the round's reference weights, runs the round's epochs and
// pushes its weights as an update. An epoch whose mean loss is at most the target ends the round (DiSDeL III-B.3).
func (h *Host) train(ctx context.Context, c *call, req disdel.TrainRequest) (res disdel.TrainResult, err error) {
	bound(req.Memory, req.Estimate, 0)
	use(1)
	store, err := aggregator.Open(ctx, req.Store)
	if err != nil {
		return res, err
	}
	defer store.Close()
	t := trainer{call: c, req: req, pulse: pulse{call: c, store: store, job: req.Job}}
	steps := []struct {
		phase string
		do    func(context.Context) error
	}{{"load", t.load}, {"fetch", t.fetch}, {"compute", t.compute}, {"push", t.push}}
	for _, s := range steps {
		if err := c.phase(s.phase, func() error { return s.do(ctx) }); err != nil {
			return res, err
		}
	}
	t.res.Usage = c.usage()
	return t.res, nil
}

type trainer struct {
	call   *call
	req    disdel.TrainRequest
	pulse  pulse
	graph  *model.Graph
	shard  *dataset.Shard
	engine Engine
	res    disdel.TrainResult
}

// load reads the shard and builds the engine, or finds both where the last round left them.
func (t *trainer) load(ctx context.Context) (err error) {
	h, r := t.call.host, t.req
	if t.shard, err = h.rows(ctx, shardKey{data: r.Data, rows: r.Shard}); err != nil {
		return err
	}
	if t.shard.Len() == 0 {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "train", Job: r.Job, Msg: fmt.Sprintf("worker %d has no rows", r.Worker),
			Hint: "lower distribution.workers",
		}
	}
	t.graph, err = model.Build(r.Network)
	if err != nil {
		return err
	}
	t.engine, err = h.built.get(t.graph, engineKey(r.Backend, r.Network, engine.Config{
		Batch: r.BatchSize, Optimizer: r.Optimizer, Loss: r.Loss, ClipNorm: r.ClipNorm, Threads: r.Threads,
		Seed: r.Network.Init.Seed + int64(r.Worker), Memory: r.Memory, Training: true,
	}))
	if err == nil {
		bound(r.Memory, r.Estimate, slab(t.engine))
	}
	return err
}

// fetch sets the weights the round starts from: the seed's own in the first, the reference later. The optimiser starts
// anew at every round, so that a round does not depend on which process ran the last one.
func (t *trainer) fetch(ctx context.Context) error {
	if t.req.Round == 0 {
		t.engine.Init(t.req.Network.Init)
		return t.engine.ResetOptimizer()
	}
	weights, err := t.pulse.store.Reference(ctx, t.req.Job, t.req.Round, shapes(t.graph))
	if err != nil {
		return err
	}
	if err := t.engine.SetWeights(weights); err != nil {
		return err
	}
	debug.FreeOSMemory() // the weights as they came are the largest garbage of a round; the update needs their room
	return t.engine.ResetOptimizer()
}

func (t *trainer) compute(ctx context.Context) error {
	use(t.req.Threads)
	for e := range t.req.Epochs {
		loss, err := t.epoch(ctx, t.req.Epoch+e)
		if err != nil {
			return err
		}
		t.res.Loss, t.res.Losses, t.res.Epochs = loss, append(t.res.Losses, loss), e+1
		if t.res.Reached = t.req.Target > 0 && loss <= t.req.Target; t.res.Reached {
			break
		}
	}
	t.res.Samples = t.shard.Len()
	return nil
}

// epoch runs over the shard once, in an order that job, epoch and worker fix, and returns the mean loss. The rate is set
// without a schedule too: a warm engine may still have that of an earlier job.
func (t *trainer) epoch(ctx context.Context, epoch int) (float64, error) {
	t.engine.SetRate(t.req.Optimizer.Rate() * t.req.Schedule.Factor(epoch, t.req.JobEpochs))
	n, batch := t.shard.Len(), min(t.req.BatchSize, t.shard.Len())
	order := dataset.Order(t.req.Network.Init.Seed, epoch, t.req.Worker, n)
	x, labels := make([]float32, batch*t.shard.SampleLen()), make([]int32, batch)
	state := disdel.Progress{
		Task: disdel.TaskTrain, Round: t.req.Round, Member: t.req.Worker, Epoch: epoch + 1,
		Batches: (n + batch - 1) / batch,
	}
	var sum float64
	for start := 0; start < n; start += batch {
		rows := order[start:min(start+batch, n)]
		t.shard.Batch(rows, x, labels)
		loss, err := t.engine.Step(x[:len(rows)*t.shard.SampleLen()], labels[:len(rows)])
		if err != nil {
			return 0, err
		}
		sum += loss * float64(len(rows))
		state.Batch++
		state.Loss = sum / float64(start+len(rows))
		if err := t.pulse.beat(ctx, state); err != nil {
			return 0, err
		}
	}
	return sum / float64(n), nil
}

func (t *trainer) push(ctx context.Context) error {
	return t.pulse.store.PushUpdate(ctx, disdel.Update{
		ID:      disdel.UpdateID{Job: t.req.Job, Round: t.req.Round, Level: 0, Member: t.req.Worker},
		Attempt: t.req.Attempt, Samples: float64(t.shard.Len()), Weights: t.engine.Weights(),
	})
}
