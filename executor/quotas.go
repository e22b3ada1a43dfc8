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

// ackAfter is how much later than an activation's record OpenWhisk takes its place for free.
const ackAfter = 250 * time.Millisecond

const (
	// clocksDiffer is by how much OpenWhisk's clock may be behind ours. A refusal so soon after our minute has turned may
	// belong to OpenWhisk's old minute, so the next try comes soon.
	clocksDiffer = 5 * time.Second
	// againAfter is the pause after such a refusal. It grows by againMore with each one.
	againAfter = time.Second
	againMore  = 250 * time.Millisecond
	// turnJitter spreads the first tries of a minute of the programs that share a namespace.
	turnJitter = 250 * time.Millisecond
)

// pace keeps the invocations of an executor within its namespace's quotas. OpenWhisk counts every request against the
// minute, also one that it refuses because too many are in flight: whoever runs against that bound uses up the minute.
type pace struct {
	mu         sync.Mutex
	perMinute  int // 0: unknown
	concurrent int
	// what OpenWhisk named in its newest refusals; the quotas above may come from elsewhere
	namedPerMinute, namedConcurrent namedQuota

	minute  time.Time
	count   int           // requests of this minute
	shut    time.Time     // no request is sent before: OpenWhisk refused one, also where others use the quota, too
	pause   time.Duration // the newest one after a refusal near the turn of this minute
	flying  int
	waiting map[waiter]quotaName
	change  chan struct{} // closed when a place may be free
}

// waiter is an invocation that a quota holds up.
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

// hold notes that a quota holds up an invocation, until release.
func (p *pace) hold(who waiter, by quotaName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting == nil {
		p.waiting = map[waiter]quotaName{}
	}
	p.waiting[who] = by
}

func (p *pace) release(who waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waiting, who)
}

// know sets the quotas.
func (p *pace) know(l disdel.PlatformLimits) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.perMinute, p.concurrent = l.PerMinute, l.Concurrent
	p.wake()
}

func (p *pace) wake() {
	if p.change != nil {
		close(p.change)
		p.change = nil
	}
}

// enter takes a place among those in flight; leave gives it back.
func (p *pace) enter(ctx context.Context, who waiter) error {
	defer p.release(who)
	for {
		free := p.tryEnter()
		if free == nil {
			return nil
		}
		p.hold(who, quotaConcurrent)
		select {
		case <-free:
		case <-ctx.Done():
			return &disdel.Error{Kind: disdel.Canceled, Op: "wait for a place", Err: context.Cause(ctx)}
		}
	}
}

// tryEnter returns nil once it has a place, else what tells that one may be free.
func (p *pace) tryEnter() chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.concurrent == 0 || p.flying < p.concurrent {
		p.flying++
		return nil
	}
	if p.change == nil {
		p.change = make(chan struct{})
	}
	return p.change
}

func (p *pace) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flying = max(0, p.flying-1)
	p.wake()
}

// request waits for the minute that a request still fits into, and counts it.
func (p *pace) request(ctx context.Context, who waiter) error {
	defer p.release(who)
	for {
		wait := p.tryRequest(time.Now())
		if wait <= 0 {
			return nil
		}
		p.hold(who, quotaMinute)
		if !sleep(ctx, wait) {
			return &disdel.Error{Kind: disdel.Canceled, Op: "wait for the minute", Err: context.Cause(ctx)}
		}
	}
}

func (p *pace) tryRequest(now time.Time) (wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turn(now)
	switch {
	case now.Before(p.shut):
		return p.shut.Sub(now)
	case p.perMinute > 0 && p.count >= p.perMinute:
		return untilNextMinute(now) + time.Millisecond
	}
	p.count++
	return 0
}

// turn begins another minute once it is time. The caller holds mu.
func (p *pace) turn(now time.Time) {
	if m := now.Truncate(time.Minute); !m.Equal(p.minute) {
		p.minute, p.count, p.pause = m, 0, 0
	}
}

// refused notes that OpenWhisk refused a request for the minute's quota.
// OpenWhisk counts by its own clock: soon after our minute has turned, its own may have yet to turn.
func (p *pace) refused(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turn(now)
	switch {
	case now.Before(p.shut): // several requests were on their way, and share one pause
	case now.Sub(p.minute) > clocksDiffer:
		p.shut = p.minute.Add(time.Minute + rand.N(turnJitter))
	default:
		p.count = 0 // OpenWhisk counted them in its old minute
		p.pause = max(againAfter, p.pause+againMore)
		p.shut = now.Add(p.pause)
	}
}

// Quota says what is left of the namespace's invocations of this minute, and which of a job's invocations a quota holds
// up.
func (e *Executor) Quota(job disdel.JobID) disdel.Quota { return e.pace.quota(job, time.Now()) }

func (p *pace) quota(job disdel.JobID, now time.Time) disdel.Quota {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turn(now)
	q := disdel.Quota{PerMinute: p.perMinute, Concurrent: p.concurrent, Until: p.minute.Add(time.Minute)}
	if now.Before(p.shut) {
		q.Until = p.shut
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

// Refusals is the quotas of the namespace that OpenWhisk named when it last refused a request because of them. 0: it
// has refused none, or named none.
type Refusals struct {
	PerMinute, Concurrent int
}

// Refused tells the quotas that OpenWhisk has named since a moment. The zero time means since the executor was made.
func (e *Executor) Refused(since time.Time) Refusals { return e.pace.namedSince(since) }

// namedQuota is a quota that OpenWhisk named, and when it did so last.
type namedQuota struct {
	most int
	at   time.Time
}

// since is the quota where it was named after a moment, else 0.
func (q namedQuota) since(t time.Time) int {
	if q.at.Before(t) {
		return 0
	}
	return q.most
}

// name notes the quota that a refusal names, if it names one: a namespace may have quotas of its own.
func (p *pace) name(now time.Time, code disdel.Code, text string) {
	n := quotaIn(text)
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

func (p *pace) namedSince(t time.Time) Refusals {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Refusals{PerMinute: p.namedPerMinute.since(t), Concurrent: p.namedConcurrent.since(t)}
}

// allowed finds the quota in OpenWhisk's "Too many requests in the last minute (count: 12, allowed: 10)."
var allowed = regexp.MustCompile(`\(count: \d+, allowed: (\d+)\)`)

// quotaIn returns the quota that a refusal of OpenWhisk names, 0 if it names none.
func quotaIn(text string) int {
	m := allowed.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1]) // digits; a number too large to hold is no quota
	return n
}
