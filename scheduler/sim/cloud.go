package sim

import (
	"cmp"
	"hash/fnv"
	"time"

	"github.com/disdel/disdel"
)

// Config is a cloud that runs OpenWhisk.
type Config struct {
	Invokers   int          `json:"invokers"`    // hosts; 0: 1
	Memory     disdel.Bytes `json:"memoryBytes"` // of the containers of each host
	Processors int          `json:"processors"`  // of each host; 0: as many as anybody wants
	// Crowding is how much longer a thread computes while all processors of a host are busy, of what it takes alone on
	// one: they share caches, memory and often cores. In between it grows with the processors that are busy. 0: not at
	// all.
	Crowding   float64       `json:"crowding,omitempty"`
	Concurrent int           `json:"concurrent,omitempty"` // invocations in flight of a namespace; 0: any
	PerMinute  int           `json:"perMinute,omitempty"`  // invocations of a minute of a namespace; 0: any
	Cold       disdel.Millis `json:"coldMs"`               // until a new container takes requests
	Warm       disdel.Millis `json:"warmMs"`               // the same of one that is there
	Idle       disdel.Millis `json:"idleMs"`               // that a container stays without work; 0: 10 min
}

// Call is an invocation, as far as a cloud is concerned.
type Call struct {
	Namespace string
	Action    string // containers are those of an action
	Memory    disdel.Bytes
	Threads   int           // that it computes with; 0: it only waits
	Work      disdel.Millis // with all its threads on processors of their own
	Load      disdel.Millis // more of it in a new container
	Timeout   disdel.Millis // it is ended then; 0: never
	Hold      disdel.Millis // it ends itself then, done or not; 0: it does not
}

// Reply is what became of a Call.
type Reply struct {
	Throttled bool // it was refused: too many are in flight, or came in this minute
	TimedOut  bool
	Held      bool          // it ended itself by its Hold
	Left      disdel.Millis // then: of its work
	Cold      bool
	Start     disdel.Millis // of Call in its container
	Wait      disdel.Millis // before it, for room and for the container
	Duration  disdel.Millis
}

// Totals is what a cloud has done so far.
type Totals struct {
	Calls     int     `json:"calls"`
	Cold      int     `json:"cold"`      // of them, began in a new container
	Throttled int     `json:"throttled"` // refused
	TimedOut  int     `json:"timedOut"`
	Evicted   int     `json:"evicted"`        // containers that made room for others
	Misplaced int     `json:"misplaced"`      // calls that no invoker had room for when they came
	BusyGBs   float64 `json:"busyGBs"`        // memory of containers with work, over time
	Most      int     `json:"mostContainers"` // at once
}

// Cloud is invokers in virtual time. It is for one goroutine.
type Cloud struct {
	Totals
	clock      *Clock
	cfg        Config
	invokers   []*invoker
	namespaces map[string]*namespace
	containers int
}

// namespace is what throttles count.
type namespace struct {
	flying int
	minute disdel.Millis
	made   int // in that minute
}

// NewCloud makes a cloud on a clock.
func NewCloud(clock *Clock, cfg Config) *Cloud {
	cfg.Invokers, cfg.Idle = max(1, cfg.Invokers), cmp.Or(cfg.Idle, disdel.Millis(10*time.Minute))
	c := &Cloud{clock: clock, cfg: cfg, namespaces: map[string]*namespace{}}
	for range cfg.Invokers {
		c.invokers = append(c.invokers, &invoker{cloud: c, free: cfg.Memory, warm: map[string][]*container{}})
	}
	return c
}

// Limits are those that a planner goes by.
func (c *Cloud) Limits() disdel.PlatformLimits {
	return disdel.PlatformLimits{
		MinMemory: 128 * disdel.MB, MaxMemory: c.cfg.Memory, MinTimeout: disdel.Millis(100 * time.Millisecond),
		MaxTimeout: disdel.Millis(time.Hour), PerMinute: c.cfg.PerMinute, Concurrent: c.cfg.Concurrent,
		Pool: disdel.Bytes(c.cfg.Invokers) * c.cfg.Memory, Processors: c.cfg.Invokers * c.cfg.Processors,
	}
}

// Call makes an invocation, and has done told what became of it.
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

// place is the invoker of a call as OpenWhisk's balancer has it: the first with room from the action's own on, in steps
// that come by all of them; where there is none, the action's own, whose queue it joins.
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

// coprime is a step from 1 to n-1 that has no divisor in common with n, by lot.
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
