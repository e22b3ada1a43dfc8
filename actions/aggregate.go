package actions

import (
	"context"
	"path"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
)

// aggregate reduces the updates of a cluster to their weighted mean. The top aggregation publishes it as the next
// round's reference and, on request, writes a checkpoint or the final weights. All others push it as an update of their
// level.
func (h *Host) aggregate(ctx context.Context, c *call, req disdel.AggregateRequest) (res disdel.AggregateResult,
	err error,
) {
	ctx, over := within(ctx, req.Hold)
	defer over()
	h.limitHeap(req.Memory, req.Estimate, 0)
	setThreads(1)
	id := disdel.UpdateID{Job: req.Job, Round: req.Round, Level: req.Level, Member: req.Cluster}
	g, err := model.Build(req.Network)
	if err != nil {
		return res, err
	}
	held, s, err := h.begin(ctx, c, req.Store, id, req.Attempt)
	if err != nil {
		return res, err
	}
	defer s.close(ctx)
	defer s.during(ctx, disdel.Progress{
		Task: disdel.TaskAggregate, Round: req.Round, Level: req.Level,
		Member: req.Cluster,
	}, req.Memory)()
	a := aggregation{
		session: s, req: req, id: id, graph: g, like: withOptimizer(shapes(g), g, req.Averaged),
		res: disdel.AggregateResult{Duplicate: s.committed || len(req.Members) == 0},
	}
	for _, step := range []struct {
		phase string
		ctx   context.Context
		do    func(context.Context) error
	}{{"compute", held, a.reduce}, {"push", held, a.deliver}, {"push", ctx, a.settle}, {"save", ctx, a.save}} {
		if err := c.phase(step.phase, func() error { return step.do(step.ctx) }); err != nil {
			return res, causeOf(step.ctx, err)
		}
	}
	a.res.Weight, a.res.Usage = a.mean.Samples, c.usage()
	return a.res, nil
}

type aggregation struct {
	*session
	req   disdel.AggregateRequest
	id    disdel.UpdateID
	graph *model.Graph
	like  disdel.Weights
	mean  aggregator.Mean
	res   disdel.AggregateResult
}

// reduce computes the mean, or joins the shards of one, unless an earlier activation has delivered it. It writes the
// mean to the store in columns.
func (a *aggregation) reduce(ctx context.Context) (err error) {
	if a.res.Duplicate {
		return nil
	}
	if a.req.JoinShards {
		a.mean, err = a.store.JoinShards(ctx, a.claim, a.req.Members, a.like)
		return err
	}
	what := aggregator.Reduction{Members: a.req.Members, Like: a.like, Reference: a.req.Top || a.req.Next}
	if a.req.Shards > 1 {
		what.Shard = aggregator.Shard{Index: a.req.Shard, Count: a.req.Shards}
	}
	if what.Reference {
		what.Adjust = keepVariances
	}
	combine := a.store.Reduce
	if a.req.Join {
		combine = a.store.Join
	}
	a.mean, err = combine(ctx, a.claim, what)
	return err
}

// keepVariances sets negative variances to 0. Rounded differences can take small ones below 0.
func keepVariances(tensor string, values []float32) {
	if !engine.IsVariance(tensor) {
		return
	}
	for k, v := range values {
		values[k] = max(v, 0)
	}
}

// shapes are the shapes that an update of this network must have. Frozen layers have no part in it.
func shapes(g *model.Graph) disdel.Weights {
	var out disdel.Weights
	for _, p := range g.Params() {
		if !p.Frozen {
			out = append(out, disdel.Tensor{Name: p.Name, Shape: p.Shape})
		}
	}
	return out
}

// deliver makes the mean an update, or the next reference.
func (a *aggregation) deliver(ctx context.Context) error {
	if a.res.Duplicate {
		return nil
	}
	err := a.store.CommitMean(ctx, a.mean)
	a.committed = err == nil
	return err
}

// settle drops the round's updates once the next reference is stored: nothing reads them any more. Late activations see
// the newer round number and do nothing. This also ends the claim.
func (a *aggregation) settle(ctx context.Context) error {
	a.release()
	if !a.req.Top {
		return nil
	}
	return a.store.DropRound(ctx, a.req.Job, a.req.Round) // an earlier attempt may have died before it came to that
}

// keptCheckpoints is the number of rounds with a checkpoint: the newest, and the one before in case the newest is
// damaged.
const keptCheckpoints = 2

// save writes the final weights or a checkpoint. It reads the next reference in blocks, so that it needs no memory for
// the weights. An earlier attempt may have delivered the reference without this.
func (a *aggregation) save(ctx context.Context) error {
	if a.req.WeightsKey == "" && a.req.NextCheckpoint == "" {
		return nil
	}
	models, err := modelstore.Open(ctx, a.req.Models)
	if err != nil {
		return err
	}
	defer models.Close()
	a.call.host.free() // the kernel counts the file that is written, too
	if a.req.NextCheckpoint != "" {
		if err := a.checkpoint(ctx, models); err != nil && (ctx.Err() != nil || lost(err)) {
			return err
		} else if err != nil {
			a.res.Unsaved = disdel.AsError(err) // the reference is delivered: a retry only writes it
		}
	}
	if a.req.WeightsKey == "" {
		return nil
	}
	weights, values, err := a.final(ctx, models)
	if err != nil {
		return err
	}
	a.res.Checksum, a.res.Size, err = models.WriteWeights(ctx, a.req.WeightsKey, weights, weightsMeta(&a.req), values)
	return err
}

// final is the weights of the trained model: the next reference without the optimiser's state, the frozen weights, and
// adapters added to the weights of their layers.
func (a *aggregation) final(ctx context.Context, models *modelstore.Store) (disdel.Weights, modelstore.Values, error) {
	weights, _, _ := split(a.like)
	values := first(weights, a.reference(ctx, models))
	if a.req.Given == "" {
		return weights, values, nil
	}
	m := merging{graph: a.graph, trained: weights, frozen: map[string][]float32{}}
	if l := a.req.Network.LoRA; l != nil {
		m.factor = l.Factor()
	}
	_, given, err := models.ReadCheckpoint(ctx, a.req.Given)
	if err != nil {
		return nil, nil, err
	}
	for _, t := range given {
		m.frozen[t.Name] = t.Data
	}
	if err := m.readAdapters(values); err != nil {
		return nil, nil, err
	}
	return m.shapes(), m.values(values), nil
}

// weightsMeta says in the file of the final weights where they come from. A Python program is named by its code too.
func weightsMeta(req *disdel.AggregateRequest) map[string]string {
	meta := map[string]string{"format": "pt", "job": string(req.Job), "network": req.Network.Name}
	if c := req.Network.Custom; c != nil {
		meta["network"] = c.Name
		if c.Python != nil {
			meta["code"] = c.Python.Code
		}
	}
	return meta
}

// lost tells whether the next reference is no longer there, so that no retry can save it.
func lost(err error) bool { return disdel.AsError(err).Code == disdel.CodeLostReference }

// reference is the values of the next reference: from the store, or from its checkpoint if the store has lost it.
func (a *aggregation) reference(ctx context.Context, models *modelstore.Store) modelstore.Values {
	return func(take func([]float32) error) error {
		err := a.store.StreamReference(ctx, a.req.Job, a.req.Round+1, a.like, take)
		if disdel.KindOf(err) != disdel.NotFound || a.req.ReferenceCheckpoint == "" {
			return err
		}
		return models.ReadCheckpointValues(ctx, a.req.ReferenceCheckpoint, a.like, take)
	}
}

// first is as many of the values as w has room for. The optimiser's state follows the weights and is left out.
func first(w disdel.Weights, values modelstore.Values) modelstore.Values {
	return func(take func([]float32) error) error {
		remaining := lengthOf(w)
		return values(func(block []float32) error {
			block = block[:min(remaining, len(block))]
			remaining -= len(block)
			return take(block)
		})
	}
}

// lengthOf is the number of values of shapes.
func lengthOf(w disdel.Weights) (all int) {
	for _, t := range w {
		n := 1
		for _, side := range t.Shape {
			n *= side
		}
		all += n
	}
	return all
}

func (a *aggregation) checkpoint(ctx context.Context, models *modelstore.Store) error {
	key := a.req.NextCheckpoint
	sum, size, err := models.WriteCheckpoint(ctx, key, "", a.like, a.reference(ctx, models))
	if err != nil {
		return err
	}
	a.res.Saved = &disdel.Checkpoint{Round: a.req.Round + 1, Path: key, Checksum: sum, Size: size}
	// The checkpoint stays even if older ones could not be removed: the next round removes them.
	if err := models.PruneCheckpoints(ctx, path.Dir(path.Dir(key)), keptCheckpoints, a.req.Given != ""); err != nil {
		a.res.Unpruned = disdel.AsError(err)
	}
	return nil
}
