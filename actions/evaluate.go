package actions

import (
	"context"
	"runtime/debug"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/internal/modelstore"
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
		e, err = h.built.get(req.Backend, req.Network, engine.Spec{
			Graph: g, BatchSize: max(1, min(req.BatchSize, shard.Len())), Loss: req.Loss, Threads: req.Threads,
			Memory: req.Memory, Device: req.Device, Exact: req.Exact,
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
		w, err := reference(ctx, store, source{req.Job, req.Round + 1, req.Models, req.ReferenceCheckpoint},
			withOptimizer(shapes(g), g, req.Averaged))
		if err != nil {
			return err
		}
		defer h.free()
		weights, _, _ := split(w)
		return engine.SetWeights(e, weights)
	})
	if err != nil {
		return res, err
	}
	err = c.phase("compute", func() (err error) {
		p := pulse{call: c, store: store, job: req.Job}
		res, err = measure(ctx, &p, req, e, shard)
		return err
	})
	res.Usage = c.usage()
	return res, err
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
	state := disdel.Progress{Task: disdel.TaskEvaluate, Round: req.Round, Batches: batches}
	var lossSum float64
	var correct, said int
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
		lossSum += m.Loss * float64(m.Rows)
		correct += m.Correct
		ranked.add(m.Scores, input.Target.Values)
		byClass.Add(input.Target.Classes, m.Classes)
		said += len(m.Classes)
		state.Batch++
		if err := p.beat(ctx, state); err != nil {
			return res, err
		}
	}
	res = disdel.EvaluateResult{Loss: lossSum / float64(n), Accuracy: float64(correct) / float64(n), Samples: n}
	res.Scores = ranked.scores(req, res.Loss)
	if said > 0 {
		res.ByClass = byClass
	}
	return res, nil
}

// infer returns the class and the probabilities of every input under a stored model.
func (h *Host) infer(ctx context.Context, c *call, req disdel.InferRequest) (res disdel.InferResult, err error) {
	h.limitHeap(req.Memory, req.Estimate, 0)
	g, err := model.Build(req.Network)
	if err != nil {
		return res, err
	}
	store, err := modelstore.Open(ctx, req.Models)
	if err != nil {
		return res, err
	}
	defer store.Close()
	var e engine.Engine
	var in inputs
	err = c.phase("load", func() (err error) {
		if in, err = h.asked(ctx, store, req); err != nil {
			return err
		}
		e, err = h.built.get(req.Backend, req.Network, engine.Spec{
			Graph: g, BatchSize: inferRows(&req, in.rows), Memory: req.Memory,
		})
		if err != nil {
			return err
		}
		c.computes(e)
		h.limitHeap(req.Memory, req.Estimate, slab(e))
		return loadModel(ctx, e, store, req)
	})
	if err != nil {
		return res, err
	}
	err = c.phase("compute", func() (err error) {
		switch {
		case in.shard != nil:
			res.Answers, err = answer(ctx, store, e, req, g, in.shard)
		case req.Sparse != nil:
			res, err = answerSparse(e, req)
		default:
			res, err = predict(e, in)
		}
		return err
	})
	res.Usage = c.usage()
	return res, err
}

// inferBatch bounds the memory of an infer action, for any number of inputs.
const inferBatch = 64

func loadModel(ctx context.Context, e engine.Engine, store *modelstore.Store, req disdel.InferRequest) error {
	w, err := store.ReadWeights(ctx, req.WeightsKey, req.Checksum)
	if err != nil {
		return err
	}
	defer debug.FreeOSMemory() // what they came in
	return engine.SetWeights(e, w)
}

// inputs are the rows of an inference.
type inputs struct {
	rows, sample int
	values       func(to []float32, start, end int) []float32 // appends those of some rows
	shard        *dataset.Shard                               // instead of values, of a data set
}

// readInputs returns the rows of a request, or reads those that it refers to.
func readInputs(ctx context.Context, store *modelstore.Store, req disdel.InferRequest) (in inputs, err error) {
	sample := model.Shape(req.Network.Input).Len()
	if req.Rows != nil {
		rows, err := store.ReadRows(ctx, req.Rows.Key, req.Rows.Checksum, sample)
		return inputs{rows: rows.Len(), sample: sample, values: rows.Append}, err
	}
	for _, r := range req.Inputs {
		if len(r) != sample {
			return in, &disdel.Error{Kind: disdel.Invalid, Op: "infer", Msg: "an input does not fit the network's input"}
		}
	}
	return inputs{rows: len(req.Inputs), sample: sample, values: func(to []float32, start, end int) []float32 {
		return append(to, slices.Concat(req.Inputs[start:end]...)...)
	}}, nil
}

func predict(e engine.Engine, in inputs) (res disdel.InferResult, err error) {
	x := make([]float32, 0, min(in.rows, inferBatch)*in.sample)
	for start := 0; start < in.rows; start += inferBatch {
		end := min(start+inferBatch, in.rows)
		p, err := e.Predict(dataset.Dense(end-start, in.values(x[:0], start, end), nil))
		if err != nil {
			return res, err
		}
		addPredictions(&res, p)
	}
	return res, nil
}

// addPredictions appends the rows of p, probabilities by class, with the class of the largest.
func addPredictions(res *disdel.InferResult, p dataset.Matrix) {
	for i := range p.Rows {
		row := p.Row(i)
		res.Classes = append(res.Classes, disdel.Largest(row))
		res.Probabilities = append(res.Probabilities, row)
	}
}
