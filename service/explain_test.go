package service

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

func TestFitAndExplanationJSON(t *testing.T) {
	fit := scheduler.Fit{Limit: 1, Least: 2, LeastGiven: 3, LeastTask: disdel.TaskTrain}
	x := Explanation{
		Actions: []ExplainedAction{{
			Task: disdel.TaskTrain, Terms: []MemoryTerm{{Name: "batch", Bytes: 4, Share: 0.5}},
			Peak: disdel.Interval[disdel.Bytes]{Likely: 8}, Risk: 0.001, Limit: []string{"limit 1 MB"},
		}},
		Smaller: []scheduler.Smaller{{
			Limit: 5, Whose: "the pool's memory",
			Changes: []scheduler.Change{{Set: []string{"training.batchSize=3"}, Estimate: 6, Limit: 7}},
		}},
	}
	got, err := json.Marshal([]any{fit, x})
	want := `[{"limitBytes":1,"leastGivenBytes":3,"leastBytes":2,"leastTask":"train"},` +
		`{"actions":[{"task":"train","terms":[{"name":"batch","bytes":4,"share":0.5}],"peakBytes":{"low":0,"likely":8,"high":0},"risk":0.001,"limit":["limit 1 MB"]}],` +
		`"layers":null,"largest":null,"smaller":[{"limitBytes":5,"whose":"the pool's ` +
		`memory","changes":[{"set":["training.batchSize=3"],"estimateBytes":6,"limitBytes":7}]}]}]`
	if diff := cmp.Diff(want, string(got)); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// A step of the limit that is not kept to is said.
func TestLimitSteps(t *testing.T) {
	in := scheduler.PlanInput{Platform: disdel.PlatformLimits{
		MinMemory: 128 * disdel.MB, MaxMemory: 512 * disdel.MB,
		Pool: disdel.GB,
	}}
	step := func(estimate, limit disdel.Bytes, resources disdel.Resources) string {
		in.Job.Resources = resources
		return strings.Join(limitSteps(in, disdel.Plan{Parallel: 2},
			disdel.ActionPlan{
				Task: disdel.TaskTrain, Limits: disdel.Limits{Memory: limit},
				Estimate: disdel.Estimate{Total: estimate},
			}), "; ")
	}
	tail := "; within the platform's maximum, 512 MB"
	pool := "; within the pool, 1.00 GB; 2 at once take "
	for _, c := range []struct{ got, want string }{
		{
			step(disdel.MB+1, 128*disdel.MB, disdel.Resources{}),
			"with its margin 1.00 MB (1048577 bytes), which are 2 whole MB; the platform gives no less than 128 MB; " +
				"limit 128 MB" + tail + pool + "256 MB of it",
		},
		{
			step(200*disdel.MB, 200*disdel.MB, disdel.Resources{MaxMemory: 300 * disdel.MB}),
			"with its margin 200 MB (209715200 bytes), which are 200 whole MB; limit 200 MB" + tail +
				"; within resources.maxMemory, 300 MB" + pool + "400 MB of it",
		},
		{
			step(200*disdel.MB, 400*disdel.MB, disdel.Resources{Memory: 400 * disdel.MB}),
			"with its margin 200 MB (209715200 bytes), which are 200 whole MB; " +
				"limit 400 MB, as resources.memory says" + tail + pool + "800 MB of it",
		},
		{
			step(600*disdel.MB, 600*disdel.MB, disdel.Resources{}),
			"with its margin 600 MB (629145600 bytes), which are 600 whole MB; limit 600 MB; " +
				"88 MB too much for the platform's maximum, 512 MB" + pool + "1.17 GB of it",
		},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
