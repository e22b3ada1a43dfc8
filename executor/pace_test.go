package executor

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/disdel/disdel"
)

// Quota names the invocations that wait for the next minute, even if OpenWhisk refused before the count was reached.
// Once the minute has turned, it names them no longer.
func TestQuotaNamesWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(90 * time.Second))) // in the middle of a minute
		var p quotaGate
		p.setQuotas(disdel.PlatformLimits{PerMinute: 2})
		for _, id := range []string{"a", "b", "c"} {
			go func() {
				if err := p.request(context.Background(), waiter{"job", id}); err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait()
		}
		q := p.quota("job", time.Now())
		if !slices.Equal(q.Waiting, []string{"c"}) || q.Left != 0 || q.PerMinute != 2 || time.Until(q.Until) > time.Minute {
			t.Errorf("%+v", q)
		}
		if other := p.quota("other", time.Now()); len(other.Waiting) > 0 {
			t.Errorf("another job waits: %+v", other)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if q := p.quota("job", time.Now()); len(q.Waiting) > 0 || q.Left != 1 {
			t.Errorf("in the next minute: %+v", q)
		}
		time.Sleep(20 * time.Second)
		p.refused(time.Now())
		if q := p.quota("job", time.Now()); q.Left != 0 || p.tryRequest(time.Now()) <= 0 {
			t.Errorf("after a refusal: %+v", q)
		}
		time.Sleep(time.Minute)
		if p.tryRequest(time.Now()) > 0 {
			t.Error("the refusal outlasts its minute")
		}
	})
}

// A namespace's quota of a minute is used up within 5 s of the turn of OpenWhisk's minute, or of ours. That holds for
// any difference of the clocks, and if the quota was believed to be larger.
func TestAMinutesQuotaIsUsedHoweverClocksDiffer(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 3))
	for range 60 {
		off := time.Duration(rng.Int64N(int64(6*time.Second))) - 3*time.Second
		quota := 1 + rng.IntN(12)
		known := []int{0, quota, quota + rng.IntN(30)}[rng.IntN(3)]
		begins := time.Duration(rng.Int64N(int64(time.Minute)))
		onCluster(t, Config{}, func(t *testing.T, e *Executor, c *cluster) {
			theirs := func() time.Time { return time.Now().Add(off) }
			time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute + begins)))
			asked, used := map[int64]int{}, map[int64]int{}
			var late []time.Duration
			minute := func() int64 { return theirs().Unix() / 60 }
			first := minute()
			c.refuse = func() (int, string) {
				m := minute()
				if asked[m]++; asked[m] > quota {
					return 429, fmt.Sprintf("Too many requests in the last minute (count: %d, allowed: %d).", asked[m], quota)
				}
				used[m]++
				ours := time.Since(time.Now().Truncate(time.Minute))
				if since := theirs().Sub(theirs().Truncate(time.Minute)); m > first+1 && min(since, ours) > 5*time.Second {
					late = append(late, since)
				}
				return 0, ""
			}
			e.quotas.setQuotas(disdel.PlatformLimits{PerMinute: known})
			var done sync.WaitGroup
			begun := time.Now()
			for i := range 4 * quota {
				done.Go(func() {
					one := inv
					one.ID = fmt.Sprint(i)
					if _, err := e.Invoke(t.Context(), one); err != nil {
						t.Error(err)
					}
				})
			}
			done.Wait()
			if took := time.Since(begun); len(late) > 0 || took > 4*time.Minute+6*time.Second {
				t.Errorf("off by %v, %d a minute, known %d: %v late, %v for 4 minutes' quota, used %v", off, quota, known, late,
					took, used)
			}
		})
		if t.Failed() {
			return
		}
	}
}

// A probe that the minute's quota refuses ends the minute for everybody, as any other refusal does.
func TestAProbeThatIsRefusedEndsTheMinute(t *testing.T) {
	onCluster(t, Config{}, func(t *testing.T, e *Executor, c *cluster) {
		var refused []time.Time
		begun := time.Now()
		c.serve = func(_ int, probe bool) bool { return probe }
		c.refuse = func() (int, string) {
			if len(c.accepted) == 0 || time.Since(begun) > 5*time.Minute {
				return 0, ""
			}
			refused = append(refused, time.Now())
			return 429, "Too many requests in the last minute (count: 61, allowed: 60)."
		}
		a, err := e.Wait(t.Context(), inv, invoked(t, e))
		if err != nil || a.Outcome != disdel.OutcomeLost {
			t.Fatalf("%+v, %v", a, err)
		}
		minute := func(at time.Time) time.Time { return at.Truncate(time.Minute) }
		for i := range len(refused) - 1 {
			was := refused[i]
			if minute(was).Equal(minute(refused[i+1])) && was.Sub(minute(was)) > clockTolerance {
				t.Errorf("refused at %v, and asked again at %v", was, refused[i+1])
			}
		}
		if q := e.Quota(""); len(refused) < 2 || len(q.Waiting)+len(q.Crowded) > 0 {
			t.Errorf("%d were refused, and %+v", len(refused), q)
		}
	})
}

// InvokeOnce delays nobody else, whatever the answer is. The quota that a refusal names is kept.
func TestARefusalOfWhoAsksOnceShutsNobodyOut(t *testing.T) {
	onCluster(t, Config{}, func(t *testing.T, e *Executor, c *cluster) {
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(90 * time.Second)))
		c.refuse = func() (int, string) { return 429, "Too many requests in the last minute (count: 61, allowed: 60)." }
		_, err := e.InvokeOnce(t.Context(), inv)
		if disdel.AsError(err).Code != disdel.CodeQuotaMinute ||
			e.QuotasRefused(time.Time{}) != (RefusedQuotas{PerMinute: 60}) {
			t.Errorf("%v, heard %+v", err, e.QuotasRefused(time.Time{}))
		}
		begun := time.Now()
		c.refuse = nil
		if _, err := e.InvokeOnce(t.Context(), inv); err != nil || time.Since(begun) > 0 {
			t.Errorf("the next one after %v: %v", time.Since(begun), err)
		}
	})
}

// Quota also names invocations that wait because too many are in flight, before anything is sent and after a refusal.
func TestWhoWaitsForAPlaceIsKnown(t *testing.T) {
	onCluster(t, Config{}, func(t *testing.T, e *Executor, c *cluster) {
		c.refuse = func() (int, string) {
			if len(c.accepted) >= 2 && time.Since(c.accepted[fmt.Sprintf("%032x", 1)]) < 20*time.Second {
				return 429, "Too many concurrent requests in flight (count: 2, allowed: 2)."
			}
			return 0, ""
		}
		var done sync.WaitGroup
		for _, id := range []string{"a", "b", "c", "d"} {
			done.Go(func() {
				one := inv
				one.ID, one.Job = id, "job"
				if _, err := e.Invoke(t.Context(), one); err != nil {
					t.Error(err)
				}
				if id == "a" || id == "b" {
					time.Sleep(30 * time.Second)
				}
				e.quotas.leave()
			})
			synctest.Wait()
		}
		time.Sleep(10 * time.Second)
		if q := e.Quota("job"); !slices.Equal(q.Crowded, []string{"c", "d"}) || len(q.Waiting) > 0 || q.Concurrent != 2 {
			t.Errorf("%+v", q)
		}
		done.Wait()
		if q := e.Quota("job"); len(q.Crowded) > 0 {
			t.Errorf("all were accepted: %+v", q)
		}
	})
}
