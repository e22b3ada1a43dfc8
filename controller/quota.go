package controller

import (
	"slices"
	"time"

	"github.com/disdel/disdel"
)

// QuotaWait is what an onlooker is told of invocations that were not sent yet: the namespace's quota of this minute is
// used up.
type QuotaWait struct {
	Invocations []disdel.Invocation
	PerMinute   int // 0: unknown
	Until       time.Time
}

// lookAtQuota tells of invocations that wait for the next minute, once a minute.
func (r *run) lookAtQuota() {
	q := r.c.cfg.Invoker.Quota(r.spec.ID)
	if len(q.Waiting) == 0 || q.Until.Equal(r.quotaTold) {
		return
	}
	told := QuotaWait{PerMinute: q.PerMinute, Until: q.Until}
	for _, w := range r.watched {
		if !w.ended && slices.Contains(q.Waiting, w.inv.ID) {
			told.Invocations = append(told.Invocations, w.inv)
		}
	}
	if len(told.Invocations) > 0 {
		r.quotaTold = q.Until
		sortInvocations(told.Invocations)
		r.observe(Notice{Quota: &told})
	}
}

// withinQuota has a forecast of what is left take no less than the quota allows: so many rounds, and one evaluation of
// each, have yet to be invoked.
func (r *run) withinQuota(f *disdel.Forecast) {
	p := r.rec.Plan
	rounds := p.Rounds - len(r.rec.Rounds)
	each := p.Workers * max(1, p.Legs)
	for _, l := range p.Levels {
		each += len(l.Clusters)
	}
	if p.HeldOut > 0 {
		each++
	}
	least := quotaTime(r.c.cfg.Invoker.Quota(r.spec.ID), rounds*each, r.c.cfg.Now())
	d := &f.Duration
	d.Low, d.Likely, d.High = max(d.Low, least), max(d.Likely, least), max(d.High, least)
}

// quotaTime is the time until the last of n invocations can be sent.
func quotaTime(q disdel.Quota, n int, now time.Time) disdel.Millis {
	if n <= q.Left || q.PerMinute <= 0 {
		return 0
	}
	minutes := (n - q.Left - 1) / q.PerMinute
	return disdel.Millis(max(0, q.Until.Sub(now)) + time.Duration(minutes)*time.Minute)
}
