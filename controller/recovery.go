package controller

import (
	"fmt"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// failed does about a failed activation what scheduler.Decide says.
func (m *Manager) failed(a disdel.Activation) []Order {
	s := a.Slot()
	switch {
	case a.Outcome == disdel.OutcomeCanceled: // somebody stopped the job
		return m.fail(explained(a, ""))
	case a.FailureCode() == disdel.CodeUnreachable: // it was waited for as long as anything is
		return m.fail(explained(a, ""))
	case scheduler.LostUpdate(a) && !m.publish:
		return m.redo(a)
	case scheduler.LostReference(a):
		return m.back(a)
	}
	r := m.decide(a)
	switch {
	case r.Retry && s.Task == disdel.TaskEvaluate && r.Batch > 0:
		m.batch = r.Batch
		return m.retry(s, a, r)
	case r.Retry && (r.Batch > 0 || r.Workers > 0):
		return m.replan(a, r)
	case r.Retry:
		return m.retry(s, a, r)
	case s.Task == disdel.TaskTrain && m.canProceed():
		return m.without(0, s.Member)
	case s.Task == disdel.TaskEvaluate && a.Failure != nil:
		return m.unevaluated(explained(a, r.Why))
	default:
		return m.fail(explained(a, r.Why))
	}
}

// explained names the invocation that failed in its failure, and says why it was not tried again.
func explained(a disdel.Activation, why string) *disdel.Error {
	if a.Failure == nil {
		return nil
	}
	out := *a.Failure
	out.Invocation = a.Invocation.ID
	if out.NotRetried = why; why != "" {
		out.Msg += "; " + disdel.NotTriedAgain + why
	}
	return &out
}

func (m *Manager) retry(s disdel.Slot, a disdel.Activation, r scheduler.Remedy) []Order {
	m.tried(s, a)
	var orders []Order
	if r.Adjustment != nil {
		m.raise(s.Task, r.Limits)
		orders = append(orders, Order{Kind: OrderAdjust, Adjustment: *r.Adjustment})
	}
	o := m.invoke(s)
	o.After = r.After
	return append(orders, o)
}

// replan begins the round anew with another batch or other workers; a smaller batch alone leaves the workers as many as they
// are. Rounds of less than an epoch are counted in batches, and those of another size would not fit the ones that are done.
func (m *Manager) replan(a disdel.Activation, r scheduler.Remedy) []Order {
	job := m.spec.Job
	if r.Batch > 0 {
		job.Training.BatchSize = r.Batch
	}
	if m.spec.Replan == nil || m.spec.Plan.Batches > 0 {
		return m.fail(explained(a, r.Why))
	}
	wanted := job
	wanted.Distribution.Workers = max(r.Workers, m.spec.Plan.Workers)
	plan, err := m.spec.Replan(wanted)
	if err != nil {
		return m.fail(explained(a, err.Error()))
	}
	m.spec.Job, m.spec.Plan = job, plan
	m.retries++
	orders := []Order{{Kind: OrderPlan, Plan: plan}}
	if r.Adjustment != nil {
		orders = append(orders, Order{Kind: OrderAdjust, Adjustment: *r.Adjustment})
	}
	m.raise(a.Task, a.Limits) // what is left of the retries is not for finding out again what was too little
	action, _ := plan.Action(a.Task)
	m.raise(a.Task, action.Limits)
	return append(orders, m.anew()...)
}

// raise has a task's limits be no lower than these: they are of all its actions, each of which may have failed at others.
func (m *Manager) raise(task disdel.Task, to disdel.Limits) {
	l := m.limits[task]
	m.limits[task] = disdel.Limits{Memory: max(l.Memory, to.Memory), Timeout: max(l.Timeout, to.Timeout)}
}

// maxRedone bounds how often one round is begun anew because updates were lost or damaged, and how often the job goes back.
const maxRedone = 3

// redo begins the round anew: an update was damaged, or the store lost it.
func (m *Manager) redo(a disdel.Activation) []Order {
	if m.redone++; m.redone > maxRedone {
		return m.fail(explained(a, fmt.Sprintf("the round was begun anew %d times", maxRedone)))
	}
	return m.anew()
}

// anew begins the round again: what was delivered is forgotten, and what is still being made of it will be refused.
func (m *Manager) anew() []Order {
	m.clear()
	return append([]Order{{Kind: OrderForget, Round: disdel.Round{Round: m.round}}}, m.invokeWorkers()...)
}

// back goes on from the newest checkpoint, or from the start: the store has lost weights. What else it still has would have
// the rounds in between taken for done, so it forgets all of it. Where the checkpoint has what the round came to, only that is
// read again.
func (m *Manager) back(a disdel.Activation) []Order {
	if m.backs++; m.backs > maxRedone {
		return m.fail(explained(a, fmt.Sprintf("the store has lost the weights %d times", m.backs)))
	}
	orders := []Order{{Kind: OrderSweep}}
	m.floor, m.revisit = m.highest, max(m.revisit, m.round+1)
	if a.Task != disdel.TaskTrain && m.from(m.round+1) != "" {
		return append(orders, m.invoke(a.Slot()))
	}
	round := 0
	if m.saved != nil {
		round = min(m.saved.Round, m.round)
	}
	m.forget(round)
	return append(orders, m.startRound(round)...)
}
