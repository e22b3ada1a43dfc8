package controller

import (
	"time"

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

// Order is one thing that the Manager asks of the loop: one of the types of this file, and no other. (The documents
// call these orders a manager's actions; an action in code is always OpenWhisk's.)
type Order interface{ order() }

// InvokeOrder has an invocation made, after a pause.
type InvokeOrder struct {
	Invocation disdel.Invocation
	After      time.Duration
}

// AlarmOrder has an AlarmEvent of this number sent when a time has passed; it takes the place of an earlier one.
type AlarmOrder struct {
	Number int
	Round  int // that it bounds
	After  time.Duration
}

// AdjustOrder has the record keep what has changed of a limit, or of the plan.
type AdjustOrder struct{ Adjustment disdel.Adjustment }

// DecisionOrder has the record keep that a policy was asked, and what it answered.
type DecisionOrder struct{ Decision disdel.Decision }

// StageOrder begins a stage, of which the record has the number Number; Plan is the job's with it.
type StageOrder struct {
	Stage  disdel.Stage
	Number int
	Plan   disdel.Plan
}

// GrantOrder has the job's admission asked for the containers of a stage before it begins. A GrantedEvent is the
// answer, and nothing of the job is invoked until it comes. After a failure in the middle of a round its other workers
// may run on until the store tells them, with the next renewal of their claims, that the round has begun anew.
type GrantOrder struct {
	Round int // the first that is to run with them
	Plan  disdel.Plan
	// Waits says that the job cannot continue without them: it gives back what it has and waits, in its place of the
	// queue. Else it is answered at once, and does without.
	Waits bool
}

// CheckpointOrder says that a checkpoint is on the blob store, and what the round came to that it is of.
type CheckpointOrder struct {
	Checkpoint disdel.Checkpoint
	Round      disdel.Round
}

// ForgetOrder has the store forget what was delivered for a round.
type ForgetOrder struct{ Round int }

// EndOrder has the workers of a round that exchange updates inside it continue without one of them.
type EndOrder struct{ Round, Worker int }

// LetGoOrder has one of the workers that take a round's batches from a queue leave it.
type LetGoOrder struct{ Round, Worker int }

// SweepOrder has the store forget everything of the job.
type SweepOrder struct{}

// RoundOrder says that a round is over: it is kept and shown, in place of any from that one on.
type RoundOrder struct {
	Round   disdel.Round
	ByClass *disdel.ByClass // of its evaluation; nil: there is none, or it does not tell
}

// BestOrder says which evaluation is the best so far; its weights are written.
type BestOrder struct{ Best disdel.Best }

// FinishOrder says what the job has come to. Nothing follows.
type FinishOrder struct {
	Status  disdel.Status
	Failure *disdel.Error
	Stopped string          // why training ended before its last epoch
	Blind   *disdel.Error   // why the model was not evaluated
	Halfway *disdel.Halfway // the round that a budget stopped the job in; nil: none
	unpaid  step            // what the budget did not pay; a test holds it against the true cost
}

func (InvokeOrder) order()     {}
func (AlarmOrder) order()      {}
func (AdjustOrder) order()     {}
func (DecisionOrder) order()   {}
func (StageOrder) order()      {}
func (GrantOrder) order()      {}
func (CheckpointOrder) order() {}
func (ForgetOrder) order()     {}
func (EndOrder) order()        {}
func (LetGoOrder) order()      {}
func (SweepOrder) order()      {}
func (RoundOrder) order()      {}
func (BestOrder) order()       {}
func (FinishOrder) order()     {}
