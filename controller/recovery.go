package controller

import (
	"fmt"
	"strings"
	"time"

	"github.com/disdel/disdel"
)

// effort is what was put into one slot in the current round.
type effort struct {
	attempt  int // the newest, 1 and up
	leg      int // of the newest attempt
	counted  int // failures that the job is to blame for
	platform int // failures that the platform is to blame for
	crashes  int // of those counted: deaths of the process
	publish  bool
	void     bool // the round was begun anew since: what comes of it does not count
}

// invoke makes the next invocation of a slot. Its attempt is above every earlier one of the slot in this round, so that its
// claim takes over whatever still runs.
func (m *Manager) invoke(s slot) Order {
	e := m.efforts[s]
	e.attempt++
	e.leg, e.void = 0, false
	m.efforts[s] = e
	return m.order(s, e)
}

func (m *Manager) order(s slot, e effort) Order {
	var inv disdel.Invocation
	w := work{round: m.round, attempt: e.attempt, leg: e.leg, limits: m.limits[s.task]}
	switch s.task {
	case disdel.TaskTrain:
		inv = m.spec.train(w, s.member, m.from(m.round))
	case disdel.TaskAggregate:
		inv = m.spec.aggregate(w, s.level, s.member, m.present(s.level, s.member), m.final(s))
		if e.publish {
			inv.ID += "/publish"
		}
	default:
		inv = m.spec.evaluate(w, m.from(m.round+1))
	}
	return Order{Kind: OrderInvoke, Invocation: inv}
}

// from is the checkpoint of the reference that a round starts from, "" where there is none.
func (m *Manager) from(round int) string {
	if m.saved == nil || m.saved.Round != round {
		return ""
	}
	return m.saved.Path
}

// final tells whether the aggregation of a slot writes the final weights.
func (m *Manager) final(s slot) bool {
	return s.level == len(m.spec.Plan.Levels) && (m.last || m.publish)
}

// current is the id of the newest invocation of an activation's slot.
func (m *Manager) current(a disdel.Activation) string {
	s := slot{a.Task, a.Level, a.Member}
	e, ok := m.efforts[s]
	if !ok || e.void {
		return ""
	}
	id := invocationID(work{round: m.round, attempt: e.attempt, leg: e.leg}, s)
	if e.publish {
		id += "/publish"
	}
	return id
}

// paused starts the next leg of a worker that stored its state before its deadline.
func (m *Manager) paused(a disdel.Activation) []Order {
	s := slot{a.Task, a.Level, a.Member}
	e := m.efforts[s]
	e.leg++
	m.efforts[s] = e
	return []Order{m.order(s, e)}
}

// failed does about a failed activation what Decide says.
func (m *Manager) failed(a disdel.Activation) []Order {
	s := slot{a.Task, a.Level, a.Member}
	if a.Task == "" || a.Outcome == disdel.OutcomeCanceled { // the package could not be made, or somebody stopped the job
		return m.fail(a.Failure)
	}
	if a.Round != m.round || a.Invocation.ID != m.current(a) {
		m.again++
		return nil
	}
	if s.task != disdel.TaskTrain && lostInput(a) {
		return m.redo(a)
	}
	if lostReference(a) {
		return m.back(a)
	}
	r := m.decide(a)
	switch {
	case r.Retry && (r.Batch > 0 || r.Workers > 0):
		return m.replan(a, r)
	case r.Retry:
		return m.retry(s, a, r)
	case s.task == disdel.TaskTrain && m.canProceed():
		return m.without(0, s.member)
	default:
		return m.fail(explained(a.Failure, r.Why))
	}
}

// explained adds to a failure why it was not tried again.
func explained(err *disdel.Error, why string) *disdel.Error {
	if err == nil || why == "" {
		return err
	}
	out := *err
	out.Msg += "; not tried again: " + why
	return &out
}

func (m *Manager) retry(s slot, a disdel.Activation, r Remedy) []Order {
	m.tried(s, a)
	var orders []Order
	if r.Adjustment != nil {
		m.limits[s.task] = r.Limits
		orders = append(orders, Order{Kind: OrderAdjust, Adjustment: *r.Adjustment})
	}
	o := m.invoke(s)
	o.After = r.After
	return append(orders, o)
}

// replan begins the round anew with another batch or other workers. Rounds of less than an epoch are counted in batches, and
// those of another size would not fit the ones that are done.
func (m *Manager) replan(a disdel.Activation, r Remedy) []Order {
	job := m.spec.Job
	if r.Batch > 0 {
		job.Training.BatchSize = r.Batch
	}
	if r.Workers > 0 {
		job.Distribution.Workers = r.Workers
	}
	if m.spec.Replan == nil || m.spec.Plan.Batches > 0 {
		return m.fail(explained(a.Failure, r.Why))
	}
	plan, err := m.spec.Replan(job)
	if err != nil {
		return m.fail(explained(a.Failure, err.Error()))
	}
	m.spec.Job, m.spec.Plan = job, plan
	m.retries++
	orders := []Order{{Kind: OrderPlan, Plan: plan}}
	if r.Adjustment != nil {
		orders = append(orders, Order{Kind: OrderAdjust, Adjustment: *r.Adjustment})
	}
	delete(m.limits, disdel.TaskTrain) // the new plan's own
	return append(orders, m.anew()...)
}

// maxRedone bounds how often one round is begun anew because updates were lost or damaged.
const maxRedone = 3

// lostInput tells whether an aggregation or evaluation failed because of what it was given, not of itself.
func lostInput(a disdel.Activation) bool {
	return a.Failure != nil && (a.Failure.Kind == disdel.NotFound || a.Failure.Kind == disdel.Corrupt)
}

// redo begins the round anew: an update was damaged, or the store lost it.
func (m *Manager) redo(a disdel.Activation) []Order {
	if m.redone++; m.redone > maxRedone {
		return m.fail(explained(a.Failure, fmt.Sprintf("the round was begun anew %d times", maxRedone)))
	}
	return m.anew()
}

// anew begins the round again: what was delivered is forgotten, and what is still being made of it will be refused.
func (m *Manager) anew() []Order {
	m.clear()
	for s, e := range m.efforts {
		e.void = true
		m.efforts[s] = e
	}
	return append([]Order{{Kind: OrderForget, Round: disdel.Round{Round: m.round}}}, m.invokeWorkers()...)
}

// back goes on from the newest checkpoint, or from the start: the store has lost the reference that this round starts from. What
// else it still has is swept: rounds after the checkpoint's would count as done.
func (m *Manager) back(a disdel.Activation) []Order {
	if m.backs++; m.backs > maxRedone {
		return m.fail(explained(a.Failure, fmt.Sprintf("the store has lost the weights %d times", m.backs)))
	}
	round := 0
	if m.saved != nil {
		round = m.saved.Round
	}
	return append([]Order{{Kind: OrderSweep}}, m.startRound(round)...)
}

// lostReference tells whether a worker did not find the weights that its round starts from.
func lostReference(a disdel.Activation) bool {
	return a.Task == disdel.TaskTrain && a.Failure != nil && a.Failure.Kind == disdel.NotFound && strings.Contains(a.Failure.Error(), "fetch reference")
}

// canProceed tells whether the policy allows a round without one more of its workers.
func (m *Manager) canProceed() bool {
	if m.spec.Job.Distribution.Missing.Policy != disdel.MissingProceed {
		return false
	}
	left := 0
	for _, s := range m.members[0] {
		if s != missing {
			left++
		}
	}
	return left > 1
}

// without goes on without a member of a level.
func (m *Manager) without(level, member int) []Order {
	if m.members[level][member] != waiting {
		return nil
	}
	m.members[level][member] = missing
	if level == 0 {
		m.lookAtTarget()
	}
	return m.advance(level, member)
}

// alarm bounds, once a round, the time that those who delivered wait for the others.
func (m *Manager) alarm() []Order {
	p := m.spec.Job.Distribution.Missing
	if m.alarmed || p.Policy != disdel.MissingProceed || p.After <= 0 {
		return nil
	}
	m.alarmed = true
	return []Order{{Kind: OrderAlarm, After: time.Duration(p.After), Round: disdel.Round{Round: m.round}}}
}

// overdue goes on without the workers of a round that have not delivered by now.
func (m *Manager) overdue(round int) []Order {
	if round != m.round || !m.alarmed {
		return nil
	}
	var orders []Order
	for w := range m.members[0] {
		if m.members[0][w] == waiting && m.canProceed() {
			orders = append(orders, m.without(0, w)...)
		}
	}
	return orders
}
