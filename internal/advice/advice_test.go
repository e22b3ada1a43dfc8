package advice

import (
	"slices"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
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
		Status: disdel.StatusFailed,
		Failure: &disdel.Error{
			Kind: disdel.OverLimit, Code: disdel.CodeOverBudget, Changes: [][]string{{"resources.maxCost=72GB-s"}},
		},
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

// No change of the job helps against an image whose containers take no request. After a success of the image, another
// advice follows.
func TestForAnImageThatDoesNotStart(t *testing.T) {
	const short = scheduler.LeastTime / 2
	for name, c := range map[string]struct {
		outcome disdel.Outcome
		code    disdel.Code
		served  []string // what is advised after a success
	}{
		"died":      {disdel.OutcomeDeveloperError, disdel.CodeInitDied, nil},
		"no answer": {disdel.OutcomeStartFailure, disdel.CodeInitTimeout, []string{"resources.timeout=10s"}},
	} {
		a := disdel.Activation{ID: "a", Outcome: c.outcome}
		a.Failure = &disdel.Error{Kind: disdel.Crashed, Code: c.code, Activation: "a", Hint: "look at the image"}
		a.Limits.Timeout = short
		r := &disdel.Record{Status: disdel.StatusFailed, Failure: a.Failure, Activations: []disdel.Activation{a}}
		const broken = "no field of a job helps: no container of this image has taken a request: look at the image"
		if got := For(r); got.Pass || len(got.Sets) > 0 || got.Why != broken {
			t.Errorf("%s: %+v", name, got)
		}
		r.Activations = append([]disdel.Activation{{ID: "b", Outcome: disdel.OutcomeSuccess}}, a)
		if got := For(r); !got.Pass || !slices.Equal(got.Sets, c.served) {
			t.Errorf("%s after a success: %+v, want %v", name, got, c.served)
		}
	}
}

// Damaged input has the next step that the failure names: it may be weights, and no data set.
func TestForDamagedInput(t *testing.T) {
	for hint, want := range map[string]string{
		"":                       `remove "digits" and add it again`,
		"import the model again": "its input is damaged: import the model again",
	} {
		a := disdel.Activation{ID: "a", Outcome: disdel.OutcomeCorrupt}
		a.Failure = &disdel.Error{Kind: disdel.Corrupt, Activation: "a", Hint: hint}
		r := &disdel.Record{Status: disdel.StatusFailed, Failure: a.Failure, Activations: []disdel.Activation{a}}
		r.Data.Name = "digits"
		if got := For(r); got.Pass || !strings.Contains(got.Why, want) {
			t.Errorf("%q: %+v", hint, got)
		}
	}
}

// Only a job that its budget ended is told that it stopped before it cost more. A plan that is refused for another
// limit names a change of that one.
func TestForAPlanAboveALimit(t *testing.T) {
	r := &disdel.Record{Status: disdel.StatusFailed, Failure: &disdel.Error{
		Kind: disdel.OverLimit, Op: "plan job", Changes: [][]string{{"distribution.workers=2"}, {"training.batchSize=8"}},
	}}
	const why = "the plan does not keep a limit"
	if a := For(r); !a.Pass || !slices.Equal(a.Sets, r.Failure.Changes[0]) || a.Why != why {
		t.Errorf("%+v", a)
	}
	r.Failure.Code = disdel.CodeOverBudget
	if a := For(r); !a.Pass || !strings.HasPrefix(a.Why, "the job stopped before it cost more than") {
		t.Errorf("%+v", a)
	}
}
