package platform

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/disdel/disdel"
)

// pool is OpenWhisk's container pool (ContainerPool.scala). It counts only memory: of busy, idle and prewarmed
// containers. An action gets a warm container, or else a prewarmed one of its kind and memory. Otherwise it gets free
// memory, or the memory of the oldest idle containers. Otherwise it waits in a queue of which only the head is served.
// As in OpenWhisk, an action that is larger than the pool waits forever and blocks the queue.
type pool struct {
	sizeOf      func(*action) size // kind and memory of an action's container
	capacityOf  func(*action) int  // how many activations may share a container of the action
	total       disdel.Bytes
	idle, grace time.Duration
	wanted      []Prewarm
	start       func(size) (*container, error) // starts a prewarmed container

	mu            sync.Mutex
	devices       *devices
	used          disdel.Bytes
	busy          int          // containers in use, or started for one
	free          []*container // idle, least recently used first
	prewarmed     []*container
	shared        []*container // in use, and shareable by activations of one action
	inits         []*containerInit
	starting      map[size]int // prewarmed containers that are starting, by size
	templates     []*template  // without containers, least recently used first
	endTemplate   func(*template)
	prewarmFailed bool // a prewarmed container could not be started: retry after the next sweep
	queue         []*waiter
	closed        bool
	stop          *closeOnce
	done          sync.WaitGroup
}

// size is what a prewarmed container has in common with the actions that can use it.
type size struct {
	kind   string
	memory disdel.Bytes
}

func (c *Config) sizeOf(a *action) size {
	kind, _ := c.kindOf(&a.Exec)
	return size{kind, memoryOf(a)}
}

func memoryOf(a *action) disdel.Bytes { return disdel.Bytes(a.Limits.Memory) * disdel.MB }

type waiter struct {
	action *action
	device deviceShare         // device share of the container to start
	got    chan *containerSlot // one value
}

func newPool(cfg *Config, begin func(size) (*container, error)) *pool {
	p := &pool{
		total: cfg.PoolMemory, idle: cfg.Idle, grace: cfg.PauseGrace, wanted: cfg.Prewarm, start: begin, sizeOf: cfg.sizeOf,
		capacityOf: cfg.capacityOf, starting: map[size]int{}, stop: newOnce(), devices: newDevices(cfg.Devices),
	}
	p.done.Add(1)
	go p.sweep()
	return p
}

// acquire waits for a slot: in a warm or prewarmed container, or in one that the caller has to start.
func (p *pool) acquire(ctx context.Context, a *action) (*containerSlot, error) {
	w := &waiter{action: a, got: make(chan *containerSlot, 1)}
	p.mu.Lock()
	p.queue = append(p.queue, w)
	p.dispatch()
	p.mu.Unlock()
	select {
	case s := <-w.got:
		return s, nil
	case <-ctx.Done():
		p.cancel(w)
		return nil, ctx.Err()
	}
}

// cancel removes a waiter and gives back what it may have got meanwhile.
func (p *pool) cancel(w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.dispatch()
	if i := slices.Index(p.queue, w); i >= 0 {
		p.queue = slices.Delete(p.queue, i, i+1)
		return
	}
	if p.leaveInit(w) {
		return
	}
	switch s := <-w.got; {
	case s.failed != nil:
	case s.container == nil:
		p.failWaiters(s, nil)
		p.used -= memoryOf(w.action)
		p.devices.release(s.device)
		p.busy--
	default:
		p.failWaiters(s, nil)
		if p.leaveLocked(s, false) {
			p.remove(s.container)
			p.busy--
		}
	}
}

// dispatch serves the head of the queue while it can. The caller holds the lock.
func (p *pool) dispatch() {
	p.removeDead()
	for len(p.queue) > 0 {
		if !p.serve(p.queue[0]) {
			return
		}
		p.queue = p.queue[1:]
	}
	p.refill()
}

// removeDead removes containers that died while idle.
func (p *pool) removeDead() {
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

// serve gives a waiter a slot and returns true, if it can.
func (p *pool) serve(w *waiter) bool {
	a := w.action
	if p.join(w) {
		return true
	}
	if c := takeLast(&p.free, func(c *container) bool { return sameAction(c.action, a) }); c != nil {
		c.resume()
		p.busy++
		p.assign(w, c)
		return true
	}
	want := p.devices.needOf(a)
	prewarmed := func(c *container) bool { return want.memory == 0 && c.size == p.sizeOf(a) }
	if c := takeLast(&p.prewarmed, prewarmed); c != nil {
		c.action = a
		p.busy++
		p.assignNew(w, c)
		return true
	}
	need := memoryOf(a)
	if _, ok := p.devices.reclaim(want, p.free); !ok || !p.evict(need) {
		return false
	}
	w.device = p.takeDevice(want)
	p.used += need
	p.busy++
	p.assignNew(w, nil)
	return true
}

// takeLast removes and returns the last fitting container of the list.
func takeLast(list *[]*container, fits func(*container) bool) *container {
	for i := len(*list) - 1; i >= 0; i-- {
		if c := (*list)[i]; fits(c) {
			*list = slices.Delete(*list, i, i+1)
			return c
		}
	}
	return nil
}

// evict removes idle containers, oldest first, until need is free. It removes none if that is not enough.
func (p *pool) evict(need disdel.Bytes) bool {
	for p.total-p.used < need && len(p.templates) > 0 {
		p.dropTemplate()
	}
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

// keepTemplate keeps a template that no container uses. It returns false if there is no free memory for it.
func (p *pool) keepTemplate(t *template) bool {
	need := t.process.resident()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.queue) > 0 || p.total-p.used < need {
		return false
	}
	t.memory, t.since = need, time.Now()
	p.used += need
	p.templates = append(p.templates, t)
	return true
}

// takeTemplate takes a template that a container uses from those that are kept.
func (p *pool) takeTemplate(t *template) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.templates, t); i >= 0 {
		p.templates = slices.Delete(p.templates, i, i+1)
		p.used -= t.memory
	}
}

// dropTemplate ends the template that was kept longest. The caller holds the lock.
func (p *pool) dropTemplate() {
	t := p.templates[0]
	p.templates = p.templates[1:]
	p.used -= t.memory
	p.done.Go(func() { p.endTemplate(t) })
}

// removeIdle removes the idle containers of a deleted action. Nobody can use them, and they would push out useful ones.
func (p *pool) removeIdle(a *action) {
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
	p.devices.release(c.device)
	p.done.Go(c.kill)
}

// leave gives a slot back. It returns true if the caller has to kill the container and call discard: a container that
// failed an activation takes no more, and ends with the last activation in it (ContainerProxy.scala).
func (p *pool) leave(s *containerSlot, keep bool) (last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.dispatch()
	return p.leaveLocked(s, keep)
}

// leaveLocked is leave; the caller holds the lock.
func (p *pool) leaveLocked(s *containerSlot, keep bool) (last bool) {
	c := s.container
	c.slots = slices.DeleteFunc(c.slots, func(other *containerSlot) bool { return other == s })
	c.failed = c.failed || !keep
	if len(c.slots) > 0 {
		return false
	}
	p.shared = slices.DeleteFunc(p.shared, func(other *container) bool { return other == c })
	if c.failed {
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

// discard gives back the memory of a container that is gone or was never started.
func (p *pool) discard(a *action) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used -= memoryOf(a)
	p.busy--
	p.dispatch()
}

// sweep removes containers that were unused for long, and pauses those that are idle beyond the grace.
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
	for len(p.templates) > 0 && now.Sub(p.templates[0].since) > p.idle {
		p.dropTemplate()
	}
	for _, c := range p.free {
		if p.grace > 0 && now.Sub(c.lastUsed) > p.grace {
			c.pause()
		}
	}
	p.prewarmFailed = false
	p.dispatch()
}

// close keeps no container warm from now on; drain waits until the last one has ended.
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

// allowConcurrent is OpenWhisk's variable for containers that may run several activations at once.
const allowConcurrent = "__OW_ALLOW_CONCURRENT"

// concurrent tells whether a container of the kind may run several activations of an action with this main at once.
func (k Kind) concurrent(main string) bool {
	allowed := slices.ContainsFunc(k.Env, func(v string) bool { return strings.EqualFold(v, allowConcurrent+"=true") })
	return allowed && (len(k.SharedMains) == 0 || slices.Contains(k.SharedMains, main))
}

// capacityOf is how many activations of an action may share a container; 1 if the kind does not support sharing.
func (c *Config) capacityOf(a *action) int {
	kind, _ := c.kindOf(&a.Exec)
	if !c.Kinds[kind].concurrent(mainOf(a)) {
		return 1
	}
	return max(1, a.Limits.Concurrency)
}

// containerSlot is an activation's slot in a container.
type containerSlot struct {
	container *container  // nil: the holder has to start it; its memory is reserved
	action    *action     // of the activation
	device    deviceShare // device share of the container to start
	capacity  int         // activations that the container can run at once
	maxOthers int         // the most other activations in it at one time
	init      *containerInit
	failed    *activationEnd // how the awaited /init failed; then there is no container
}

// containerInit is a container whose /init runs. Activations that could share the container wait for it.
type containerInit struct {
	action   *action
	capacity int
	waiting  []*waiter
}

// join gives a waiter a slot in a container that others of its action use, or lets it wait for one whose /init runs.
// The caller holds the lock, as for all functions below.
func (p *pool) join(w *waiter) bool {
	capacity := p.capacityOf(w.action)
	if capacity < 2 {
		return false
	}
	for _, c := range p.shared {
		if !c.failed && c.alive() && len(c.slots) < capacity && sameAction(c.action, w.action) {
			p.assign(w, c)
			return true
		}
	}
	for _, o := range p.inits {
		if len(o.waiting)+1 < capacity && sameAction(o.action, w.action) {
			o.waiting = append(o.waiting, w)
			return true
		}
	}
	return false
}

// assign gives a waiter a slot in an initialised container.
func (p *pool) assign(w *waiter, c *container) {
	s := &containerSlot{container: c, action: w.action, capacity: p.capacityOf(w.action)}
	if len(c.slots) == 0 && s.capacity > 1 {
		p.shared = append(p.shared, c)
	}
	p.occupy(s)
	w.got <- s
}

// occupy counts a slot as taken.
func (p *pool) occupy(s *containerSlot) {
	c := s.container
	c.slots = append(c.slots, s)
	c.wasShared = c.wasShared || len(c.slots) > 1
	for _, other := range c.slots {
		other.maxOthers = max(other.maxOthers, len(c.slots)-1)
	}
}

// assignNew gives a waiter a container that it has to initialise or, if c is nil, to start first.
func (p *pool) assignNew(w *waiter, c *container) {
	s := &containerSlot{container: c, action: w.action, device: w.device, capacity: p.capacityOf(w.action)}
	if s.capacity > 1 {
		s.init = &containerInit{action: w.action, capacity: s.capacity}
		p.inits = append(p.inits, s.init)
	}
	if c != nil {
		p.occupy(s)
	}
	w.got <- s
}

// setContainer is called with the container that was started for a slot.
func (p *pool) setContainer(s *containerSlot, c *container) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.container = c
	p.occupy(s)
}

// initDone gives slots to those who waited for a container's /init.
func (p *pool) initDone(s *containerSlot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.takeInit(s)
	if o == nil {
		return
	}
	p.shared = append(p.shared, s.container)
	for _, w := range o.waiting {
		other := &containerSlot{container: s.container, action: w.action, capacity: s.capacity}
		p.occupy(other)
		w.got <- other
	}
	p.dispatch()
}

// initFailed ends those who waited for a container's /init with the same failure. If the failure asks for another
// container they go back to the queue.
func (p *pool) initFailed(s *containerSlot, end *activationEnd) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if end.reschedule {
		end = nil
	}
	p.failWaiters(s, end)
}

// failWaiters ends those who waited for a container's /init with end, or puts them at the head of the queue if end is
// nil.
func (p *pool) failWaiters(s *containerSlot, end *activationEnd) {
	o := p.takeInit(s)
	if o == nil {
		return
	}
	if end == nil {
		p.queue = slices.Concat(o.waiting, p.queue)
		return
	}
	for _, w := range o.waiting {
		now := time.Now()
		same := activationEnd{status: end.status, result: end.result, text: end.text, size: end.size, start: now, end: now}
		w.got <- &containerSlot{action: w.action, failed: &same}
	}
}

// takeInit removes and returns a slot's containerInit, or returns nil.
func (p *pool) takeInit(s *containerSlot) *containerInit {
	o := s.init
	s.init = nil
	if o != nil {
		p.inits = slices.DeleteFunc(p.inits, func(other *containerInit) bool { return other == o })
	}
	return o
}

// leaveInit removes a waiter from the containerInit that it waits for, and tells whether it did.
func (p *pool) leaveInit(w *waiter) bool {
	for _, o := range p.inits {
		if i := slices.Index(o.waiting, w); i >= 0 {
			o.waiting = slices.Delete(o.waiting, i, i+1)
			return true
		}
	}
	return false
}

// memoryAnnotations are the annotations of a record about its container's memory. A shared container's memory belongs
// to no single activation.
func (p *Platform) memoryAnnotations(s *containerSlot) []keyValue {
	if s == nil || p.cfg.NoEvidence {
		return nil
	}
	p.pool.mu.Lock()
	maximum, mixed := s.maxOthers, s.container.wasShared
	p.pool.mu.Unlock()
	switch {
	case maximum > 0:
		return []keyValue{kv("sharedWith", maximum)}
	case mixed:
		return nil
	default:
		return []keyValue{kv("peakMemory", s.container.peak())}
	}
}

// Prewarm asks for Count started containers of a kind that are not initialised (stemCells in OpenWhisk's manifest). An
// action uses one only if its kind and memory are the same. They are never evicted, and count against the pool.
type Prewarm struct {
	Kind   string
	Memory disdel.Bytes
	Count  int
}

func (p Prewarm) size() size { return size{p.Kind, p.Memory} }

// validateContainers checks the fields about containers.
func (c *Config) validateContainers() error {
	err := errors.Join(c.validatePrewarm(), c.CPU.check(), c.checkDevices())
	if err == nil && (c.Idle < 0 || c.PauseGrace < 0 || c.FolderMB < 0) {
		err = errors.New("the idle time, the pause grace and the bound on folders cannot be negative")
	}
	if err != nil {
		return &disdel.Error{Kind: disdel.Invalid, Op: "configure platform", Err: err}
	}
	return nil
}

func (c *Config) validatePrewarm() error {
	var sum disdel.Bytes
	seen := map[size]bool{}
	for _, w := range c.Prewarm {
		_, known := c.Kinds[w.Kind]
		switch {
		case !known:
			return fmt.Errorf("prewarmed containers have the kind %q, which is not configured", w.Kind)
		case seen[w.size()]:
			return fmt.Errorf("prewarmed containers of %s and %v are asked for twice", w.Kind, w.Memory)
		case w.Count < 0 || w.Memory < c.Limits.Memory.Min || w.Memory > c.Limits.Memory.Max:
			return fmt.Errorf("%d prewarmed containers of %v: an action cannot have that", w.Count, w.Memory)
		}
		seen[w.size()] = true
		sum += disdel.Bytes(w.Count) * w.Memory
	}
	if sum > c.PoolMemory {
		return fmt.Errorf("prewarmed containers of %v do not fit the pool of %v", sum, c.PoolMemory)
	}
	return nil
}

// open starts the prewarmed containers.
func (p *pool) open() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refill()
}

// refill starts missing prewarmed containers with memory that nobody uses or waits for. The caller holds the lock.
func (p *pool) refill() {
	if p.closed || p.prewarmFailed || len(p.queue) > 0 {
		return
	}
	for _, w := range p.wanted {
		have := p.starting[w.size()]
		for _, c := range p.prewarmed {
			if c.size == w.size() {
				have++
			}
		}
		for ; have < w.Count && p.used+w.Memory <= p.total; have++ {
			p.used += w.Memory
			p.starting[w.size()]++
			p.done.Go(func() { p.prewarm(w.size()) })
		}
	}
}

func (p *pool) prewarm(s size) {
	c, err := p.start(s)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.starting[s]--
	switch {
	case err != nil:
		p.used -= s.memory
		p.prewarmFailed = true
	case p.closed:
		p.remove(c)
	default:
		p.prewarmed = append(p.prewarmed, c)
		p.dispatch()
	}
}

// ParsePrewarm reads KIND@MEMORY=COUNT, such as nodejs:20@256MB=2. Without =COUNT the count is 1.
func ParsePrewarm(text string) (Prewarm, error) {
	bad := func() error {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "prewarm", Msg: fmt.Sprintf("%q is not KIND@MEMORY=COUNT", text),
			Hint: "write it as nodejs:20@256MB=2",
		}
	}
	kind, rest, ok := strings.Cut(text, "@")
	memory, count, counted := strings.Cut(rest, "=")
	out := Prewarm{Kind: kind, Count: 1}
	var err error
	if counted {
		if out.Count, err = strconv.Atoi(count); err != nil || out.Count < 1 {
			return out, bad()
		}
	}
	if out.Memory, err = disdel.ParseBytes(memory); err != nil || !ok || kind == "" {
		return out, bad()
	}
	return out, nil
}
