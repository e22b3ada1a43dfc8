package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/disdel/disdel"
)

// A store that is away may only be restarting. The job asks it every storeEvery; each answer may take storeAnswer. The
// store is gone if it does not answer for storePatience (the job waits as long for OpenWhisk), or if it refuses the
// job storeRefusals times, for example its password. A failure of the job names the store as its cause after storeAway
// failed checks in a row.
const (
	storeEvery    = 2 * time.Second
	storeAnswer   = 5 * time.Second
	storePatience = 3 * time.Minute
	storeRefusals = 3
	storeAway     = 2
)

// storeChecks is the result of the newest checks of the store.
type storeChecks struct {
	err     error     // of the newest one; nil: the store answers again
	failed  int       // in a row
	refused int       // of these: the store answered, and refused
	since   time.Time // when the first of these began
	told    time.Time // when onlookers were told last; of the loop
}

// watchStore checks the store regularly until stop is called. It sends the checks that failed, and the first one that
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
	return r.c.cfg.Board.Check(ctx, r.spec.ID)
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
	if c.told = now; was != nil && now.Sub(was.told) < outageInterval {
		c.told = was.told
	}
	if c.told.Equal(now) {
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

// outageOfStore is what observers see of a store that is away.
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

// storeGone is the failure of a job that ends while its store is away. so is the consequence, as text.
func (r *run) storeGone(so string) *disdel.Error {
	c, e := r.store, disdel.AsError(r.store.err)
	away := r.c.cfg.Now().Sub(c.since).Round(time.Second)
	msg := fmt.Sprintf("%s did not answer %s in %v, and %s", e.Msg, count(c.failed, "check"), away, so)
	hint := fmt.Sprintf("start %s again, then disdel resume %s; "+
		"or with another Redis: disdel resume %s --move --redis URL", e.Msg, r.spec.ID, r.spec.ID)
	if e.Kind == disdel.Denied {
		msg = fmt.Sprintf("%s refused %s in %v, and %s", e.Msg, count(c.refused, "check"), away, so)
		hint = fmt.Sprintf("%s; then disdel resume %s", e.Hint, r.spec.ID)
	}
	return &disdel.Error{
		Kind: e.Kind, Code: disdel.CodeStoreGone, Op: "use store", Job: r.spec.ID, Err: e.Err, Msg: msg, Hint: hint,
	}
}

// storeIsAway tells whether the store failed its newest checks. One failed check may be a busy machine.
func (r *run) storeIsAway() bool { return r.store != nil && r.store.failed >= storeAway }

// byStore returns the failure of a job. If the store is away, it names the store as the cause.
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
