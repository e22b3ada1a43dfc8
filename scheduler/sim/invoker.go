package sim

import (
	"container/heap"
	"math"
	"slices"

	"github.com/disdel/disdel"
)

// invoker is one host: a pool of containers as OpenWhisk keeps it (memory is all that it counts; of those that wait
// only the head is looked at; idle containers, the oldest first, make room), and processors that computing activations
// share in proportion to their threads.
type invoker struct {
	cloud   *Cloud
	free    disdel.Bytes // in no container
	idle    disdel.Bytes // in containers without work
	warm    map[string][]*container
	oldest  []rest // the least recently used first
	resting int    // of oldest, when it was tidied last
	queue   []*activity
	running working
	demand  int     // threads of running
	served  float64 // time that a thread has got since the beginning, ns
	at      disdel.Millis
	ending  *Alarm // for the end of the next one
}

// container is one that is there, busy or not.
type container struct {
	action string
	memory disdel.Bytes
	used   disdel.Millis // since when it has no work
	idle   bool
}

// rest is a container that had no work from a time on. It may have been used or ended since.
type rest struct {
	box   *container
	since disdel.Millis
}

func (r rest) over() bool { return !r.box.idle || r.box.used != r.since }

// activity is a call on its way.
type activity struct {
	Call
	done  func(Reply)
	asked disdel.Millis
	start disdel.Millis
	cold  bool
	box   *container
	due   float64 // by the invoker's served time
	place int     // in running; -1: it is not there
	over  bool
	alarm *Alarm // at its timeout, or its hold
}

// ending is how an activity ends.
type ending uint8

const (
	done     ending = iota
	timedOut        // the platform ends it
	held            // it ends itself before it is done
)

// take has a call wait for its turn.
func (v *invoker) take(a *activity) {
	v.queue = append(v.queue, a)
	v.serve()
}

// serve gives containers to the head of the queue for as long as it can be served.
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

// expire ends the containers of an action that had no work for too long.
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

// start begins an activity once its container takes requests.
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

// advance brings what threads have got up to now.
func (v *invoker) advance() {
	now := v.cloud.clock.Now()
	v.served += v.rate() * float64(now-v.at)
	v.at = now
}

// rate is what each thread gets of a processor that nothing else disturbs.
func (v *invoker) rate() float64 {
	all, busy := float64(v.cloud.cfg.Processors), float64(max(1, v.demand))
	others := (min(busy, all) - 1) / max(1, all-1) // of the other processors, how much is busy
	return min(1, all/busy) / (1 + v.cloud.cfg.Crowding*others)
}

// next has the clock come by when the next activity has got all that it needs.
func (v *invoker) next() {
	v.cloud.clock.Cancel(v.ending)
	if len(v.running) == 0 {
		return
	}
	left := v.running[0].due - v.served
	v.ending = v.cloud.clock.After(disdel.Millis(math.Ceil(max(0, left)/v.rate())), func() {
		v.advance()
		const rounding = 1 // ns
		for len(v.running) > 0 && v.running[0].due <= v.served+rounding {
			v.end(v.running[0], done)
		}
		v.next()
	})
}

// end ends an activity, whose container is idle from now on, or gone where it had to be stopped.
func (v *invoker) end(a *activity, how ending) {
	if a.over {
		return
	}
	a.over = true
	v.cloud.clock.Cancel(a.alarm)
	now := v.cloud.clock.Now()
	left := max(0, a.Work-(now-a.start))
	if a.place >= 0 {
		v.advance()
		left = disdel.Millis(max(0, a.due-v.served))
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
		r.Held, r.Left = true, left
	}
	a.done(r)
	v.serve()
}

// rest puts a container behind those that had no work before it. What is over is taken out now and then.
func (v *invoker) rest(box *container) {
	const few = 64
	if v.oldest = append(v.oldest, rest{box, box.used}); len(v.oldest) > 2*max(few, v.resting) {
		v.oldest = slices.DeleteFunc(v.oldest, rest.over)
		v.resting = len(v.oldest)
	}
}

// working is the activities that compute, the one that ends first on top.
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
