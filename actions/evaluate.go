package actions

import (
	"cmp"
	"context"
	"math"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
)

// evaluate measures the reference after a round on held-out rows.
func (h *Host) evaluate(ctx context.Context, c *call, req disdel.EvaluateRequest) (res disdel.EvaluateResult,
	err error,
) {
	ctx, over := within(ctx, req.Hold)
	defer over()
	defer func() { err = causeOf(ctx, err) }()
	h.limitHeap(req.Memory, req.Estimate, 0)
	setThreads(1)
	store, err := h.store.open(ctx, req.Store)
	if err != nil {
		return res, err
	}
	g, err := model.Build(req.Network)
	if err != nil {
		return res, err
	}
	var shard *dataset.Shard
	var e engine.Engine
	err = c.phase("load", func() (err error) {
		if shard, err = h.rows(ctx, shardKey{data: req.Data, rows: req.Rows, part: disdel.PartTest}); err != nil {
			return err
		}
		code, err := h.code.folder(ctx, req.Models, req.Network)
		if err != nil {
			return err
		}
		e, err = h.built.get(req.Backend, req.Network, engine.Spec{
			Graph: g, Code: code, Context: ctx, BatchSize: max(1, min(req.BatchSize, shard.Len())), Loss: req.Loss,
			Threads: req.Threads, Memory: req.Memory, Device: req.Device, Exact: req.Exact,
		})
		if err == nil {
			c.computes(e)
			h.limitHeap(req.Memory, req.Estimate, slab(e))
		}
		return err
	})
	if err != nil {
		return res, err
	}
	err = c.phase("fetch", func() error {
		at := source{req.Job, req.Round + 1, req.Models, req.ReferenceCheckpoint}
		like := withOptimizer(shapes(g), g, req.Averaged)
		defer h.free()
		if req.InBlocks {
			if err := setInBlocks(ctx, store, at, e, like); err != nil {
				return err
			}
			return frozen(ctx, req.Models, req.Given, e)
		}
		w, err := reference(ctx, store, at, like)
		if err != nil {
			return err
		}
		weights, _, _ := split(w)
		if err := engine.SetTrained(e, weights); err != nil {
			return err
		}
		return frozen(ctx, req.Models, req.Given, e)
	})
	if err != nil {
		return res, err
	}
	err = c.phase("compute", func() (err error) {
		if e.Listener() != nil {
			defer roomFor(programGarbage, req.Memory, slab(e))()
		}
		p := pulse{call: c, store: store, job: req.Job}
		res, err = measure(ctx, &p, req, e, shard)
		return err
	})
	res.Usage = c.usage()
	return res, err
}

// setInBlocks sets an engine's weights to those of a reference, without a copy of them. Values of other arrays are
// passed over.
func setInBlocks(ctx context.Context, store *aggregator.Store, at source, e engine.Engine, like disdel.Weights) error {
	named := map[string]engine.Array{}
	for _, a := range e.State() {
		named[a.Name] = a
	}
	next, done := 0, 0 // the array that the next value is of, and its values so far
	take := func(block []float32) error {
		for len(block) > 0 && next < len(like) {
			n := min(model.Shape(like[next].Shape).Len()-done, len(block))
			if a, ok := named[like[next].Name]; ok && n > 0 {
				if err := a.WriteAt(block[:n], done); err != nil {
					return err
				}
			}
			block, done = block[n:], done+n
			if done == model.Shape(like[next].Shape).Len() {
				next, done = next+1, 0
			}
		}
		return nil
	}
	err := store.StreamReference(ctx, at.job, at.round, like, take)
	if disdel.KindOf(err) == disdel.NotFound && at.from != "" {
		next, done = 0, 0
		err = checkpointValues(ctx, at.models, at.from, like, take)
	}
	return err
}

func measure(ctx context.Context, p *pulse, req disdel.EvaluateRequest, e engine.Engine,
	shard *dataset.Shard,
) (res disdel.EvaluateResult, err error) {
	n, batch := shard.Len(), min(req.BatchSize, shard.Len())
	batches := (n + batch - 1) / max(batch, 1)
	feed, rows := newFeed(e, shard, batch, req.Threads), make([]int32, batch)
	feed.fill = func(b *dataset.Batch, number int) {
		k := min(batch, n-number*batch)
		for i := range k {
			rows[i] = int32(number*batch + i)
		}
		feed.filler.Fill(b, rows[:k])
	}
	defer feed.wait()
	setThreads(feed.threads(req.Threads))
	ranked, byClass := rankedFor(req, n), disdel.NewByClass(req.Network.Classes)
	errors, labels := disdel.NewErrorSums(req.Network.Targets), disdel.NewLabelSums(len(req.Network.Targets))
	state := disdel.Progress{Task: disdel.TaskEvaluate, Round: req.Round, Batches: batches}
	var lossSum float64
	var correct, predicted, targets, top5 int
	counted, ranks := true, req.Network.Classes > disdel.TopClasses
	if err := p.beat(ctx, state); err != nil { // the wait in the queue and the start are over
		return res, err
	}
	for number := range batches {
		then := number + 1
		if then == batches {
			then = -1
		}
		input := feed.take(number, then)
		m, err := e.Evaluate(input)
		if err != nil {
			return res, err
		}
		targets += cmp.Or(m.Targets, m.Rows)
		lossSum += m.Loss * float64(cmp.Or(m.Targets, m.Rows))
		correct += max(0, m.Correct)
		counted = counted && m.Correct >= 0
		ranked.add(m.Scores, input.Target.Values)
		errors.Add(m.Scores, input.Target.Values)
		labels.Add(m.Scores, input.Target.Values)
		if len(m.Classes) > 0 {
			byClass.Add(input.Target.Classes, m.Classes)
			top5, ranks = top5+m.Top5, ranks && m.Top5 >= 0
		}
		predicted += len(m.Classes)
		state.Batch++
		if err := p.beat(ctx, state); err != nil {
			return res, err
		}
	}
	count := float64(max(1, targets))
	res = disdel.EvaluateResult{Loss: lossSum / count, Accuracy: float64(correct) / count, Samples: n}
	if res.Scores = ranked.scores(req, res.Loss); len(req.Network.Targets) > 0 {
		res.Scores = errors.Scores()
	}
	if req.Network.NextToken {
		res.Scores.Perplexity = math.Exp(res.Loss)
	}
	if !counted {
		res.Accuracy = 0
	}
	if req.Network.MultiLabel() {
		res.Accuracy, res.Scores = labels.Scores()
	}
	if predicted > 0 && counted {
		if res.ByClass = byClass; ranks {
			res.Top5 = new(float64(top5) / count)
		}
	}
	return res, nil
}
