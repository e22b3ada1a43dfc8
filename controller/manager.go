package controller

import (
	"encoding/json"

	"github.com/disdel/disdel"
)

// Manager is the event manager: DiSDeL's Algorithm 1, repeated for every round. It is a pure state machine; use it from
// one goroutine.
//
// Three parts have a duty each, and none knows of the others. How a round's workers come to the next reference is the
// barrier's: it says which slots are next. What it takes to get a slot's work done is attempts': legs, later attempts,
// remedies as scheduler.Decide says, raised limits. Where the job is to go is course's: its stages, its policy. The
// Manager joins them and does what every round has in common: it invokes slots, begins a round anew or goes back to a
// checkpoint where the store has lost something, keeps to the budget, and has a round evaluated when it is made, the
// weights written, and the next one begun.
type Manager struct {
	spec        Spec // as it is in the round's stage
	course      course
	attempts    attempts
	barrier     *barrier // of the round
	watch       watch
	evaluations evaluations
	budget      budget
	letting     letting
	gang        gang
	saved       *disdel.Checkpoint // newest

	round      int
	last       bool // no round follows this one
	written    bool // an aggregation has written what is to be the model, or will with its mean
	publish    bool // the running aggregation only writes the weights
	duplicates int  // results of this round that changed nothing
	restarts   int  // times this round was begun anew because updates were lost or damaged
	alarms     int  // set so far
	alarmed    bool // the newest alarm is of this round
	stopped    string
	resumed    *disdel.Round // which an earlier run of the job had trained

	rollbacks int // times the job went back because the store had lost weights
	ended     bool
}

// NewManager starts the state machine of one job; a resumed one starts where its checkpoint says.
func NewManager(spec Spec) *Manager {
	if spec.Began == 0 {
		spec.Began = spec.Plan.Workers
	}
	m := &Manager{
		spec: spec, course: newCourse(spec), attempts: newAttempts(), evaluations: newEvaluations(spec), saved: spec.From,
		budget: newBudget(spec.Job), gang: gang{stage: spec.Before},
	}
	m.reset(0)
	return m
}

func (m *Manager) reset(round int) {
	m.round, m.duplicates, m.restarts = round, 0, 0
	m.attempts.begin()
	m.enter(round)
	m.watch.begin()
	m.clear()
}

// clear forgets what was delivered in this round, and waits for nothing any more.
func (m *Manager) clear() {
	m.barrier = newBarrier(m.spec.Plan)
	m.letting.begin(m.course.policy, m.spec.Job, m.spec.Plan.Workers)
	m.alarmed, m.resumed = false, nil
	m.last, m.publish, m.stopped = m.round == m.spec.Plan.Rounds-1, false, ""
	m.evaluations.better = nil
	m.written = m.evaluations.best != nil
	m.attempts.closeAll()
}

// Step takes one event and returns what is to be done about it, in order. After a FinishOrder it returns nothing.
func (m *Manager) Step(e Event) []Order {
	if m.ended || e == nil {
		return nil
	}
	m.budget.tell(e.when())
	m.watch.now = max(m.watch.now, e.when().At)
	return m.within(m.step(e))
}

// step is Step without the budget.
func (m *Manager) step(e Event) []Order {
	switch e := e.(type) {
	case StartedEvent:
		done := 0
		for _, r := range m.spec.Done {
			done += m.stepsOf(r.Round)
		}
		m.budget.resumed(done, m.spec.Kept, e.Halfway)
		return m.begin()
	case EndedEvent:
		return m.activationEnded(e.Activation)
	case RefusedEvent:
		return m.activationEnded(e.Activation)
	case GrantedEvent:
		return m.granted(e)
	case AlarmEvent:
		return m.overdue(e.Number)
	case StepsEvent:
		return m.stepsMade(e.Progress)
	case CanceledEvent:
		return m.finish(disdel.StatusCanceled, e.Err)
	case DeadlineEvent:
		return m.fail(e.Err)
	case StoreGoneEvent:
		return m.fail(e.Err)
	}
	return nil
}

func (m *Manager) activationEnded(a disdel.Activation) []Order {
	if a.Task == "" { // the package could not be made
		return m.fail(explained(a, ""))
	}
	m.budget.over(a, m.spec.Plan.WorkerBatch(&m.spec.Job))
	if !m.attempts.awaits(a) {
		m.duplicates++ // a late duplicate, or one that another attempt has taken the place of, changes nothing
		return nil
	}
	m.attempts.close(a.Slot())
	m.watch.ended(a)
	switch {
	case a.Outcome == disdel.OutcomePaused:
		return m.paused(a)
	case a.Outcome != disdel.OutcomeSuccess:
		return m.failed(a)
	}
	switch a.Task {
	case disdel.TaskTrain:
		return m.trained(a)
	case disdel.TaskAggregate:
		return m.aggregated(a)
	case disdel.TaskEvaluate:
		return m.evaluated(a)
	default:
		return nil
	}
}

func (m *Manager) trained(a disdel.Activation) []Order {
	var r disdel.TrainResult
	if err := json.Unmarshal(a.Result, &r); err != nil {
		return m.fail(badResult(a, err))
	}
	if r.Duplicate {
		m.duplicates++ // an earlier activation of this attempt's work had delivered
	}
	m.watch.trained(a.Member, r)
	next := m.barrier.trained(a.Member, r)
	m.lookAtTarget()
	if r.Left > 0 { // the others are not near their end for that
		return m.invokeAll(next)
	}
	return append(m.alarm(), m.invokeAll(next)...)
}

func (m *Manager) aggregated(a disdel.Activation) []Order {
	var r disdel.AggregateResult
	if err := json.Unmarshal(a.Result, &r); err != nil {
		return m.fail(badResult(a, err))
	}
	top := a.Slot() == m.barrier.top()
	if top && !m.publish {
		m.watch.done()
	}
	var orders []Order
	if r.Saved != nil {
		m.saved = r.Saved
		if m.last {
			m.saved.Round = m.spec.Plan.Rounds // nothing is left to train, wherever it stopped
		}
		orders = append(orders, CheckpointOrder{Checkpoint: *r.Saved, Round: m.roundSoFar()})
	}
	if r.Unsaved != nil && !m.final(a.Slot()) { // else the model itself is there
		return append(orders, m.unsaved(a, r.Unsaved)...)
	}
	if m.publish {
		return append(orders, m.wrote(r)...)
	}
	next := m.barrier.delivered(a.Slot())
	if !top {
		return append(orders, m.invokeAll(next)...)
	}
	m.written = m.written || m.final(a.Slot())
	return append(orders, m.measure()...)
}

func (m *Manager) fail(err *disdel.Error) []Order {
	if err == nil {
		err = &disdel.Error{Kind: disdel.Internal, Op: "run job", Msg: "an activation failed without a cause"}
	}
	if err.Kind == disdel.Canceled {
		return m.finish(disdel.StatusCanceled, err)
	}
	return m.finish(disdel.StatusFailed, err)
}

func (m *Manager) finish(s disdel.Status, err *disdel.Error) []Order {
	m.ended = true
	o := FinishOrder{Status: s, Failure: err, Stopped: m.stopped}
	if s == disdel.StatusSucceeded && m.evaluations.unmeasured && m.evaluations.best == nil {
		o.Blind = m.evaluations.blind
	}
	return []Order{o}
}

func badResult(a disdel.Activation, err error) *disdel.Error {
	return &disdel.Error{
		Kind: disdel.Internal, Op: "read result of " + a.Invocation.ID, Activation: a.ID,
		Msg: "the action answered something else than its result", Err: err,
		Hint: "check that the action image and disdel are of the same version",
	}
}
