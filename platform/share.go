package platform

import (
	"slices"
	"strings"
	"time"
)

// allowConcurrent is the variable by which an operator of OpenWhisk's says that containers may run several activations
// at once.
const allowConcurrent = "__OW_ALLOW_CONCURRENT"

// concurrent tells whether a kind's containers may run several activations of an action with that main at once.
func (k Kind) concurrent(main string) bool {
	allowed := slices.ContainsFunc(k.Env, func(v string) bool { return strings.EqualFold(v, allowConcurrent+"=true") })
	return allowed && (len(k.Together) == 0 || slices.Contains(k.Together, main))
}

// roomOf is how many activations of an action may share a container. Those of kinds that know one at a time get one
// each, whatever the action's limit says.
func (c *Config) roomOf(a *action) int {
	kind, _ := c.runsAs(&a.Exec)
	if !c.Kinds[kind].concurrent(mainOf(a)) {
		return 1
	}
	return max(1, a.Limits.Concurrency)
}

// seat is an activation's place in a container.
type seat struct {
	container *container // nil: it is to start one, whose memory is reserved
	action    *action    // of the activation
	room      int        // of the container, this activation included
	most      int        // of others that were in it at the same time
	opening   *opening
	failed    *ending // what the /init ended with that it waited for; it has no container then
}

// opening is a container whose /init is not through. Those that would share it wait for that; the activation that
// carries it out sees to them.
type opening struct {
	action  *action
	room    int
	waiting []*waiter
}

// join seats a waiter in a container that others of its action are in, or lets it wait for one that they open. The
// caller holds the lock, as of all that follow.
func (p *pool) join(w *waiter) bool {
	room := p.roomOf(w.action)
	if room < 2 {
		return false
	}
	for _, c := range p.shared {
		if !c.spent && c.alive() && len(c.seats) < room && sameAction(c.action, w.action) {
			p.seat(w, c)
			return true
		}
	}
	for _, o := range p.openings {
		if len(o.waiting)+1 < room && sameAction(o.action, w.action) {
			o.waiting = append(o.waiting, w)
			return true
		}
	}
	return false
}

// seat gives a waiter a place in a container that is initialised.
func (p *pool) seat(w *waiter, c *container) {
	s := &seat{container: c, action: w.action, room: p.roomOf(w.action)}
	if len(c.seats) == 0 && s.room > 1 {
		p.shared = append(p.shared, c)
	}
	p.sit(s)
	w.got <- s
}

// sit counts a place as taken.
func (p *pool) sit(s *seat) {
	c := s.container
	c.seats = append(c.seats, s)
	c.mixed = c.mixed || len(c.seats) > 1
	for _, other := range c.seats {
		other.most = max(other.most, len(c.seats)-1)
	}
}

// openFor gives a waiter a container that it has to initialise, or, where there is none, to start first.
func (p *pool) openFor(w *waiter, c *container) {
	s := &seat{container: c, action: w.action, room: p.roomOf(w.action)}
	if s.room > 1 {
		s.opening = &opening{action: w.action, room: s.room}
		p.openings = append(p.openings, s.opening)
	}
	if c != nil {
		p.sit(s)
	}
	w.got <- s
}

// started is told the container that a place was given for.
func (p *pool) started(s *seat, c *container) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.container = c
	p.sit(s)
}

// opened lets those in who waited for a container's /init.
func (p *pool) opened(s *seat) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.takeOpening(s)
	if o == nil {
		return
	}
	p.shared = append(p.shared, s.container)
	for _, w := range o.waiting {
		other := &seat{container: s.container, action: w.action, room: s.room}
		p.sit(other)
		w.got <- other
	}
	p.dispatch()
}

// unopened tells those who waited for a container's /init how it ended. They are not tried elsewhere, where it would
// end in the same way, but for an end that asks for another container.
func (p *pool) unopened(s *seat, end *ending) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if end.reschedule {
		end = nil
	}
	p.fail(s, end)
}

// fail has those who waited for a container's /init go without it: with end, or, where that is nil, to the head of the
// queue.
func (p *pool) fail(s *seat, end *ending) {
	o := p.takeOpening(s)
	if o == nil {
		return
	}
	if end == nil {
		p.queue = slices.Concat(o.waiting, p.queue)
		return
	}
	for _, w := range o.waiting {
		now := time.Now()
		same := ending{status: end.status, result: end.result, text: end.text, size: end.size, start: now, end: now}
		w.got <- &seat{action: w.action, failed: &same}
	}
}

// takeOpening takes a place's opening out, if nobody did.
func (p *pool) takeOpening(s *seat) *opening {
	o := s.opening
	s.opening = nil
	if o != nil {
		p.openings = slices.DeleteFunc(p.openings, func(other *opening) bool { return other == o })
	}
	return o
}

// leaveOpenings takes a waiter out of the opening that it waits for, if it does.
func (p *pool) leaveOpenings(w *waiter) bool {
	for _, o := range p.openings {
		if i := slices.Index(o.waiting, w); i >= 0 {
			o.waiting = slices.Delete(o.waiting, i, i+1)
			return true
		}
	}
	return false
}

// measured is what an activation's record says of its container's memory, which is no activation's where several ran in
// it at once.
func (p *Platform) measured(s *seat) []keyValue {
	if s == nil || p.cfg.NoEvidence {
		return nil
	}
	p.pool.mu.Lock()
	most, mixed := s.most, s.container.mixed
	p.pool.mu.Unlock()
	switch {
	case most > 0:
		return []keyValue{kv("sharedWith", most)}
	case mixed:
		return nil
	default:
		return []keyValue{kv("peakMemory", s.container.peak())}
	}
}
