package controller

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/disdel/disdel"
)

// quotaWaits runs a job of two workers whose second action is not sent before free. It returns the waits for a quota
// that were told, and fails where a wait was told as silence of an action.
func quotaWaits(t *testing.T, s *surroundings, free time.Time, quota func(waiting []string) disdel.Quota) []QuotaWait {
	t.Helper()
	const second = "round 0/train/1"
	s.quota = func(disdel.JobID) disdel.Quota {
		if time.Now().Before(free) {
			return quota([]string{second})
		}
		return quota(nil)
	}
	s.invoke = func(inv disdel.Invocation) error {
		if inv.ID == second {
			time.Sleep(time.Until(free)) // of the bubble
		}
		return nil
	}
	c, told := s.observed()
	rec, err := c.Run(t.Context(), runSpec(2, 1), disdel.DataInfo{})
	if err != nil || rec.Status != disdel.StatusSucceeded {
		t.Fatalf("%v, %v", rec.Status, err)
	}
	var waits []QuotaWait
	for _, n := range told() {
		if n.Waiting != nil {
			t.Errorf("an action that was not sent is told as silent: %+v", *n.Waiting)
		}
		if n.Quota != nil {
			waits = append(waits, *n.Quota)
		}
	}
	return waits
}

// nextMinute is when the minute's quota begins anew.
func nextMinute() time.Time { return time.Now().Truncate(time.Minute).Add(time.Minute) }

// A wait for the next minute's quota is told as such, once a minute.
func TestAWaitForTheQuotaIsTold(t *testing.T) {
	in(t, func(t *testing.T, s *surroundings) {
		turns := nextMinute()
		waits := quotaWaits(t, s, turns.Add(time.Minute), func(waiting []string) disdel.Quota {
			return disdel.Quota{PerMinute: 10, Until: nextMinute(), Waiting: waiting}
		})
		if len(waits) != 2 || !waits[0].Until.Equal(turns) || len(waits[0].Invocations) != 1 ||
			waits[0].Invocations[0].Member != 1 || waits[0].PerMinute != 10 {
			t.Errorf("%+v", waits)
		}
	})
}

// A wait for the quota of concurrent invocations is told as such.
func TestAWaitForAPlaceIsTold(t *testing.T) {
	in(t, func(t *testing.T, s *surroundings) {
		free := time.Now().Add(45 * time.Second)
		waits := quotaWaits(t, s, free, func(waiting []string) disdel.Quota {
			return disdel.Quota{Concurrent: 1, Until: nextMinute(), Crowded: waiting}
		})
		if len(waits) != 3 || !waits[0].Crowded || waits[0].Concurrent != 1 || waits[0].For > 11*time.Second ||
			len(waits[0].Invocations) != 1 || waits[0].Invocations[0].Member != 1 {
			t.Errorf("%+v", waits)
		}
	})
}

// What is left to invoke counts an evaluation where the job has one, whatever validateEvery and the rounds done are.
func TestWhatIsLeftToInvoke(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 9))
	for range 300 {
		rounds, every, workers := 1+rng.IntN(20), rng.IntN(6), 1+rng.IntN(4)
		done := rng.IntN(rounds + 1)
		spec := runSpec(workers, rounds)
		spec.Plan.HeldOut, spec.Job.Training.ValidateEvery = 10, every
		r := &run{spec: spec, rec: &disdel.Record{Plan: spec.Plan, Rounds: make([]disdel.Round, done)}}
		want := 0
		m := NewManager(spec)
		for m.round = done; m.round < rounds; m.round++ {
			want += workers
			for _, l := range spec.Plan.Levels {
				want += len(l.Clusters)
			}
			if m.last = m.round == rounds-1; m.evaluationDue() {
				want++
			}
		}
		if got := r.leftToInvoke(); got != want {
			t.Fatalf("%d of %d rounds done, every %d: %d, want %d", done, rounds, every, got, want)
		}
	}
}

// The forecast of the time left reaches at least to the minute in which the quota lets the last invocation be sent.
func TestQuotaTime(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 7))
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for range 300 {
		q := disdel.Quota{PerMinute: 1 + rng.IntN(60), Until: now.Add(time.Duration(1+rng.IntN(60)) * time.Second)}
		q.Left = rng.IntN(q.PerMinute + 1)
		n := rng.IntN(300)
		var want time.Duration
		for left, at := n-q.Left, q.Until.Sub(now); left > 0; left, at = left-q.PerMinute, at+time.Minute {
			want = at
		}
		if got := quotaTime(q, n, now); got != disdel.Millis(want) {
			t.Fatalf("%d invocations with %+v: %v, want %v", n, q, got, want)
		}
	}
	if got := quotaTime(disdel.Quota{}, 1000, now); got != 0 {
		t.Errorf("%v without a quota", got)
	}
}

// The forecast of the time left respects the quota, however fast the rounds were.
func TestTheForecastKnowsTheQuota(t *testing.T) {
	for _, early := range []bool{false, true} {
		theForecastKnowsTheQuota(t, early)
	}
}

func theForecastKnowsTheQuota(t *testing.T, early bool) {
	t.Helper()
	in(t, func(t *testing.T, s *surroundings) {
		s.quota = func(disdel.JobID) disdel.Quota {
			return disdel.Quota{PerMinute: 3, Until: time.Now().Add(30 * time.Second)}
		}
		s.end = func(ctx context.Context, inv disdel.Invocation) (disdel.Activation, error) {
			time.Sleep(time.Second)
			return passes(ctx, inv)
		}
		c, told := s.observed()
		spec := runSpec(2, 3)
		if early {
			spec.Job.Training.EarlyStop = &disdel.EarlyStop{Metric: disdel.MetricLoss, Target: new(1e-9)}
		}
		if _, err := c.Run(t.Context(), spec, disdel.DataInfo{}); err != nil {
			t.Fatal(err)
		}
		for _, n := range told() {
			if n.Forecast != nil {
				if d := n.Forecast.Duration; d.Likely < disdel.Millis(90*time.Second) || (d.Low < d.Likely) != early {
					t.Errorf("%v are left after the first round", d)
				}
				if used := n.Forecast.Used.Likely; used > 60 {
					t.Errorf("%v GB-s are left after the first round: a wait costs nothing", used)
				}
				return
			}
		}
		t.Error("no forecast")
	})
}
