package executor

import (
	"context"
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
	count      int // requests of this minute
	flying     int
	change     chan struct{} // closed when a place may be free
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
func (p *pace) request(ctx context.Context) error {
	for {
		wait := p.tryRequest(time.Now())
		if wait <= 0 {
			return nil
		}
		if !sleep(ctx, wait) {
			return &disdel.Error{Kind: disdel.Canceled, Op: "wait for the minute", Err: context.Cause(ctx)}
		}
	}
}

func (p *pace) tryRequest(now time.Time) (wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m := now.Truncate(time.Minute); !m.Equal(p.minute) {
		p.minute, p.count = m, 0
	}
	if p.perMinute > 0 && p.count >= p.perMinute {
		return untilNextMinute(now) + time.Millisecond
	}
	p.count++
	return 0
}
