package controller

import (
	"slices"
	"time"

	"github.com/disdel/disdel"
)

// QuotaWait reports invocations that are not sent yet because one of the namespace's two quotas is used up.
type QuotaWait struct {
	Invocations []disdel.Invocation
	PerMinute   int // 0: unknown
	Until       time.Time
	// Crowded: the quota of invocations in flight is used up, Concurrent (0: unknown). They wait until one ends.
	Crowded    bool
	Concurrent int
	For        time.Duration // of the one that has waited longest; only with Crowded
}

// sameTurn is how much the ends of two waits for the same minute may differ: programs spread their first attempts in
// a minute.
const sameTurn = 10 * time.Second

// checkQuota reports the invocations that wait for the next minute, once a minute, and those that wait until others
// end.
func (r *run) checkQuota() {
	q := r.c.cfg.Invoker.Quota(r.spec.ID)
	minute := QuotaWait{PerMinute: q.PerMinute, Until: q.Until}
	crowded := QuotaWait{Concurrent: q.Concurrent, Crowded: true}
	now := r.c.cfg.Now()
	for _, w := range r.invocations {
		switch quiet := now.Sub(w.since); {
		case w.ended:
		case slices.Contains(q.Waiting, w.inv.ID):
			minute.Invocations = append(minute.Invocations, w.inv)
		case slices.Contains(q.Crowded, w.inv.ID) && w.isDue(quiet, quietAfter):
			crowded.For = max(crowded.For, quiet)
			crowded.Invocations = append(crowded.Invocations, w.inv)
		}
	}
	if q.Until.Sub(r.quotaTold) > sameTurn && r.tellQuota(minute) {
		r.quotaTold = q.Until
	}
	r.tellQuota(crowded)
}

// tellQuota tells whether there was anything to report.
func (r *run) tellQuota(q QuotaWait) bool {
	if len(q.Invocations) == 0 {
		return false
	}
	sortInvocations(q.Invocations)
	r.observe(Notice{Quota: &q})
	return true
}

// withinQuota raises the durations of a forecast to the time that the minute's quota needs for the remaining
// invocations. A job that may stop early keeps its low end.
func (r *run) withinQuota(f *disdel.Forecast) {
	minimum := quotaTime(r.c.cfg.Invoker.Quota(r.spec.ID), r.leftToInvoke(), r.c.cfg.Now())
	d := &f.Duration
	d.Likely, d.High = max(d.Likely, minimum), max(d.High, minimum)
	if r.spec.Job.Training.Stop() == nil {
		d.Low = max(d.Low, minimum)
	}
}

// leftToInvoke counts the invocations of the remaining rounds and evaluations.
func (r *run) leftToInvoke() int {
	p, done := r.rec.Plan, len(r.rec.Rounds)
	rounds := max(0, p.Rounds-done)
	each := p.Workers*max(1, p.Legs) + p.ActionCount(disdel.TaskAggregate)
	if p.HeldOut == 0 || rounds == 0 {
		return rounds * each
	}
	evaluations := 1 // the last round has one
	if every := r.spec.Job.Training.ValidateEvery; every > 0 {
		evaluations += (p.Rounds-1)/every - done/every
	}
	return rounds*each + evaluations
}

// quotaTime is the time until the last of n invocations can be sent.
func quotaTime(q disdel.Quota, n int, now time.Time) disdel.Millis {
	if n <= q.Left || q.PerMinute <= 0 {
		return 0
	}
	minutes := (n - q.Left - 1) / q.PerMinute
	return disdel.Millis(max(0, q.Until.Sub(now)) + time.Duration(minutes)*time.Minute)
}
