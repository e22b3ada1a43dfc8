package aggregator_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
)

// claimed is the claim on a worker's update of the first round.
func claimed(ctx context.Context, s *aggregator.Store, member int) aggregator.Claim {
	c, _, err := s.Claim(ctx, disdel.UpdateID{Job: "job-1", Member: member}, "activation", 1)
	must(err)
	return c
}

// Workers take the batches of a round one after another, and a step that is made again has the batch that it had.
func ExampleStore_DrawBatch() {
	ctx := context.Background()
	s, stop := open(ctx)
	defer stop()
	fast, slow := claimed(ctx, s, 0), claimed(ctx, s, 1)
	for _, c := range []struct {
		by   aggregator.Claim
		step int
	}{{fast, 1}, {slow, 1}, {fast, 2}, {fast, 2}, {slow, 2}} {
		batch, ok, err := s.DrawBatch(ctx, c.by, c.step, 3)
		must(err)
		fmt.Println("worker", c.by.ID.Member, "step", c.step, "batch", batch, ok)
	}
	// Output:
	// worker 0 step 1 batch 0 true
	// worker 1 step 1 batch 1 true
	// worker 0 step 2 batch 2 true
	// worker 0 step 2 batch 2 true
	// worker 1 step 2 batch -1 false
}

// A worker that is let go finds no batch any more; the others draw what it would have.
func ExampleStore_LetGo() {
	ctx := context.Background()
	s, stop := open(ctx)
	defer stop()
	stays, goes := claimed(ctx, s, 0), claimed(ctx, s, 1)
	must(s.LetGo(ctx, "job-1", 0, 1))
	_, ok, err := s.DrawBatch(ctx, goes, 1, 3)
	must(err)
	fmt.Println("worker 1 draws:", ok)
	batch, ok, err := s.DrawBatch(ctx, stays, 1, 3)
	must(err)
	fmt.Println("worker 0 draws:", batch, ok)
	// Output:
	// worker 1 draws: false
	// worker 0 draws: 0 true
}

// Only who was told to leave is one that was let go.
func ExampleStore_IsLetGo() {
	ctx := context.Background()
	s, stop := open(ctx)
	defer stop()
	must(s.LetGo(ctx, "job-1", 0, 1))
	for member := range 2 {
		gone, err := s.IsLetGo(ctx, "job-1", 0, member)
		must(err)
		fmt.Println("worker", member, gone)
	}
	// Output:
	// worker 0 false
	// worker 1 true
}

// A worker that leaves says so with its last delta, and one that is lost is ended by who supervises: nobody waits for
// either.
func ExampleStore_EndMember() {
	ctx := context.Background()
	s, stop := open(ctx)
	defer stop()
	lost := claimed(ctx, s, 1)
	d := s.Deltas("job-1", 0, 2)
	must(d.Commit(ctx, claimed(ctx, s, 0), 1, []byte("all that it owes"), true))
	must(s.EndMember(ctx, "job-1", 0, 1))
	last, err := d.WaitEnd(ctx, func() error { return errors.New("somebody is waited for") })
	must(err)
	fmt.Println("the last step is", last)
	fmt.Println("refused:", errors.Is(s.CommitDelta(ctx, lost, 1, nil), disdel.Conflict))
	// Output:
	// the last step is 1
	// refused: true
}
