package controller

import (
	"encoding/json"
	"fmt"

	"github.com/disdel/disdel"
)

// effort is what was put into one slot in the current round.
type effort struct {
	attempt  int // the newest, 1 and up
	leg      int // of the newest attempt
	open     bool
	batches  int // that the newest attempt came to
	stalled  int // legs in a row that came no further
	counted  int // failures that the job is to blame for
	platform int // failures that the platform is to blame for, and those that are waited for
	crashes  int // deaths of the process
}

// invoke makes the next invocation of a slot. Its attempt is above every earlier one of the slot in this round, also
// of a time before the job went back, so that its claim takes over whatever still runs.
func (m *Manager) invoke(s disdel.Slot) InvokeOrder {
	e := m.efforts[s]
	if m.round < m.revisit {
		e.attempt = max(e.attempt, m.floor)
	}
	e.attempt++
	e.leg, e.batches, e.stalled = 0, 0, 0
	m.highest = max(m.highest, e.attempt)
	return m.order(s, e)
}

// order waits for the end of an invocation of s from now on.
func (m *Manager) order(s disdel.Slot, e effort) InvokeOrder {
	e.open = true
	m.efforts[s] = e
	var inv disdel.Invocation
	w := work{round: m.round, attempt: e.attempt, leg: e.leg, limits: m.limits[s.Task]}
	switch s.Task {
	case disdel.TaskTrain:
		inv = m.spec.train(w, s.Member, m.from(m.round))
	case disdel.TaskAggregate:
		inv = m.spec.aggregate(w, s.Level, s.Member, m.present(s.Level, s.Member), m.final(s), m.from(m.round+1),
			m.checkpoint(s))
	default:
		inv = m.spec.evaluate(w, m.evaluationBatch(), m.from(m.round+1))
	}
	inv.ID = m.id(s, e)
	return InvokeOrder{Invocation: inv}
}

// Written ends the id of an invocation that only writes what another has made.
const Written = "/publish"

// id is that of the newest invocation of a slot.
func (m *Manager) id(s disdel.Slot, e effort) string {
	id := invocationID(work{round: m.round, attempt: e.attempt, leg: e.leg}, s)
	if m.publish {
		id += Written
	}
	return id
}

// awaited tells whether an activation is the one that its slot waits for: of this round, the newest, and not told of
// before.
func (m *Manager) awaited(a disdel.Activation) bool {
	s := a.Slot()
	e := m.efforts[s]
	return e.open && a.Round == m.round && a.Invocation.ID == m.id(s, e)
}

// close waits for a slot no longer.
func (m *Manager) close(s disdel.Slot) {
	e := m.efforts[s]
	e.open = false
	m.efforts[s] = e
}

// present is the members of a cluster that delivered, in their order. None are needed where only what was made of them
// is written.
func (m *Manager) present(level, cluster int) []int {
	var out []int
	for _, member := range m.spec.Plan.Levels[level-1].Clusters[cluster] {
		if m.members[level-1][member] == delivered && !m.publish {
			out = append(out, member)
		}
	}
	return out
}

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
	case s != m.top() || m.publish || m.partial:
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
	return s == m.top() && (m.publish || m.last && !m.spec.keepsBest())
}

func (m *Manager) evaluationBatch() int {
	if m.batch > 0 {
		return m.batch
	}
	return m.spec.Job.Training.BatchSize
}

// maxStalled is how many legs in a row may come no further: one may have lost its state with the store.
const maxStalled = 2

// paused starts the next leg of a worker that stored its state before its deadline. Legs that train nothing are a
// timeout.
func (m *Manager) paused(a disdel.Activation) []Order {
	var r disdel.TrainResult
	if err := json.Unmarshal(a.Result, &r); err != nil {
		return m.fail(badResult(a, err))
	}
	m.watch.trained(a.Member, r)
	s := a.Slot()
	e := m.efforts[s]
	e.leg++
	e.stalled++
	if r.BatchesDone > e.batches {
		e.batches, e.stalled = r.BatchesDone, 0
	}
	if e.stalled < maxStalled {
		return []Order{m.order(s, e)}
	}
	m.efforts[s] = e
	a.Outcome = disdel.OutcomeTimeout
	a.Failure = &disdel.Error{
		Kind: disdel.Timeout, Op: "train", Activation: a.ID,
		Msg: fmt.Sprintf("%d activations in a row came no further than batch %d within their timeout of %v", maxStalled,
			e.batches, a.Limits.Timeout),
		Hint: "a longer resources.timeout, or more workers (distribution.workers)",
	}
	return m.failed(a)
}
