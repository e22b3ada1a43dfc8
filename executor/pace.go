package executor

import (
	"context"
	"math/rand/v2"
	"slices"
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
