package advice

import (
	"slices"
	"strings"
	"testing"

	"github.com/disdel/disdel"
)

// A job that ended for want of a GPU's memory is told to ask for more of it, as long as there is more, and then for
// less work; never for memory of the host's.
func TestAdviceOnADevicesMemory(t *testing.T) {
	const path, train = "resources.gpu.memory=", disdel.TaskTrain
	for name, c := range map[string]struct {
		limit, whole disdel.Bytes
		batch        int
		task         disdel.Task
		want         []string
		pass         bool
	}{
		"more of it":     {2 * disdel.GB, 16 * disdel.GB, 64, train, []string{path + "3072MB"}, true},
		"all of it":      {12 * disdel.GB, 16 * disdel.GB, 64, train, []string{path + "16384MB"}, true},
		"it had all":     {16 * disdel.GB, 16 * disdel.GB, 64, train, []string{"training.batchSize=32"}, true},
		"nobody counted": {0, 0, 64, train, []string{"training.batchSize=32"}, true},
		"one row":        {16 * disdel.GB, 16 * disdel.GB, 1, train, nil, false},
		"an evaluation":  {2 * disdel.GB, 16 * disdel.GB, 64, disdel.TaskEvaluate, nil, true},
	} {
		r := disdel.Record{Status: disdel.StatusFailed}
		r.Job.Training.BatchSize = c.batch
		r.Plan.Workers, r.Plan.Platform.MaxDevice = 1, c.whole
		a := disdel.Activation{
			ID: "x", Outcome: disdel.OutcomeOutOfMemory,
			Failure: &disdel.Error{Kind: disdel.OOM, Code: disdel.CodeDeviceMemory, Activation: "x"},
		}
		a.Task, a.Limits = c.task, disdel.Limits{Memory: disdel.GB, Device: c.limit}
		r.Activations, r.Failure = []disdel.Activation{a}, a.Failure
		got := For(&r)
		if !slices.Equal(got.Sets, c.want) || got.Pass != c.pass || got.Why == "" {
			t.Errorf("%s: %v (%s), passes %v; want %v", name, got.Sets, got.Why, got.Pass, c.want)
		}
		if strings.Contains(got.Why, "resources.memory") {
			t.Errorf("%s: %s", name, got.Why)
		}
	}
}
