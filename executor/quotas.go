package executor

import (
	"context"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/disdel/disdel"
)

// ackAfter is how long after the record OpenWhisk frees an activation's place.
const ackAfter = 250 * time.Millisecond

const (
	// clockTolerance is how far OpenWhisk's clock may be behind ours. A refusal within this time of our new minute may
	// belong to OpenWhisk's old minute, so the next try comes soon.
	clockTolerance = 5 * time.Second
	// retryAfter is the pause after such a refusal. It grows by retryMore with each one.
	retryAfter = time.Second
	retryMore  = 250 * time.Millisecond
	// turnJitter spreads the first requests of a minute among programs that share a namespace.
	turnJitter = 250 * time.Millisecond
)

// quotaGate keeps the invocations of an executor within its namespace's quotas. OpenWhisk counts every request against
// the minute's quota, even one that it refuses for concurrency, so useless requests use up the minute.
type quotaGate struct {
	mu         sync.Mutex
	perMinute  int // 0: unknown
	concurrent int
	// the quotas in OpenWhisk's newest refusals; the two above may have another source
	namedPerMinute, namedConcurrent namedQuota

	minute      time.Time
	count       int           // requests in this minute
	closedUntil time.Time     // no request is sent earlier, because OpenWhisk refused one
	pause       time.Duration // newest pause after a refusal near the start of this minute
	inFlight    int
	waiting     map[waiter]quotaName
	change      chan struct{} // closed when a place may become free
}

// waiter is an invocation that waits for a quota.
type waiter struct {
	job disdel.JobID
	id  string
}

// quotaName is one of a namespace's two quotas.
type quotaName int

const (
	quotaMinute quotaName = iota
	quotaConcurrent
)

// addWaiting notes that an invocation waits for a quota, until removeWaiting.
func (p *quotaGate) addWaiting(who waiter, by quotaName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting == nil {
		p.waiting = map[waiter]quotaName{}
	}
	p.waiting[who] = by
}

func (p *quotaGate) removeWaiting(who waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waiting, who)
}

// setQuotas sets both quotas.
func (p *quotaGate) setQuotas(l disdel.PlatformLimits) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.perMinute, p.concurrent = l.PerMinute, l.Concurrent
	p.wake()
}

func (p *quotaGate) wake() {
	if p.change != nil {
		close(p.change)
		p.change = nil
	}
}

// enter takes a place among the invocations in flight; leave gives it back.
func (p *quotaGate) enter(ctx context.Context, who waiter) error {
	defer p.removeWaiting(who)
	for {
		free := p.tryEnter()
		if free == nil {
			return nil
		}
		p.addWaiting(who, quotaConcurrent)
		select {
		case <-free:
		case <-ctx.Done():
			return &disdel.Error{Kind: disdel.Canceled, Op: "wait for a place", Err: context.Cause(ctx)}
		}
	}
}

// tryEnter returns nil if it got a place, else a channel that closes when one may be free.
func (p *quotaGate) tryEnter() chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.concurrent == 0 || p.inFlight < p.concurrent {
		p.inFlight++
		return nil
	}
	if p.change == nil {
		p.change = make(chan struct{})
	}
	return p.change
}

func (p *quotaGate) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inFlight = max(0, p.inFlight-1)
	p.wake()
}

// request waits until the minute's quota allows a request, and counts it.
func (p *quotaGate) request(ctx context.Context, who waiter) error {
	defer p.removeWaiting(who)
	for {
		wait := p.tryRequest(time.Now())
		if wait <= 0 {
			return nil
		}
		p.addWaiting(who, quotaMinute)
		if !sleep(ctx, wait) {
			return &disdel.Error{Kind: disdel.Canceled, Op: "wait for the minute", Err: context.Cause(ctx)}
		}
	}
}

func (p *quotaGate) tryRequest(now time.Time) (wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.startMinute(now)
	switch {
	case now.Before(p.closedUntil):
		return p.closedUntil.Sub(now)
	case p.perMinute > 0 && p.count >= p.perMinute:
		return untilNextMinute(now) + time.Millisecond
	}
	p.count++
	return 0
}

// startMinute starts a new minute if it is time. The caller holds mu.
func (p *quotaGate) startMinute(now time.Time) {
	if m := now.Truncate(time.Minute); !m.Equal(p.minute) {
		p.minute, p.count, p.pause = m, 0, 0
	}
}

// refused notes a refusal for the minute's quota. OpenWhisk has its own clock, so soon after our minute has started its
// old minute may still run.
func (p *quotaGate) refused(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.startMinute(now)
	switch {
	case now.Before(p.closedUntil): // several requests were in flight and share one pause
	case now.Sub(p.minute) > clockTolerance:
		p.closedUntil = p.minute.Add(time.Minute + rand.N(turnJitter))
	default:
		p.count = 0 // OpenWhisk counted them in its old minute
		p.pause = max(retryAfter, p.pause+retryMore)
		p.closedUntil = now.Add(p.pause)
	}
}

// Quota returns what is left of the minute's quota, and which invocations of a job wait for a quota.
func (e *Executor) Quota(job disdel.JobID) disdel.Quota { return e.quotas.quota(job, time.Now()) }

func (p *quotaGate) quota(job disdel.JobID, now time.Time) disdel.Quota {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.startMinute(now)
	q := disdel.Quota{PerMinute: p.perMinute, Concurrent: p.concurrent, Until: p.minute.Add(time.Minute)}
	if now.Before(p.closedUntil) {
		q.Until = p.closedUntil
	} else {
		q.Left = max(0, p.perMinute-p.count)
	}
	for w, by := range p.waiting {
		switch {
		case w.job != job:
		case by == quotaMinute:
			q.Waiting = append(q.Waiting, w.id)
		default:
			q.Crowded = append(q.Crowded, w.id)
		}
	}
	slices.Sort(q.Waiting)
	slices.Sort(q.Crowded)
	return q
}

// RefusedQuotas are the quotas in OpenWhisk's last refusals; 0: none.
type RefusedQuotas struct {
	PerMinute, Concurrent int
}

// QuotasRefused returns the quotas that OpenWhisk named in refusals since a time.
func (e *Executor) QuotasRefused(since time.Time) RefusedQuotas { return e.quotas.namedSince(since) }

// namedQuota is a quota from a refusal, and when OpenWhisk named it last.
type namedQuota struct {
	maximum int
	at      time.Time
}

// since is the quota if it was named after t, else 0.
func (q namedQuota) since(t time.Time) int {
	if q.at.Before(t) {
		return 0
	}
	return q.maximum
}

// noteQuota notes the quota that a refusal names, because a namespace may have its own quotas.
func (p *quotaGate) noteQuota(now time.Time, code disdel.Code, text string) {
	n := quotaInText(text)
	if n == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch code {
	case disdel.CodeQuotaMinute:
		p.perMinute, p.namedPerMinute = n, namedQuota{n, now}
	case disdel.CodeQuotaConcurrent:
		p.concurrent, p.namedConcurrent = n, namedQuota{n, now}
	}
}

func (p *quotaGate) namedSince(t time.Time) RefusedQuotas {
	p.mu.Lock()
	defer p.mu.Unlock()
	return RefusedQuotas{PerMinute: p.namedPerMinute.since(t), Concurrent: p.namedConcurrent.since(t)}
}

// allowed matches the quota in "Too many requests in the last minute (count: 12, allowed: 10)."
var allowed = regexp.MustCompile(`\(count: \d+, allowed: (\d+)\)`)

// quotaInText is the quota in a refusal's text; 0 if there is none.
func quotaInText(text string) int {
	m := allowed.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1]) // digits; a number that overflows is not a quota
	return n
}
