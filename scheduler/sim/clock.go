package sim

import (
	"container/heap"

	"github.com/disdel/disdel"
)

// Clock is virtual time: it stands still while something happens, and jumps to what happens next. Things at the same
// time happen in the order in which they were asked for. It is for one goroutine; the zero value stands at 0.
type Clock struct {
	now    disdel.Millis
	count  int
	events agenda
}

// Now is the time.
func (c *Clock) Now() disdel.Millis { return c.now }

// After has something happen when so much time has passed; nothing happens in the past.
func (c *Clock) After(d disdel.Millis, what func()) *Alarm { return c.At(c.now+d, what) }

// At has something happen at a time, or now if that has passed.
func (c *Clock) At(t disdel.Millis, what func()) *Alarm {
	c.count++
	a := &Alarm{at: max(t, c.now), count: c.count, what: what}
	heap.Push(&c.events, a)
	return a
}

// Cancel has something not happen. What has happened, or was cancelled before, stays as it is; nil is nothing.
func (c *Clock) Cancel(a *Alarm) {
	if a != nil && a.place >= 0 {
		heap.Remove(&c.events, a.place)
	}
}

// Next is when something happens next; false: nothing ever does.
func (c *Clock) Next() (disdel.Millis, bool) {
	if len(c.events) == 0 {
		return 0, false
	}
	return c.events[0].at, true
}

// Step lets the next thing happen; false: there is none.
func (c *Clock) Step() bool {
	if len(c.events) == 0 {
		return false
	}
	a := c.events[0]
	heap.Pop(&c.events)
	c.now = a.at
	a.what()
	return true
}

// Alarm is something that is to happen.
type Alarm struct {
	at    disdel.Millis
	count int
	what  func()
	place int // in the agenda; -1: it is not there any more
}

// agenda is what is to happen, what comes next on top.
type agenda []*Alarm

func (a agenda) Len() int { return len(a) }

func (a agenda) Less(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].count < a[j].count
}

func (a agenda) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].place, a[j].place = i, j
}

func (a *agenda) Push(x any) {
	e := x.(*Alarm)
	e.place = len(*a)
	*a = append(*a, e)
}

func (a *agenda) Pop() any {
	n := len(*a) - 1
	e := (*a)[n]
	(*a)[n] = nil
	*a = (*a)[:n]
	e.place = -1
	return e
}
