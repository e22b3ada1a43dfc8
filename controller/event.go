package controller

import (
	"github.com/disdel/disdel"
)

// Event is something that happened to a job: one of the types of this file, and no other.
type Event interface {
	event()
	when() Moment
}

// Moment is what the loop knows of the job when something happens. What it does not know is zero.
type Moment struct {
	At    disdel.Millis // since the controller took the job up
	Spent float64       // GB-s by use of what has ended, runs of the job before this one too
}

// StartedEvent says that the job's package and its actions exist.
type StartedEvent struct {
	Moment
	Halfway bool // what Spec.Kept says is in the store
}

// EndedEvent is the end of an activation, whatever came of it.
type EndedEvent struct {
	Moment
	Activation disdel.Activation
}

// RefusedEvent says that an invocation could not be made, or could not be asked about: of its activation only the
// invocation, the outcome and the failure are known. Without a task it is the job's package that could not be made.
type RefusedEvent struct {
	Moment
	Activation disdel.Activation
}

// StepsEvent is how far the actions are that run, as their newest heartbeats say.
type StepsEvent struct {
	Moment
	Progress []disdel.Progress
}

// GrantedEvent is the answer to the newest GrantOrder.
type GrantedEvent struct {
	Moment
	Refused string        // why the job does without; "": it has the containers
	Err     *disdel.Error // why it will never have them
}

// AlarmEvent says that the time of the AlarmOrder of this number has passed.
type AlarmEvent struct {
	Moment
	Number int
}

// CanceledEvent says that somebody stopped the job, and why.
type CanceledEvent struct {
	Moment
	Err *disdel.Error
}

// DeadlineEvent says that the job's own deadline has passed.
type DeadlineEvent struct {
	Moment
	Err *disdel.Error
}

// StoreGoneEvent says that the store has been away for longer than a job waits for it.
type StoreGoneEvent struct {
	Moment
	Err *disdel.Error
}

func (m Moment) when() Moment { return m }

func (StartedEvent) event()   {}
func (EndedEvent) event()     {}
func (RefusedEvent) event()   {}
func (StepsEvent) event()     {}
func (GrantedEvent) event()   {}
func (AlarmEvent) event()     {}
func (CanceledEvent) event()  {}
func (DeadlineEvent) event()  {}
func (StoreGoneEvent) event() {}
