package scheduler

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/disdel/disdel"
)

// split makes a plan's job share a batch of so many rows.
func split(in PlanInput, rows int) PlanInput {
	in.Job.Training.BatchSize, in.Job.Training.Batch = rows, &disdel.Batch{Size: rows, Of: disdel.BatchOfJob}
	return in
}

// The memory of an action falls with every worker that takes a part of the batch (DiSDeL III-B, batch splitting), as it
// does not where each has the whole: a plan of half the batch for each of two workers is that of half the batch.
func TestASharedBatchIsPlannedAsItsShares(t *testing.T) {
	for _, workers := range []int{1, 2, 3, 8} {
		in := planInput(t)
		in.Job.Distribution.Workers = workers
		own, err := NewPlan(in)
		if err != nil {
			t.Fatal(err)
		}
		shared, err := NewPlan(split(in, in.Job.Training.BatchSize))
		if err != nil {
			t.Fatal(err)
		}
		share := (in.Job.Training.BatchSize + workers - 1) / workers
		if shared.BatchSize != share || shared.AsStage(split(in, in.Job.Training.BatchSize).Job).BatchSize != share {
			t.Errorf("%d workers: a share of %d, want %d", workers, shared.BatchSize, share)
		}
		smaller := in
		smaller.Job.Training.BatchSize = share
		want, err := NewPlan(smaller)
		if err != nil {
			t.Fatal(err)
		}
		a, _ := shared.Action(disdel.TaskTrain)
		b, _ := want.Action(disdel.TaskTrain)
		c, _ := own.Action(disdel.TaskTrain)
		if a.Estimate.Total != b.Estimate.Total {
			t.Errorf("%d workers: %v, and with batches of their shares %v", workers, a.Estimate.Total, b.Estimate.Total)
		}
		if workers > 1 && a.Estimate.Total >= c.Estimate.Total {
			t.Errorf("%d workers: %v shared, %v each its own", workers, a.Estimate.Total, c.Estimate.Total)
		}
	}
}

// Rounds of K batches are counted in the workers' batches.
func TestRoundsOfASharedBatchAreOfItsShares(t *testing.T) {
	in := split(planInput(t), 64)
	in.Job.Distribution.Workers, in.Job.Distribution.Sync = 4, disdel.SyncEvery(100)
	p, err := NewPlan(in)
	if err != nil {
		t.Fatal(err)
	}
	batches := (15000 + 15) / 16 // a quarter of 60,000 rows by a quarter of 64
	if want := in.Job.Training.Epochs * (batches / 100); p.Rounds != want {
		t.Errorf("%d rounds, want %d", p.Rounds, want)
	}
	if s := p.AsStage(in.Job); s.Batches() != batches {
		t.Errorf("an epoch is %d batches, want %d", s.Batches(), batches)
	}
}

// Another number of workers takes another share, in every way that a plan is made anew.
func TestASharedBatchFollowsTheWorkers(t *testing.T) {
	in := split(planInput(t), 60)
	for _, workers := range []int{2, 5} {
		job := ApplySetting(in.Job, disdel.Setting{Workers: workers}, 0)
		again := in
		again.Job, again.Decided = job, true
		p, err := NewPlan(again)
		if err != nil {
			t.Fatal(err)
		}
		if p.BatchSize != 60/workers {
			t.Errorf("%d workers take %d rows", workers, p.BatchSize)
		}
	}
	halved := ApplySetting(in.Job, disdel.Setting{Workers: 2}, 15) // a remedy: half of what each of two has
	if n := halved.Training.WorkerBatch(2); n != 15 || halved.Training.JobBatch() != 30 {
		t.Errorf("a worker's half became %d, the job's %d", n, halved.Training.JobBatch())
	}
	if in.Job.Training.Batch.Size != 60 {
		t.Error("the job that it was made of has changed")
	}
}

// What-if and what fits know both kinds, and name the field that the job file has.
func TestWhatIfKnowsSharedBatches(t *testing.T) {
	in := split(planInput(t), 64)
	cells := WhatIf(in, Grid{Workers: []int{1, 2, 4}, Batches: []int{64, 128}}, AgainstCost)
	if len(cells) != 6 {
		t.Fatalf("%d cells", len(cells))
	}
	for _, c := range cells {
		if c.WorkerBatchSize != c.BatchSize/c.Workers || c.Note != "" {
			t.Errorf("%d workers share %d rows: %d each, %q", c.Workers, c.BatchSize, c.WorkerBatchSize, c.Note)
		}
	}
	if i := slices.IndexFunc(cells, func(c Cell) bool {
		return c.Workers == 4 &&
			c.BatchSize == 128
	}); cells[i].Memory.Likely >=
		cells[slices.IndexFunc(cells, func(c Cell) bool { return c.Workers == 2 && c.BatchSize == 128 })].Memory.Likely {
		t.Error("more workers need no less of a batch that they share")
	}
	in.Platform.MinMemory = disdel.MB
	p, err := NewPlan(in)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range SmallerLimits(in, p) {
		for _, c := range s.Changes {
			if strings.Contains(fmt.Sprint(c.Set), "training.batchSize") {
				t.Errorf("the job file has no such field: %v", c.Set)
			}
		}
	}
}

// The container rule goes on where more workers make a shared batch fit that one alone does not, and stops where it
// never
// does.
func TestTheContainerRuleDividesASharedBatch(t *testing.T) {
	in := split(planInput(t), 2048)
	in.Platform.MinMemory = disdel.MB
	at := func(workers int) disdel.Bytes {
		one := WithoutMemoryLimits(in)
		one.Job.Distribution.Workers = workers
		p, err := NewPlan(one)
		if err != nil {
			t.Fatal(err)
		}
		a, _ := p.Action(disdel.TaskTrain)
		return a.Estimate.Total
	}
	in.Platform.MaxMemory = at(6) + disdel.MB
	p, err := NewPlan(in)
	if err != nil {
		t.Fatal(err)
	}
	if p.Workers < 3 || p.Workers > 64 || at(p.Workers) > in.Platform.MaxMemory {
		t.Errorf("%d workers, %v each of %v", p.Workers, at(p.Workers), in.Platform.MaxMemory)
	}
	in.Platform.MaxMemory = 7 * disdel.MB
	if _, err := NewPlan(in); disdel.KindOf(err) != disdel.OverLimit {
		t.Errorf("what no number of workers makes fit: %v", err)
	}
}

// However many workers there are and whosever the batch is, every worker has one of its own.
func TestEveryWorkerOfASharedBatchHasOne(t *testing.T) {
	whole := planInput(t)
	rapid.Check(t, func(t *rapid.T) {
		in := split(whole, rapid.IntRange(1, 512).Draw(t, "rows"))
		in.Job.Distribution.Workers = rapid.IntRange(1, 20).Draw(t, "workers")
		p, err := NewPlan(in)
		if err != nil {
			t.Skip(err)
		}
		for _, s := range p.Shards {
			if p.WorkerBatch(&in.Job) > s.Len() {
				t.Errorf("%d rows a batch, and %d in a shard", p.WorkerBatch(&in.Job), s.Len())
			}
		}
		if all := p.WorkerBatch(&in.Job) * p.Workers; all < in.Job.Training.JobBatch() ||
			all >= in.Job.Training.JobBatch()+p.Workers {
			t.Errorf("%d workers take %d rows of %d", p.Workers, all, in.Job.Training.JobBatch())
		}
	})
}
