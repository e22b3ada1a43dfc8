package controller

import (
	"encoding/json"
	"fmt"

	"github.com/disdel/disdel"
)

// invoke makes the next attempt of a slot.
func (m *Manager) invoke(s disdel.Slot) InvokeOrder { return m.order(s, m.attempts.next(s, m.round)) }

func (m *Manager) invokeAll(slots []disdel.Slot) []Order {
	out := make([]Order, len(slots))
	for i, s := range slots {
		out[i] = m.invoke(s)
	}
	return out
}

// order waits for the end of an invocation of s from now on.
func (m *Manager) order(s disdel.Slot, e effort) InvokeOrder {
	inv := m.built(s, e, 0)
	m.attempts.await(s, e, inv.ID)
	return InvokeOrder{Invocation: inv}
}

// built is the next invocation of a slot. hold is how long the budget lets it run; 0: until its timeout.
func (m *Manager) built(s disdel.Slot, e effort, hold disdel.Millis) disdel.Invocation {
	w := work{round: m.round, attempt: e.attempt, leg: e.leg, limits: m.attempts.limits[s.Task], hold: hold}
	inv := m.invocation(s, w)
	inv.ID = invocationID(w, s)
	if m.publish {
		inv.ID += Written
	}
	return inv
}

// invocation is what a slot's action is asked to do.
func (m *Manager) invocation(s disdel.Slot, w work) disdel.Invocation {
	switch s.Task {
	case disdel.TaskTrain:
		return m.spec.train(w, s.Member, m.from(m.round))
	case disdel.TaskAggregate:
		var members []int
		if !m.publish { // none are needed where only what was made of them is written
			members = m.barrier.present(s)
		}
		return m.spec.aggregate(w, s.Level, s.Member, members,
			written{m.final(s), m.from(m.round + 1), m.checkpoint(s)})
	default:
		return m.spec.evaluate(w, m.attempts.evaluationBatch(&m.spec.Job, &m.spec.Plan), m.from(m.round+1))
	}
}

// Written ends the id of an invocation that only writes what another has made.
const Written = "/publish"

// from is the checkpoint of the reference that a round starts from, "" where there is none.
func (m *Manager) from(round int) string {
	if m.saved == nil || m.saved.Round != round && !(m.last && round == m.round+1 && m.saved.Round == m.spec.Plan.Rounds) {
		return ""
	}
	return m.saved.Path
}

// checkpoint is the key that an aggregation writes the next round's reference to, "" for none. That of the last round
// is there until the model is evaluated.
func (m *Manager) checkpoint(s disdel.Slot) string {
	switch {
	case s != m.barrier.top() || m.publish:
		return ""
	case m.last && m.spec.Plan.HeldOut > 0 && m.spec.Job.Reliability.CheckpointEvery > 0:
		return m.spec.checkpoint(m.spec.Plan.Rounds, "reference")
	case m.spec.checkpointDue(m.round):
		return m.spec.checkpoint(m.round+1, "reference")
	default:
		return ""
	}
}

// final tells whether the aggregation of a slot writes the final weights. Where the best are kept, the evaluation says
// first whether those of the last round are.
func (m *Manager) final(s disdel.Slot) bool {
	return s == m.barrier.top() && (m.publish || m.last && !m.spec.keepsBest())
}

// paused starts the next leg of a worker that stored its state before its deadline. Legs that train nothing are a
// timeout.
func (m *Manager) paused(a disdel.Activation) []Order {
	var r disdel.TrainResult
	if err := json.Unmarshal(a.Result, &r); err != nil {
		return m.fail(badResult(a, err))
	}
	m.watch.trained(a.Member, r)
	e, stalled := m.attempts.nextLeg(a.Slot(), r.BatchesDone, r.Waited)
	if !stalled {
		return []Order{m.order(a.Slot(), e)}
	}
	a.Outcome = disdel.OutcomeTimeout
	a.Failure = &disdel.Error{
		Kind: disdel.Timeout, Op: "train", Activation: a.ID,
		Msg: fmt.Sprintf("%d activations in a row came no further than batch %d within their timeout of %v",
			e.stalled+e.waited, e.batches, a.Limits.Timeout),
		Hint: "a longer resources.timeout, or more workers (distribution.workers)",
	}
	return m.failed(a)
}
