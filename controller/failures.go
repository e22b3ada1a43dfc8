package controller

import (
	"fmt"
	"maps"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// failed reacts to a failed activation as scheduler.FindRemedy says.
func (m *Manager) failed(a disdel.Activation) []Order {
	s := a.Slot()
	switch {
	case a.Outcome == disdel.OutcomeCanceled: // the job was stopped
		return m.fail(explained(a, ""))
	case a.FailureCode() == disdel.CodeUnreachable: // the longest wait is over
		return m.fail(explained(a, ""))
	case holdTooShort(a): // its hold was too short: it gets a longer one, if the budget pays for it
		return []Order{m.invoke(s)}
	case a.FailureKind() == disdel.NoSpace:
		return m.unkept(a, a.Failure) // a retry fails until somebody frees space
	case scheduler.LostUpdate(a) && !m.publish:
		return m.restartRound(a)
	case scheduler.LostReference(a):
		return m.rollBack(a)
	}
	m.stats.failed++
	r := m.attempts.remedy(a, m.spec.Job, m.spec.Plan, m.spec.Planned)
	switch {
	case r.Retry && s.Task == disdel.TaskEvaluate && r.BatchSize > 0:
		m.attempts.batch = r.BatchSize
		return m.retry(s, a, r)
	case r.Retry:
		return m.remedied(a, r)
	case s.Task == disdel.TaskTrain && m.canProceed():
		return m.without(s.Member)
	case s.Task == disdel.TaskEvaluate && a.Failure != nil:
		return m.unevaluated(explained(a, r.Why))
	default:
		return m.fail(explained(a, r.Why))
	}
}

// unsaved writes a checkpoint again after a failed write, within the limits of retries. It ends the job at once if
// the disk is full or the storage refuses: a retry would fail until somebody fixes that.
func (m *Manager) unsaved(a disdel.Activation, why *disdel.Error) []Order {
	if why.Kind == disdel.NoSpace || why.Kind == disdel.Denied {
		return m.unkept(a, why)
	}
	failed := a
	failed.Outcome, failed.Failure = disdel.OutcomeApplicationError, why
	if r := m.attempts.remedy(failed, m.spec.Job, m.spec.Plan, m.spec.Planned); r.Retry {
		return m.retry(a.Slot(), failed, r)
	}
	return m.unkept(a, why)
}

// unkept ends a job whose state cannot be written, since later rounds would be lost, too. Earlier checkpoints stay; a
// resume continues at the newest one.
func (m *Manager) unkept(a disdel.Activation, why *disdel.Error) []Order {
	what := fmt.Sprintf("the checkpoint of round %d could not be written", m.round+1)
	switch {
	case a.Task == disdel.TaskTrain && !strings.HasPrefix(why.Op, "write "): // its rows or moments, no blob
		what = "the disk of a train action has no room for its files"
	case m.publish || m.last && a.Task == disdel.TaskAggregate && a.Outcome.Failed():
		what = "the final weights could not be written"
	}
	from := "there is no checkpoint yet, so a resume trains all rounds anew"
	if n := m.newestCheckpoint(); n > 0 {
		from = fmt.Sprintf("a resume goes on after round %d, whose checkpoint is kept", n)
	}
	hint := why.Hint
	if hint == "" {
		hint = "check that the storage can be written"
	}
	return m.fail(&disdel.Error{
		Kind: why.Kind, Code: disdel.CodeUnkept, Op: "keep job", Job: m.spec.ID,
		Activation: a.ID, Invocation: a.Invocation.ID,
		Msg: fmt.Sprintf("%s (%s); the job stops before it loses more; %s", what,
			strings.TrimSpace(why.Error()), from),
		Hint: fmt.Sprintf("%s; then disdel resume %s", hint, m.spec.ID),
	})
}

// explained adds the failed invocation to its failure, and why it was not retried.
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
	m.attempts.tried(a, m.spec.Job)
	var orders []Order
	if r.Adjustment != nil {
		m.attempts.raise(s.Task, r.Limits)
		orders = append(orders, AdjustOrder{*r.Adjustment})
	}
	o := m.invoke(s)
	o.After = r.After
	return append(orders, o)
}

// remedied retries failed work as the remedy and then the job's policy say: unchanged, or in a new stage with another
// batch, other workers or steps that save memory. Only a train action's failure starts a stage.
func (m *Manager) remedied(a disdel.Activation, r scheduler.Remedy) []Order {
	asked := r.BatchSize > 0 || r.Workers > 0 || r.StepMemory != (disdel.StepMemory{}) || r.Stages > 0
	if a.Task != disdel.TaskTrain {
		return m.retry(a.Slot(), a, r)
	}
	d := m.ask(disdel.BoundaryFailure, m.round, &scheduler.Failure{Activation: a, Remedy: r})
	if !asked && !m.changes(d) {
		return m.retry(a.Slot(), a, r)
	}
	begun, why := m.replan(d, r.Why)
	if begun == nil && asked { // the policy's choice is impossible; the remedy's may be possible
		d = m.consult(disdel.BoundaryFailure, m.round, scheduler.Static{}, &scheduler.Failure{Activation: a, Remedy: r})
		begun, why = m.replan(d, r.Why)
	}
	switch {
	case begun == nil && asked:
		return m.fail(explained(a, why))
	case begun == nil:
		return m.retry(a.Slot(), a, r)
	case asked:
		m.attempts.retries++
	default:
		m.attempts.tried(a, m.spec.Job)
	}
	if r.Adjustment != nil {
		m.attempts.raise(a.Task, r.Limits)
		begun = append(begun, AdjustOrder{*r.Adjustment})
	}
	m.attempts.raise(a.Task, a.Limits) // so that retries do not repeat a limit that was too small
	action, _ := m.spec.Plan.Action(a.Task)
	m.attempts.raise(a.Task, action.Limits)
	return append(begun, m.beginRoundAgain()...)
}

// replan starts a stage with the current round. begun is nil, with the reason, if that cannot be planned.
func (m *Manager) replan(d disdel.Decision, because string) (begun []Order, why string) {
	at, fits := m.divided(d)
	if m.spec.Replan == nil || !fits {
		return nil, because
	}
	c, err := m.candidate(d, m.round, at)
	if err != nil {
		return nil, err.Error()
	}
	return m.change(c), ""
}

// divided returns where the round starts with another batch or other workers. Between two epochs that is its own
// start. In the middle of an epoch the rows that were trained must be whole batches of the new size, on the same
// shards.
func (m *Manager) divided(d disdel.Decision) (at disdel.Position, ok bool) {
	span, was, batch := m.spec.span(m.round), m.spec.Stage.BatchSize, d.BatchSize
	at = disdel.Position{Epoch: span.Epoch, Batch: span.Batch}
	if at.Batch == 0 {
		return at, true
	}
	if batch == 0 {
		batch = was
	}
	if d.Next.Replicas() != m.spec.Plan.Replicas() || batch > was || at.Batch*was%batch != 0 {
		return at, false
	}
	at.Batch = at.Batch * was / batch
	return at, true
}

// maxRestarts limits how often one round starts again because updates were lost or damaged, and how often the job
// goes back.
const maxRestarts = 3

// restartRound starts the round again: an update was damaged, or the store lost it.
func (m *Manager) restartRound(a disdel.Activation) []Order {
	if m.restarts++; m.restarts > maxRestarts {
		return m.fail(explained(a, fmt.Sprintf("the round was begun anew %d times", maxRestarts)))
	}
	return m.beginRoundAgain()
}

// beginRoundAgain starts the round again. What was delivered is deleted, and what running actions still deliver will
// be refused. If the round had its mean, the workers find that they have nothing to do: their results are kept.
func (m *Manager) beginRoundAgain() []Order {
	maps.Copy(m.earlier, m.barrier.results)
	m.clear()
	m.budget.done = 0
	return append([]Order{ForgetOrder{m.round}}, m.startWorkers()...)
}

// rollBack continues from the newest checkpoint, or from the start: the store has lost weights. The rest of the job's
// data would make later rounds look done, so all of it is deleted. If the checkpoint has the round's result, only
// that is read again.
func (m *Manager) rollBack(a disdel.Activation) []Order {
	if m.rollbacks++; m.rollbacks > maxRestarts {
		return m.fail(explained(a, fmt.Sprintf("the store has lost the weights %d times", m.rollbacks)))
	}
	orders := []Order{SweepOrder{}}
	m.attempts.goBack(m.round + 1)
	if a.Task != disdel.TaskTrain && m.from(m.round+1) != "" {
		return append(orders, m.invoke(a.Slot()))
	}
	round := 0
	if m.saved != nil {
		round = min(m.saved.Round, m.round)
	}
	m.forget(round)
	m.budget.done = 0
	return append(orders, m.startRound(round)...)
}
