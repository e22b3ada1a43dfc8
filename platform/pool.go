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
	roomOf      func(*action) int  // how many activations may share one
	total       disdel.Bytes
	idle, grace time.Duration
	stock       []Prewarm
	begin       func(size) (*container, error) // starts a prewarmed container

	mu        sync.Mutex
	devices   *devices
	used      disdel.Bytes
	busy      int          // containers in use, or started for one
	free      []*container // idle, least recently used first
	prewarmed []*container
	shared    []*container // in use, with or without a place for another of their action
	openings  []*opening
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
	part   part       // of a device, of the container that is to be started for it
	got    chan *seat // one value
}

func newPool(cfg *Config, begin func(size) (*container, error)) *pool {
	p := &pool{
		total: cfg.PoolMemory, idle: cfg.Idle, grace: cfg.PauseGrace, stock: cfg.Prewarm, begin: begin, sizeOf: cfg.sizeOf,
		roomOf: cfg.roomOf, coming: map[size]int{}, stop: newOnce(), devices: newDevices(cfg.Devices),
	}
	p.done.Add(1)
	go p.sweep()
	return p
}

// acquire waits for a place for a: in a warm or prewarmed container, or in one to start.
func (p *pool) acquire(ctx context.Context, a *action) (*seat, error) {
	w := &waiter{action: a, got: make(chan *seat, 1)}
	p.mu.Lock()
	p.queue = append(p.queue, w)
	p.dispatch()
	p.mu.Unlock()
	select {
	case s := <-w.got:
		return s, nil
	case <-ctx.Done():
		p.withdraw(w)
		return nil, ctx.Err()
	}
}

// withdraw takes a waiter out, giving back what it may have got meanwhile.
func (p *pool) withdraw(w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.dispatch()
	if i := slices.Index(p.queue, w); i >= 0 {
		p.queue = slices.Delete(p.queue, i, i+1)
		return
	}
	if p.leaveOpenings(w) {
		return
	}
	switch s := <-w.got; {
	case s.failed != nil:
	case s.container == nil:
		p.fail(s, nil)
		p.used -= memoryOf(w.action)
		p.devices.give(s.part)
		p.busy--
	default:
		p.fail(s, nil)
		if p.vacate(s, false) {
			p.remove(s.container)
			p.busy--
		}
	}
}

// dispatch serves the head of the queue for as long as it can be served; the caller holds the lock.
func (p *pool) dispatch() {
	p.bury()
	for len(p.queue) > 0 {
		if !p.place(p.queue[0]) {
			return
		}
		p.queue = p.queue[1:]
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

// place serves a waiter, if it can be served.
func (p *pool) place(w *waiter) bool {
	a := w.action
	if p.join(w) {
		return true
	}
	if c := takeLast(&p.free, func(c *container) bool { return sameAction(c.action, a) }); c != nil {
		c.resume()
		p.busy++
		p.seat(w, c)
		return true
	}
	want := p.devices.of(a)
	prewarmed := func(c *container) bool { return want.memory == 0 && c.size == p.sizeOf(a) }
	if c := takeLast(&p.prewarmed, prewarmed); c != nil {
		c.action = a
		p.busy++
		p.openFor(w, c)
		return true
	}
	need := memoryOf(a)
	if _, ok := p.devices.reclaim(want, p.free); !ok || !p.evict(need) {
		return false
	}
	w.part = p.clear(want)
	p.used += need
	p.busy++
	p.openFor(w, nil)
	return true
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

// forget removes the idle containers of an action that is no more: nobody can ask for them again, and where room is
// short the newest of them would push out containers that somebody will ask for.
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
	p.devices.give(c.part)
	p.done.Go(c.kill)
}

// leave gives a place back. It tells whether the container has to be ended by who left it, which discard is told after:
// one that failed an activation takes no others, and goes with the last that is in it (ContainerProxy.scala).
func (p *pool) leave(s *seat, keep bool) (last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.dispatch()
	return p.vacate(s, keep)
}

// vacate is leave; the caller holds the lock.
func (p *pool) vacate(s *seat, keep bool) (last bool) {
	c := s.container
	c.seats = slices.DeleteFunc(c.seats, func(other *seat) bool { return other == s })
	c.spent = c.spent || !keep
	if len(c.seats) > 0 {
		return false
	}
	p.shared = slices.DeleteFunc(p.shared, func(other *container) bool { return other == c })
	if c.spent {
		return true
	}
	c.lastUsed = time.Now()
	p.busy--
	if p.closed {
		p.remove(c)
	} else {
		p.free = append(p.free, c)
	}
	return false
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
