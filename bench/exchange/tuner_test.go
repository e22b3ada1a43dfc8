package main

import (
	"fmt"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator/exchange"
	"github.com/disdel/disdel/dataset/sparse"
	"github.com/disdel/disdel/scheduler"
)

// MLLess' result for scale-in: workers that leave past the knee save time times cost, and what is learned from as many
// batches is no worse, whether a step is the mean of the updates or their sum. Ratings, weights and order are drawn.
func TestScaleInLosesNoConvergence(t *testing.T) {
	const workers, rounds = 6, 20
	for seed := range int64(3) {
		made := sparse.MadeRatings{
			Users: 200, Items: 300, Ratings: 12_000, Seed: seed, HeldOut: sparse.HeldOut{Share: 0.1, Seed: 1},
		}
		in, err := made.Input("films")
		if err != nil {
			t.Fatal(err)
		}
		for _, combine := range []exchange.Combine{exchange.Mean, exchange.Sum} {
			rate := 0.6
			if combine == exchange.Sum {
				rate /= workers
			}
			sgd := disdel.Optimizer{SGD: &disdel.SGD{LearningRate: rate, Momentum: 0.8, Nesterov: true}}
			l, err := load(t.Context(), in, "pmf", sgd)
			if err != nil {
				t.Fatal(err)
			}
			steps := rounds * l.info.Train / (workers * 50)
			t.Run(fmt.Sprintf("%s/%d", combine, seed), func(t *testing.T) {
				all := queueRun{l: l, trial: trial{
					workers: workers, batch: 50, steps: steps, every: 10, seed: seed, combine: combine,
				}}
				if err := all.train(t.Context()); err != nil {
					t.Fatal(err)
				}
				fewer := queueRun{l: l, trial: all.trial, by: &scheduler.ScaleIn{Workers: workers}, server: all.rate(0.8)}
				fewer.batches = steps * workers
				fewer.trial.steps = fewer.batches
				if err := fewer.train(t.Context()); err != nil {
					t.Fatal(err)
				}
				time, cost := all.took(fewer.server)
				own, did := fewer.took(fewer.server)
				if fewer.by.Workers == workers || own*did >= time*cost {
					t.Errorf("%d workers stay: %.4g x %.4g, and %.4g x %.4g with all", fewer.by.Workers, own, did, time, cost)
				}
				if got, want := fewer.last(), all.last(); got > 1.01*want {
					t.Errorf("held-out loss %.4f in the end, and %.4f with all workers", got, want)
				}
				if got, want := fewer.best(), all.best(); got > 1.01*want {
					t.Errorf("held-out loss %.4f at best, and %.4f with all workers", got, want)
				}
			})
		}
	}
}

// took is what all steps took: time, and worker times time.
func (q *queueRun) took(rate float64) (time, cost float64) {
	time, cost, _ = q.priced(rate, 0)
	return time, cost
}

// last is the held-out loss that was seen last.
func (q *queueRun) last() (loss float64) {
	for _, s := range q.steps {
		if s.heldOut > 0 {
			loss = s.heldOut
		}
	}
	return loss
}
