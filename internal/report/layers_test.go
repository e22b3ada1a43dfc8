package report

import (
	"slices"
	"strings"
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

// The section of stages has the memory and time of each stage, from the activations of all networks; a job without
// stages has no such section.
func TestTheSectionOfStages(t *testing.T) {
	r := disdel.Record{Plan: disdel.Plan{Workers: 4, Stages: []disdel.PlannedStage{
		{First: "conv1", Last: "conv2", Memory: 40 * disdel.MB, Passes: 512},
		{First: "fc", Last: "softmax", Memory: 30 * disdel.MB},
	}}}
	r.Plan.StepMemory.MicroBatch = 8
	for member, peak := range []disdel.Bytes{50, 60, 51, 61} {
		r.Activations = append(r.Activations, disdel.Activation{
			Invocation: disdel.Invocation{
				Task: disdel.TaskTrain, Member: member, Limits: disdel.Limits{Memory: 128 * disdel.MB},
			},
			Peak: peak * disdel.MB, WaitTime: disdel.Millis(time.Second), Duration: disdel.Millis(3 * time.Second),
			Phases: map[string]disdel.Millis{
				"load": disdel.Millis(time.Second), "compute": disdel.Millis(2 * time.Second),
				"wait": disdel.Millis(500 * time.Millisecond),
			},
		})
	}
	write := func() string {
		var out strings.Builder
		if err := New(&r, time.Now()).Sections(&out, SectionStages); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	text := write()
	for _, want := range []string{
		"micro-batches of 8 rows", "<td>conv1 to conv2</td>", "512 B a row", "<td>51.0 MB</td>", "stage 2: limit 128 MB",
		"stage 1: queue 2.00 s", "stage 1: start and fetch 2.00 s", "stage 2: compute 3.00 s",
		"stage 2: wait for others 1.00 s", "<td>6.00 s</td>", ">Wait<",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	if r.Plan.Stages = nil; strings.TrimSpace(write()) != "" {
		t.Errorf("without stages: %s", write())
	}
}
