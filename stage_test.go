package disdel_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/disdel/disdel"
)

// shards deals rows out as the scheduler does.
func shards(rows, workers int) []disdel.RowRange {
	out := make([]disdel.RowRange, workers)
	for w := range out {
		out[w] = disdel.RowRange{Start: w * rows / workers, End: (w + 1) * rows / workers}
	}
	return out
}

// However a job is cut into stages, its rounds follow each other without a gap and without an overlap: where one ends
// the next begins, and the last one ends with the last epoch.
func TestRoundsOfStagesCoverEveryBatchOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		epochs, rows := rapid.IntRange(1, 5).Draw(t, "epochs"), rapid.IntRange(8, 60).Draw(t, "rows")
		k := rapid.IntRange(0, 4).Draw(t, "every")
		stage := func(batch int) disdel.Stage {
			s := disdel.Stage{
				To: disdel.Position{Epoch: epochs}, BatchSize: batch, Epochs: 1, Setting: disdel.Setting{AverageEvery: k},
			}
			s.Workers = rapid.IntRange(1, rows/8).Draw(t, "workers")
			s.Shards = shards(rows, s.Workers)
			if k > 0 {
				s.PerEpoch = max(1, (rows/s.Workers+batch-1)/batch/k)
			}
			return s
		}
		now := stage(4).Starting(0, disdel.Position{})
		at := disdel.Position{}
		for round := 0; round < now.End(); round++ {
			span := now.TrainRange(round)
			if (disdel.Position{Epoch: span.Epoch, Batch: span.Batch}) != at {
				t.Fatalf("round %d begins at %+v, and %+v is next", round, span, at)
			}
			at = disdel.Position{Epoch: span.Epoch + span.Epochs}
			if span.Batches > 0 {
				at = disdel.Position{Epoch: span.Epoch, Batch: span.Batch + span.Batches}
			}
			switch {
			case at.Batch == 0 && rapid.Bool().Draw(t, "change"):
				now = stage(4).Starting(round+1, at)
			case at.Batch > 0 && rapid.IntRange(0, 4).Draw(t, "halve") == 0 && now.BatchSize > 1:
				half := now
				half.BatchSize /= 2
				half.PerEpoch = max(1, (rows/half.Workers+half.BatchSize-1)/half.BatchSize/k)
				at.Batch *= 2
				now = half.Starting(round+1, at)
			}
		}
		if at != (disdel.Position{Epoch: epochs}) {
			t.Fatalf("the job ends at %+v of %d epochs", at, epochs)
		}
	})
}

// A record of before there were stages has one, which says what its plan says.
func TestARecordWithoutStagesHasOne(t *testing.T) {
	r := disdel.Record{Plan: disdel.Plan{
		Workers: 2, Rounds: 6, Epochs: 1, Batches: 8, Shards: shards(100, 2),
		Actions: []disdel.ActionPlan{{Task: disdel.TaskTrain, Limits: disdel.Limits{Memory: 64 * disdel.MB}}},
	}}
	r.Job.Training.Epochs, r.Job.Training.BatchSize = 3, 4
	inv := disdel.Invocation{Round: 3}
	stage := r.StageOf(&inv)
	if span := stage.TrainRange(3); span != (disdel.TrainRange{Epoch: 1, Batch: 8, Epochs: 1}) {
		t.Errorf("round 3 is %+v", span)
	}
	if plan := r.PlanOf(&inv); plan.Workers != 2 || len(r.SplitByStage()) != 1 || r.SplitByStage()[0] != &r {
		t.Error("its plan is another")
	}
}

// What earlier jobs are learned from goes by the plan that it was made by.
func TestActivationsGoByTheirStage(t *testing.T) {
	of := func(workers int) disdel.Stage {
		return disdel.Stage{
			Setting: disdel.Setting{Workers: workers}, BatchSize: 8 * workers,
			Actions: []disdel.ActionPlan{{Task: disdel.TaskTrain}},
		}
	}
	r := disdel.Record{Plan: disdel.Plan{Workers: 3}, Stages: []disdel.Stage{of(1), of(2), of(3)}}
	for _, stage := range []int{0, 2, 2} {
		r.Activations = append(r.Activations,
			disdel.Activation{Invocation: disdel.Invocation{Task: disdel.TaskTrain, Stage: stage}})
	}
	var got strings.Builder
	for _, s := range r.SplitByStage() {
		got.WriteString(fmt.Sprint(s.Plan.Workers, s.Job.Training.BatchSize, len(s.Activations), " "))
	}
	if got.String() != "1 8 1 3 24 2 " {
		t.Errorf("stages: %s", got.String())
	}
}

// A remedy's stage ends those that were to come after it; one of a resume takes the place of the one that it goes on
// with.
func TestTheStagesInForce(t *testing.T) {
	at := func(first int, b disdel.Boundary) disdel.Stage {
		return disdel.Stage{First: first, Decision: &disdel.Decision{Boundary: b}}
	}
	r := disdel.Record{Stages: []disdel.Stage{
		at(0, disdel.BoundaryStart), at(2, disdel.BoundaryEpoch), at(4, disdel.BoundaryEpoch), at(3, disdel.BoundaryResume),
		at(2, disdel.BoundaryFailure),
	}}
	for n, want := range map[int]string{3: "[0 1 2]", 4: "[0 1 3 2]", 5: "[0 4]"} {
		first := disdel.Record{Stages: r.Stages[:n]}
		if _, numbers := first.EffectiveStages(); fmt.Sprint(numbers) != want {
			t.Errorf("of %d stages: %v, want %s", n, numbers, want)
		}
	}
}

func ExampleStage_TrainRange() {
	// Two epochs of 20 batches on the smallest shard, averaged after every eight: the last round of an epoch takes
	// what is left.
	s := disdel.Stage{
		To: disdel.Position{Epoch: 2}, Setting: disdel.Setting{Workers: 2, AverageEvery: 8}, PerEpoch: 2,
	}.Starting(0,
		disdel.Position{})
	for round := range s.End() {
		span := s.TrainRange(round)
		fmt.Printf("round %d: epoch %d, from batch %d, %d batches\n", round, span.Epoch, span.Batch, span.Batches)
	}
	// Output:
	// round 0: epoch 0, from batch 0, 8 batches
	// round 1: epoch 0, from batch 8, 0 batches
	// round 2: epoch 1, from batch 0, 8 batches
	// round 3: epoch 1, from batch 8, 0 batches
}
