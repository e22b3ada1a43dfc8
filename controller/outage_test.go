package controller

import (
	"context"
	"encoding/json"
	"io"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
)

// observed is a controller whose notices are kept.
func (s *surroundings) observed() (*Controller, func() []Notice) {
	var mu sync.Mutex
	var all []Notice
	log := logrus.New()
	log.SetOutput(io.Discard)
	c := New(Config{Invoker: s, Recorder: s, Store: s, Models: s, Log: log, Observe: func(n Notice) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, n)
	}})
	return c, func() []Notice {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

// A platform that does not answer is named within seconds, and again, and when it is back; the record has it.
func TestAnOutageIsToldAndKept(t *testing.T) {
	in(t, func(t *testing.T, s *surroundings) {
		begun := time.Now()
		from, to := begun.Add(10*time.Second), begun.Add(60*time.Second)
		s.outage = func() (disdel.Outage, bool) {
			return disdel.Outage{Host: "http://h", Since: from, Until: from.Add(time.Hour), Why: "connection refused"},
				time.Now().After(from.Add(2*time.Second)) && time.Now().Before(to)
		}
		s.end = func(ctx context.Context, inv disdel.Invocation) (disdel.Activation, error) {
			if inv.Task == disdel.TaskTrain {
				time.Sleep(2 * time.Minute)
			}
			return passes(ctx, inv)
		}
		c, told := s.observed()
		rec, err := c.Run(t.Context(), runSpec(1, 1), disdel.DataInfo{})
		if err != nil || rec.Status != disdel.StatusSucceeded {
			t.Fatalf("%v, %v", rec.Status, err)
		}
		var outages []Outage
		for _, n := range told() {
			if n.Job != "job-1" {
				t.Fatalf("a notice of job %q", n.Job)
			}
			if n.Outage != nil {
				outages = append(outages, *n.Outage)
			}
		}
		if len(outages) < 3 || outages[0].For > 3*time.Second || !outages[len(outages)-1].Over ||
			outages[1].For < outages[0].For+10*time.Second {
			t.Errorf("%+v", outages)
		}
		if len(rec.Outages) != 1 || rec.Outages[0].Until.Before(to) || rec.Outages[0].Why != "connection refused" {
			t.Errorf("the record has %+v", rec.Outages)
		}
	})
}

// A job whose deadline passes while the platform does not answer ends as unreachable, and says so; one that the
// executor gives up ends at once, however many retries it has.
func TestAnOutageEndsTheJobAsUnreachable(t *testing.T) {
	for name, change := range map[string]func(s *surroundings, spec *Spec){
		"deadline": func(s *surroundings, spec *Spec) {
			spec.Job.Reliability.Deadline = disdel.Duration(time.Minute)
			s.end = hangs
			s.outage = func() (disdel.Outage, bool) {
				return disdel.Outage{
					Host: "http://h", Since: time.Now().Add(-30 * time.Second), Until: time.Now().Add(time.Hour),
					Why: "no answer",
				}, true
			}
		},
		"given up": func(s *surroundings, _ *Spec) {
			s.end = func(context.Context, disdel.Invocation) (disdel.Activation, error) {
				time.Sleep(time.Minute)
				return disdel.Activation{},
					&disdel.Error{Kind: disdel.Unavailable, Code: disdel.CodeUnreachable, Msg: "OpenWhisk at http://h does not answer"}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, s *surroundings) {
				spec := runSpec(2, 1)
				change(s, &spec)
				begun := time.Now()
				rec, err := s.controller().Run(t.Context(), spec, disdel.DataInfo{})
				if err != nil || rec.Status != disdel.StatusFailed || rec.Failure.Kind != disdel.Unavailable ||
					!strings.Contains(rec.Failure.Error(), "http://h does not answer") {
					t.Fatalf("%v, %v, %v", rec.Status, rec.Failure, err)
				}
				if !strings.Contains(rec.Failure.Hint, "disdel resume job-1") || time.Since(begun) > 2*time.Minute {
					t.Errorf("hint %q after %v", rec.Failure.Hint, time.Since(begun))
				}
			})
		})
	}
}

// Actions that are gone, since the platform was started again without what it had, are created again, once for all that
// ask.
func TestActionsThatAreGoneAreCreatedAgain(t *testing.T) {
	in(t, func(t *testing.T, s *surroundings) {
		there, gone := true, false
		var mu sync.Mutex
		s.prepare = func(context.Context) error { mu.Lock(); there = true; mu.Unlock(); return nil }
		s.invoke = func(inv disdel.Invocation) error {
			mu.Lock()
			defer mu.Unlock()
			if inv.Round == 1 && inv.Task == disdel.TaskTrain && !gone {
				there, gone = false, true
				s.called("gone")
			}
			if !there {
				return &disdel.Error{Kind: disdel.NotFound, Msg: "The requested resource does not exist."}
			}
			return nil
		}
		rec, err := s.controller().Run(t.Context(), runSpec(3, 2), disdel.DataInfo{})
		if err != nil || rec.Status != disdel.StatusSucceeded || rec.Losses.Attempts > 0 {
			t.Fatalf("%v: %v, losses %+v, %v", rec.Status, rec.Failure, rec.Losses, err)
		}
	})
}

// A store that does not answer costs the picture alone: what ends is taken as soon as ever.
func TestTheLoopDoesNotWaitForTheStore(t *testing.T) {
	in(t, func(t *testing.T, s *surroundings) {
		s.see = func(ctx context.Context) ([]disdel.Progress, error) { <-ctx.Done(); return nil, ctx.Err() }
		s.end = func(ctx context.Context, inv disdel.Invocation) (disdel.Activation, error) {
			time.Sleep(300 * time.Millisecond)
			return passes(ctx, inv)
		}
		begun := time.Now()
		rec, err := s.controller().Run(t.Context(), runSpec(1, 5), disdel.DataInfo{})
		if err != nil || rec.Status != disdel.StatusSucceeded {
			t.Fatalf("%v, %v", rec.Status, err)
		}
		if took, most := time.Since(begun), time.Duration(len(rec.Activations))*310*time.Millisecond; took > most {
			t.Errorf("%d activations of 300 ms took %v", len(rec.Activations), took)
		}
	})
}

// Actions without a sign are told of, with what the pool has to hold where nobody knows it; those with heartbeats are
// not.
func TestWhatGivesNoSignIsTold(t *testing.T) {
	in(t, func(t *testing.T, s *surroundings) {
		begun := time.Now()
		s.see = func(context.Context) ([]disdel.Progress, error) {
			return []disdel.Progress{{Task: disdel.TaskTrain, Member: 1, Batch: 1, Batches: 9, UnixMs: time.Now().UnixMilli()}},
				nil
		}
		s.end = func(ctx context.Context, inv disdel.Invocation) (disdel.Activation, error) {
			if inv.Task == disdel.TaskTrain {
				time.Sleep(time.Minute)
			}
			return passes(ctx, inv)
		}
		c, told := s.observed()
		if _, err := c.Run(t.Context(), runSpec(2, 1), disdel.DataInfo{}); err != nil {
			t.Fatal(err)
		}
		var waits []Waiting
		for _, n := range told() {
			if n.Waiting != nil {
				waits = append(waits, *n.Waiting)
			}
		}
		if len(waits) != 3 || waits[0].For > 11*time.Second || len(waits[0].Invocations) != 1 ||
			waits[0].Invocations[0].Member != 0 || waits[0].Pool != disdel.GB {
			t.Errorf("%+v within %v", waits, time.Since(begun))
		}
	})
}

// A pool that has served an action of the job is not the cause of a later action's silence. One that has only lost
// actions may be.
func TestAPoolThatServedIsNotSuspected(t *testing.T) {
	for _, served := range []bool{true, false} {
		in(t, func(t *testing.T, s *surroundings) {
			first := true
			s.end = func(ctx context.Context, inv disdel.Invocation) (disdel.Activation, error) {
				switch {
				case inv.Task != disdel.TaskTrain:
				case first && !served:
					first = false
					return disdel.Activation{
						Invocation: inv, Outcome: disdel.OutcomeLost, Failure: &disdel.Error{Kind: disdel.Lost, Msg: "no record"},
					}, nil
				case inv.Round == 1 || !served:
					time.Sleep(time.Minute)
				}
				return passes(ctx, inv)
			}
			c, told := s.observed()
			if _, err := c.Run(t.Context(), runSpec(1, 2), disdel.DataInfo{}); err != nil {
				t.Fatal(err)
			}
			waits := 0
			for _, n := range told() {
				if n.Waiting != nil && len(n.Waiting.Invocations) > 0 {
					if waits++; waits == 1 && (n.Waiting.Pool == 0) != served {
						t.Errorf("served before: %v, but the notice is %+v", served, *n.Waiting)
					}
				}
			}
			if waits == 0 {
				t.Errorf("served before: %v: nothing was told", served)
			}
		})
	}
}

// The pool is named as a cause if it may be smaller than the action: if its size is unknown, or if the doctor found it,
// perhaps long ago. A size that the user or the platform states is certain.
func TestNoSignNamesAPoolThatMayHaveShrunk(t *testing.T) {
	found := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		at   disdel.PlatformLimits
		want Waiting
	}{
		"nobody knows": {disdel.PlatformLimits{}, Waiting{Pool: disdel.GB}},
		"doctor found it": {
			disdel.PlatformLimits{Pool: 4 * disdel.GB, PoolFrom: disdel.PoolFound, PoolAt: found},
			Waiting{Pool: disdel.GB, Found: 4 * disdel.GB, FoundAt: found},
		},
		"the user says":     {disdel.PlatformLimits{Pool: 4 * disdel.GB, PoolFrom: disdel.PoolGiven}, Waiting{}},
		"the platform says": {disdel.PlatformLimits{Pool: 4 * disdel.GB, PoolFrom: disdel.PoolTold}, Waiting{}},
		"embedded":          {disdel.PlatformLimits{Pool: 4 * disdel.GB}, Waiting{}},
	} {
		for _, served := range []bool{false, true} {
			r, want := &run{served: served, rec: &disdel.Record{Plan: disdel.Plan{Platform: c.at}}}, c.want
			var got Waiting
			if r.suspectPool(&got, disdel.GB); served {
				want = Waiting{}
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s, served before: %v: %+v, want %+v", name, served, got, want)
			}
		}
	}
}

// beating is a board whose train actions send a heartbeat every 300 ms until they freeze.
func beating(freezes time.Time) func(context.Context) ([]disdel.Progress, error) {
	begun := time.Now()
	return func(context.Context) ([]disdel.Progress, error) {
		at := time.Now()
		if at.After(freezes) {
			at = freezes
		}
		beats := at.Sub(begun) / (300 * time.Millisecond)
		if beats == 0 {
			return nil, nil
		}
		return []disdel.Progress{{
			Task: disdel.TaskTrain, Batch: int(beats), Batches: 1000, Epoch: 1,
			UnixMs: begun.Add(beats * 300 * time.Millisecond).UnixMilli(),
		}}, nil
	}
}

// The onlooker hears of a frozen action within 3 s of its first missing heartbeat, and again when heartbeats return.
func TestMissingHeartbeatsAreToldWithinSeconds(t *testing.T) {
	in(t, func(t *testing.T, s *surroundings) {
		begun := time.Now()
		freezes := begun.Add(5 * time.Second)
		s.see = thaws(begun, freezes, begun.Add(30*time.Second))
		s.end = func(ctx context.Context, inv disdel.Invocation) (disdel.Activation, error) {
			if inv.Task == disdel.TaskTrain {
				time.Sleep(40 * time.Second)
			}
			return passes(ctx, inv)
		}
		c, _ := s.observed()
		var told []Waiting
		var when []time.Duration
		c.cfg.Observe = func(n Notice) {
			if n.Waiting != nil {
				told, when = append(told, *n.Waiting), append(when, time.Since(freezes))
			}
		}
		rec, err := c.Run(t.Context(), runSpec(1, 1), disdel.DataInfo{})
		if err != nil || rec.Status != disdel.StatusSucceeded {
			t.Fatal(err)
		}
		if len(told) < 2 || !told[0].Stopped || when[0] > 3*time.Second || told[0].All != 1000 || told[0].Done < 10 {
			t.Fatalf("%+v at %v", told, when)
		}
		if last := told[len(told)-1]; !last.Over {
			t.Errorf("nothing was told of heartbeats that came again: %+v at %v", told, when)
		}
	})
}

// thaws is beating, with heartbeats again from a time on.
func thaws(begun, freezes, again time.Time) func(context.Context) ([]disdel.Progress, error) {
	frozen, whole := beating(freezes), beating(begun.Add(time.Hour))
	return func(ctx context.Context) ([]disdel.Progress, error) {
		if time.Now().After(again) {
			return whole(ctx)
		}
		return frozen(ctx)
	}
}

// A store that does not answer says nothing of actions: their heartbeats are not missing.
func TestAStoreThatIsAwayTellsNothingOfActions(t *testing.T) {
	in(t, func(t *testing.T, s *surroundings) {
		begun := time.Now()
		beats := beating(begun.Add(time.Hour))
		s.see = func(ctx context.Context) ([]disdel.Progress, error) {
			if since := time.Since(begun); since > 5*time.Second && since < 20*time.Second {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return beats(ctx)
		}
		s.end = func(ctx context.Context, inv disdel.Invocation) (disdel.Activation, error) {
			if inv.Task == disdel.TaskTrain {
				time.Sleep(30 * time.Second)
			}
			return passes(ctx, inv)
		}
		c, told := s.observed()
		if _, err := c.Run(t.Context(), runSpec(1, 1), disdel.DataInfo{}); err != nil {
			t.Fatal(err)
		}
		for _, n := range told() {
			if n.Waiting != nil {
				t.Errorf("%+v", *n.Waiting)
			}
		}
	})
}

// The job takes an update that is complete in the store, even if OpenWhisk reports that the action failed, or reports
// nothing while heartbeats are missing. Nothing is trained again.
func TestADeliveredUpdateIsTaken(t *testing.T) {
	for name, end := range map[string]func(ctx context.Context, inv disdel.Invocation) (disdel.Activation, error){
		"timeout": func(_ context.Context, inv disdel.Invocation) (disdel.Activation, error) {
			time.Sleep(10 * time.Second)
			return failsWith(inv, disdel.OutcomeTimeout, disdel.Timeout), nil
		},
		"lost": func(_ context.Context, inv disdel.Invocation) (disdel.Activation, error) {
			time.Sleep(10 * time.Second)
			return failsWith(inv, disdel.OutcomeLost, disdel.Lost), nil
		},
		"no record": hangs,
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, s *surroundings) {
				begun := time.Now()
				s.see = beating(begun.Add(2 * time.Second))
				s.updates = func(id disdel.UpdateID) (json.RawMessage, bool) {
					return json.RawMessage(`{"loss":0.5,"losses":[0.5],"samples":60,"epochs":1,"rows":60}`), id.Level == 0
				}
				s.end = func(ctx context.Context, inv disdel.Invocation) (disdel.Activation, error) {
					if inv.Task == disdel.TaskTrain && inv.Round == 0 {
						return end(ctx, inv)
					}
					return passes(ctx, inv)
				}
				rec, err := s.controller().Run(t.Context(), runSpec(1, 2), disdel.DataInfo{})
				if err != nil || rec.Status != disdel.StatusSucceeded {
					t.Fatalf("%v: %v, %v", rec.Status, rec.Failure, err)
				}
				first := rec.Activations[0]
				if first.Recovered == "" || first.Failure != nil || first.Outcome != disdel.OutcomeSuccess ||
					rec.Rounds[0].TrainLoss != 0.5 || len(rec.Adjustments) > 0 {
					t.Errorf("%+v, adjusted %v, rounds %+v", first, rec.Adjustments, rec.Rounds)
				}
				if took := time.Since(begun); took > 12*time.Second {
					t.Errorf("it took %v", took)
				}
				for _, a := range rec.Activations {
					if a.Attempt > 1 {
						t.Errorf("%s was tried again", a.Invocation.ID)
					}
				}
			})
		})
	}
}

func failsWith(inv disdel.Invocation, o disdel.Outcome, k disdel.Kind) disdel.Activation {
	return disdel.Activation{
		ID: "a", Invocation: inv, Outcome: o, Duration: inv.Limits.Timeout,
		Failure: &disdel.Error{Kind: k, Op: "train", Msg: "it did not end within its timeout"},
	}
}

// An action that stopped answering long before its timeout is told as that. Its hint does not ask for more time, which
// would be of no use.
func TestAStallIsTheFailureOfItsJob(t *testing.T) {
	in(t, func(t *testing.T, s *surroundings) {
		const timeout = 30 * time.Second
		begun := time.Now()
		s.see = func(context.Context) ([]disdel.Progress, error) { // the newest heartbeat, at 10 % and no further
			at := min(10, int(time.Since(begun)/(300*time.Millisecond)))
			return []disdel.Progress{{
				Task: disdel.TaskTrain, Batch: at, Batches: 100, Epoch: 1,
				UnixMs: begun.Add(time.Duration(at) * 300 * time.Millisecond).UnixMilli(),
			}}, nil
		}
		s.end = func(ctx context.Context, inv disdel.Invocation) (disdel.Activation, error) {
			a, err := lasting(timeout)(ctx, inv)
			a.Outcome, a.Result = disdel.OutcomeTimeout, nil
			a.Failure = &disdel.Error{Kind: disdel.Timeout, Op: "train", Hint: "raise resources.timeout"}
			return a, err
		}
		spec := runSpec(1, 1)
		spec.Plan.Actions[0].Limits.Timeout = disdel.Millis(timeout)
		spec.Job.Reliability.Retries.Limit = 0
		rec, err := s.controller().Run(t.Context(), spec, disdel.DataInfo{})
		if err != nil || rec.Failure == nil {
			t.Fatalf("%v, %v", rec.Status, err)
		}
		const says = "it stopped answering: its heartbeats stopped after 3.0 s, at 10 % of its work, and OpenWhisk " +
			"ended it after its timeout of 30s"
		f := rec.Failure
		if f.Kind != disdel.Timeout || !strings.HasPrefix(f.Msg, says) ||
			f.Hint != "look at the machine that it ran on, then submit the job as it is; a longer timeout is of no use" {
			t.Errorf("%+v", f)
		}
	})
}
