package advice

import (
	"slices"
	"testing"

	"github.com/disdel/disdel"
)

// A rate far from what is usual goes back to that; one near it is divided; what ended a job for its budget keeps its
// own figure.
func TestFor(t *testing.T) {
	diverged := func(o disdel.Optimizer) *disdel.Record {
		r := &disdel.Record{Status: disdel.StatusFailed, Failure: &disdel.Error{Kind: disdel.Diverged, Activation: "a"}}
		r.Job.Training.Optimizer, r.Job.Training.ClipNorm = o, 1
		r.Activations = []disdel.Activation{{ID: "a", Outcome: disdel.OutcomeDiverged, Failure: r.Failure}}
		return r
	}
	budget := &disdel.Record{
		Status:  disdel.StatusFailed,
		Failure: &disdel.Error{Kind: disdel.OverLimit, Changes: [][]string{{"resources.maxCost=72GB-s"}}},
	}
	budget.Job.Resources.MaxCost, budget.CostGBs = 14, 12
	for name, c := range map[string]struct {
		r    *disdel.Record
		want []string
	}{
		"sgd, far off": {
			diverged(disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 1000}}),
			[]string{"training.optimizer.sgd.learningRate=0.01"},
		},
		"sgd, near": {
			diverged(disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.08}}),
			[]string{"training.optimizer.sgd.learningRate=0.008"},
		},
		"adam, far off": {
			diverged(disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 3}}),
			[]string{"training.optimizer.adam.learningRate=0.001"},
		},
		"over budget": {budget, []string{"resources.maxCost=72GB-s"}},
	} {
		if a := For(c.r); !a.Pass || !slices.Equal(a.Sets, c.want) {
			t.Errorf("%s: %+v, want %v", name, a, c.want)
		}
	}
	if a := For(&disdel.Record{Status: disdel.StatusFailed}); a.Pass {
		t.Errorf("an empty record: %+v", a)
	}
}
