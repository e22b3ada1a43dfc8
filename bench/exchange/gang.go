package main

import (
	"cmp"
	"context"
	"math"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator/exchange"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/sparse"
)

// trial is a training by a gang of workers that exchange after every step.
type trial struct {
	workers, batch int // rows of a worker's step
	threshold      float64
	slack          int
	eager          bool
	combine        exchange.Combine // "": Sum
	values         disdel.Wire      // that are sent
	steps          int
	seed           int64
	rate           float64 // 0: the learning's own
	every          int     // steps between evaluations
}

// course is what became of a trial.
type course struct {
	bytes [][]float64 // by step and worker: that it sent
	loss  []evaluated
}

// evaluated is the held-out loss after so many steps.
type evaluated struct {
	step int
	loss float64
}

// best is the least held-out loss.
func (c *course) best() float64 {
	least := math.Inf(1)
	for _, e := range c.loss {
		least = min(least, e.loss)
	}
	return least
}

// reaches is the step after which the held-out loss was at most target; ok is false where it never was.
func (c *course) reaches(target float64) (step int, ok bool) {
	for _, e := range c.loss {
		if e.loss <= target {
			return e.step, true
		}
	}
	return 0, false
}

// sent is the bytes that one worker sent in a step, in the mean of the first steps.
func (c *course) sent(steps int) float64 {
	sum := 0.0
	for _, s := range c.bytes[:steps] {
		for _, b := range s {
			sum += b / float64(len(s))
		}
	}
	return sum / float64(max(1, steps))
}

// worker is a member of the gang with its engine and its rows.
type worker struct {
	replica *exchange.Replica
	engine  engine.Engine
	shard   *dataset.Shard
	batch   dataset.Batch
	order   []int32
	at      int
	epoch   int
	weights []float32
}

func (l *learning) train(ctx context.Context, t trial) (c course, err error) {
	workers := make([]*worker, t.workers)
	defer func() {
		for _, w := range workers {
			if w != nil {
				w.engine.Close() //nolint:errcheck // memory alone
			}
		}
	}()
	start := flat(engine.InitWeights(l.graph, disdel.Init{Seed: t.seed}))
	for m := range workers {
		if workers[m], err = l.worker(ctx, t, m, start); err != nil {
			return c, err
		}
	}
	var log [][]exchange.Delta
	for step := range t.steps {
		deltas, bytes := make([]exchange.Delta, t.workers), make([]float64, t.workers)
		for m, w := range workers {
			for w.replica.Folded() < w.replica.Needed() {
				if err := w.replica.Fold(w.replica.Folded()+1, log[w.replica.Folded()]); err != nil {
					return c, err
				}
			}
			if deltas[m], _, err = w.step(t, m, w.replica.Send); err != nil {
				return c, err
			}
			bytes[m] = float64(len(deltas[m].Append(nil)))
		}
		log, c.bytes = append(log, deltas), append(c.bytes, bytes)
		if (step+1)%t.every == 0 {
			loss, err := l.evaluate(workers[0])
			if err != nil {
				return c, err
			}
			c.loss = append(c.loss, evaluated{step + 1, loss})
		}
	}
	return c, nil
}

func (l *learning) worker(ctx context.Context, t trial, m int, start []float32) (w *worker, err error) {
	w = &worker{weights: append([]float32(nil), start...)}
	if w.shard, err = l.shard(ctx, m, t.workers); err != nil {
		return w, err
	}
	w.batch = w.shard.NewBatch(t.batch)
	w.replica, err = exchange.New(exchange.Config{
		Members: t.workers, Member: m, Threshold: t.threshold, Slack: t.slack, Combine: cmp.Or(t.combine, exchange.Sum),
		Values: t.values, Eager: t.eager,
	}, start)
	if err != nil {
		return w, err
	}
	w.engine, err = sparse.Backend{}.New(engine.Spec{
		Graph: l.graph, BatchSize: max(t.batch, evaluateRows), Training: true, Optimizer: l.optimizer,
	})
	if err == nil && t.rate > 0 {
		w.engine.SetRate(t.rate)
	}
	return w, err
}

// step makes a worker's step on its next rows, and returns what it sends, as send says, and the loss of the rows.
func (w *worker) step(t trial, m int, send func([]float32) (exchange.Delta, error)) (exchange.Delta, float64, error) {
	if w.at+t.batch > len(w.order) {
		w.order = dataset.Order(w.order, t.seed, w.epoch, m, w.shard.Len())
		w.at, w.epoch = 0, w.epoch+1
	}
	w.at += t.batch
	return w.stepOn(w.order[w.at-t.batch:w.at], send)
}

// stepOn makes a worker's step on some rows.
func (w *worker) stepOn(rows []int32, send func([]float32) (exchange.Delta, error)) (exchange.Delta, float64, error) {
	w.replica.Weights(w.weights)
	if err := set(w.engine, w.weights); err != nil {
		return exchange.Delta{}, 0, err
	}
	w.shard.Fill(&w.batch, rows)
	m, err := w.engine.Step(w.batch)
	if err != nil {
		return exchange.Delta{}, 0, err
	}
	if err := get(w.engine, w.weights); err != nil {
		return exchange.Delta{}, 0, err
	}
	d, err := send(w.weights)
	return d, m.Loss, err
}

// evaluateRows is how many rows are evaluated at once.
const evaluateRows = 1000

// evaluate is the held-out loss of what all members have.
func (l *learning) evaluate(w *worker) (loss float64, err error) {
	if err := set(w.engine, w.replica.Shared()); err != nil {
		return 0, err
	}
	b, rows := l.heldOut.NewBatch(evaluateRows), make([]int32, 0, evaluateRows)
	for from := 0; from < l.heldOut.Len(); from += evaluateRows {
		rows = rows[:0]
		for r := from; r < min(from+evaluateRows, l.heldOut.Len()); r++ {
			rows = append(rows, int32(r))
		}
		l.heldOut.Fill(&b, rows)
		m, err := w.engine.Evaluate(b)
		if err != nil {
			return 0, err
		}
		loss += m.Loss * float64(m.Rows)
	}
	return loss / float64(l.heldOut.Len()), nil
}

func flat(w disdel.Weights) (out []float32) {
	for _, t := range w {
		out = append(out, t.Data...)
	}
	return out
}

// set and get are an engine's weights as one vector.
func set(e engine.Engine, w []float32) error {
	for _, a := range engine.Of(e.State(), engine.Weight) {
		if err := a.WriteAt(w[:a.Len()], 0); err != nil {
			return err
		}
		w = w[a.Len():]
	}
	return nil
}

func get(e engine.Engine, w []float32) error {
	for _, a := range engine.Of(e.State(), engine.Weight) {
		if err := a.ReadAt(w[:a.Len()], 0); err != nil {
			return err
		}
		w = w[a.Len():]
	}
	return nil
}
