package actions

import (
	"cmp"
	"context"
	"iter"
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
	var e evaluator
	spec := engine.Spec{
		Graph: g, Context: ctx, Loss: req.Loss, Threads: req.Threads, Memory: req.Memory, Device: req.Device,
		Exact: req.Exact,
	}
	err = c.phase("load", func() (err error) {
		if shard, err = h.rows(ctx, shardKey{data: req.Data, rows: req.Rows, part: disdel.PartTest}); err != nil {
			return err
		}
		if spec.Code, err = h.code.folder(ctx, req.Models, req.Network); err != nil {
			return err
		}
		if spec.BatchSize = max(1, min(req.BatchSize, shard.Len())); req.ByLayers {
			e.layers, err = h.evaluatesByLayers(c, store, req, spec)
			return err
		}
		if e.whole, err = h.built.get(req.Backend, req.Network, spec); err == nil {
			c.computes(e.whole)
			h.limitHeap(req.Memory, req.Estimate, slab(e.whole))
		}
		return err
	})
	if err != nil {
		return res, err
	}
	if e.whole != nil {
		if err := c.phase("fetch", func() error { return h.fetchWhole(ctx, store, req, g, e.whole) }); err != nil {
			return res, err
		}
	}
	err = c.phase("compute", func() (err error) {
		if e.whole != nil && e.whole.Listener() != nil {
			defer roomFor(programGarbage, req.Memory, slab(e.whole))()
		}
		p := pulse{call: c, store: store, job: req.Job}
		res, err = measure(ctx, &p, req, e, shard)
		return err
	})
	res.Usage = c.usage()
	return res, err
}

// evaluator computes the rows of an evaluation, with one of two.
type evaluator struct {
	whole  engine.Engine // of the whole network
	layers *layered
}

func (e evaluator) onDevice() bool { return e.whole != nil && onDevice(e.whole) }

// evaluate computes a batch, and calls add with the metrics of parts of it. It calls during before each slice.
func (e evaluator) evaluate(ctx context.Context, b dataset.Batch, during func() error,
	add func(dataset.Target, disdel.Metrics),
) error {
	if e.layers != nil {
		e.layers.during = during
		return e.layers.evaluate(ctx, b, add)
	}
	m, err := e.whole.Evaluate(b)
	if err == nil {
		add(b.Target, m)
	}
	return err
}

// fetchWhole sets the weights of an engine to those after the round.
func (h *Host) fetchWhole(ctx context.Context, store *aggregator.Store, req disdel.EvaluateRequest, g *model.Graph,
	e engine.Engine,
) error {
	at := source{req.Job, req.Round + 1, req.Models, req.ReferenceCheckpoint}
	like := withOptimizer(shapes(g), g, req.Averaged)
	defer h.free()
	if req.InBlocks {
		if err := setInBlocks(ctx, store, at, e, like, 0, len(like)); err != nil {
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
}

// evaluatesByLayers makes an evaluator that reads the weights after the round slice by slice.
func (h *Host) evaluatesByLayers(c *call, store *aggregator.Store, req disdel.EvaluateRequest, spec engine.Spec) (
	*layered, error,
) {
	at := source{req.Job, req.Round + 1, req.Models, req.ReferenceCheckpoint}
	like := withOptimizer(shapes(spec.Graph), spec.Graph, req.Averaged)
	return h.byLayers(c, req.Backend, spec, req.Estimate,
		func(ctx context.Context, e engine.Engine) error {
			for from, to := range rangesOf(like, e.State()) {
				if err := setInBlocks(ctx, store, at, e, like, from, to); err != nil {
					return err
				}
			}
			return frozen(ctx, req.Models, req.Given, e)
		})
}

// rangesOf yields the ranges of tensors that are arrays of an engine.
func rangesOf(like disdel.Weights, state []engine.Array) iter.Seq2[int, int] {
	own := map[string]bool{}
	for _, a := range state {
		own[a.Name] = true
	}
	return func(yield func(from, to int) bool) {
		for from := 0; from < len(like); from++ {
			to := from
			for to < len(like) && own[like[to].Name] {
				to++
			}
			if to > from && !yield(from, to) {
				return
			}
			from = to
		}
	}
}

// setInBlocks sets arrays of an engine to the tensors from (included) to (not) of a reference, without a copy of them.
// Values of other arrays are passed over.
func setInBlocks(ctx context.Context, store *aggregator.Store, at source, e engine.Engine, like disdel.Weights,
	from, to int,
) error {
	s := newBlockSetter(e, like[from:to])
	begin := lengthOf(like[:from])
	err := store.StreamReferencePart(ctx, at.job, at.round, like, begin, begin+lengthOf(like[from:to]), s.take)
	if disdel.KindOf(err) == disdel.NotFound && at.from != "" {
		s = newBlockSetter(e, like[from:to])
		err = checkpointValues(ctx, at.models, at.from, like, s.behind(begin))
	}
	return err
}

// blockSetter sets arrays of an engine from the values of tensors that come in blocks.
type blockSetter struct {
	named      map[string]engine.Array
	like       disdel.Weights
	next, done int // the tensor that the next value is of, and its values so far
}

func newBlockSetter(e engine.Engine, like disdel.Weights) *blockSetter {
	s := &blockSetter{named: map[string]engine.Array{}, like: like}
	for _, a := range e.State() {
		s.named[a.Name] = a
	}
	return s
}

func (s *blockSetter) take(block []float32) error {
	for len(block) > 0 && s.next < len(s.like) {
		t := s.like[s.next]
		size := model.Shape(t.Shape).Len()
		n := min(size-s.done, len(block))
		if a, ok := s.named[t.Name]; ok && n > 0 {
			if err := a.WriteAt(block[:n], s.done); err != nil {
				return err
			}
		}
		if block, s.done = block[n:], s.done+n; s.done == size {
			s.next, s.done = s.next+1, 0
		}
	}
	return nil
}

// behind passes over values before it takes some.
func (s *blockSetter) behind(values int) func(block []float32) error {
	return func(block []float32) error {
		n := min(values, len(block))
		values -= n
		return s.take(block[n:])
	}
}

// layered computes a network in an action that has no room for all weights. It takes one slice of the network after the
// other. Each slice has its own engine, which reads the weights of its layers in blocks. What a slice hands to the next
// one is in memory for all rows of a batch.
type layered struct {
	host     *Host
	call     *call
	backend  string
	spec     engine.Spec // of the whole network
	estimate disdel.Bytes
	slices   []*model.Graph
	weights  func(context.Context, engine.Engine) error // sets those of a slice
	values   [2][]float32                               // between slices: what one reads, and what it writes
	during   func() error                               // before each slice; nil: nothing
}

// byLayers makes what computes batches of spec.BatchSize rows.
func (h *Host) byLayers(c *call, backend string, spec engine.Spec, estimate disdel.Bytes,
	weights func(context.Context, engine.Engine) error,
) (*layered, error) {
	l := &layered{host: h, call: c, backend: backend, spec: spec, estimate: estimate, weights: weights}
	var err error
	if l.slices, err = spec.Graph.Slices(); err != nil {
		return nil, err
	}
	widest := 0
	for _, g := range l.slices[1:] {
		widest = max(widest, g.Input().Len())
	}
	for i := range l.values {
		l.values[i] = make([]float32, 0, spec.BatchSize*widest)
	}
	return l, h.built.drop()
}

func (l *layered) evaluate(ctx context.Context, b dataset.Batch, add func(dataset.Target, disdel.Metrics)) error {
	return l.each(ctx, b, func(s engine.Passes, p engine.Pass) error {
		m, err := s.Measure(p)
		if err == nil {
			add(p.Target, m)
		}
		return err
	})
}

// each computes a batch, and calls last with each micro-batch of the network's last slice.
func (l *layered) each(ctx context.Context, b dataset.Batch, last func(engine.Passes, engine.Pass) error) error {
	in := b.Input.Values
	for i, g := range l.slices {
		out := l.values[i%2][:0]
		err := l.slice(ctx, g, b, in, func(s engine.Passes, p engine.Pass) error {
			if i == len(l.slices)-1 {
				return last(s, p)
			}
			values, err := s.Predict(p)
			out = append(out, values...)
			return err
		})
		if err != nil {
			return err
		}
		in = out
	}
	return nil
}

// slice computes a slice for all rows of a batch, in micro-batches.
func (l *layered) slice(ctx context.Context, g *model.Graph, b dataset.Batch, in []float32,
	do func(engine.Passes, engine.Pass) error,
) (err error) {
	if l.during != nil {
		err = l.during()
	}
	if err != nil || ctx.Err() != nil {
		return cmp.Or(err, context.Cause(ctx))
	}
	spec := l.spec
	spec.Graph, spec.BatchSize = g, min(l.spec.BatchSize, model.SliceRows)
	maker, err := l.host.built.backends.Find(l.backend, g)
	if err != nil {
		return err
	}
	e, err := maker.New(spec)
	if err != nil {
		return err
	}
	defer e.Close() //nolint:errcheck // it only frees memory
	l.call.computes(e)
	l.host.limitHeap(l.spec.Memory, l.estimate, slab(e))
	if err := l.weights(ctx, e); err != nil {
		return err
	}
	passes, row := e.Passes(), g.Input().Len()
	for first := 0; first < b.Input.Rows; first += spec.BatchSize {
		n := min(spec.BatchSize, b.Input.Rows-first)
		p := engine.Pass{
			Rows: n, Input: dataset.Matrix{Rows: n, Columns: row, Values: in[first*row:][:n*row]},
			Target: l.target(b.Target, first, n),
		}
		if g.ReadsTokens() {
			tokens := l.spec.Graph.Input().Len()
			p.Tokens = b.Input.Values[first*tokens:][:n*tokens]
		}
		if err := do(passes, p); err != nil {
			return err
		}
	}
	return nil
}

// target is that of n rows of a batch.
func (l *layered) target(all dataset.Target, first, n int) (t dataset.Target) {
	if all.Classes != nil {
		t.Classes = all.Classes[first:][:n]
	}
	if outputs := l.spec.Graph.Output().Len(); all.Values != nil {
		t.Values = all.Values[first*outputs:][:n*outputs]
	}
	return t
}

func measure(ctx context.Context, p *pulse, req disdel.EvaluateRequest, e evaluator,
	shard *dataset.Shard,
) (res disdel.EvaluateResult, err error) {
	n, batch := shard.Len(), min(req.BatchSize, shard.Len())
	batches := (n + batch - 1) / max(batch, 1)
	feed, rows := newFeed(e.onDevice(), shard, batch, req.Threads), make([]int32, batch)
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
	add := func(target dataset.Target, m disdel.Metrics) {
		targets += cmp.Or(m.Targets, m.Rows)
		lossSum += m.Loss * float64(cmp.Or(m.Targets, m.Rows))
		correct += max(0, m.Correct)
		counted = counted && m.Correct >= 0
		ranked.add(m.Scores, target.Values)
		errors.Add(m.Scores, target.Values)
		labels.Add(m.Scores, target.Values)
		if len(m.Classes) > 0 {
			byClass.Add(target.Classes, m.Classes)
			top5, ranks = top5+m.Top5, ranks && m.Top5 >= 0
		}
		predicted += len(m.Classes)
	}
	during := func() error { return p.beat(ctx, state) }
	for number := range batches {
		then := number + 1
		if then == batches {
			then = -1
		}
		if err := e.evaluate(ctx, feed.take(number, then), during, add); err != nil {
			return res, err
		}
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
