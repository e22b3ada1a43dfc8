package controller

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/disdel/disdel"
)

// beatingAt is a board on which one train action shows the newest of its heartbeats, each with a batch more than the
// one before.
func beatingAt(beats []time.Time) func(context.Context) ([]disdel.Progress, error) {
	return func(context.Context) ([]disdel.Progress, error) {
		n := 0
		for n < len(beats) && !beats[n].After(time.Now()) {
			n++
		}
		if n == 0 {
			return nil, nil
		}
		return []disdel.Progress{{
			Task: disdel.TaskTrain, Batch: n - 1, Batches: 10_000, Epoch: 1, UnixMs: beats[n-1].UnixMilli(),
		}}, nil
	}
}

// every appends heartbeats from a time on.
func every(beats []time.Time, from time.Time, n int) []time.Time {
	for i := range n {
		beats = append(beats, from.Add(time.Duration(i)*300*time.Millisecond))
	}
	return beats
}

// stoppedAfter runs a job whose train action sends these heartbeats and no more. It returns the time from the last
// heartbeat until the onlooker first heard that heartbeats are missing.
func stoppedAfter(t *testing.T, s *surroundings, beats []time.Time) (after time.Duration) {
	t.Helper()
	last := beats[len(beats)-1]
	s.see = beatingAt(beats)
	s.end = func(ctx context.Context, inv disdel.Invocation) (disdel.Activation, error) {
		if inv.Task == disdel.TaskTrain {
			time.Sleep(time.Until(last.Add(time.Minute)))
		}
		return passes(ctx, inv)
	}
	c, _ := s.observed()
	c.cfg.Observe = func(n Notice) {
		if n.Waiting != nil && n.Waiting.Stopped && !n.Waiting.Over && after == 0 && time.Now().After(last) {
			after = time.Since(last)
		}
	}
	if rec, err := c.Run(t.Context(), runSpec(1, 1), disdel.DataInfo{}); err != nil ||
		rec.Status != disdel.StatusSucceeded {
		t.Fatalf("%v, %v", rec.Status, err)
	}
	return after
}

// However long an action waited for its start, the onlooker hears within 3 s that its heartbeats are missing.
func TestAWaitForTheStartHidesNoMissingHeartbeats(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 4))
	for range 30 {
		start := time.Duration(rng.Int64N(int64(time.Minute)))
		n := 2 + rng.IntN(20)
		in(t, func(t *testing.T, s *surroundings) {
			beats := every(nil, time.Now().Add(start), n)
			if after := stoppedAfter(t, s, beats); after == 0 || after > 3*time.Second {
				t.Errorf("%d heartbeats after a start of %v: told after %v", n, start, after)
			}
		})
	}
}

// One stall does not hide a later one.
func TestAStallIsForgotten(t *testing.T) {
	in(t, func(t *testing.T, s *surroundings) {
		beats := every(nil, time.Now().Add(time.Second), 10)
		beats = every(beats, beats[9].Add(20*time.Second), 10)
		if after := stoppedAfter(t, s, beats); after == 0 || after > 3*time.Second {
			t.Errorf("told after %v", after)
		}
	})
}

// An action that sent one heartbeat may be in a long first batch. It may be silent for as long as one that sent none.
func TestOneHeartbeatTellsNothingOfTheNext(t *testing.T) {
	in(t, func(t *testing.T, s *surroundings) {
		after := stoppedAfter(t, s, every(nil, time.Now().Add(time.Second), 1))
		if after < quietAfter || after > quietAfter+time.Second {
			t.Errorf("told after %v", after)
		}
	})
}

// Once an update is in the store, the job waits briefly for OpenWhisk's record, which says what the action used. The
// job takes the update even without the record.
func TestTheRecordIsWaitedForALittle(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 5))
	for range 40 {
		pushed := 2*time.Second + time.Duration(rng.Int64N(int64(15*time.Second)))
		record := time.Duration(rng.Int64N(int64(2900 * time.Millisecond)))
		comes := rng.IntN(2) == 0
		in(t, func(t *testing.T, s *surroundings) {
			there := time.Now().Add(2*time.Second + pushed)
			s.see = beating(time.Now().Add(2 * time.Second))
			s.updates = func(id disdel.UpdateID) (json.RawMessage, bool) {
				return json.RawMessage(`{"loss":0.5,"losses":[0.5],"samples":60,"epochs":1,"rows":60}`),
					id.Level == 0 && !time.Now().Before(there)
			}
			s.end = func(ctx context.Context, inv disdel.Invocation) (disdel.Activation, error) {
				if inv.Task != disdel.TaskTrain {
					return passes(ctx, inv)
				}
				if !comes {
					return hangs(ctx, inv)
				}
				if !wait(ctx, time.Until(there.Add(record))) {
					return disdel.Activation{}, ctx.Err()
				}
				return passes(ctx, inv)
			}
			var taken time.Time
			c, _ := s.observed()
			c.cfg.Observe = func(n Notice) {
				if n.Ended != nil && n.Ended.Task == disdel.TaskTrain {
					taken = time.Now()
				}
			}
			rec, err := c.Run(t.Context(), runSpec(1, 1), disdel.DataInfo{})
			if err != nil || rec.Status != disdel.StatusSucceeded {
				t.Fatalf("%v: %v, %v", rec.Status, rec.Failure, err)
			}
			got := rec.Activations[0].Recovered
			switch late := taken.Sub(there); {
			case comes && got != "":
				t.Errorf("the record came %v after the update, and was not waited for: %q", record, got)
			case !comes && got != disdel.NoRecord:
				t.Errorf("recovered: %q", got)
			case !comes && (late < recordAfter || late > recordAfter+overdueAfter+time.Second):
				t.Errorf("taken %v after the update was there", late)
			}
		})
	}
}

// An aggregation that gives no sign is told of like any action, unless earlier ones of the job took as long.
func TestASilentAggregationIsTold(t *testing.T) {
	in(t, func(t *testing.T, s *surroundings) {
		var begun atomic.Pointer[time.Time]
		s.end = func(ctx context.Context, inv disdel.Invocation) (disdel.Activation, error) {
			a, err := passes(ctx, inv)
			if inv.Task == disdel.TaskAggregate {
				now := time.Now()
				begun.Store(&now)
				took := []time.Duration{5 * time.Second, 25 * time.Second, 20 * time.Second, 40 * time.Second}[inv.Round]
				time.Sleep(took)
				a.Duration = disdel.Millis(took)
			}
			return a, err
		}
		c, _ := s.observed()
		told := map[int]time.Duration{}
		c.cfg.Observe = func(n Notice) {
			if n.Waiting != nil && n.Waiting.Invocations[0].Task == disdel.TaskAggregate {
				if round := n.Waiting.Invocations[0].Round; told[round] == 0 {
					told[round] = time.Since(*begun.Load())
				}
			}
		}
		if rec, err := c.Run(t.Context(), runSpec(1, 4), disdel.DataInfo{}); err != nil ||
			rec.Status != disdel.StatusSucceeded {
			t.Fatalf("%v, %v", rec.Status, err)
		}
		if len(told) != 2 || told[1] < quietAfter || told[1] > 11*time.Second || told[3] < 25*time.Second ||
			told[3] > 26*time.Second {
			t.Errorf("told %v", told)
		}
	})
}
