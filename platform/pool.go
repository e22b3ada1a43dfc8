package platform

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/disdel/disdel"
)

// pool is OpenWhisk's container pool: memory is the only thing it counts, of busy, idle and prewarmed containers alike.
// An action gets a warm container of its own, else a prewarmed one of exactly its kind and memory, else free memory,
// else the memory of idle containers, oldest first; else it waits in a queue of which only the head is looked at
// (ContainerPool.scala). An action larger than the pool therefore waits for ever, and all behind it: so it is there,
// too.
type pool struct {
	sizeOf      func(*action) size // what an action needs of a container
	total       disdel.Bytes
	idle, grace time.Duration
	stock       []Prewarm
	begin       func(size) (*container, error) // starts a prewarmed container

	mu        sync.Mutex
	used      disdel.Bytes
	busy      int
	free      []*container // idle, least recently used first
	prewarmed []*container
	coming    map[size]int // prewarmed ones that are being started
	barred    bool         // a prewarmed one could not be started: no further try before the next sweep
	queue     []*waiter
	closed    bool
	stop      *once
	done      sync.WaitGroup
}

// size is what a prewarmed container has in common with the actions it can serve.
type size struct {
	kind   string
	memory disdel.Bytes
}

func (c *Config) sizeOf(a *action) size {
	kind, _ := c.runsAs(&a.Exec)
	return size{kind, memoryOf(a)}
}

func memoryOf(a *action) disdel.Bytes { return disdel.Bytes(a.Limits.Memory) * disdel.MB }

type waiter struct {
	action *action
	got    chan *container // one value; nil: start one, the memory is reserved
}

func newPool(cfg *Config, begin func(size) (*container, error)) *pool {
	p := &pool{
		total: cfg.PoolMemory, idle: cfg.Idle, grace: cfg.PauseGrace, stock: cfg.Prewarm, begin: begin, sizeOf: cfg.sizeOf,
		coming: map[size]int{}, stop: newOnce(),
	}
	p.done.Add(1)
	go p.sweep()
	return p
}

// acquire waits for a container for a: a warm or prewarmed one, or nil for memory to start one with.
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
		p.withdraw(w)
		return nil, ctx.Err()
	}
}

// withdraw takes a waiter out, giving back what it may have got meanwhile.
func (p *pool) withdraw(w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.queue, w); i >= 0 {
		p.queue = slices.Delete(p.queue, i, i+1)
	} else {
		p.busy--
		if c := <-w.got; c != nil {
			p.remove(c)
		} else {
			p.used -= memoryOf(w.action)
		}
	}
	p.dispatch()
}

// dispatch serves the head of the queue for as long as it can be served; the caller holds the lock.
func (p *pool) dispatch() {
	p.bury()
	for len(p.queue) > 0 {
		w := p.queue[0]
		c, ok := p.place(w.action)
		if !ok {
			return
		}
		p.queue = p.queue[1:]
		p.busy++
		w.got <- c
	}
	p.refill()
}

// bury takes out the containers that died while they were idle.
func (p *pool) bury() {
	dead := func(c *container) bool {
		if c.alive() {
			return false
		}
		p.remove(c)
		return true
	}
	p.free = slices.DeleteFunc(p.free, dead)
	p.prewarmed = slices.DeleteFunc(p.prewarmed, dead)
}

func (p *pool) place(a *action) (*container, bool) {
	if c := takeLast(&p.free, func(c *container) bool { return sameAction(c.action, a) }); c != nil {
		c.resume()
		return c, true
	}
	if c := takeLast(&p.prewarmed, func(c *container) bool { return c.size == p.sizeOf(a) }); c != nil {
		c.action = a
		return c, true
	}
	need := memoryOf(a)
	if !p.evict(need) {
		return nil, false
	}
	p.used += need
	return nil, true
}

// takeLast takes the last container that fits out of the list.
func takeLast(list *[]*container, fits func(*container) bool) *container {
	for i := len(*list) - 1; i >= 0; i-- {
		if c := (*list)[i]; fits(c) {
			*list = slices.Delete(*list, i, i+1)
			return c
		}
	}
	return nil
}

// evict removes idle containers, oldest first, until need is free; it removes none where all would not do.
func (p *pool) evict(need disdel.Bytes) bool {
	free, reclaim := p.total-p.used, 0
	for ; free < need && reclaim < len(p.free); reclaim++ {
		free += p.free[reclaim].memory
	}
	if free < need {
		return false
	}
	for _, c := range p.free[:reclaim] {
		p.remove(c)
	}
	p.free = slices.Delete(p.free, 0, reclaim)
	return true
}

// forget removes the idle containers of an action that is no more: nobody can ask for them again, and where room is short
// the newest of them would push out containers that somebody will ask for.
func (p *pool) forget(a *action) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = slices.DeleteFunc(p.free, func(c *container) bool {
		if !sameAction(c.action, a) {
			return false
		}
		p.remove(c)
		return true
	})
	p.dispatch()
}

func (p *pool) remove(c *container) {
	p.used -= c.memory
	p.done.Go(c.kill)
}

// release gives a container back, warm.
func (p *pool) release(c *container) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.lastUsed = time.Now()
	p.busy--
	if p.closed {
		p.remove(c)
		return
	}
	p.free = append(p.free, c)
	p.dispatch()
}

// discard gives back the memory of a container that is gone or never came to be.
func (p *pool) discard(a *action) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used -= memoryOf(a)
	p.busy--
	p.dispatch()
}

// sweep removes containers that nobody used for a while, and pauses those idle beyond the grace.
func (p *pool) sweep() {
	defer p.done.Done()
	every := min(p.idle, time.Second)
	if p.grace > 0 {
		every = min(every, p.grace)
	}
	tick := time.NewTicker(every + time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-p.stop.c:
			return
		case now := <-tick.C:
			p.age(now)
		}
	}
}

func (p *pool) age(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.free) > 0 && now.Sub(p.free[0].lastUsed) > p.idle {
		p.remove(p.free[0])
		p.free = p.free[1:]
	}
	for _, c := range p.free {
		if p.grace > 0 && now.Sub(c.lastUsed) > p.grace {
			c.pause()
		}
	}
	p.barred = false
	p.dispatch()
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
	for _, c := range slices.Concat(p.free, p.prewarmed) {
		p.remove(c)
	}
	p.free, p.prewarmed = nil, nil
	p.mu.Unlock()
	p.done.Wait()
}
