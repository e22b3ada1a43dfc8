package controller

import (
	"slices"
	"time"

	"github.com/disdel/disdel"
)

const (
	// outageInterval is the time between what an onlooker is told of one outage.
	outageInterval = 15 * time.Second
	// maxOutages is what a record keeps.
	maxOutages = 100
)

// Outage tells an onlooker that OpenWhisk or the store does not answer, and once that it answers again.
type Outage struct {
	disdel.Outage               // Until is when it is given up, or when it was over
	For           time.Duration // so far
	Over          bool
}

// outages is what the loop knows of OpenWhisk's silence.
type outages struct {
	now  *disdel.Outage // nil: it answers
	said time.Time
}

// lookAtPlatform tells when OpenWhisk does not answer, again while it does not, and when it is back, and keeps it in
// the record.
func (r *run) lookAtPlatform() {
	now := r.c.cfg.Now()
	o, down := r.c.cfg.Invoker.Outage()
	if end := r.endsAt(); down && !end.IsZero() && end.Before(o.Until) {
		o.Until = end
	}
	switch s := &r.outages; {
	case down && s.now == nil:
		s.now, s.said = &o, now
		kept := o
		kept.Until = time.Time{}
		r.rec.Outages = append(slices.Clone(r.rec.Outages[max(0, len(r.rec.Outages)-maxOutages+1):]), kept)
		r.saver.save(r.rec)
		r.observe(Notice{Outage: &Outage{Outage: o, For: now.Sub(o.Since)}})
	case down && now.Sub(s.said) >= outageInterval:
		s.said = now
		r.observe(Notice{Outage: &Outage{Outage: o, For: now.Sub(o.Since)}})
	case !down && s.now != nil:
		over := *s.now
		over.Until, s.now = now, nil
		r.outageOver(over)
		r.observe(Notice{Outage: &Outage{Outage: over, For: now.Sub(over.Since), Over: true}})
	}
}

// outageOver keeps the end of the newest outage.
func (r *run) outageOver(o disdel.Outage) {
	if n := len(r.rec.Outages); n > 0 {
		r.rec.Outages = slices.Clone(r.rec.Outages)
		r.rec.Outages[n-1] = o
	}
}

// endsAt is when the job's own deadline passes; zero: it has none.
func (r *run) endsAt() time.Time {
	if d, _ := r.spec.Job.TimeLimit(); d > 0 {
		return r.began.Add(time.Duration(d))
	}
	return time.Time{}
}

// observe tells the onlooker, who may look at several jobs. The record that he sees then is no older than what he is
// told. What a job has come to at its end is only so once it is saved.
func (r *run) observe(n Notice) {
	n.Job = r.spec.ID
	if n.Progress == nil && r.rec.Status == disdel.StatusRunning {
		r.c.cfg.Show(*r.rec)
	}
	r.c.cfg.Observe(n)
}

// goneFor is the failure of a job whose time was up while OpenWhisk did not answer.
func (r *run) goneFor(o disdel.Outage) *disdel.Error {
	return &disdel.Error{
		Kind: disdel.Unavailable, Code: disdel.CodeUnreachable, Op: "run job", Job: r.spec.ID,
		Msg: o.Name() + " does not answer (" + o.Why + ") since " +
			r.c.cfg.Now().Sub(o.Since).Round(time.Second).String() + ", and the job's deadline has passed",
	}
}
