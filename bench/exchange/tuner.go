package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator/exchange"
	"github.com/disdel/disdel/bench/rig"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/scheduler"
)

// tunedWorkers is how many a job of the tuner's begins with.
const tunedWorkers = 12

// tunedJob is a job whose workers may leave: what it learns, and how large a part of a step with all workers is
// communication.
type tunedJob struct {
	name  string
	l     *learning
	share float64
	trial trial
}

// tuner is Perf/$ (one over time times cost, MLLess' Eq. 4) of jobs whose workers leave inside a round, over that of
// the same jobs with all workers, to the same held-out loss: the median of the seeds for each job, the best of these,
// and the worst of all. Gradients are real, workers take batches from one queue, and times are the virtual clock's.
func tuner(films, ads *learning, seeds int) error {
	pmf := trial{
		workers: tunedWorkers, batch: 2000 / tunedWorkers, steps: 400, every: 5, rate: 0.4 * 8 / tunedWorkers,
	}
	logistic := trial{workers: tunedWorkers, batch: 1000 / tunedWorkers, steps: 400, every: 10}
	jobs := []tunedJob{
		{"pmf_waits", films, 0.8, pmf},
		{"pmf_half", films, 0.5, pmf},
		{"logistic_waits", ads, 0.8, logistic},
		{"logistic_computes", ads, 0.2, logistic},
	}
	var best []float64 // of the job with the highest median
	worst := math.Inf(1)
	for _, j := range jobs {
		gains, left, failed := make([]float64, seeds), make([]float64, seeds), make([]error, seeds)
		inParallel(seeds, func(i int) {
			var workers int
			gains[i], workers, failed[i] = j.gain(int64(i + 1))
			left[i] = float64(workers)
		})
		if err := errors.Join(failed...); err != nil {
			return err
		}
		least := slices.Min(gains)
		rig.Figure("tuner_"+j.name+"_worst", least, "x")
		rig.MedianFigure("tuner_"+j.name, gains, "x")
		rig.Figure("tuner_"+j.name+"_workers", rig.Mean(left), "in the end")
		if worst = min(worst, least); best == nil || rig.Median(gains) > rig.Median(best) {
			best = gains
		}
	}
	rig.MedianFigure("tuner_best", best, "x")
	rig.Figure("tuner_worst", worst, "x")
	return nil
}

// medianFigure prints a median of seeds, and an interval for it where there are enough of them.
// gain is Perf/$ with the tuner over that without, and how many workers there are in the end.
func (j tunedJob) gain(seed int64) (gain float64, workers int, err error) {
	j.trial.seed = seed
	plain := queueRun{l: j.l, trial: j.trial}
	if err := plain.train(context.Background()); err != nil {
		return 0, 0, err
	}
	target := near * plain.best()
	rate := plain.rate(j.share)
	time, cost, ok := plain.priced(rate, target)
	if !ok {
		return 0, 0, fmt.Errorf("%s does not come to its own loss", j.name)
	}
	t := queueRun{l: j.l, trial: j.trial, server: rate, target: target, by: &scheduler.ScaleIn{Workers: tunedWorkers}}
	t.trial.steps *= tunedWorkers // fewer workers make more steps
	if err := t.train(context.Background()); err != nil {
		return 0, 0, err
	}
	own, did, ok := t.priced(rate, target)
	if !ok {
		return 0, t.by.Workers, nil
	}
	return time * cost / (own * did), t.by.Workers, nil
}

// queueRun is training in lock-step by workers that take the batches of a queue, and of which some may leave.
type queueRun struct {
	l       *learning
	trial   trial
	server  float64            // bytes that it serves in the time of a step's computing
	target  float64            // held-out loss that ends it; 0: all steps
	batches int                // that end it; 0: all steps
	by      *scheduler.ScaleIn // nil: nobody leaves

	members []*worker
	order   []int32
	at      int
	epoch   int
	trained int // batches
	steps   []queueStep
}

// queueStep is what one step was.
type queueStep struct {
	workers int
	luck    float64 // of the slowest worker: the time that it computes
	bytes   float64 // that all of them sent
	heldOut float64 // 0: it was not looked at
}

// others is how long a step's workers read what the others sent, over one server.
func (s queueStep) others(rate float64) float64 { return s.bytes * float64(s.workers-1) / rate }

func (q *queueRun) train(ctx context.Context) (err error) {
	defer func() {
		for _, w := range q.members {
			w.engine.Close() //nolint:errcheck // memory alone
		}
	}()
	whole, err := q.l.shard(ctx, 0, 1)
	if err != nil {
		return err
	}
	start := flat(engine.InitWeights(q.l.graph, disdel.Init{Seed: q.trial.seed}))
	for m := range q.trial.workers {
		w, err := q.l.worker(ctx, q.trial, m, start)
		if err != nil {
			return err
		}
		w.shard = whole
		q.members = append(q.members, w)
	}
	lot := rand.New(rand.NewPCG(uint64(q.trial.seed), 21))
	stay := q.trial.workers
	for n := range q.trial.steps {
		there := stay
		s, loss, err := q.step(there, lot)
		if err != nil {
			return err
		}
		if (n+1)%q.trial.every == 0 {
			if s.heldOut, err = q.l.evaluate(q.members[0]); err != nil {
				return err
			}
		}
		q.steps = append(q.steps, s)
		q.trained += there
		if q.target > 0 && s.heldOut > 0 && s.heldOut <= q.target || q.batches > 0 && q.trained >= q.batches {
			return nil
		}
		if q.by != nil {
			stay = q.by.Step(scheduler.StepSeen{Loss: loss, Own: s.luck, Others: s.others(q.server)})
		}
		if err := q.leave(there, stay, n+1); err != nil {
			return err
		}
	}
	return nil
}

// step makes a step of the first workers, and folds it.
func (q *queueRun) step(there int, lot *rand.Rand) (s queueStep, loss float64, err error) {
	s.workers = there
	deltas := make([]exchange.Delta, q.trial.workers)
	for m, w := range q.members[:there] {
		var own float64
		if deltas[m], own, err = w.stepOn(q.rows(), w.replica.Send); err != nil {
			return s, 0, err
		}
		loss += own / float64(there)
		s.bytes += float64(len(deltas[m].Append(nil)))
		s.luck = max(s.luck, math.Exp(0.1*lot.NormFloat64()))
	}
	return s, loss, q.fold(there, deltas)
}

func (q *queueRun) fold(there int, deltas []exchange.Delta) error {
	for _, w := range q.members[:there] {
		if err := w.replica.Fold(w.replica.Folded()+1, deltas); err != nil {
			return err
		}
	}
	return nil
}

// rows is the queue's next batch.
func (q *queueRun) rows() []int32 {
	n := q.trial.batch
	if q.at+n > len(q.order) {
		q.order = dataset.Order(q.order, q.trial.seed, q.epoch, 0, q.members[0].shard.Len())
		q.at, q.epoch = 0, q.epoch+1
	}
	q.at += n
	return q.order[q.at-n : q.at]
}

// leave has the last of the workers that are there leave after a step. They owe nothing, since all of it was sent and
// folded, or is in what their next, last step would send: with a threshold of 0 there is nothing.
func (q *queueRun) leave(there, stay, step int) error {
	for m := stay; m < there; m++ {
		for _, w := range q.members[:stay] {
			w.replica.SetLastStep(m, step)
		}
		if owed := q.members[m].replica.Owed(); owed > 0 {
			return fmt.Errorf("worker %d leaves, and owes %g", m, owed)
		}
	}
	return nil
}

func (q *queueRun) best() float64 {
	least := math.Inf(1)
	for _, s := range q.steps {
		if s.heldOut > 0 {
			least = min(least, s.heldOut)
		}
	}
	return least
}

// rate is that of a server with which a step of all workers is communication for such a share.
func (q *queueRun) rate(share float64) float64 {
	read, own := 0.0, 0.0
	for _, s := range q.steps {
		read, own = read+s.others(1), own+s.luck
	}
	return read / own * (1 - share) / share
}

// priced is what it takes to come to a held-out loss: time, and worker times time.
func (q *queueRun) priced(rate, target float64) (time, cost float64, ok bool) {
	for _, s := range q.steps {
		took := s.luck + s.others(rate)
		time, cost = time+took, cost+took*float64(s.workers)
		if s.heldOut > 0 && s.heldOut <= target {
			return time, cost, true
		}
	}
	return time, cost, false
}

// inParallel does some things on all processors.
func inParallel(count int, do func(i int)) {
	var wait sync.WaitGroup
	next := make(chan int)
	for range runtime.NumCPU() {
		wait.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range count {
		next <- i
	}
	close(next)
	wait.Wait()
}
