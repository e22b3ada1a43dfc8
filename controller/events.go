package controller

import (
	"time"

	"github.com/disdel/disdel"
)

// Event is something that happened to a job: one of the types of this file.
type Event interface {
	event()
	when() Moment
}

// Moment is the time and the bill at an event. Unknown values are zero.
type Moment struct {
	At    disdel.Millis // since the controller started the job
	Spent float64       // GB-s by use of ended activations, including earlier runs of the job
}

// StartedEvent says that the job's package and actions exist.
type StartedEvent struct {
	Moment
	Halfway bool // the work of Spec.Kept is in the store
}

// EndedEvent is the end of an activation, whatever its outcome.
type EndedEvent struct {
	Moment
	Activation disdel.Activation
}

// RefusedEvent says that an invocation could not be made or followed: only its invocation, outcome and failure are
// known. Without a task it means that the job's package could not be created.
type RefusedEvent struct {
	Moment
	Activation disdel.Activation
}

// StepsEvent is the progress of the running actions, by their newest heartbeats.
type StepsEvent struct {
	Moment
	Progress []disdel.Progress
}

// GrantedEvent is the answer to the newest GrantOrder.
type GrantedEvent struct {
	Moment
	Refused string        // why the job does without the containers; "": it has them
	Err     *disdel.Error // why it will never get them
}

// AlarmEvent says that the time of the AlarmOrder with this number has passed.
type AlarmEvent struct {
	Moment
	Number int
}

// CanceledEvent says that the job was stopped, and why.
type CanceledEvent struct {
	Moment
	Err *disdel.Error
}

// DeadlineEvent says that the job's own deadline has passed.
type DeadlineEvent struct {
	Moment
	Err *disdel.Error
}

// StoreGoneEvent says that the store was away for longer than a job waits.
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

// Order is a request of the Manager to the loop: one of the types of this file. (The documents call these orders a
// manager's actions; an action in code is always OpenWhisk's.)
type Order interface{ order() }

// InvokeOrder requests an invocation after a pause.
type InvokeOrder struct {
	Invocation disdel.Invocation
	After      time.Duration
}

// AlarmOrder requests an AlarmEvent with this number after some time. It replaces an earlier one.
type AlarmOrder struct {
	Number int
	Round  int // that it bounds
	After  time.Duration
}

// AdjustOrder records a changed limit or plan.
type AdjustOrder struct{ Adjustment disdel.Adjustment }

// DecisionOrder records a policy's decision.
type DecisionOrder struct{ Decision disdel.Decision }

// StageOrder starts the stage with this number in the record; Plan is the job's with it.
type StageOrder struct {
	Stage  disdel.Stage
	Number int
	Plan   disdel.Plan
}

// GrantOrder requests the containers of a stage before it starts. A GrantedEvent answers it, and nothing of the job
// is invoked before. After a failure in the middle of a round its other workers may run on until the store tells
// them, with the next renewal of their claims, that the round has started again.
type GrantOrder struct {
	Round int // the first with these containers
	Plan  disdel.Plan
	// Waits says that the job cannot continue without them: it returns those that it has, and waits at its place in the
	// queue. Otherwise the answer comes at once.
	Waits bool
}

// CheckpointOrder records a checkpoint on the blob store, and the result of its round.
type CheckpointOrder struct {
	Checkpoint disdel.Checkpoint
	Round      disdel.Round
}

// ForgetOrder deletes from the store what was delivered for a round.
type ForgetOrder struct{ Round int }

// EndOrder lets workers that exchange updates inside a round continue without one of them.
type EndOrder struct{ Round, Worker int }

// LetGoOrder releases one of the workers that take a round's batches from a queue.
type LetGoOrder struct{ Round, Worker int }

// SweepOrder deletes all data of the job from the store.
type SweepOrder struct{}

// RoundOrder records and shows a finished round. It replaces this round and all later ones.
type RoundOrder struct {
	Round   disdel.Round
	ByClass *disdel.ByClass // of its evaluation; nil: unknown
}

// BestOrder records the best evaluation so far, whose weights are written.
type BestOrder struct{ Best disdel.Best }

// FinishOrder ends the job.
type FinishOrder struct {
	Status  disdel.Status
	Failure *disdel.Error
	Stopped string          // why training ended before its last epoch
	Blind   *disdel.Error   // why the model was not evaluated
	Halfway *disdel.Halfway // the round in which a budget stopped the job; nil: none
	unpaid  step            // what the budget could not pay for; a test compares it with the true cost
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
