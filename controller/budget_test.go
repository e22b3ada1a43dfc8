package controller

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
)

// lasting is an activation that passes after so long.
func lasting(d time.Duration) func(context.Context, disdel.Invocation) (disdel.Activation, error) {
	return func(ctx context.Context, inv disdel.Invocation) (disdel.Activation, error) {
		start := time.Now()
		if !wait(ctx, d) {
			return hangs(ctx, inv)
		}
		a, err := passes(ctx, inv)
		a.Start, a.End, a.Duration = start, time.Now(), disdel.Millis(d)
		return a, err
	}
}

// budgeted is a job of one worker whose train and aggregate actions hold 1 GB each: a round of two activations of one
// second costs 4 GB-s by Eq. 6.
func budgeted(rounds int, most float64) Spec {
	spec := runSpec(1, rounds)
	spec.Job.Resources.MaxCost = most
	second := disdel.Limits{Memory: disdel.GB, Timeout: disdel.Millis(time.Minute)}
	spec.Plan.Platform.MaxTimeout = disdel.Millis(time.Hour)
	spec.Plan.Actions = []disdel.ActionPlan{
		{Task: disdel.TaskTrain, Name: "p/train", Limits: second},
		{Task: disdel.TaskAggregate, Name: "p/aggregate", Limits: second},
		{Task: disdel.TaskEvaluate, Name: "p/evaluate", Limits: second},
	}
	return spec
}

// A job does not cost more than resources.maxCost: it stops before the round that would, says what the rest costs, and
// goes on with more.
func TestAJobStopsBeforeItsBudgetIsUsedUp(t *testing.T) {
	in(t, func(t *testing.T, s *surroundings) {
		s.end = lasting(time.Second)
		rec, err := s.controller().Run(t.Context(), budgeted(12, 14), disdel.DataInfo{})
		if err != nil || rec.Status != disdel.StatusFailed || !errors.Is(rec.Failure, disdel.OverLimit) {
			t.Fatalf("%v: %v, %v", rec.Status, rec.Failure, err)
		}
		if len(rec.Rounds) != 3 || rec.CostGBs > 14 {
			t.Errorf("%d rounds for %g GB-s", len(rec.Rounds), rec.CostGBs)
		}
		for _, want := range []string{
			"has spent 12 GB-s", "round 4 of 12 would take about 4 more",
			"resources.maxCost is 14 GB-s", "what is left would cost about 48 GB-s",
		} {
			if !strings.Contains(rec.Failure.Msg, want) { // no checkpoint was written: all rounds are left
				t.Errorf("%q lacks %q", rec.Failure.Msg, want)
			}
		}
		if rec.Failure.Hint != "disdel resume job-1 --set resources.maxCost=72GB-s" {
			t.Errorf("hint %q", rec.Failure.Hint)
		}
		if rec.Stopped == "" {
			t.Error("the record does not say why it stopped")
		}
		spec := budgeted(12, 72)
		spec.From, spec.Done, spec.Resumes = &disdel.Checkpoint{Round: 3, Path: "p"}, rec.Rounds, 1
		if rec, err = s.controller().Resume(t.Context(), spec, *rec); err != nil || rec.Status != disdel.StatusSucceeded ||
			rec.CostGBs > 72 {
			t.Errorf("%v for %g GB-s: %v, %v", rec.Status, rec.CostGBs, rec.Failure, err)
		}
	})
}

// A budget that a resume does not raise is still kept to.
func TestAResumeDoesNotSpendABudgetAgain(t *testing.T) {
	in(t, func(t *testing.T, s *surroundings) {
		s.end = lasting(time.Second)
		spec := budgeted(12, 14)
		spec.From, spec.Resumes = &disdel.Checkpoint{Round: 3, Path: "p"}, 1
		spec.Done = []disdel.Round{{Round: 0}, {Round: 1}, {Round: 2}}
		rec, err := s.controller().Resume(t.Context(), spec,
			disdel.Record{ID: "job-1", Status: disdel.StatusFailed, CostGBs: 12})
		if err != nil || rec.Status != disdel.StatusFailed || len(rec.Activations) > 0 ||
			!strings.Contains(rec.Failure.Msg, "round 4 of 12 would take about 4 more") {
			t.Errorf("%v after %d activations: %v, %v", rec.Status, len(rec.Activations), rec.Failure, err)
		}
	})
}

// What runs when a budget is reached ends, and its work is aggregated: the job is over its budget by no more than that.
// Attempts and legs are not begun.
func TestABudgetIsPassedByWhatRunsAlone(t *testing.T) {
	for name, c := range map[string]struct {
		outcome disdel.Outcome
		result  any
		runs    int
		says    string
	}{
		"a first round": {disdel.OutcomeSuccess, disdel.TrainResult{Loss: 1, Samples: 1}, 2, "round 2 of 12"},
		"an attempt":    {disdel.OutcomeDeveloperError, nil, 1, "another attempt"},
		"a timeout":     {disdel.OutcomeTimeout, nil, 1, "another attempt"},
		"a leg":         {disdel.OutcomePaused, disdel.TrainResult{Paused: true, BatchesDone: 1}, 1, "leg 2 of worker 0"},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, s *surroundings) {
				s.end = func(ctx context.Context, inv disdel.Invocation) (disdel.Activation, error) {
					a, err := lasting(time.Second)(ctx, inv)
					if inv.Task != disdel.TaskTrain {
						return a, err
					}
					a.Outcome = c.outcome
					if a.Result, _ = json.Marshal(c.result); c.outcome.Failed() {
						a.Result, a.Failure, a.Peak = nil, &disdel.Error{Kind: disdel.Crashed}, disdel.MB
					}
					return a, err
				}
				rec, err := s.controller().Run(t.Context(), budgeted(12, 0.5), disdel.DataInfo{})
				if err != nil || !errors.Is(rec.Failure, disdel.OverLimit) || !strings.Contains(rec.Failure.Msg, c.says) {
					t.Fatalf("%v: %v, %v", rec.Status, rec.Failure, err)
				}
				if len(rec.Activations) != c.runs {
					t.Errorf("%d activations", len(rec.Activations))
				}
			})
		})
	}
}
