package service

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/scheduler"
)

// What a job needs of the store follows from its network and from what its workers keep.
func TestStoreNeed(t *testing.T) {
	g, err := model.Build(disdel.Network{Name: "lenet5", Input: []int{1, 28, 28}, Classes: 10})
	if err != nil {
		t.Fatal(err)
	}
	values := 0
	for _, p := range g.Params() {
		values += model.Shape(p.Shape).Len()
	}
	weights := disdel.Bytes(4 * values)
	adam := disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.001}}
	for name, c := range map[string]struct {
		a    disdel.Aggregation
		want aggregator.Need
	}{
		"reset": {disdel.Aggregation{}, aggregator.Need{Workers: 4, Update: weights, Reference: weights, Outputs: 2}},
		"average": {
			disdel.Aggregation{Moments: disdel.StateAverage},
			aggregator.Need{Workers: 4, Update: 3 * weights, Reference: 3 * weights, Outputs: 2},
		},
		"keep": {
			disdel.Aggregation{Moments: disdel.StateKeep},
			aggregator.Need{Workers: 4, Update: weights, Reference: weights, Outputs: 2, State: 2 * weights},
		},
		"bfloat16": {
			disdel.Aggregation{Wire: disdel.WireBfloat16},
			aggregator.Need{Workers: 4, Update: weights / 2, Reference: weights, Outputs: 2, State: weights},
		},
	} {
		var job disdel.Job
		job.Training.Optimizer, job.Distribution.Aggregation = adam, c.a
		if diff := cmp.Diff(c.want, storeNeed(job, disdel.Plan{Workers: 4, Levels: scheduler.Tree(4, 2)}, g)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
