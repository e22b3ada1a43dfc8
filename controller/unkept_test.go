package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"
	logrustest "github.com/sirupsen/logrus/hooks/test"

	"github.com/disdel/disdel"
)

// A job stops at the first round whose checkpoint cannot be written, and trains no other round. It says what was kept
// and how it goes on. A job without checkpoints does not ask for any.
func TestAJobStopsWhereItCannotKeepARound(t *testing.T) {
	for _, every := range []int{1, 0} {
		in(t, func(t *testing.T, s *surroundings) {
			full := &disdel.Error{Kind: disdel.NoSpace, Op: "write checkpoint", Hint: "the disk is full: free some space"}
			s.end = func(ctx context.Context, inv disdel.Invocation) (disdel.Activation, error) {
				a, err := passes(ctx, inv)
				var req disdel.AggregateRequest
				if inv.Task != disdel.TaskAggregate || json.Unmarshal(inv.Params, &req) != nil || req.NextCheckpoint == "" {
					return a, err
				}
				r := disdel.AggregateResult{Weight: 1, Saved: &disdel.Checkpoint{Round: inv.Round + 1, Path: req.NextCheckpoint}}
				if inv.Round == 2 {
					r.Saved, r.Unsaved = nil, full
				}
				a.Result, _ = json.Marshal(r)
				return a, err
			}
			spec := runSpec(2, 8)
			spec.Job.Reliability.CheckpointEvery = every
			rec, err := s.controller().Run(t.Context(), spec, disdel.DataInfo{})
			if err != nil {
				t.Fatal(err)
			}
			if every == 0 {
				if rec.Status != disdel.StatusSucceeded || len(rec.Rounds) != 8 {
					t.Errorf("%v after %d rounds: %v", rec.Status, len(rec.Rounds), rec.Failure)
				}
				return
			}
			f := rec.Failure
			if rec.Status != disdel.StatusFailed || !errors.Is(f, disdel.NoSpace) || f.Code != disdel.CodeUnkept ||
				!strings.Contains(f.Msg, "a resume goes on after round 2, whose checkpoint is kept") ||
				f.Hint != "the disk is full: free some space; then disdel resume job-1" {
				t.Errorf("%v: %+v", rec.Status, f)
			}
			if len(rec.Rounds) != 2 || rec.Checkpoint == nil || rec.Checkpoint.Round != 2 {
				t.Errorf("%d rounds are told, and %+v is kept", len(rec.Rounds), rec.Checkpoint)
			}
		})
	}
}

// A job goes on where older checkpoints cannot be removed, and its log says which round left them.
func TestCheckpointsThatStayAreLogged(t *testing.T) {
	in(t, func(t *testing.T, s *surroundings) {
		s.end = func(ctx context.Context, inv disdel.Invocation) (disdel.Activation, error) {
			a, err := passes(ctx, inv)
			if inv.Task == disdel.TaskAggregate && inv.Round == 2 {
				a.Result, _ = json.Marshal(disdel.AggregateResult{
					Weight: 1, Unpruned: &disdel.Error{Kind: disdel.Denied, Op: "discard", Msg: "no right to delete"},
				})
			}
			return a, err
		}
		log, said := logrustest.NewNullLogger()
		c := New(Config{Invoker: s, Recorder: s, Store: s, Models: s, Log: log})
		rec, err := c.Run(t.Context(), runSpec(2, 4), disdel.DataInfo{})
		if err != nil || rec.Status != disdel.StatusSucceeded {
			t.Fatalf("%v, %v", rec.Failure, err)
		}
		var warned []string
		for _, e := range said.AllEntries() {
			if e.Level == logrus.WarnLevel {
				warned = append(warned, fmt.Sprint(e.Message, ": ", e.Data["round"], ": ", e.Data[logrus.ErrorKey]))
			}
		}
		const want = "older checkpoints stay on the blob store: 2: discard: no right to delete"
		if len(warned) != 1 || warned[0] != want {
			t.Errorf("%q", warned)
		}
	})
}

// A blob store that refuses a checkpoint for a while is tried again; one that refuses it for ever ends the job.
func TestACheckpointIsWrittenAgain(t *testing.T) {
	for name, c := range map[string]struct {
		refusals int
		status   disdel.Status
	}{"once": {1, disdel.StatusSucceeded}, "for ever": {1000, disdel.StatusFailed}} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, s *surroundings) {
				busy, refused := &disdel.Error{Kind: disdel.Unavailable, Op: "write checkpoint", Msg: "503"}, 0
				s.end = func(ctx context.Context, inv disdel.Invocation) (disdel.Activation, error) {
					a, err := passes(ctx, inv)
					var req disdel.AggregateRequest
					if inv.Task != disdel.TaskAggregate || json.Unmarshal(inv.Params, &req) != nil || req.NextCheckpoint == "" {
						return a, err
					}
					r := disdel.AggregateResult{
						Weight: 1, Saved: &disdel.Checkpoint{Round: inv.Round + 1, Path: req.NextCheckpoint},
					}
					if inv.Round == 1 && refused < c.refusals {
						refused++
						r.Saved, r.Unsaved = nil, busy
					}
					a.Result, _ = json.Marshal(r)
					return a, err
				}
				spec := runSpec(2, 4)
				spec.Job.Reliability.CheckpointEvery = 1
				rec, err := s.controller().Run(t.Context(), spec, disdel.DataInfo{})
				if err != nil || rec.Status != c.status {
					t.Fatalf("%v: %v, %v", rec.Status, rec.Failure, err)
				}
				if c.status == disdel.StatusFailed && (rec.Failure.Code != disdel.CodeUnkept || refused < 2) {
					t.Errorf("after %d refusals: %v", refused, rec.Failure)
				}
			})
		})
	}
}

// A worker whose part of a checkpoint cannot be written is tried again. A full disk ends the job at once: no retry
// passes until somebody frees space.
func TestAWorkersStateIsWrittenAgain(t *testing.T) {
	for kind, again := range map[disdel.Kind]bool{disdel.Unavailable: true, disdel.NoSpace: false} {
		t.Run(kind.String(), func(t *testing.T) {
			in(t, func(t *testing.T, s *surroundings) {
				refused := 0
				s.end = func(ctx context.Context, inv disdel.Invocation) (disdel.Activation, error) {
					a, err := passes(ctx, inv)
					if inv.Task != disdel.TaskTrain || inv.Round != 2 || inv.Member != 1 || refused > 0 {
						return a, err
					}
					refused++
					a.Outcome, a.Result = disdel.OutcomeApplicationError, nil
					a.Failure = &disdel.Error{Kind: kind, Op: "write checkpoint", Msg: "503", Hint: "look at the storage"}
					return a, err
				}
				spec := runSpec(2, 4)
				spec.Job.Reliability.CheckpointEvery = 1
				rec, err := s.controller().Run(t.Context(), spec, disdel.DataInfo{})
				if err != nil || refused != 1 {
					t.Fatalf("%d refusals, %v", refused, err)
				}
				f := rec.Failure
				if again {
					if rec.Status != disdel.StatusSucceeded || len(rec.Rounds) != 4 {
						t.Errorf("%v after %d rounds: %v", rec.Status, len(rec.Rounds), f)
					}
					return
				}
				if rec.Status != disdel.StatusFailed || f.Code != disdel.CodeUnkept || f.Kind != kind ||
					!strings.HasPrefix(f.Msg, "the checkpoint of round 3 could not be written") {
					t.Errorf("%v: %+v", rec.Status, f)
				}
			})
		})
	}
}
