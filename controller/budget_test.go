package controller

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
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
// second costs 2 GB-s by use.
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
		rec, err := s.controller().Run(t.Context(), budgeted(12, 7), disdel.DataInfo{})
		if err != nil || rec.Status != disdel.StatusFailed || !errors.Is(rec.Failure, disdel.OverLimit) {
			t.Fatalf("%v: %v, %v", rec.Status, rec.Failure, err)
		}
		if len(rec.Rounds) != 3 || rec.UsedGBs != 6 || rec.CostGBs != 12 {
			t.Errorf("%d rounds for %g GB-s by use, %g by Eq. 6", len(rec.Rounds), rec.UsedGBs, rec.CostGBs)
		}
		for _, want := range []string{
			"has spent 6 GB-s", "round 4 of 12 would take about 2 more",
			"resources.maxCost is 7 GB-s", "what is left would cost about 24 GB-s",
		} {
			if !strings.Contains(rec.Failure.Msg, want) { // no checkpoint was written: all rounds are left
				t.Errorf("%q lacks %q", rec.Failure.Msg, want)
			}
		}
		if rec.Failure.Hint != "disdel resume job-1 --set resources.maxCost=44GB-s" {
			t.Errorf("hint %q", rec.Failure.Hint)
		}
		if rec.Stopped == "" {
			t.Error("the record does not say why it stopped")
		}
		spec := budgeted(12, 44)
		spec.From, spec.Done, spec.Resumes = &disdel.Checkpoint{Round: 3, Path: "p"}, rec.Rounds, 1
		if rec, err = s.controller().Resume(t.Context(), spec, *rec); err != nil || rec.Status != disdel.StatusSucceeded ||
			rec.UsedGBs > 36 {
			t.Errorf("%v for %g GB-s: %v, %v", rec.Status, rec.UsedGBs, rec.Failure, err)
		}
	})
}

// A resume keeps to a budget that it does not raise. The cost of failed attempts says nothing about the cost of a
// round, so the resume tries one.
func TestAResumeDoesNotSpendABudgetAgain(t *testing.T) {
	for name, c := range map[string]struct {
		spent       float64
		activations int
		says        string
	}{
		"some of it is left":    {12, 2, "another attempt to aggregate round 4 would take about"},
		"four rounds' are left": {5, 8, "round 8 of 12 would take about 2 more"},
		"nothing is left":       {14, 0, "nothing is left for round 4 of 12"},
		"less than nothing is":  {20, 0, "nothing is left for round 4 of 12"},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, s *surroundings) {
				s.end = heeding(time.Second)
				spec := budgeted(12, 14)
				spec.From, spec.Resumes = &disdel.Checkpoint{Round: 3, Path: "p"}, 1
				spec.Done = []disdel.Round{{Round: 0}, {Round: 1}, {Round: 2}}
				rec, err := s.controller().Resume(t.Context(), spec,
					disdel.Record{ID: "job-1", Status: disdel.StatusFailed, CostGBs: c.spent, UsedGBs: c.spent})
				if err != nil || rec.Status != disdel.StatusFailed || len(rec.Activations) != c.activations ||
					rec.UsedGBs > max(14, c.spent) || !strings.Contains(rec.Failure.Msg, c.says) {
					t.Errorf("%v after %d activations: %v, %v", rec.Status, len(rec.Activations), rec.Failure, err)
				}
			})
		})
	}
}

// heeding is an action that takes so long, and ends as real ones do where the budget holds it for less: a train action
// paused, any other failed.
func heeding(d time.Duration) func(context.Context, disdel.Invocation) (disdel.Activation, error) {
	return func(ctx context.Context, inv disdel.Invocation) (disdel.Activation, error) {
		if inv.Hold == 0 || inv.Hold >= disdel.Millis(d) {
			return lasting(d)(ctx, inv)
		}
		a, err := lasting(time.Duration(inv.Hold))(ctx, inv)
		if inv.Task == disdel.TaskTrain {
			a.Outcome = disdel.OutcomePaused
			a.Result, _ = json.Marshal(disdel.TrainResult{Paused: true, BatchesDone: inv.Leg + 1})
			return a, err
		}
		a.Outcome, a.Result = disdel.OutcomeTimeout, nil
		a.Failure = &disdel.Error{Kind: disdel.Timeout, Code: disdel.CodeOverBudget}
		return a, err
	}
}

// Whatever a job does, it does not come above its budget: what begins is told how long the budget holds it, legs and
// attempts that it does not hold are not begun, and nobody asks a policy about an action that the budget ended.
func TestNothingPassesABudget(t *testing.T) {
	crash := func(outcome disdel.Outcome) func(context.Context, disdel.Invocation) (disdel.Activation, error) {
		return func(ctx context.Context, inv disdel.Invocation) (disdel.Activation, error) {
			a, err := lasting(300*time.Millisecond)(ctx, inv)
			a.Outcome, a.Result, a.Peak = outcome, nil, disdel.MB
			a.Failure = &disdel.Error{Kind: disdel.Crashed}
			return a, err
		}
	}
	slowMean := func(ctx context.Context, inv disdel.Invocation) (disdel.Activation, error) {
		if inv.Task == disdel.TaskTrain {
			return heeding(100*time.Millisecond)(ctx, inv)
		}
		return heeding(time.Minute)(ctx, inv)
	}
	for name, c := range map[string]struct {
		end  func(context.Context, disdel.Invocation) (disdel.Activation, error)
		says string
	}{
		"training":    {heeding(time.Second), "leg 3 of worker 0 would take about"},
		"aggregation": {slowMean, "another attempt to aggregate round 1 would take about"},
		"an attempt":  {crash(disdel.OutcomeDeveloperError), "another attempt of worker 0 would take about"},
		"a timeout":   {crash(disdel.OutcomeTimeout), "another attempt of worker 0 would take about"},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, s *surroundings) {
				s.end = c.end
				rec, err := s.controller().Run(t.Context(), budgeted(12, 0.7), disdel.DataInfo{})
				if err != nil || !errors.Is(rec.Failure, disdel.OverLimit) || !strings.Contains(rec.Failure.Msg, c.says) {
					t.Fatalf("%v: %v, %v", rec.Status, rec.Failure, err)
				}
				if rec.UsedGBs > 0.7 || len(rec.Activations) == 0 {
					t.Errorf("%g GB-s by use, %d activations", rec.UsedGBs, len(rec.Activations))
				}
			})
		})
	}
}

// A round whose first workers end early leaves what they did not use to those that need more: they go on in further
// legs.
func TestWhatIsLeftIsGivenToLegs(t *testing.T) {
	in(t, func(t *testing.T, s *surroundings) {
		s.end = func(ctx context.Context, inv disdel.Invocation) (disdel.Activation, error) {
			switch {
			case inv.Task != disdel.TaskTrain || inv.Member == 0:
				return heeding(100*time.Millisecond)(ctx, inv)
			case inv.Leg == 0:
				return heeding(time.Minute)(ctx, inv)
			default:
				return heeding(200*time.Millisecond)(ctx, inv)
			}
		}
		spec := runSpec(2, 1)
		spec.Job.Resources.MaxCost = 6
		one := budgeted(1, 6)
		spec.Plan.Platform, spec.Plan.Actions = one.Plan.Platform, one.Plan.Actions
		rec, err := s.controller().Run(t.Context(), spec, disdel.DataInfo{})
		if err != nil || rec.Status != disdel.StatusSucceeded || rec.UsedGBs > 6 {
			t.Fatalf("%v for %g GB-s: %v, %v", rec.Status, rec.UsedGBs, rec.Failure, err)
		}
		legs := 0
		for _, a := range rec.Activations {
			if a.Leg > 0 {
				legs++
			}
		}
		if legs == 0 {
			t.Error("no leg was made")
		}
	})
}

// A budget may stop a job within a round. A store that outlives the job keeps that round: nothing runs any more, nobody
// sweeps the store, and a resume with the same work finishes the round. A resume with other work, or with a store that
// ended with the job, trains the round anew. The failure says that.
func TestARoundThatABudgetStoppedIsKept(t *testing.T) {
	for name, c := range map[string]struct {
		keeps  bool
		change func(*Spec)
		says   string
		calls  []string // of the second run, before its first invocation
	}{
		"the same": {
			true, func(*Spec) {}, "is kept for a day, and a resume goes on with it", []string{"take up", "prepare"},
		},
		"another batch": {true, func(s *Spec) { s.Job.Training.BatchSize = 5 }, "is kept", []string{"sweep", "prepare"}},
		"another rate": {
			true, func(s *Spec) { s.Job.Training.Optimizer.SGD = &disdel.SGD{LearningRate: 1} }, "is kept",
			[]string{"sweep", "prepare"},
		},
		"its own store": {false, func(*Spec) {}, "a resume trains round 1 anew, which took", []string{"sweep", "prepare"}},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, s *surroundings) {
				s.end = heeding(time.Minute)
				spec := runSpec(2, 3)
				one := budgeted(3, 6)
				spec.Job.Resources = one.Job.Resources
				spec.Plan.Platform, spec.Plan.Actions = one.Plan.Platform, one.Plan.Actions
				run := s.controller()
				run.cfg.Keeps = c.keeps
				rec, err := run.Run(t.Context(), spec, disdel.DataInfo{})
				if err != nil || !errors.Is(rec.Failure, disdel.OverLimit) || !strings.Contains(rec.Failure.Msg, c.says) {
					t.Fatalf("%v: %v, %v", rec.Status, rec.Failure, err)
				}
				h := rec.Halfway
				if h == nil || h.Round != 0 || h.Spent <= 0 || (h.Mark != "") != c.keeps || h.Mark != s.kept {
					t.Errorf("kept as %q: %+v", s.kept, rec.Halfway)
				}
				if swept := slices.Contains(s.calls, "sweep"); swept == c.keeps {
					t.Errorf("swept: %t", swept)
				}
				if slices.Contains(s.calls, "cancel") {
					t.Errorf("something still ran when the budget ended the job: %v", s.calls)
				}
				s.calls, s.end = nil, nil
				spec.Job.Resources.MaxCost, spec.Resumes = 60, 1
				c.change(&spec)
				if err := StartOver(*rec, &spec); err != nil {
					t.Fatal(err)
				}
				rec, err = run.Resume(t.Context(), spec, *rec)
				if err != nil || rec.Status != disdel.StatusSucceeded || rec.Halfway != nil {
					t.Fatalf("%v: %v, %v; %+v", rec.Status, rec.Failure, err, rec.Halfway)
				}
				if !slices.Equal(s.calls[:2], c.calls) {
					t.Errorf("it begins with %v, want %v", s.calls[:2], c.calls)
				}
			})
		})
	}
}

// stoppedHalfway is a job that its budget stopped in the middle of its first round, which is kept, and its Spec.
func stoppedHalfway(t *testing.T, s *surroundings) (*Controller, Spec, *disdel.Record) {
	t.Helper()
	s.end = heeding(2 * time.Second)
	run := s.controller()
	run.cfg.Keeps = true
	spec := budgeted(3, 1.5)
	rec, err := run.Run(t.Context(), spec, disdel.DataInfo{})
	if err != nil || rec.Halfway == nil || rec.Halfway.Mark == "" || rec.Halfway.Spent != rec.UsedGBs {
		t.Fatalf("%v: %v, %v, %+v", rec.Status, rec.Failure, err, rec.Halfway)
	}
	return run, spec, rec
}

// Who resumes a job with too little, stops it at once, or does so while the platform is away loses nothing of what was
// kept of its round: the next resume goes on with it. The round counts what all runs spent on it.
func TestWhatIsKeptOutlivesAResumeThatBeginsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		most    float64
		prepare func(context.Context) error
	}{
		"too little": {1.51, nil},
		"some legs":  {2.5, nil},
		"no platform": {60, func(context.Context) error {
			return &disdel.Error{Kind: disdel.Unavailable, Op: "prepare", Msg: "nobody answers"}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, s *surroundings) {
				run, spec, rec := stoppedHalfway(t, s)
				was := *rec.Halfway
				again := func(resumes int, most float64) *disdel.Record {
					spec := spec
					spec.Resumes, spec.Job.Resources.MaxCost = resumes, most
					if err := StartOver(*rec, &spec); err != nil {
						t.Fatal(err)
					}
					s.calls = nil
					next, err := run.Resume(t.Context(), spec, *rec)
					if err != nil {
						t.Fatal(err)
					}
					return next
				}
				s.prepare = c.prepare
				rec = again(1, c.most)
				if rec.Status != disdel.StatusFailed || slices.Contains(s.calls, "sweep") {
					t.Fatalf("%v, %v: %v", rec.Status, rec.Failure, s.calls)
				}
				h := rec.Halfway
				if h == nil || h.Mark == "" || h.Mark == was.Mark || h.Mark != s.kept || h.Work != was.Work ||
					h.Spent != rec.UsedGBs || !strings.Contains(rec.Failure.Msg, "is kept for a day") {
					t.Fatalf("kept as %q, %v: %+v", s.kept, rec.Failure, h)
				}
				s.prepare, s.end = nil, nil
				if rec = again(2, 60); rec.Status != disdel.StatusSucceeded || s.calls[0] != "take up" {
					t.Errorf("%v, %v: %v", rec.Status, rec.Failure, s.calls)
				}
			})
		})
	}
}

// A policy knows what is left of a job's budget and time.
func TestAPolicyKnowsWhatIsLeft(t *testing.T) {
	for _, c := range []struct {
		spent, cost float64
		now, left   time.Duration
	}{{0, 10, 0, time.Hour}, {4, 6, 20 * time.Minute, 40 * time.Minute}, {14, 0, 2 * time.Hour, 0}} {
		spec := budgeted(3, 10)
		spec.Job.Reliability.Deadline = disdel.Duration(time.Hour)
		m := NewManager(spec)
		m.budget.spent, m.stats.now = c.spent, disdel.Millis(c.now)
		if g := m.goal(); g.Cost != c.cost || g.Deadline != disdel.Millis(c.left) {
			t.Errorf("%+v: %g GB-s and %v are left", c, g.Cost, g.Deadline)
		}
	}
}

// A round that is gone on with is not expected to cost what was spent on it before, and what it comes to in the end is
// what both runs have spent. One that the store has lost costs all of it.
func TestAKeptRoundCostsWhatIsLeftOfIt(t *testing.T) {
	for _, there := range []bool{true, false} {
		b := newBudget(budgeted(12, 100).Job)
		b.spent = 37
		b.resumed(3, &disdel.Halfway{Round: 3, Spent: 7}, there)
		m := NewManager(budgeted(12, 100))
		m.budget = b
		if cost := m.wholeRound().cost; there && cost != 3 || !there && cost != 10 {
			t.Errorf("there: %t; %g GB-s are next, of rounds of %g", there, cost, m.budget.perStep)
		}
		m.budget.spent = 41
		m.budget.roundOver(1)
		if m.budget.perStep != map[bool]float64{true: 11, false: 4}[there] || m.budget.done != 0 {
			t.Errorf("there: %t; the round took %g", there, m.budget.perStep)
		}
	}
}

// What the workers of a later round have to do is the same for a run that begins with it as for the one before.
func TestALaterRoundIsTheSameWork(t *testing.T) {
	in(t, func(t *testing.T, s *surroundings) {
		spec := grantingSpec(2, 4, nil)
		rec, err := s.controller().Run(t.Context(), spec, disdel.DataInfo{})
		if err != nil || rec.Status != disdel.StatusSucceeded {
			t.Fatalf("%v: %v, %v", rec.Status, rec.Failure, err)
		}
		m, later := NewManager(spec), spec
		m.enter(2)
		later.Resumes = 1
		rec.Status, rec.Halfway = disdel.StatusFailed, &disdel.Halfway{Round: 2, Mark: "m", Work: m.spec.digest(2)}
		if err := ContinueFrom(*rec, &later, disdel.Checkpoint{Round: 2}); err != nil || later.Kept == nil {
			t.Errorf("%v: another work, %s and not %s", err, later.digest(2), rec.Halfway.Work)
		}
		if later = spec; ContinueFrom(*rec, &later, disdel.Checkpoint{Round: 1}) != nil || later.Kept != nil {
			t.Error("what was kept of another round than the checkpoint's is taken up")
		}
	})
}

// A round that cannot be kept is not called kept.
func TestARoundThatTheStoreDoesNotKeep(t *testing.T) {
	in(t, func(t *testing.T, s *surroundings) {
		s.end = heeding(2 * time.Second)
		s.keep = func() error { return errors.New("out of memory") }
		run := s.controller()
		run.cfg.Keeps = true
		rec, err := run.Run(t.Context(), budgeted(3, 1.5), disdel.DataInfo{})
		if err != nil || rec.Halfway == nil || rec.Halfway.Mark != "" || !slices.Contains(s.calls, "sweep") ||
			!strings.Contains(rec.Failure.Msg, "a resume trains round 1 anew") {
			t.Errorf("%v, %v, %+v: %v", rec.Failure, err, rec.Halfway, s.calls)
		}
	})
}

// A worker that finds too little of the budget waits while others run, but not beyond the job's deadline.
func TestTheDeadlineEndsWhatWaitsForABudget(t *testing.T) {
	in(t, func(t *testing.T, s *surroundings) {
		s.end = func(ctx context.Context, inv disdel.Invocation) (disdel.Activation, error) {
			if inv.Member == 1 {
				return hangs(ctx, inv)
			}
			return heeding(2*time.Second)(ctx, inv)
		}
		spec, one := runSpec(2, 3), budgeted(3, 3)
		spec.Job.Resources, spec.Plan.Platform, spec.Plan.Actions = one.Job.Resources, one.Plan.Platform, one.Plan.Actions
		spec.Job.Reliability.Deadline = disdel.Duration(20 * time.Second)
		run := s.controller()
		run.cfg.Keeps = true
		began := time.Now()
		rec, err := run.Run(t.Context(), spec, disdel.DataInfo{})
		took := time.Since(began)
		if err != nil || rec.Failure.Code != disdel.CodeDeadline || took < 20*time.Second || took > 30*time.Second {
			t.Errorf("after %v: %v, %v, %+v", took, rec.Failure, err, rec.Halfway)
		}
	})
}

// Rounds after the newest checkpoint are trained again, which a job that its budget stops says.
func TestABudgetSaysWhatIsTrainedAgain(t *testing.T) {
	saved := func(round int) *disdel.Checkpoint { return &disdel.Checkpoint{Round: round} }
	for name, c := range map[string]struct {
		saved *disdel.Checkpoint
		spent float64 // on round 4
		want  string
	}{
		"nothing":             {saved(3), 0, ""},
		"the round":           {saved(3), 1, "; a resume trains round 4 anew, which took 1 GB-s so far"},
		"the round before":    {saved(2), 0, "; a resume trains round 3 anew: the newest checkpoint is before it"},
		"all of them":         {nil, 0, "; a resume trains rounds 1 to 3 anew: the newest checkpoint is before them"},
		"some, and the round": {saved(1), 1, "; a resume trains rounds 2 to 4 anew: the newest checkpoint is before them"},
	} {
		m := NewManager(budgeted(12, 7))
		m.reset(3)
		m.saved, m.budget.began, m.budget.spent = c.saved, 3, 3+c.spent
		if got := m.repeatedBy(m.unfinishedRound()); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// ends has an invocation of a slot end after so long, and returns what follows.
func ends(m *Manager, s disdel.Slot, spent *float64, seconds float64, outcome disdel.Outcome, result string) []Order {
	e := m.attempts.slots[s]
	return endsAs(m, m.built(s, e, 0), spent, seconds, outcome, result)
}

// endsAs is ends of an invocation that may not be the newest of its slot.
func endsAs(m *Manager, inv disdel.Invocation, spent *float64, seconds float64, outcome disdel.Outcome,
	result string,
) []Order {
	a := disdel.Activation{Invocation: inv, Outcome: outcome, Duration: disdel.Millis(seconds * float64(time.Second))}
	if a.Result = []byte(result); outcome != disdel.OutcomeSuccess {
		a.Failure = &disdel.Error{Kind: disdel.Invalid, Msg: "no"}
	}
	*spent += a.HeldGBs()
	return m.Step(EndedEvent{Activation: a, Moment: Moment{Spent: *spent}})
}

// overBudget is the failure of the job if orders end it for its budget.
func overBudget(orders []Order) *disdel.Error {
	for _, o := range orders {
		if f, ok := o.(FinishOrder); ok && f.Failure != nil && f.Failure.Code == disdel.CodeOverBudget {
			return f.Failure
		}
	}
	return nil
}

// A round that is too dear does not begin, however the round before ended: also after a failed evaluation.
func TestARoundAfterAFailedEvaluationIsHeldAgainstTheBudget(t *testing.T) {
	spec := budgeted(12, 13)
	spec.Plan.HeldOut, spec.Job.Training.ValidateEvery = 10, 4
	m, spent := NewManager(spec), 0.0
	m.Step(StartedEvent{})
	var orders []Order
	for range 4 {
		ends(m, disdel.Slot{Task: disdel.TaskTrain}, &spent, 1, disdel.OutcomeSuccess, `{"samples":1}`)
		orders = ends(m, m.barrier.top(), &spent, 2, disdel.OutcomeSuccess, `{"weight":1}`)
	}
	if overBudget(orders) != nil {
		t.Fatalf("%+v", orders)
	}
	orders = ends(m, disdel.Slot{Task: disdel.TaskEvaluate}, &spent, 0.01, disdel.OutcomeApplicationError, "")
	if f := overBudget(orders); f == nil || !strings.Contains(f.Msg, "round 5 of 12 would take about 3") {
		t.Errorf("%v: %+v", f, orders)
	}
}

// A round that is too dear waits for a straggler of the round before: the straggler's part may become free. No budget
// stops a job while something runs.
func TestABudgetEndsNothingWhileAStragglerRuns(t *testing.T) {
	one := budgeted(12, 21.5)
	spec := runSpec(2, 12)
	spec.Job.Resources, spec.Plan.Platform, spec.Plan.Actions = one.Job.Resources, one.Plan.Platform, one.Plan.Actions
	spec.Job.Distribution.Missing = disdel.Missing{Policy: disdel.MissingProceed, After: disdel.Duration(time.Second)}
	m, spent := NewManager(spec), 0.0
	m.Step(StartedEvent{})
	first, other := disdel.Slot{Task: disdel.TaskTrain}, disdel.Slot{Task: disdel.TaskTrain, Member: 1}
	for range 4 {
		ends(m, first, &spent, 1, disdel.OutcomeSuccess, `{"samples":1}`)
		ends(m, other, &spent, 1, disdel.OutcomeSuccess, `{"samples":1}`)
		ends(m, m.barrier.top(), &spent, 2, disdel.OutcomeSuccess, `{"weight":1}`)
	}
	late := m.built(other, m.attempts.slots[other], 0)
	ends(m, first, &spent, 1, disdel.OutcomeSuccess, `{"samples":1}`)
	m.Step(AlarmEvent{Number: m.alarms, Moment: Moment{Spent: spent}})
	orders := ends(m, m.barrier.top(), &spent, 2, disdel.OutcomeSuccess, `{"weight":1}`)
	if f := overBudget(orders); f != nil || len(m.budget.running) != 1 {
		t.Fatalf("%d run when the job ended: %v", len(m.budget.running), f)
	}
	if f := overBudget(endsAs(m, late, &spent, 1, disdel.OutcomeSuccess, `{"samples":1}`)); f == nil ||
		!strings.Contains(f.Msg, "round 6 of 12 would take about 3") {
		t.Errorf("%v", f)
	}
}

// The first attempts of a round are told as the round, also where an activation failed before them: an evaluation.
func TestFirstAttemptsAreToldAsTheirRound(t *testing.T) {
	one := budgeted(12, 0.8)
	spec := runSpec(2, 12)
	spec.Job.Resources, spec.Plan.Platform, spec.Plan.Actions = one.Job.Resources, one.Plan.Platform, one.Plan.Actions
	spec.Plan.HeldOut, spec.Job.Training.ValidateEvery = 10, 1
	spec.Job.Distribution.Exchange = &disdel.Exchange{} // one worker alone could not begin
	m, spent := NewManager(spec), 0.0
	m.Step(StartedEvent{})
	for worker := range 2 {
		ends(m, disdel.Slot{Task: disdel.TaskTrain, Member: worker}, &spent, 0.2, disdel.OutcomeSuccess, `{"samples":1}`)
	}
	ends(m, m.barrier.top(), &spent, 0.2, disdel.OutcomeSuccess, `{"weight":1}`)
	orders := ends(m, disdel.Slot{Task: disdel.TaskEvaluate}, &spent, 0.001, disdel.OutcomeApplicationError, "")
	if f := overBudget(orders); f == nil || !strings.Contains(f.Msg, "round 2 of 12 would take about") {
		t.Errorf("%v: %+v", f, orders)
	}
}

// A resume starts its containers again, and the budget that is proposed for it pays them.
func TestTheProposedBudgetPaysForContainers(t *testing.T) {
	m, spent := NewManager(budgeted(12, 7)), 0.0
	m.Step(StartedEvent{})
	m.budget.start = disdel.Millis(500 * time.Millisecond) // of 1 GB each: train, aggregate, evaluate
	var orders []Order
	for range 3 {
		ends(m, disdel.Slot{Task: disdel.TaskTrain}, &spent, 1, disdel.OutcomeSuccess, `{"samples":1}`)
		orders = ends(m, m.barrier.top(), &spent, 1, disdel.OutcomeSuccess, `{"weight":1}`)
	}
	f := overBudget(orders)
	if f == nil || !strings.Contains(f.Msg, "what is left would cost about 25.5 GB-s") {
		t.Fatalf("%v", f)
	}
	if want := "resources.maxCost=45GB-s"; f.Changes[0][0] != want { // 6 + 1.5 * 25.5, rounded up
		t.Errorf("%v, want %s", f.Changes, want)
	}
}

// Closing a round keeps more than it has cost if training gets enough, never less than its cost if that is there, and
// never more than there is.
func TestClosingARoundKeepsItsCost(t *testing.T) {
	var b budget
	if got := b.kept(100, 40); got != closingShare*100 {
		t.Errorf("before any round was closed %v are kept", got)
	}
	b.closing = map[disdel.Task]closing{disdel.TaskAggregate: {round: 6}, disdel.TaskEvaluate: {round: 4}}
	for _, c := range []struct{ free, round, want float64 }{
		{1000, 40, closingSpare * 10},           // there is enough
		{trainSpare*30 + 11, 40, 11},            // what training leaves
		{trainSpare*30 + 5, 40, 10}, {8, 40, 8}, // what closing costs, or all
		{closingSpare*10 + 1, 10, closingSpare * 10}, // a round without training
	} {
		if got := b.kept(c.free, c.round); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%v of %v are kept, want %v", got, c.free, c.want)
		}
	}
}
