package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/bench/rig"
)

// What round_p50_ms is measured on.
const (
	roundWorkers = 8
	warmUpRounds = 20
	roundRuns    = 201
)

// rounds measures rounds of LeNet-5 with warm workers whose training step is empty. A round is what the store sees of
// one: each worker, with its own connections, claims its work, reads the round's reference, and pushes it again as its
// update under the claim. Then an aggregation with its own connections claims, reduces and commits the next reference.
// The store forgets the round. The count has everything that goes over a connection between two beginnings of a round.
// It does not have the platform's invocations, nor the collector's runs between an action's phases.
func rounds(ctx context.Context, url string, like disdel.Weights) error {
	const job = disdel.JobID("job-rounds")
	stores := make([]*aggregator.Store, roundWorkers+1)
	for i := range stores {
		s, err := aggregator.Open(ctx, disdel.Store{URLs: []string{url}})
		if err != nil {
			return err
		}
		defer s.Close()
		stores[i] = s
	}
	if err := stores[0].PutReference(ctx, job, 0, fill(like, 1)); err != nil {
		return err
	}
	var took []float64
	for n := range warmUpRounds + roundRuns {
		start := time.Now()
		if err := oneRound(ctx, stores, job, n, like); err != nil {
			return fmt.Errorf("round %d: %w", n, err)
		}
		if n >= warmUpRounds {
			took = append(took, rig.Since(start))
		}
	}
	rig.Figure("round_p50_ms", rig.Median(took), "ms")
	rig.Figure("round_p95_ms", rig.Percentile(took, 0.95), "ms")
	_, err := stores[0].Sweep(ctx, job)
	return err
}

func oneRound(ctx context.Context, stores []*aggregator.Store, job disdel.JobID, round int, like disdel.Weights) error {
	errs := make([]error, roundWorkers)
	members := make([]disdel.UpdateID, roundWorkers)
	var workers sync.WaitGroup
	for w := range roundWorkers {
		members[w] = disdel.UpdateID{Job: job, Round: round, Member: w}
		workers.Go(func() { errs[w] = work(ctx, stores[w], members[w], like) })
	}
	workers.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return reduceRound(ctx, stores[roundWorkers], disdel.UpdateID{Job: job, Round: round, Level: 1}, members, like)
}

func work(ctx context.Context, s *aggregator.Store, id disdel.UpdateID, like disdel.Weights) error {
	c, err := claimed(ctx, s, id)
	if err != nil {
		return err
	}
	w, err := s.Reference(ctx, id.Job, id.Round, like)
	if err != nil {
		return err
	}
	return s.PushUpdate(ctx,
		disdel.Update{ID: id, Attempt: c.Attempt, Fence: c.Fence, Samples: float64(1 + id.Member), Weights: w})
}

func reduceRound(ctx context.Context, s *aggregator.Store, id disdel.UpdateID, members []disdel.UpdateID,
	like disdel.Weights,
) error {
	c, err := claimed(ctx, s, id)
	if err != nil {
		return err
	}
	if err := reduce(ctx, s, c, members, like); err != nil {
		return err
	}
	return s.DropRound(ctx, id.Job, id.Round)
}

func claimed(ctx context.Context, s *aggregator.Store, id disdel.UpdateID) (aggregator.Claim, error) {
	c, state, err := s.Claim(ctx, id, "bench", 1)
	if err == nil && state != aggregator.Claimed {
		err = fmt.Errorf("%v is %v", id, state)
	}
	return c, err
}
