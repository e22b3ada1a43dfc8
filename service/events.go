package service

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/scheduler"
)

// Event is an event of a job. Numbers rise from 1.
type Event struct {
	Number int
	Job    disdel.JobID
	What   EventData
}

// EventData is the content of an Event: a value of one of the types below.
type EventData interface {
	fmt.Stringer // a few words for a person
	eventData()
}

// The events of a job. Progress replaces the Progress before it; the others are all kept.
type (
	// Noted is a note to the user, for example about a value that is unknown.
	Noted struct {
		Text string `json:"text"`
	}
	// Probed is the measured training speed.
	Probed struct{ estimator.Rate }
	// Resumed says where a resumed job continues.
	Resumed struct {
		Round  int  `json:"round"`  // the first one to train, from 0
		Rounds int  `json:"rounds"` // in all; equal to Round: all are trained
		Fresh  bool `json:"fresh"`  // there is no checkpoint, and the job begins anew

		Halfway bool `json:"halfway,omitempty"` // it continues within the round
	}
	// Planned is an acknowledged job: its record is durable, and nothing runs yet.
	Planned struct{ disdel.Record }
	// Queued is a job that waits for room in the pool.
	Queued struct {
		Ahead int    `json:"ahead"`         // waiting jobs that go first
		Why   string `json:"why,omitempty"` // what is lacking; "": only the jobs ahead go first
	}
	// Admitted is a job that has room in the pool.
	Admitted struct {
		Room   scheduler.Capacity `json:"room"` // that it has
		Waited time.Duration      `json:"waitedNs"`
	}
	// Invoked is a started invocation, without its parameters.
	Invoked struct{ disdel.Invocation }
	// Ended is an activation that ended, without its parameters, and without its result if it succeeded.
	Ended struct{ disdel.Activation }
	// Progress is the newest heartbeat of every running action. The list must not be changed.
	Progress struct {
		Actions []disdel.Progress `json:"actions"`
	}
	// StageBegan is a stage that a policy or a failure began.
	StageBegan struct{ disdel.Stage }
	// RoundEnded is a round that ended.
	RoundEnded struct{ disdel.Round }
	// Adjusted is a limit or a setting that was changed after a failure.
	Adjusted struct{ disdel.Adjustment }
	// Forecast is the remaining time and cost. It comes just before the RoundEnded of its round.
	Forecast struct{ disdel.Forecast }
	// Outage is the begin or the end of a time in which the platform does not answer.
	Outage struct{ controller.Outage }
	// Waiting is actions without a sign of life.
	Waiting struct{ controller.Waiting }
	// Throttled is actions that wait for the platform's quota.
	Throttled struct{ controller.QuotaWait }
	// Pruned is older versions of the job's model that output.keep removed.
	Pruned struct {
		Models []string `json:"models"`
		Keep   int      `json:"keep"`
	}
	// Finished is the last event of an acknowledged job, with its record.
	Finished struct{ disdel.Record }
)

func (Noted) eventData()      {}
func (Probed) eventData()     {}
func (Resumed) eventData()    {}
func (Planned) eventData()    {}
func (Queued) eventData()     {}
func (Admitted) eventData()   {}
func (Invoked) eventData()    {}
func (Ended) eventData()      {}
func (Progress) eventData()   {}
func (StageBegan) eventData() {}
func (RoundEnded) eventData() {}
func (Adjusted) eventData()   {}
func (Forecast) eventData()   {}
func (Outage) eventData()     {}
func (Waiting) eventData()    {}
func (Throttled) eventData()  {}
func (Pruned) eventData()     {}
func (Finished) eventData()   {}

// String is a line for a person or a log.
func (e Event) String() string { return fmt.Sprintf("%s %d: %s", e.Job, e.Number, e.What) }

// eventOf returns a notice of the controller as an event, without what the controller may still change, and without large
// parts that no reader needs.
func eventOf(n controller.Notice) EventData {
	switch {
	case n.Planned != nil:
		return Planned{*n.Planned}
	case n.Invoked != nil:
		inv := *n.Invoked
		inv.Params = nil
		return Invoked{inv}
	case n.Ended != nil:
		a := *n.Ended
		a.Params = nil
		if a.Outcome == disdel.OutcomeSuccess {
			a.Result = nil
		}
		return Ended{a}
	case n.Stage != nil:
		return StageBegan{*n.Stage}
	case n.Refused != nil:
		return Noted{n.Refused.Text()}
	case n.Round != nil:
		return RoundEnded{*n.Round}
	case n.Adjusted != nil:
		return Adjusted{*n.Adjusted}
	case n.Forecast != nil:
		return Forecast{*n.Forecast}
	case n.Outage != nil:
		return Outage{*n.Outage}
	case n.Waiting != nil:
		return Waiting{*n.Waiting}
	case n.Quota != nil:
		return Throttled{*n.Quota}
	default:
		return Progress{n.Progress}
	}
}

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
