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

// Event is something that happened to a job. Numbers rise from 1 in the order in which it happened.
type Event struct {
	Number int
	Job    disdel.JobID
	What   Happening
}

// Happening is what an Event tells: one of the types below, as a value.
type Happening interface {
	fmt.Stringer // a few words for a person
	happening()
}

// What happens to a job. Those that end in the past tense happen once or seldom; Progress is a picture that the next
// one replaces.
type (
	// Noted is something that the job's file does not say, or that nobody could find out.
	Noted struct {
		Text string `json:"text"`
	}
	// Probed is what a look at how fast the job trains found.
	Probed struct{ estimator.Rate }
	// Resumed says where a resumed job goes on.
	Resumed struct {
		Round  int  `json:"round"`  // the first that is trained, 0-based
		Rounds int  `json:"rounds"` // of how many; equal: all of them are trained
		Fresh  bool `json:"fresh"`  // it has no checkpoint and begins anew

		Halfway bool `json:"halfway,omitempty"` // it continues with what the store kept of that round
	}
	// Planned is a job that is accepted: its record is durable, and nothing runs yet.
	Planned struct{ disdel.Record }
	// Queued is a job that waits for its gang: how many jobs are before it, and what there is too little of.
	Queued struct {
		Ahead int    `json:"ahead"`         // jobs that wait, and go first
		Why   string `json:"why,omitempty"` // "" where the jobs ahead are all there is to wait for
	}
	// Admitted is a job that has its gang.
	Admitted struct {
		Room   scheduler.Capacity `json:"room"` // what it takes up
		Waited time.Duration      `json:"waitedNs"`
	}
	// Invoked is an invocation that was asked for. Its parameters are left out.
	Invoked struct{ disdel.Invocation }
	// Ended is an activation that ended, however it did. Its parameters, and its result if it passed, are left out.
	Ended struct{ disdel.Activation }
	// Progress is the newest heartbeat of every action that runs. Nobody may change the list.
	Progress struct {
		Actions []disdel.Progress `json:"actions"`
	}
	// StageBegan is a stage that a policy or a failure began: how the job goes on, and why.
	StageBegan struct{ disdel.Stage }
	// RoundEnded is a round that is over.
	RoundEnded struct{ disdel.Round }
	// Adjusted is a limit or a setting that a failure changed.
	Adjusted struct{ disdel.Adjustment }
	// Forecast is what is left to do, just before the RoundEnded that it was made after.
	Forecast struct{ disdel.Forecast }
	// Outage is a platform that does not answer, or does again.
	Outage struct{ controller.Outage }
	// Waiting is actions that give no sign.
	Waiting struct{ controller.Waiting }
	// Throttled is actions that wait for the next minute's quota.
	Throttled struct{ controller.QuotaWait }
	// Pruned is older versions of the job's model that output.keep left no room for.
	Pruned struct {
		Models []string `json:"models"`
		Keep   int      `json:"keep"`
	}
	// Finished is the last event of a job that was accepted, with its record.
	Finished struct{ disdel.Record }
)

func (Noted) happening()      {}
func (Probed) happening()     {}
func (Resumed) happening()    {}
func (Planned) happening()    {}
func (Queued) happening()     {}
func (Admitted) happening()   {}
func (Invoked) happening()    {}
func (Ended) happening()      {}
func (Progress) happening()   {}
func (StageBegan) happening() {}
func (RoundEnded) happening() {}
func (Adjusted) happening()   {}
func (Forecast) happening()   {}
func (Outage) happening()     {}
func (Waiting) happening()    {}
func (Throttled) happening()  {}
func (Pruned) happening()     {}
func (Finished) happening()   {}

// String is a line for a person or a log.
func (e Event) String() string { return fmt.Sprintf("%s %d: %s", e.Job, e.Number, e.What) }

// happeningOf is a notice of the controller, without what it may still change and without what an onlooker has no use
// for.
func happeningOf(n controller.Notice) Happening {
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

// mostEvents bounds what is kept of a long job for onlookers who come late: of the older half then goes what passed.
const mostEvents = 20_000

// journal keeps a job's events. Whoever adds one never waits for whoever reads; of progress it keeps the newest picture
// alone.
type journal struct {
	job    disdel.JobID
	series string      // see Run.Series
	first  func(Event) // is told each event until the job is acknowledged
	counts func(Event) // is told each event from then on; nil: nobody is

	mu       sync.Mutex
	events   []Event       // guarded by mu: without progress, by number
	progress Event         // guarded by mu: the newest picture; Number 0: none yet
	last     int           // guarded by mu
	closed   bool          // guarded by mu: nothing more happens
	changed  chan struct{} // guarded by mu: closed with the next event
}

func newJournal(job disdel.JobID, first func(Event)) *journal {
	return &journal{job: job, series: strings.ToLower(ulid.Make().String()), first: first, changed: make(chan struct{})}
}

func (j *journal) add(what Happening) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return
	}
	j.last++
	e := Event{Number: j.last, Job: j.job, What: what}
	if _, picture := what.(Progress); picture {
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

// acknowledged ends what is told at once; what happens from now on is counted.
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

// wake has readers look again; the caller holds the lock.
func (j *journal) wake() {
	close(j.changed)
	j.changed = make(chan struct{})
}

// thin drops what passed long ago from a journal that has grown too long; the caller holds the lock.
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

// after is the first event with a larger number, false where there is none yet; changed is closed with the next one,
// and nil where none will come.
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

// read is the events after a number, those to come too, until ctx or the job ends.
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
