package controller

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
)

// nthFails are surroundings of which one call fails.
type nthFails struct {
	*surroundings
	left atomic.Int64 // calls before the one that fails
}

func (f *nthFails) next() error {
	if f.left.Add(-1) != 0 {
		return nil
	}
	return &disdel.Error{Kind: disdel.Unavailable, Op: "ask", Msg: "no answer"}
}

func (f *nthFails) Delivered(ctx context.Context, id disdel.UpdateID) (json.RawMessage, bool, error) {
	if err := f.next(); err != nil {
		return nil, false, err
	}
	return f.surroundings.Delivered(ctx, id)
}

func (f *nthFails) Prepare(ctx context.Context, pkg string, actions []disdel.ActionPlan) error {
	return errors.Join(f.next(), f.surroundings.Prepare(ctx, pkg, actions))
}

func (f *nthFails) Invoke(ctx context.Context, inv disdel.Invocation) (disdel.ActivationID, error) {
	if err := f.next(); err != nil {
		return "", err
	}
	return f.surroundings.Invoke(ctx, inv)
}

func (f *nthFails) Wait(ctx context.Context, inv disdel.Invocation, id disdel.ActivationID) (disdel.Activation, error) {
	if err := f.next(); err != nil {
		return disdel.Activation{}, err
	}
	return f.surroundings.Wait(ctx, inv, id)
}

func (f *nthFails) Remove(ctx context.Context, pkg string) error {
	return errors.Join(f.next(), f.surroundings.Remove(ctx, pkg))
}

func (f *nthFails) Save(ctx context.Context, r *disdel.Record) error {
	return errors.Join(f.next(), f.surroundings.Save(ctx, r))
}

func (f *nthFails) Progress(ctx context.Context, job disdel.JobID) ([]disdel.Progress, error) {
	p, err := f.surroundings.Progress(ctx, job)
	return p, errors.Join(f.next(), err)
}

func (f *nthFails) Cancel(ctx context.Context, job disdel.JobID) error {
	return errors.Join(f.next(), f.surroundings.Cancel(ctx, job))
}

func (f *nthFails) Check(ctx context.Context, job disdel.JobID) error {
	return errors.Join(f.next(), f.surroundings.Check(ctx, job))
}

func (f *nthFails) Forget(ctx context.Context, job disdel.JobID, round int) error {
	return errors.Join(f.next(), f.surroundings.Forget(ctx, job, round))
}

func (f *nthFails) Keep(ctx context.Context, job disdel.JobID, mark string) error {
	return errors.Join(f.next(), f.surroundings.Keep(ctx, job, mark))
}

func (f *nthFails) Sweep(ctx context.Context, job disdel.JobID) (int, error) {
	n, err := f.surroundings.Sweep(ctx, job)
	return n, errors.Join(f.next(), err)
}

func (f *nthFails) Commit(ctx context.Context, r *disdel.Record, n disdel.Network, w disdel.ModelRef) (
	disdel.ModelRef, error,
) {
	w, err := f.surroundings.Commit(ctx, r, n, w)
	return w, errors.Join(f.next(), err)
}

func (f *nthFails) Discard(ctx context.Context, folder string) error {
	return errors.Join(f.next(), f.surroundings.Discard(ctx, folder))
}

func (f *nthFails) controller() *Controller {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return New(Config{Invoker: f, Recorder: f, Store: f, Models: f, Log: log})
}

// Whichever call to platform, store, history or models fails once: the job has all rounds and its model, or it says
// why it failed. Its actions and its keys are removed either way, unless it never began.
func TestTheNthCallOfARunFails(t *testing.T) {
	const far = math.MaxInt32
	run := func(t *testing.T, nth int64) (calls int64, rec *disdel.Record, err error) {
		in(t, func(t *testing.T, s *surroundings) {
			f := &nthFails{surroundings: s}
			f.left.Store(nth)
			crashed := false
			s.end = func(ctx context.Context, inv disdel.Invocation) (disdel.Activation, error) {
				a, err := passes(ctx, inv)
				if inv.Task == disdel.TaskTrain && inv.Member == 1 && !crashed { // so that its update is looked for
					crashed = true
					a.Outcome, a.Result, a.Failure = disdel.OutcomeDeveloperError, nil, &disdel.Error{Kind: disdel.Crashed}
				}
				return a, err
			}
			spec := runSpec(2, 2)
			spec.Plan.HeldOut = 10
			spec.Job.Reliability.CheckpointEvery = 1
			spec.Job.Reliability.Retries.Backoff.Initial = disdel.Duration(time.Second)
			rec, err = f.controller().Run(t.Context(), spec, disdel.DataInfo{})
			calls = nth - f.left.Load()
			for _, end := range []string{"remove", "sweep"} {
				if err == nil && !slices.Contains(s.calls, end) {
					t.Errorf("call %d: no %s; %v", nth, end, s.calls)
				}
			}
		})
		return calls, rec, err
	}
	n, rec, err := run(t, far)
	if err != nil || rec.Status != disdel.StatusSucceeded {
		t.Fatalf("%v, %v", rec, err)
	}
	passed := 0
	for nth := int64(1); nth <= n; nth++ {
		switch _, rec, err := run(t, nth); {
		case err != nil:
			if !errors.Is(err, disdel.Unavailable) {
				t.Errorf("call %d: %v", nth, err)
			}
		case rec.Status == disdel.StatusSucceeded:
			if passed++; len(rec.Rounds) != 2 || rec.Model == nil {
				t.Errorf("call %d: %d rounds, model %v", nth, len(rec.Rounds), rec.Model)
			}
		case rec.Failure == nil || !strings.Contains(rec.Failure.Error(), "no answer"):
			t.Errorf("call %d: %v: %v", nth, rec.Status, rec.Failure)
		}
	}
	if passed == 0 || passed == int(n) {
		t.Errorf("with %d of %d calls the job passed", passed, n)
	}
}

// An action whose answer is no result of its task fails the job with what it answered.
func TestAnswersThatAreNoResultsFailTheJob(t *testing.T) {
	for _, task := range []disdel.Task{disdel.TaskTrain, disdel.TaskAggregate, disdel.TaskEvaluate} {
		in(t, func(t *testing.T, s *surroundings) {
			s.end = func(ctx context.Context, inv disdel.Invocation) (disdel.Activation, error) {
				a, err := passes(ctx, inv)
				if inv.Task == task {
					a.Result = json.RawMessage(`"not a result"`)
				}
				return a, err
			}
			spec := runSpec(2, 1)
			spec.Plan.HeldOut = 10
			rec, err := s.controller().Run(t.Context(), spec, disdel.DataInfo{HeldOut: 10})
			if err != nil || rec.Status != disdel.StatusFailed || rec.Failure == nil {
				t.Errorf("%v: %v, %v", task, rec, err)
			}
		})
	}
}

// A probe that comes to nothing says why, and its action is removed.
func TestProbesSayWhyTheyFail(t *testing.T) {
	answer := func(text string) func(context.Context, disdel.Invocation) (disdel.Activation, error) {
		return func(ctx context.Context, inv disdel.Invocation) (disdel.Activation, error) {
			a, err := passes(ctx, inv)
			a.Result = json.RawMessage(text)
			return a, err
		}
	}
	for what, c := range map[string]struct {
		change func(s *surroundings, spec *Spec)
		want   string
	}{
		"no action": {func(_ *surroundings, spec *Spec) { spec.Plan.Actions = nil }, "the plan has no train action"},
		"not prepared": {func(s *surroundings, _ *Spec) {
			s.prepare = func(context.Context) error { return errors.New("no package") }
		}, "no package"},
		"not invoked": {func(s *surroundings, _ *Spec) {
			s.invoke = func(disdel.Invocation) error { return errors.New("no activation") }
		}, "no activation"},
		"not removed": {func(s *surroundings, _ *Spec) {
			s.end = answer(`{"rows": 3}`)
			s.remove = func(context.Context) error { return errors.New("not removed") }
		}, "not removed"},
		"no result":    {func(s *surroundings, _ *Spec) { s.end = answer(`7`) }, "cannot unmarshal"},
		"nothing done": {func(s *surroundings, _ *Spec) { s.end = answer(`{}`) }, "the probe trained nothing"},
	} {
		in(t, func(t *testing.T, s *surroundings) {
			spec := runSpec(1, 1)
			c.change(s, &spec)
			if _, err := s.controller().Probe(t.Context(), spec); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", what, err, c.want)
			}
			if len(spec.Plan.Actions) > 0 && !slices.Contains(s.calls, "remove") {
				t.Errorf("%s: nothing was removed: %v", what, s.calls)
			}
		})
	}
}
