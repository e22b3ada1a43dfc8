package sim

import (
	"cmp"
	"container/heap"
	"hash/fnv"
	"math"
	"slices"
	"time"

	"github.com/disdel/disdel"
)

// Config describes a cloud that runs OpenWhisk.
type Config struct {
	Invokers   int          `json:"invokers"`    // hosts; 0: 1
	Memory     disdel.Bytes `json:"memoryBytes"` // of the containers of each host
	Processors int          `json:"processors"`  // of each host; 0: unlimited
	// Crowding is how much longer a thread computes while all processors of a host are busy, as a share of its time alone:
	// they share caches, memory and often cores. In between it grows with the busy processors.
	Crowding   float64       `json:"crowding,omitempty"`
	Concurrent int           `json:"concurrent,omitempty"` // invocations in flight of a namespace; 0: any
	PerMinute  int           `json:"perMinute,omitempty"`  // invocations of a minute of a namespace; 0: any
	Cold       disdel.Millis `json:"coldMs"`               // start of a new container
	Warm       disdel.Millis `json:"warmMs"`               // start in an existing container
	Idle       disdel.Millis `json:"idleMs"`               // for which a container waits for work; 0: 10 min
}

// Call is an invocation in a cloud.
type Call struct {
	Namespace string
	Action    string // a container belongs to one action
	Memory    disdel.Bytes
	Threads   int           // computing threads; 0: it only waits
	Work      disdel.Millis // time with a processor for each thread
	Load      disdel.Millis // additional work in a new container
	Timeout   disdel.Millis // 0: none
	Hold      disdel.Millis // it ends itself after this time, finished or not; 0: never
}

// Reply is the result of a Call.
type Reply struct {
	Throttled bool // refused: too many in flight or in this minute
	TimedOut  bool
	Held      bool          // it ended itself by its Hold
	Left      disdel.Millis // of its work, if Held
	Cold      bool
	Start     disdel.Millis // in its container
	Wait      disdel.Millis // for room and for the container, before Start
	Duration  disdel.Millis
}

// Totals counts what a cloud has done so far.
type Totals struct {
	Calls     int     `json:"calls"`
	Cold      int     `json:"cold"`      // calls in a new container
	Throttled int     `json:"throttled"` // refused
	TimedOut  int     `json:"timedOut"`
	Evicted   int     `json:"evicted"`        // containers removed to make room
	Misplaced int     `json:"misplaced"`      // calls that found no invoker with room
	BusyGBs   float64 `json:"busyGBs"`        // memory of working containers, over time
	Most      int     `json:"mostContainers"` // at once
}

// Cloud is a set of invokers in virtual time. It is for one goroutine.
type Cloud struct {
	Totals
	clock      *Clock
	cfg        Config
	invokers   []*invoker
	namespaces map[string]*namespace
	containers int
}

// namespace counts for throttles.
type namespace struct {
	flying int
	minute disdel.Millis
	made   int // in that minute
}

func NewCloud(clock *Clock, cfg Config) *Cloud {
	cfg.Invokers, cfg.Idle = max(1, cfg.Invokers), cmp.Or(cfg.Idle, disdel.Millis(10*time.Minute))
	c := &Cloud{clock: clock, cfg: cfg, namespaces: map[string]*namespace{}}
	for range cfg.Invokers {
		c.invokers = append(c.invokers, &invoker{cloud: c, free: cfg.Memory, warm: map[string][]*container{}})
	}
	return c
}

// Limits returns the limits for a planner.
func (c *Cloud) Limits() disdel.PlatformLimits {
	return disdel.PlatformLimits{
		MinMemory: 128 * disdel.MB, MaxMemory: c.cfg.Memory, MinTimeout: disdel.Millis(100 * time.Millisecond),
		MaxTimeout: disdel.Millis(time.Hour), PerMinute: c.cfg.PerMinute, Concurrent: c.cfg.Concurrent,
		Pool: disdel.Bytes(c.cfg.Invokers) * c.cfg.Memory, Processors: c.cfg.Invokers * c.cfg.Processors,
	}
}

// Call invokes, and calls done with the result.
func (c *Cloud) Call(call Call, done func(Reply)) {
	n := c.namespaces[call.Namespace]
	if n == nil {
		n = &namespace{}
		c.namespaces[call.Namespace] = n
	}
	if minute := c.clock.Now() / disdel.Millis(time.Minute); minute != n.minute {
		n.minute, n.made = minute, 0
	}
	if c.cfg.Concurrent > 0 && n.flying >= c.cfg.Concurrent || c.cfg.PerMinute > 0 && n.made >= c.cfg.PerMinute {
		c.Throttled++
		c.clock.After(0, func() { done(Reply{Throttled: true}) })
		return
	}
	n.made++
	n.flying++
	c.Calls++
	c.place(call).take(&activity{Call: call, asked: c.clock.Now(), done: func(r Reply) {
		n.flying--
		done(r)
	}})
}

// place chooses the invoker like OpenWhisk's balancer: the first with room, starting at the action's home invoker, in
// steps that reach all of them. If there is none, the call joins the home invoker's queue.
func (c *Cloud) place(call Call) *invoker {
	n := len(c.invokers)
	if n == 1 {
		return c.invokers[0]
	}
	h := fnv.New32a()
	h.Write([]byte(call.Namespace)) //nolint:errcheck // a hash takes everything
	h.Write([]byte(call.Action))    //nolint:errcheck // the same
	sum := int(h.Sum32())
	home, step := sum%n, coprime(sum/n, n)
	for i, at := 0, home; i < n; i, at = i+1, (at+step)%n {
		if v := c.invokers[at]; len(v.queue) == 0 && v.idle+v.free >= call.Memory {
			return v
		}
	}
	c.Misplaced++
	return c.invokers[home]
}

// coprime returns a step from 1 to n-1 that has no divisor in common with n.
func coprime(lot, n int) int {
	for step := 1 + lot%(n-1); ; step = step%(n-1) + 1 {
		a, b := n, step
		for b != 0 {
			a, b = b, a%b
		}
		if a == 1 {
			return step
		}
	}
}

// invoker is one host. Its pool of containers works like OpenWhisk's: only memory counts, only the head of the queue
// is considered, and idle containers make room, the oldest first. Activations share its processors in proportion to
// their threads.
type invoker struct {
	cloud   *Cloud
	free    disdel.Bytes // in no container
	idle    disdel.Bytes // in containers without work
	warm    map[string][]*container
	oldest  []rest // the least recently used first
	resting int    // length of oldest after its last cleaning
	queue   []*activity
	running working
	demand  int     // threads of running
	served  float64 // time that a thread has computed since the start, ns
	at      disdel.Millis
	ending  *Alarm // at the end of the next activation
}

type container struct {
	action string
	memory disdel.Bytes
	used   disdel.Millis // end of its last work
	idle   bool
}

// rest is a container that had no work from some time on. It may have been used or removed since.
type rest struct {
	box   *container
	since disdel.Millis
}

func (r rest) over() bool { return !r.box.idle || r.box.used != r.since }

// activity is a call in progress.
type activity struct {
	Call
	done  func(Reply)
	asked disdel.Millis
	start disdel.Millis
	cold  bool
	box   *container
	due   float64 // by the invoker's served time
	place int     // in running; -1: not there
	over  bool
	alarm *Alarm // at its timeout, or its hold
}

// ending is how an activity ends.
type ending uint8

const (
	done     ending = iota
	timedOut        // ended by the platform
	held            // ended itself before it was done
)

// take adds a call to the queue.
func (v *invoker) take(a *activity) {
	v.queue = append(v.queue, a)
	v.serve()
}

// serve gives containers to the head of the queue while it can.
func (v *invoker) serve() {
	for len(v.queue) > 0 {
		a := v.queue[0]
		if !v.place(a) {
			return
		}
		v.queue[0] = nil
		v.queue = v.queue[1:]
		v.start(a)
	}
}

// place finds a container: a warm one, or room for a new one.
func (v *invoker) place(a *activity) bool {
	v.expire(a.Action)
	if list := v.warm[a.Action]; len(list) > 0 {
		box := list[len(list)-1]
		v.warm[a.Action] = list[:len(list)-1]
		box.idle = false
		v.idle -= box.memory
		a.box = box
		return true
	}
	if v.free+v.idle < a.Memory {
		return false
	}
	for v.free < a.Memory {
		r := v.oldest[0]
		if v.oldest = v.oldest[1:]; !r.over() {
			v.remove(r.box)
			v.cloud.Evicted++
		}
	}
	v.free -= a.Memory
	a.box, a.cold = &container{action: a.Action, memory: a.Memory}, true
	v.cloud.containers++
	v.cloud.Most = max(v.cloud.Most, v.cloud.containers)
	v.cloud.Cold++
	return true
}

// expire removes an action's containers that had no work for too long.
func (v *invoker) expire(action string) {
	now := v.cloud.clock.Now()
	for list := v.warm[action]; len(list) > 0 && now-list[0].used > v.cloud.cfg.Idle; list = v.warm[action] {
		v.remove(list[0])
	}
}

// remove ends a container without work.
func (v *invoker) remove(box *container) {
	list := v.warm[box.action]
	if i := slices.Index(list, box); i >= 0 {
		list = slices.Delete(list, i, i+1)
	}
	if v.warm[box.action] = list; len(list) == 0 {
		delete(v.warm, box.action)
	}
	box.idle = false
	v.idle -= box.memory
	v.free += box.memory
	v.cloud.containers--
}

// start begins an activity once its container accepts requests.
func (v *invoker) start(a *activity) {
	wait := v.cloud.cfg.Warm
	if a.cold {
		wait = v.cloud.cfg.Cold
		a.Work += a.Load
	}
	a.place = -1
	v.cloud.clock.After(wait, func() {
		a.start = v.cloud.clock.Now()
		switch {
		case a.Hold > 0 && (a.Timeout == 0 || a.Hold < a.Timeout):
			a.alarm = v.cloud.clock.After(a.Hold, func() { v.end(a, held) })
		case a.Timeout > 0:
			a.alarm = v.cloud.clock.After(a.Timeout, func() { v.end(a, timedOut) })
		}
		if a.Threads == 0 || v.cloud.cfg.Processors == 0 {
			v.cloud.clock.After(a.Work, func() { v.end(a, done) })
			return
		}
		v.advance()
		a.due = v.served + float64(a.Work)
		v.demand += a.Threads
		heap.Push(&v.running, a)
		v.next()
	})
}

// advance updates the computed time to now.
func (v *invoker) advance() {
	now := v.cloud.clock.Now()
	v.served += v.rate() * float64(now-v.at)
	v.at = now
}

// rate is the share of an undisturbed processor that each thread gets.
func (v *invoker) rate() float64 {
	all, busy := float64(v.cloud.cfg.Processors), float64(max(1, v.demand))
	others := (min(busy, all) - 1) / max(1, all-1) // the busy share of the other processors
	return min(1, all/busy) / (1 + v.cloud.cfg.Crowding*others)
}

// next schedules the end of the next activity.
func (v *invoker) next() {
	v.cloud.clock.Cancel(v.ending)
	if len(v.running) == 0 {
		return
	}
	remaining := v.running[0].due - v.served
	v.ending = v.cloud.clock.After(disdel.Millis(math.Ceil(max(0, remaining)/v.rate())), func() {
		v.advance()
		const rounding = 1 // ns
		for len(v.running) > 0 && v.running[0].due <= v.served+rounding {
			v.end(v.running[0], done)
		}
		v.next()
	})
}

// end ends an activity. Its container becomes idle, or is removed after a timeout.
func (v *invoker) end(a *activity, how ending) {
	if a.over {
		return
	}
	a.over = true
	v.cloud.clock.Cancel(a.alarm)
	now := v.cloud.clock.Now()
	remaining := max(0, a.Work-(now-a.start))
	if a.place >= 0 {
		v.advance()
		remaining = disdel.Millis(max(0, a.due-v.served))
		heap.Remove(&v.running, a.place)
		if v.demand -= a.Threads; how != done {
			v.next()
		}
	}
	v.cloud.BusyGBs += disdel.GBSeconds(a.Memory, now-a.start)
	box := a.box
	if how == timedOut {
		v.free += box.memory
		v.cloud.containers--
		v.cloud.TimedOut++
	} else {
		box.idle, box.used = true, now
		v.idle += box.memory
		v.warm[box.action] = append(v.warm[box.action], box)
		v.rest(box)
	}
	r := Reply{TimedOut: how == timedOut, Cold: a.cold, Start: a.start, Wait: a.start - a.asked, Duration: now - a.start}
	if how == held {
		r.Held, r.Left = true, remaining
	}
	a.done(r)
	v.serve()
}

// rest appends a container to those without work. It removes outdated entries from time to time.
func (v *invoker) rest(box *container) {
	const few = 64
	if v.oldest = append(v.oldest, rest{box, box.used}); len(v.oldest) > 2*max(few, v.resting) {
		v.oldest = slices.DeleteFunc(v.oldest, rest.over)
		v.resting = len(v.oldest)
	}
}

// working is a heap of computing activities, the first to end first.
type working []*activity

func (w working) Len() int           { return len(w) }
func (w working) Less(i, j int) bool { return w[i].due < w[j].due }

func (w working) Swap(i, j int) {
	w[i], w[j] = w[j], w[i]
	w[i].place, w[j].place = i, j
}

func (w *working) Push(x any) {
	a := x.(*activity)
	a.place = len(*w)
	*w = append(*w, a)
}

func (w *working) Pop() any {
	n := len(*w) - 1
	a := (*w)[n]
	(*w)[n] = nil
	*w = (*w)[:n]
	a.place = -1
	return a
}
