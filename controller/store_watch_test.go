package controller

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
)

// storeRefuses is the answer of a machine on which no Redis runs.
func storeRefuses(context.Context) error {
	return &disdel.Error{Kind: disdel.Unavailable, Msg: "Redis at 127.0.0.1:1", Err: errors.New("connection refused")}
}

// A job whose store is gone ends. Its failure says which store, what was tried and for how long, and how the job goes
// on: there or on another store. The job goes on if the store returns in time, or if it waits without a limit. A
// deadline that passes first names the store, too. The onlooker hears of each case within seconds.
func TestAStoreThatIsGoneIsTheCause(t *testing.T) {
	for name, c := range map[string]struct {
		check    func(ctx context.Context) error
		within   time.Duration // 0: the job passes
		kind     disdel.Kind
		says     []string
		waits    bool
		deadline time.Duration
	}{
		"refused": {check: storeRefuses, within: storePatience + 10*time.Second, kind: disdel.Unavailable, says: []string{
			"Redis at 127.0.0.1:1 did not answer", "in 3m0s", "connection refused",
		}},
		"black-holed": {check: func(ctx context.Context) error {
			<-ctx.Done()
			return &disdel.Error{Kind: disdel.Unavailable, Msg: "Redis at 127.0.0.1:1", Err: ctx.Err()}
		}, within: storePatience + 20*time.Second, kind: disdel.Unavailable, says: []string{
			"Redis at 127.0.0.1:1 did not answer",
		}},
		"another password": {check: func(context.Context) error {
			return &disdel.Error{Kind: disdel.Denied, Msg: "Redis at 127.0.0.1:1", Hint: "check the user"}
		}, within: 15 * time.Second, kind: disdel.Denied, says: []string{"refused 3 checks"}},
		"for a while": {check: func() func(context.Context) error {
			n := 0
			return func(ctx context.Context) error {
				if n++; n > 2 && n < 60 {
					return storeRefuses(ctx)
				}
				return nil
			}
		}()},
		"waited for": {check: storeRefuses, waits: true},
		"a deadline": {
			check: storeRefuses, within: 11 * time.Second, kind: disdel.Unavailable, deadline: 10 * time.Second,
			says: []string{"Redis at 127.0.0.1:1 did not answer", "the job's deadline of 10s has passed"},
		},
		"waited for until a deadline": {
			check: storeRefuses, within: 11 * time.Minute, kind: disdel.Unavailable, deadline: 10 * time.Minute, waits: true,
			says: []string{"Redis at 127.0.0.1:1 did not answer", "the job's deadline of 10m0s has passed"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, s *surroundings) {
				s.check, s.end = c.check, lasting(3*time.Minute)
				spec := runSpec(2, 4)
				spec.Job.Reliability.Deadline = disdel.Duration(c.deadline)
				if c.waits {
					spec.Job.Distribution.Missing.Policy = disdel.MissingWait
				}
				began, run, told := time.Now(), s.controller(), []Outage(nil)
				run.cfg.Observe = func(n Notice) {
					if n.Outage != nil {
						told = append(told, *n.Outage)
					}
				}
				rec, err := run.Run(t.Context(), spec, disdel.DataInfo{})
				took := time.Since(began)
				if err != nil || (rec.Status == disdel.StatusSucceeded) != (c.within == 0) {
					t.Fatalf("%v after %v: %v, %v", rec.Status, took, rec.Failure, err)
				}
				if len(told) == 0 || told[0].Name() != "Redis at 127.0.0.1:1" ||
					told[0].Since.Sub(began) > 10*time.Second || c.kind != disdel.Denied && told[0].Why == "" {
					t.Errorf("told: %+v", told)
				}
				if c.within == 0 {
					if over := told[len(told)-1]; over.Over == c.waits {
						t.Errorf("told at last: %+v", over)
					}
					return
				}
				f := rec.Failure
				if took > c.within || f.Kind != c.kind || f.Code != disdel.CodeStoreGone ||
					!strings.Contains(f.Hint, "disdel resume job-1") {
					t.Errorf("after %v: %+v", took, f)
				}
				for _, want := range c.says {
					if !strings.Contains(f.Error(), want) {
						t.Errorf("%q lacks %q", f.Error(), want)
					}
				}
				if other := "disdel resume job-1 --move --redis URL"; c.kind != disdel.Denied && !strings.Contains(f.Hint, other) {
					t.Errorf("%q lacks %q", f.Hint, other)
				}
			})
		})
	}
}

// Actions that give up while the store is away fail for the store.
func TestWhatFailsWhileTheStoreIsAwayFailsForIt(t *testing.T) {
	in(t, func(t *testing.T, s *surroundings) {
		s.check = storeRefuses
		s.end = func(ctx context.Context, inv disdel.Invocation) (disdel.Activation, error) {
			a, err := lasting(30*time.Second)(ctx, inv)
			a.Outcome, a.Result = disdel.OutcomeApplicationError, nil
			a.Failure = &disdel.Error{Kind: disdel.Unavailable, Msg: "dial tcp: connection refused"}
			return a, err
		}
		spec := runSpec(1, 4)
		spec.Job.Reliability.Retries.Backoff.Initial = disdel.Duration(time.Millisecond)
		rec, err := s.controller().Run(t.Context(), spec, disdel.DataInfo{})
		if err != nil || rec.Failure == nil || rec.Failure.Code != disdel.CodeStoreGone ||
			!strings.Contains(rec.Failure.Error(), "Redis at 127.0.0.1:1") {
			t.Errorf("%v: %v, %v", rec.Status, rec.Failure, err)
		}
	})
}

// One check that is not answered in time is no sign that the store is away: a busy machine may be that slow. What ends
// the job then is told as it is.
func TestOneFailedCheckDoesNotBlameTheStore(t *testing.T) {
	for name, c := range map[string]struct {
		deadline time.Duration
		code     disdel.Code
	}{"train timeout": {}, "deadline": {8 * time.Second, disdel.CodeDeadline}} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, s *surroundings) {
				checks := 0
				s.check = func(ctx context.Context) error {
					if checks++; checks > 1 {
						return nil
					}
					<-ctx.Done() // after 5 s, 7 s after the start
					return &disdel.Error{Kind: disdel.Unavailable, Msg: "Redis at 127.0.0.1:1", Err: ctx.Err()}
				}
				s.end = hangs
				if c.deadline == 0 {
					s.end = func(ctx context.Context, inv disdel.Invocation) (disdel.Activation, error) {
						a, err := lasting(8*time.Second)(ctx, inv)
						a.Outcome, a.Result = disdel.OutcomeTimeout, nil
						a.Failure = &disdel.Error{Kind: disdel.Timeout, Op: "train", Msg: "the action was stopped"}
						return a, err
					}
				}
				spec := runSpec(1, 1)
				spec.Job.Reliability.Deadline = disdel.Duration(c.deadline)
				spec.Job.Reliability.Retries.Limit = 0
				rec, err := s.controller().Run(t.Context(), spec, disdel.DataInfo{})
				if err != nil || rec.Failure == nil || checks != 1 {
					t.Fatalf("%v after %d checks: %v", rec.Status, checks, err)
				}
				if f := rec.Failure; f.Kind != disdel.Timeout || f.Code != c.code {
					t.Errorf("%+v", f)
				}
			})
		})
	}
}
