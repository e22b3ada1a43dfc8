package controller

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/disdel/disdel"
)

// Who waits for the next minute's quota is told as such, once a minute, and never as an action that gives no sign.
func TestAWaitForTheQuotaIsTold(t *testing.T) {
	in(t, func(t *testing.T, s *surroundings) {
		begun := time.Now()
		turns := begun.Truncate(time.Minute).Add(time.Minute)
		free := turns.Add(time.Minute)
		s.quota = func(disdel.JobID) disdel.Quota {
			q := disdel.Quota{PerMinute: 10, Until: time.Now().Truncate(time.Minute).Add(time.Minute)}
			if time.Now().Before(free) {
				q.Waiting = []string{"round 0/train/1"}
			}
			return q
		}
		s.invoke = func(inv disdel.Invocation) error {
			if inv.ID == "round 0/train/1" {
				time.Sleep(time.Until(free))
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
				t.Errorf("no sign of what was never sent: %+v", *n.Waiting)
			}
			if n.Quota != nil {
				waits = append(waits, *n.Quota)
			}
		}
		if len(waits) != 2 || !waits[0].Until.Equal(turns) || len(waits[0].Invocations) != 1 ||
			waits[0].Invocations[0].Member != 1 || waits[0].PerMinute != 10 {
			t.Errorf("%+v", waits)
		}
	})
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

// What is left of a job is forecast with the quota, whatever its rounds took.
func TestTheForecastKnowsTheQuota(t *testing.T) {
	in(t, func(t *testing.T, s *surroundings) {
		s.quota = func(disdel.JobID) disdel.Quota {
			return disdel.Quota{PerMinute: 3, Until: time.Now().Add(30 * time.Second)}
		}
		s.end = func(ctx context.Context, inv disdel.Invocation) (disdel.Activation, error) {
			time.Sleep(time.Second)
			return passes(ctx, inv)
		}
		c, told := s.observed()
		if _, err := c.Run(t.Context(), runSpec(2, 3), disdel.DataInfo{}); err != nil {
			t.Fatal(err)
		}
		for _, n := range told() {
			if n.Forecast != nil {
				if got := n.Forecast.Duration.Likely; got < disdel.Millis(90*time.Second) {
					t.Errorf("%v are left after the first round", got)
				}
				return
			}
		}
		t.Error("no forecast")
	})
}
