package executor

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/disdel/disdel"
)

// ackAfter is how much later than an activation's record OpenWhisk takes its place for free.
const ackAfter = 250 * time.Millisecond

// pace keeps the invocations of an executor within its namespace's quotas. OpenWhisk counts every request against the
// minute, also one that it refuses because too many are in flight: whoever runs against that bound uses up the minute.
type pace struct {
	mu         sync.Mutex
	perMinute  int // 0: unknown
	concurrent int
	minute     time.Time
	count      int  // requests of this minute
	full       bool // OpenWhisk has refused one in this minute: others use the quota, too
	flying     int
	waiting    map[waiter]struct{} // for the next minute
	change     chan struct{}       // closed when a place may be free
}

// waiter is an invocation that waits for the next minute.
type waiter struct {
	job disdel.JobID
	id  string
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
func (p *pace) enter(ctx context.Context) error {
	for {
		free := p.tryEnter()
		if free == nil {
			return nil
		}
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
	for {
		wait := p.tryRequest(time.Now())
		if wait <= 0 {
			return nil
		}
		if !p.sleep(ctx, wait, who) {
			return &disdel.Error{Kind: disdel.Canceled, Op: "wait for the minute", Err: context.Cause(ctx)}
		}
	}
}

// sleep is sleep of an invocation that waits for the next minute.
func (p *pace) sleep(ctx context.Context, wait time.Duration, who waiter) bool {
	p.mu.Lock()
	if p.waiting == nil {
		p.waiting = map[waiter]struct{}{}
	}
	p.waiting[who] = struct{}{}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.waiting, who)
	}()
	return sleep(ctx, wait)
}

func (p *pace) tryRequest(now time.Time) (wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turn(now)
	if p.full || p.perMinute > 0 && p.count >= p.perMinute {
		return untilNextMinute(now) + time.Millisecond
	}
	p.count++
	return 0
}

// turn begins another minute once it is time. The caller holds mu.
func (p *pace) turn(now time.Time) {
	if m := now.Truncate(time.Minute); !m.Equal(p.minute) {
		p.minute, p.count, p.full = m, 0, false
	}
}

// refused notes that OpenWhisk takes no more requests in this minute.
func (p *pace) refused(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turn(now)
	p.full = true
}

// Quota says what is left of the namespace's invocations of this minute, and which of a job's invocations wait for the
// next one.
func (e *Executor) Quota(job disdel.JobID) disdel.Quota { return e.pace.quota(job, time.Now()) }

func (p *pace) quota(job disdel.JobID, now time.Time) disdel.Quota {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turn(now)
	q := disdel.Quota{PerMinute: p.perMinute, Until: now.Truncate(time.Minute).Add(time.Minute)}
	if !p.full {
		q.Left = max(0, p.perMinute-p.count)
	}
	for w := range p.waiting {
		if w.job == job {
			q.Waiting = append(q.Waiting, w.id)
		}
	}
	slices.Sort(q.Waiting)
	return q
}
