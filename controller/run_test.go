package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	"go.uber.org/goleak"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/scheduler"
)

// surroundings are a platform, a store, a history and a shelf of which each call can be made to go another way.
type surroundings struct {
	mu    sync.Mutex
	calls []string
	saved []disdel.Record
	kept  string                          // mark
	check func(ctx context.Context) error // of the store
	keep  func() error

	end     func(ctx context.Context, inv disdel.Invocation) (disdel.Activation, error)
	prepare func(ctx context.Context) error
	remove  func(ctx context.Context) error
	outage  func() (disdel.Outage, bool)
	invoke  func(inv disdel.Invocation) error
	see     func(ctx context.Context) ([]disdel.Progress, error)
	save    func(ctx context.Context, r *disdel.Record) error
	quota   func(job disdel.JobID) disdel.Quota
	updates func(id disdel.UpdateID) (json.RawMessage, bool)
}

func (s *surroundings) called(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, fmt.Sprintf(format, args...))
}

// wasCalled tells while the job runs whether a call was made.
func (s *surroundings) wasCalled(call string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.calls, call)
}

func (s *surroundings) Delivered(_ context.Context, id disdel.UpdateID) (json.RawMessage, bool, error) {
	if s.updates != nil {
		result, there := s.updates(id)
		return result, there, nil
	}
	return nil, false, nil
}

func (s *surroundings) Quota(job disdel.JobID) disdel.Quota {
	if s.quota != nil {
		return s.quota(job)
	}
	return disdel.Quota{}
}

func (s *surroundings) Outage() (disdel.Outage, bool) {
	if s.outage != nil {
		return s.outage()
	}
	return disdel.Outage{}, false
}

func (s *surroundings) Prepare(ctx context.Context, _ string, _ []disdel.ActionPlan) error {
	s.called("prepare")
	if s.prepare != nil {
		return s.prepare(ctx)
	}
	return ctx.Err()
}

func (s *surroundings) Invoke(_ context.Context, inv disdel.Invocation) (disdel.ActivationID, error) {
	s.called("invoke %s", inv.ID)
	if s.invoke != nil {
		if err := s.invoke(inv); err != nil {
			return "", err
		}
	}
	return disdel.ActivationID(inv.ID), nil
}

func (s *surroundings) Wait(ctx context.Context, inv disdel.Invocation, _ disdel.ActivationID) (disdel.Activation,
	error,
) {
	if s.end != nil {
		return s.end(ctx, inv)
	}
	return passes(ctx, inv)
}

func (s *surroundings) Remove(ctx context.Context, _ string) error {
	s.called("remove")
	if s.remove != nil {
		return s.remove(ctx)
	}
	return ctx.Err()
}

func (s *surroundings) Save(ctx context.Context, r *disdel.Record) error {
	if s.save != nil {
		if err := s.save(ctx, r); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saved = append(s.saved, *r)
	return ctx.Err()
}

func (s *surroundings) Progress(ctx context.Context, _ disdel.JobID) ([]disdel.Progress, error) {
	if s.see != nil {
		return s.see(ctx)
	}
	return nil, nil
}

func (s *surroundings) Cancel(context.Context, disdel.JobID) error { s.called("cancel"); return nil }

func (s *surroundings) Check(ctx context.Context, _ disdel.JobID) error {
	if s.check == nil {
		return nil
	}
	return s.check(ctx)
}

func (s *surroundings) EndMember(context.Context, disdel.JobID, int, int) error { return nil }

func (s *surroundings) LetGo(_ context.Context, _ disdel.JobID, round, worker int) error {
	s.called("let go %d of round %d", worker, round)
	return nil
}

func (s *surroundings) Forget(context.Context, disdel.JobID, int) error { return nil }

func (s *surroundings) Keep(_ context.Context, _ disdel.JobID, mark string) error {
	s.called("keep")
	if s.keep != nil {
		return s.keep()
	}
	s.kept = mark
	return nil
}

func (s *surroundings) TakeUp(_ context.Context, _ disdel.JobID, mark string) (bool, error) {
	s.called("take up")
	there := mark == s.kept
	s.kept = ""
	return there, nil
}

func (s *surroundings) Sweep(context.Context, disdel.JobID) (int, error) {
	s.called("sweep")
	return 0, nil
}

func (s *surroundings) Commit(_ context.Context, _ *disdel.Record, _ disdel.Network,
	w disdel.ModelRef,
) (disdel.ModelRef, error) {
	return w, nil
}

func (s *surroundings) Discard(_ context.Context, folder string) error {
	s.called("discard %s", folder)
	return nil
}

// passes is an activation that does what it should.
func passes(_ context.Context, inv disdel.Invocation) (disdel.Activation, error) {
	a := disdel.Activation{
		Invocation: inv, Outcome: disdel.OutcomeSuccess, Start: time.Now(),
		End: time.Now().Add(time.Second),
	}
	switch inv.Task {
	case disdel.TaskTrain:
		a.Result, _ = json.Marshal(disdel.TrainResult{Loss: 1, Samples: 10})
	case disdel.TaskAggregate:
		a.Result, _ = json.Marshal(disdel.AggregateResult{Checksum: "sum", Size: 7})
	default:
		a.Result, _ = json.Marshal(disdel.EvaluateResult{Loss: 1})
	}
	return a, nil
}

// hangs is an activation that does not end by itself.
func hangs(ctx context.Context, inv disdel.Invocation) (disdel.Activation, error) {
	<-ctx.Done()
	return disdel.Activation{}, &disdel.Error{Kind: disdel.Canceled, Op: "wait for " + inv.ID, Err: context.Cause(ctx)}
}

func (s *surroundings) controller() *Controller {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return New(Config{Invoker: s, Recorder: s, Store: s, Models: s, Log: log})
}

func runSpec(workers, rounds int) Spec {
	job := disdel.Job{}
	job.Training.Epochs, job.Training.BatchSize, job.Output.Model = rounds, 10, "m"
	job.Reliability.Retries = disdel.Retries{
		Limit: 3, PerWorker: 3,
		Backoff: disdel.Backoff{Initial: disdel.Duration(time.Hour)},
	}
	return Spec{ID: "job-1", Job: job, Models: "mem://", Output: "w", Threads: 1, Plan: disdel.Plan{
		Workers: workers, Rounds: rounds, Epochs: 1, Parallel: workers, Levels: scheduler.Tree(workers, 2),
		Shards: make([]disdel.RowRange, workers),
		Actions: []disdel.ActionPlan{{
			Task: disdel.TaskTrain, Name: "p/train",
			Limits: disdel.Limits{Memory: disdel.GB, Timeout: 1e9},
		}},
	}}
}

// in runs a test on a clock of its own, and sees that nothing is left running.
func in(t *testing.T, f func(t *testing.T, s *surroundings)) {
	t.Helper()
	ours := goleak.IgnoreCurrent()
	synctest.Test(t, func(t *testing.T) { f(t, &surroundings{}) })
	goleak.VerifyNone(t, ours)
}

func TestARunEndsWithItsModel(t *testing.T) {
	in(t, func(t *testing.T, s *surroundings) {
		rec, err := s.controller().Run(t.Context(), runSpec(2, 3), disdel.DataInfo{})
		if err != nil || rec.Status != disdel.StatusSucceeded || rec.Model == nil || rec.Model.Checksum != "sum" ||
			len(rec.Rounds) != 3 {
			t.Fatalf("%+v, %v", rec, err)
		}
		for _, a := range rec.Activations {
			if a.Params != nil || a.Result != nil {
				t.Fatalf("%s keeps its request or its result in memory", a.Invocation.ID)
			}
		}
		if want := estimator.Cost(rec.Activations); rec.CostGBs != want {
			t.Errorf("cost %g, want %g", rec.CostGBs, want)
		}
	})
}

// A deadline and a cancel do not wait for a try that waits for its turn.
func TestADelayedTryEndsWithItsJob(t *testing.T) {
	crashes := func(_ context.Context, inv disdel.Invocation) (disdel.Activation, error) {
		return disdel.Activation{
			Invocation: inv, Outcome: disdel.OutcomeDeveloperError, Peak: 1,
			Failure: &disdel.Error{Kind: disdel.Crashed},
		}, nil
	}
	for name, want := range map[string]disdel.Status{"deadline": disdel.StatusFailed, "cancel": disdel.StatusCanceled} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, s *surroundings) {
				s.end = crashes
				spec := runSpec(2, 1)
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				if name == "deadline" {
					spec.Job.Reliability.Deadline = disdel.Duration(time.Minute)
				} else {
					time.AfterFunc(time.Minute, stop)
				}
				begun := time.Now()
				rec, err := s.controller().Run(ctx, spec, disdel.DataInfo{})
				if err != nil || rec.Status != want {
					t.Fatalf("%v: %+v, %v", rec.Status, rec.Failure, err)
				}
				if took := time.Since(begun); took > 2*time.Minute {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// What does not end after a cancel and its grace is not waited for.
func TestACancelLeavesNothingRunning(t *testing.T) {
	in(t, func(t *testing.T, s *surroundings) {
		s.end = hangs
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, stop)
		rec, err := s.controller().Run(ctx, runSpec(3, 1), disdel.DataInfo{})
		if err != nil || rec.Status != disdel.StatusCanceled || len(rec.Activations) != 3 {
			t.Fatalf("%+v, %v", rec, err)
		}
		if !slices.Contains(s.calls, "cancel") || !slices.Contains(s.calls, "remove") || !slices.Contains(s.calls, "sweep") {
			t.Errorf("calls %v", s.calls)
		}
	})
}

// A round's alarm ends with the round: a job of many rounds does not gather them.
func TestAnAlarmEndsWithItsRound(t *testing.T) {
	in(t, func(t *testing.T, s *surroundings) {
		spec := runSpec(2, 1)
		r := &run{c: s.controller(), spec: spec, events: make(chan Event), delays: t.Context(), stopAlarm: func() {}}
		r.alarm(AlarmOrder{Number: 1, After: time.Minute})
		r.alarm(AlarmOrder{Number: 2, After: time.Hour})
		if e := <-r.events; e != (AlarmEvent{Number: 2}) {
			t.Errorf("%+v rang", e)
		}
		r.running.Wait()
	})
}

// A history store that hangs while the job ends costs the job nothing but the write that hangs.
func TestASaveThatHangsDoesNotHoldTheEndUp(t *testing.T) {
	in(t, func(t *testing.T, s *surroundings) {
		const each = 100 * time.Millisecond // as long as an activation takes: between two of them the saver has its turn
		activations, hung := 0, false
		s.end = func(ctx context.Context, inv disdel.Invocation) (disdel.Activation, error) {
			activations++
			time.Sleep(each)
			return passes(ctx, inv)
		}
		s.save = func(ctx context.Context, r *disdel.Record) error {
			if len(r.Activations) == 0 || r.Status != disdel.StatusRunning {
				return nil
			}
			hung = true
			<-ctx.Done()
			return ctx.Err()
		}
		begun := time.Now()
		rec, err := s.controller().Run(t.Context(), runSpec(1, 1), disdel.DataInfo{})
		if took := time.Since(begun); err != nil || rec.Status != disdel.StatusSucceeded ||
			took > time.Duration(activations)*each {
			t.Fatalf("%v after %v, %v", rec.Status, took, err)
		}
		if !hung {
			t.Error("no save hung")
		}
		if last := s.saved[len(s.saved)-1]; last.Status != disdel.StatusSucceeded {
			t.Errorf("the record says %v", last.Status)
		}
	})
}

// Nobody continues a job whose record says that it has ended. So the record says it only once nothing is left to do:
// a process that is killed before leaves a job that another one ends.
func TestNoRecordSaysTooEarlyThatTheJobHasEnded(t *testing.T) {
	for want, failure := range map[disdel.Status]*disdel.Error{
		disdel.StatusSucceeded: nil,
		disdel.StatusFailed:    {Kind: disdel.Invalid, Op: "aggregate", Msg: "no such layer"},
	} {
		in(t, func(t *testing.T, s *surroundings) {
			s.end = func(ctx context.Context, inv disdel.Invocation) (disdel.Activation, error) {
				time.Sleep(2 * saveInterval) // of the test's own clock: the saver then waits for a record
				if inv.Task == disdel.TaskAggregate && failure != nil {
					return disdel.Activation{
						Invocation: inv, Outcome: disdel.OutcomeApplicationError, Failure: failure,
					}, nil
				}
				return passes(ctx, inv)
			}
			s.save = func(_ context.Context, r *disdel.Record) error {
				if r.Status != disdel.StatusRunning && !s.wasCalled("sweep") {
					t.Errorf("a record says %v before the job's updates are deleted", r.Status)
				}
				return nil
			}
			rec, err := s.controller().Run(t.Context(), runSpec(1, 1), disdel.DataInfo{})
			if err != nil || rec.Status != want {
				t.Errorf("%v: %v, %v", want, rec.Status, err)
			}
		})
	}
}

// Whoever resumes the job of a killed process continues from its checkpoints. So they stay until the record says that
// the job has its model, also where that cannot be saved.
func TestCheckpointsStayUntilTheRecordHasTheModel(t *testing.T) {
	checkpoints := "discard " + CheckpointFolder("job-1")
	for _, saves := range []bool{true, false} {
		in(t, func(t *testing.T, s *surroundings) {
			s.save = func(_ context.Context, r *disdel.Record) error {
				if s.wasCalled(checkpoints) {
					t.Errorf("a record %v was saved after the checkpoints were deleted", r.Status)
				}
				if r.Status == disdel.StatusSucceeded && !saves {
					return errors.New("no disk")
				}
				return nil
			}
			_, err := s.controller().Run(t.Context(), runSpec(1, 1), disdel.DataInfo{})
			if (err == nil) != saves || s.wasCalled(checkpoints) != saves {
				t.Errorf("a last record that can be saved (%t): %v, %q", saves, err, s.calls)
			}
		})
	}
}

// A platform that does not answer at the end costs the job its package, not its record.
func TestAPlatformThatHangsDoesNotCostTheRecord(t *testing.T) {
	in(t, func(t *testing.T, s *surroundings) {
		s.remove = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		s.save = func(ctx context.Context, _ *disdel.Record) error { return ctx.Err() }
		rec, err := s.controller().Run(t.Context(), runSpec(1, 1), disdel.DataInfo{})
		if err != nil || rec.Status != disdel.StatusSucceeded || rec.Model == nil {
			t.Fatalf("%+v, %v", rec, err)
		}
	})
}

// A store may be ahead of the checkpoint that a job goes on from, or have the flag of its cancel.
func TestAResumeBeginsWithAnEmptyStore(t *testing.T) {
	in(t, func(t *testing.T, s *surroundings) {
		spec := runSpec(1, 3)
		spec.From, spec.Resumes = &disdel.Checkpoint{Round: 2, Path: "p"}, 1
		rec, err := s.controller().Resume(t.Context(), spec,
			disdel.Record{ID: "job-1", Status: disdel.StatusFailed, CostGBs: 5, Failure: &disdel.Error{}})
		if err != nil || rec.Status != disdel.StatusSucceeded || rec.CostGBs <= 5 {
			t.Fatalf("%+v, %v", rec, err)
		}
		if s.calls[0] != "sweep" {
			t.Errorf("calls %v", s.calls)
		}
	})
}

// A probe that is interrupted, wherever it is, leaves no package.
func TestAnInterruptedProbeLeavesNothing(t *testing.T) {
	for name, set := range map[string]func(*surroundings, context.CancelFunc){
		"while it is made": func(s *surroundings, stop context.CancelFunc) {
			s.prepare = func(ctx context.Context) error { stop(); return ctx.Err() }
		},
		"while it runs": func(s *surroundings, stop context.CancelFunc) {
			s.end = func(ctx context.Context, inv disdel.Invocation) (disdel.Activation, error) {
				stop()
				return hangs(ctx, inv)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, s *surroundings) {
				ctx, stop := context.WithCancel(t.Context())
				set(s, stop)
				if _, err := s.controller().Probe(ctx, runSpec(1, 1)); !errors.Is(err, context.Canceled) &&
					!errors.Is(err, disdel.Canceled) {
					t.Errorf("error %v", err)
				}
				if !slices.Contains(s.calls, "remove") || !slices.Contains(s.calls, "sweep") {
					t.Errorf("calls %v", s.calls)
				}
			})
		})
	}
}

// CouchDB takes documents of 8 MB: a job of 10,000 rounds fits, with every failure.
func TestALongJobsRecordStaysSmall(t *testing.T) {
	var l recordBuilder
	r := disdel.Record{}
	beats := make([]disdel.Beat, maxBeats)
	for i := range beats {
		beats[i] = disdel.Beat{
			At: 1e12, Resident: disdel.GB, Peak: disdel.GB, Epoch: 9999, Batch: 1234, Batches: 2345,
			Loss: 0.1234567890123456,
		}
	}
	failed := 0
	for round := range 10_000 {
		for w := range 8 {
			a := disdel.Activation{
				ID: "0123456789abcdef0123456789abcdef", Outcome: disdel.OutcomeSuccess, Start: time.Now(), End: time.Now(),
				Duration: 1e12, Peak: disdel.GB,
				Invocation: disdel.Invocation{
					ID: fmt.Sprintf("round %d/train/%d", round, w), Task: disdel.TaskTrain,
					Action: "disdel-job-01234567890123456789012345/train", Round: round, Member: w,
					Attempt: 1, Limits: disdel.Limits{Memory: disdel.GB, Timeout: 1e12}, Estimate: disdel.GB, Likely: disdel.GB,
				},
				Beats: beats, Phases: map[string]disdel.Millis{"load": 1e9, "fetch": 1e9, "compute": 1e9, "push": 1e9}, Rows: 100,
			}
			if round%100 == 0 && w == 0 {
				a.Outcome = disdel.OutcomeOutOfMemory
				failed++
			}
			l.add(&r, a)
		}
		r.Rounds = append(r.Rounds, disdel.Round{Round: round, TrainLoss: 0.1234567890123456, Duration: 1e12})
	}
	text, err := json.Marshal(r)
	if err != nil || len(text) > 8_000_000 {
		t.Fatalf("%d bytes, %v", len(text), err)
	}
	if len(r.Activations)+r.Omitted != 80_000 || len(r.Activations) < maxActivations/2 {
		t.Errorf("%d are there and %d are not", len(r.Activations), r.Omitted)
	}
	for _, a := range r.Activations {
		if len(a.Beats) == 0 || a.Outcome.Failed() && len(a.Beats) < maxBeats {
			t.Fatalf("%s has %d heartbeats", a.Invocation.ID, len(a.Beats))
		}
		if a.Outcome.Failed() {
			failed--
		}
	}
	if first := r.Activations[0]; first.Round != 0 || failed != 0 {
		t.Errorf("begins with %s; %d failures are gone", first.Invocation.ID, failed)
	}
}

// A controller has defaults for all that it is not given, and keeps what it is given.
func TestAControllersDefaults(t *testing.T) {
	c := New(Config{}).cfg
	if _, offset := c.Now().Zone(); offset != 0 || time.Since(c.Now()) > time.Minute || c.Tick <= 0 || c.Grace <= 0 {
		t.Errorf("now %v, tick %v, grace %v", c.Now(), c.Tick, c.Grace)
	}
	c.Observe(Notice{})
	noticed, now := 0, time.Unix(7, 0)
	c = New(Config{
		Now: func() time.Time { return now }, Tick: time.Hour, Grace: time.Minute, Observe: func(Notice) { noticed++ },
	}).cfg
	if c.Observe(Notice{}); noticed != 1 || !c.Now().Equal(now) || c.Tick != time.Hour || c.Grace != time.Minute {
		t.Errorf("now %v, tick %v, grace %v, %d notices", c.Now(), c.Tick, c.Grace, noticed)
	}
}
