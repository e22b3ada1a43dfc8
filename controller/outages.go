package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/disdel/disdel"
)

// A store that does not answer may only be restarting. The job checks it every storeEvery; each answer may take
// storeAnswer. The store is gone if it does not answer for storePatience (the job waits as long for OpenWhisk), or if
// it refuses the job storeRefusals times, for example its password. A failure of the job names the store as its cause
// after storeAway failed checks in a row.
const (
	storeEvery    = 2 * time.Second
	storeAnswer   = 5 * time.Second
	storePatience = 3 * time.Minute
	storeRefusals = 3
	storeAway     = 2
)

// storeChecks is the result of the newest checks of the store.
type storeChecks struct {
	err       error     // of the newest one; nil: the store answers again
	failed    int       // in a row
	refused   int       // of these, refused by the store
	since     time.Time // start of the first failed one
	noticedAt time.Time // last notice; of the loop
}

// watchStore checks the store regularly until stop is called. It sends the failed checks, and the first one that
// passes after them. Without it, a store that is gone would cost minutes of retries, and each action would report an
// error of its own instead of the cause.
func (r *run) watchStore(ctx context.Context) (seen <-chan storeChecks, stop func()) {
	out := make(chan storeChecks)
	ctx, stop = context.WithCancel(ctx)
	r.running.Go(func() {
		var c storeChecks
		for wait(ctx, storeEvery) {
			begun := r.c.cfg.Now()
			was := c.failed
			if c.err = r.checkStore(ctx); c.err == nil {
				c.failed, c.refused = 0, 0
			} else if c.failed++; c.failed == 1 {
				c.since = begun
			}
			if errors.Is(c.err, disdel.Denied) {
				c.refused++
			}
			if c.err == nil && was == 0 {
				continue
			}
			select {
			case out <- c:
			case <-ctx.Done():
				return
			}
		}
	})
	return out, stop
}

func (r *run) checkStore(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, storeAnswer)
	defer stop()
	return r.c.cfg.Store.Check(ctx, r.spec.ID)
}

// storeSeen handles the result of checks of the store. It returns the event that ends the job if the store is gone. A
// job that waits for missing workers waits for the store, too.
func (r *run) storeSeen(c storeChecks) Event {
	now, was := r.c.cfg.Now(), r.store
	if c.err == nil {
		r.store = nil
		if was != nil {
			o := outageOfStore(*was, now)
			o.Until, o.Over = now, true
			r.observe(Notice{Outage: &o})
		}
		return nil
	}
	r.store = &c
	if c.noticedAt = now; was != nil && now.Sub(was.noticedAt) < outageInterval {
		c.noticedAt = was.noticedAt
	}
	if c.noticedAt.Equal(now) {
		o := outageOfStore(c, now)
		if r.waitsForStore() {
			o.Until = r.endsAt()
		}
		r.log.WithError(c.err).Warnf("%s does not answer", o.Name())
		r.observe(Notice{Outage: &o})
	}
	if r.waitsForStore() || now.Sub(c.since) < storePatience && c.refused < storeRefusals {
		return nil
	}
	return StoreGoneEvent{Err: r.storeGone("the job cannot go on without it")}
}

func (r *run) waitsForStore() bool {
	return r.spec.Job.Distribution.Missing.Policy == disdel.MissingWait
}

// outageOfStore describes a store that does not answer, for notices.
func outageOfStore(c storeChecks, now time.Time) Outage {
	e := disdel.AsError(c.err)
	why := e.Hint
	if e.Err != nil {
		why = e.Err.Error()
	}
	return Outage{
		Outage: disdel.Outage{Service: e.Msg, Since: c.since, Until: c.since.Add(storePatience), Why: why},
		For:    now.Sub(c.since),
	}
}

// storeGone is the failure of a job that ends while its store does not answer. so names the consequence.
func (r *run) storeGone(so string) *disdel.Error {
	c, e := r.store, disdel.AsError(r.store.err)
	away := r.c.cfg.Now().Sub(c.since).Round(time.Second)
	msg := fmt.Sprintf("%s did not answer %s in %v, and %s", e.Msg, disdel.Counted(c.failed, "check"), away, so)
	hint := fmt.Sprintf("start %s again, then disdel resume %s; "+
		"or with another Redis: disdel resume %s --move --redis URL", e.Msg, r.spec.ID, r.spec.ID)
	if e.Kind == disdel.Denied {
		msg = fmt.Sprintf("%s refused %s in %v, and %s", e.Msg, disdel.Counted(c.refused, "check"), away, so)
		hint = fmt.Sprintf("%s; then disdel resume %s", e.Hint, r.spec.ID)
	}
	return &disdel.Error{
		Kind: e.Kind, Code: disdel.CodeStoreGone, Op: "use store", Job: r.spec.ID, Err: e.Err, Msg: msg, Hint: hint,
	}
}

// storeIsAway tells whether the store failed its newest checks. One failed check may be a busy machine.
func (r *run) storeIsAway() bool { return r.store != nil && r.store.failed >= storeAway }

// byStore returns the failure of a job. If the store does not answer, it names the store as the cause.
func (r *run) byStore(f *disdel.Error) *disdel.Error {
	if !r.storeIsAway() || f == nil || f.Code == disdel.CodeStoreGone {
		return f
	}
	switch f.Kind {
	case disdel.Unavailable, disdel.Timeout, disdel.Lost:
		return r.storeGone("actions failed without it")
	default:
		return f
	}
}

// storeIsGone tells whether the job has ended because its store is gone. Its data there expires by itself.
func (r *run) storeIsGone() bool {
	return r.rec.Failure != nil && r.rec.Failure.Code == disdel.CodeStoreGone
}

const (
	// outageInterval is the time between notices of one outage.
	outageInterval = 15 * time.Second
	// maxOutages limits the outages in a record.
	maxOutages = 100
)

// Outage reports that OpenWhisk or the store does not answer, and once that it answers again.
type Outage struct {
	disdel.Outage               // Until is when the job gives up, or the end of the outage
	For           time.Duration // so far
	Over          bool
}

// outages is the state of OpenWhisk's outage.
type outages struct {
	now        *disdel.Outage // nil: it answers
	reportedAt time.Time
}

// checkPlatform reports and records that OpenWhisk does not answer, and that it answers again.
func (r *run) checkPlatform() {
	now := r.c.cfg.Now()
	o, down := r.c.cfg.Invoker.Outage()
	if end := r.endsAt(); down && !end.IsZero() && end.Before(o.Until) {
		o.Until = end
	}
	switch s := &r.outages; {
	case down && s.now == nil:
		s.now, s.reportedAt = &o, now
		kept := o
		kept.Until = time.Time{}
		r.rec.Outages = append(slices.Clone(r.rec.Outages[max(0, len(r.rec.Outages)-maxOutages+1):]), kept)
		r.saver.save(r.rec)
		r.observe(Notice{Outage: &Outage{Outage: o, For: now.Sub(o.Since)}})
	case down && now.Sub(s.reportedAt) >= outageInterval:
		s.reportedAt = now
		r.observe(Notice{Outage: &Outage{Outage: o, For: now.Sub(o.Since)}})
	case !down && s.now != nil:
		over := *s.now
		over.Until, s.now = now, nil
		r.outageOver(over)
		r.observe(Notice{Outage: &Outage{Outage: over, For: now.Sub(over.Since), Over: true}})
	}
}

// outageOver records the end of the newest outage.
func (r *run) outageOver(o disdel.Outage) {
	if n := len(r.rec.Outages); n > 0 {
		r.rec.Outages = slices.Clone(r.rec.Outages)
		r.rec.Outages[n-1] = o
	}
}

// endsAt is the time of the job's own deadline, zero if it has none.
func (r *run) endsAt() time.Time {
	if d, _ := r.spec.Job.TimeLimit(); d > 0 {
		return r.began.Add(time.Duration(d))
	}
	return time.Time{}
}

// observe sends a notice. The record that observers see then is no older than the notice. The final state is shown
// only once it is saved.
func (r *run) observe(n Notice) {
	n.Job = r.spec.ID
	if n.Progress == nil && r.rec.Status == disdel.StatusRunning {
		r.c.cfg.Show(*r.rec)
	}
	r.c.cfg.Observe(n)
}

// goneFor is the failure of a job whose deadline passed while OpenWhisk did not answer.
func (r *run) goneFor(o disdel.Outage) *disdel.Error {
	return &disdel.Error{
		Kind: disdel.Unavailable, Code: disdel.CodeUnreachable, Op: "run job", Job: r.spec.ID,
		Msg: o.Name() + " does not answer (" + o.Why + ") since " +
			r.c.cfg.Now().Sub(o.Since).Round(time.Second).String() + ", and the job's deadline has passed",
	}
}
