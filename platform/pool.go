package platform

import (
	"context"
	"sync"
	"time"

	"github.com/disdel/disdel"
)

// pool is OpenWhisk's container pool: memory is the only thing it counts, of busy and idle containers alike. An action
// gets a warm container of its own, else free memory, else the memory of idle containers, oldest first; else it waits in
// a queue of which only the head is looked at (ContainerPool.scala).
type pool struct {
	total disdel.Bytes
	idle  time.Duration

	mu     sync.Mutex
	used   disdel.Bytes
	free   []*container // idle, least recently used first
	queue  []*waiter
	closed bool
	stop   *once
	done   sync.WaitGroup
}

type waiter struct {
	action *action
	got    chan *container // one value; nil: start one, the memory is reserved
}

func newPool(total disdel.Bytes, idle time.Duration) *pool {
	p := &pool{total: total, idle: idle, stop: newOnce()}
	p.done.Add(1)
	go p.sweep()
	return p
}

func need(a *action) disdel.Bytes { return disdel.Bytes(a.Limits.Memory) * disdel.MB }

// acquire waits for a container for a: a warm one, or nil for memory to start one with.
func (p *pool) acquire(ctx context.Context, a *action) (*container, error) {
	w := &waiter{action: a, got: make(chan *container, 1)}
	p.mu.Lock()
	p.queue = append(p.queue, w)
	p.dispatch()
	p.mu.Unlock()
	select {
	case c := <-w.got:
		return c, nil
	case <-ctx.Done():
		return nil, p.withdraw(w, ctx.Err())
	}
}

// withdraw takes a waiter out, giving back what it may have got meanwhile.
func (p *pool) withdraw(w *waiter, err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, other := range p.queue {
		if other == w {
			p.queue = append(p.queue[:i], p.queue[i+1:]...)
			return err
		}
	}
	if c := <-w.got; c != nil {
		c.kill()
	}
	p.used -= need(w.action)
	return err
}

// dispatch serves the head of the queue for as long as it can be served; the caller holds the lock.
func (p *pool) dispatch() {
	for len(p.queue) > 0 {
		w := p.queue[0]
		c, ok := p.place(w.action)
		if !ok {
			return
		}
		p.queue = p.queue[1:]
		w.got <- c
	}
}

func (p *pool) place(a *action) (*container, bool) {
	for i := len(p.free) - 1; i >= 0; i-- {
		if c := p.free[i]; sameAction(c.action, a) && c.alive() {
			p.free = append(p.free[:i], p.free[i+1:]...)
			return c, true
		}
	}
	free := p.total - p.used
	reclaim := 0
	for ; free < need(a) && reclaim < len(p.free); reclaim++ {
		free += need(p.free[reclaim].action)
	}
	if free < need(a) {
		return nil, false
	}
	for _, c := range p.free[:reclaim] {
		p.remove(c)
	}
	p.free = p.free[reclaim:]
	p.used += need(a)
	return nil, true
}

func (p *pool) remove(c *container) {
	p.used -= need(c.action)
	p.done.Go(func() {
		c.kill()
	})
}

// release gives a container back, warm.
func (p *pool) release(c *container) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.lastUsed = time.Now()
	if p.closed {
		p.remove(c)
		return
	}
	p.free = append(p.free, c)
	p.dispatch()
}

// discard gives back the memory of a container that is gone or never came to be.
func (p *pool) discard(a *action, _ *container) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used -= need(a)
	p.dispatch()
}

// sweep removes containers that nobody used for a while.
func (p *pool) sweep() {
	defer p.done.Done()
	tick := time.NewTicker(min(p.idle, time.Second) + time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-p.stop.c:
			return
		case now := <-tick.C:
			p.mu.Lock()
			for len(p.free) > 0 && now.Sub(p.free[0].lastUsed) > p.idle {
				p.remove(p.free[0])
				p.free = p.free[1:]
			}
			p.dispatch()
			p.mu.Unlock()
		}
	}
}

// close lets no container stay warm any more; drain waits for the last one's end.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.stop.close()
}

func (p *pool) drain() {
	p.mu.Lock()
	for _, c := range p.free {
		p.remove(c)
	}
	p.free = nil
	p.mu.Unlock()
	p.done.Wait()
}
