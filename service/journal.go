package service

import (
	"context"
	"iter"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/oklog/ulid/v2"

	"github.com/disdel/disdel"
)

// mostEvents bounds the events kept of a long job. Beyond it, the older half loses its successful invocations.
const mostEvents = 20_000

// journal keeps a job's events. It keeps only the newest Progress. Adding an event never waits for a reader.
type journal struct {
	job    disdel.JobID
	series string      // see Run.Series
	first  func(Event) // is called with each event until the job is acknowledged
	counts func(Event) // is called with each event from then on; nil: nothing is

	mu       sync.Mutex
	events   []Event       // guarded by mu: without progress, by number
	progress Event         // guarded by mu: the newest one; Number 0: there is none
	last     int           // guarded by mu
	closed   bool          // guarded by mu: there will be no more events
	changed  chan struct{} // guarded by mu: closed with the next event
}

func newJournal(job disdel.JobID, first func(Event)) *journal {
	return &journal{job: job, series: strings.ToLower(ulid.Make().String()), first: first, changed: make(chan struct{})}
}

func (j *journal) add(what EventData) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return
	}
	j.last++
	e := Event{Number: j.last, Job: j.job, What: what}
	if _, ok := what.(Progress); ok {
		j.progress = e
	} else {
		j.events = append(j.events, e)
		j.thin()
	}
	if j.first != nil {
		j.first(e)
	}
	if j.counts != nil {
		j.counts(e)
	}
	j.wake()
}

// acknowledged ends the calls of first; counts is called with the events from now on.
func (j *journal) acknowledged(counts func(Event)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.first, j.counts = nil, counts
}

func (j *journal) close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed = true
	j.wake()
}

// wake wakes the readers; the caller holds the lock.
func (j *journal) wake() {
	close(j.changed)
	j.changed = make(chan struct{})
}

// thin drops old events if there are too many; the caller holds the lock.
func (j *journal) thin() {
	if len(j.events) < mostEvents {
		return
	}
	half := j.events[:mostEvents/2]
	kept := slices.DeleteFunc(slices.Clone(half), func(e Event) bool {
		switch what := e.What.(type) {
		case Invoked, Forecast:
			return true
		case Ended:
			return what.Outcome == disdel.OutcomeSuccess
		default:
			return false
		}
	})
	if len(kept) > mostEvents/4 {
		kept = kept[len(kept)-mostEvents/4:] // a job of that many rounds
	}
	j.events = append(kept, j.events[len(half):]...)
}

// after returns the first event with a larger number; ok is false if there is none yet. changed is closed with the next
// event; it is nil if there will be none.
func (j *journal) after(number int) (e Event, ok bool, changed <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	i := sort.Search(len(j.events), func(i int) bool { return j.events[i].Number > number })
	if i < len(j.events) {
		e, ok = j.events[i], true
	}
	if p := j.progress; p.Number > number && (!ok || p.Number < e.Number) {
		e, ok = p, true
	}
	if j.closed {
		return e, ok, nil
	}
	return e, ok, j.changed
}

// read yields the events after a number, until ctx or the job ends.
func (j *journal) read(ctx context.Context, number int) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		for {
			e, ok, changed := j.after(number)
			switch {
			case ok:
				number = e.Number
				if !yield(e) {
					return
				}
			case changed == nil:
				return
			default:
				select {
				case <-changed:
				case <-ctx.Done():
					return
				}
			}
		}
	}
}
