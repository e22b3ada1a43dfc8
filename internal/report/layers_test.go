package report

import (
	"slices"
	"testing"
	"time"

	"github.com/disdel/disdel"
)

// A report names the layers of each stage, and the peaks of its actions in all networks.
func TestTheLayersOfStagesAreNamed(t *testing.T) {
	train := func(member int, peak disdel.Bytes) Action {
		return Action{
			Task: disdel.TaskTrain, Member: member, Peak: peak * disdel.MB, Limit: 128 * disdel.MB,
			Longest: disdel.Millis(1500 * time.Millisecond),
		}
	}
	r := &Report{
		record: &disdel.Record{Plan: disdel.Plan{Workers: 4, Stages: []disdel.PlannedStage{
			{First: "conv1", Last: "conv2", Memory: 40 * disdel.MB, Weights: 2 * disdel.MB},
			{First: "fc", Last: "softmax", Memory: 30 * disdel.MB},
		}}},
		Actions: []Action{train(0, 50), train(1, 60), train(2, 51), train(3, 61), {Task: disdel.TaskEvaluate, Peak: 99}},
	}
	want := []string{
		"stage 1: layers conv1 to conv2, weights 2.00 MB, estimate 40.0 MB, limit 128 MB, peak 50.0 MB and 51.0 MB, " +
			"longest activation 1.50 s",
		"stage 2: layers fc to softmax, estimate 30.0 MB, limit 128 MB, peak 60.0 MB and 61.0 MB, longest activation 1.50 s",
	}
	if got := r.layers(); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	r.record.Plan.Stages = nil
	if got := r.layers(); got != nil {
		t.Errorf("without stages: %q", got)
	}
}
