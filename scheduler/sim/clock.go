package sim

import (
	"container/heap"

	"github.com/disdel/disdel"
)

// Clock is virtual time: it stops during an event, and jumps to the next one. Events at the same time happen in the
// order in which they were added. It is for one goroutine; the zero value is at 0.
type Clock struct {
	now    disdel.Millis
	count  int
	events agenda
}

func (c *Clock) Now() disdel.Millis { return c.now }

// After schedules an event after so much time, at the earliest now.
func (c *Clock) After(d disdel.Millis, what func()) *Alarm { return c.At(c.now+d, what) }

// At schedules an event at a time, or now if that has passed.
func (c *Clock) At(t disdel.Millis, what func()) *Alarm {
	c.count++
	a := &Alarm{at: max(t, c.now), count: c.count, what: what}
	heap.Push(&c.events, a)
	return a
}

// Cancel removes an event. It does nothing for nil and for an event that has happened or was cancelled before.
func (c *Clock) Cancel(a *Alarm) {
	if a != nil && a.place >= 0 {
		heap.Remove(&c.events, a.place)
	}
}

// Next returns the time of the next event; false: there is none.
func (c *Clock) Next() (disdel.Millis, bool) {
	if len(c.events) == 0 {
		return 0, false
	}
	return c.events[0].at, true
}

// Step lets the next event happen; false: there is none.
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

// Alarm is a scheduled event.
type Alarm struct {
	at    disdel.Millis
	count int
	what  func()
	place int // in the agenda; -1: it is no longer there
}

// agenda is a heap of events, the next one first.
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
