package disdel_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/disdel/disdel"
)

// A job's batch is shared by its workers; every worker's own is what it was before there was a choice.
func ExampleTraining_WorkerBatch() {
	own := disdel.Training{BatchSize: 64}
	shared := disdel.Training{BatchSize: 64, Batch: &disdel.Batch{Size: 64, Of: disdel.BatchOfJob}}
	for _, workers := range []int{1, 2, 3, 100} {
		fmt.Println(workers, own.WorkerBatch(workers), shared.WorkerBatch(workers))
	}
	// Output:
	// 1 64 64
	// 2 64 32
	// 3 64 22
	// 100 64 1
}

// Whatever a worker's batch is set to is what it then is, and setting it to what it is changes nothing.
func TestAWorkersBatchIsWhatItIsSetTo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		training := disdel.Training{BatchSize: rapid.IntRange(1, 500).Draw(t, "size")}
		if rapid.Bool().Draw(t, "shared") {
			training.Batch = &disdel.Batch{Size: training.BatchSize, Of: disdel.BatchOfJob}
		}
		workers, rows := rapid.IntRange(1, 40).Draw(t, "workers"), rapid.IntRange(1, 500).Draw(t, "rows")
		if same := training.WithWorkerBatch(training.WorkerBatch(workers), workers); !same.SameBatch(training) {
			t.Errorf("%v became %v", training.JobBatch(), same.JobBatch())
		}
		if got := training.WithWorkerBatch(rows, workers); got.WorkerBatch(workers) != rows ||
			got.Shared() != training.Shared() {
			t.Errorf("%d rows each of %d workers became %d", rows, workers, got.WorkerBatch(workers))
		}
		all := rapid.IntRange(training.JobBatch(), 5000).Draw(t, "of the data")
		if n := training.MostWorkers(all); training.WorkerBatch(n) > all/n {
			t.Errorf("%d workers have %d rows each, and a batch of %d", n, all/n, training.WorkerBatch(n))
		}
	})
}
