package controller

import (
	"slices"

	"github.com/disdel/disdel"
)

// begin is the first round, or where a job goes on: the round after its checkpoint, or what the round before it still
// lacks.
func (m *Manager) begin() []Order {
	first := m.spec.firstRound()
	if first == 0 { // with weights that the job was given, where it has a checkpoint
		return m.startRound(first)
	}
	i := slices.IndexFunc(m.spec.Done, func(r disdel.Round) bool { return r.Round == first-1 })
	over := first >= m.spec.Plan.Rounds // with the end, that only the last round may have
	if over && i < 0 {
		i = len(m.spec.Done) - 1
	}
	round := disdel.Round{Round: first - 1}
	if i >= 0 {
		round = m.spec.Done[i]
	}
	m.reset(round.Round)
	m.last, m.resumed, m.stopped = over, &round, m.spec.Stopped
	switch {
	case over && round.Loss != nil:
		return m.next()
	case over, i >= 0 && round.Loss == nil && round.NotEvaluated == "" && m.evaluationDue():
		return m.measure()
	default:
		return m.next()
	}
}

func (m *Manager) startRound(round int) []Order {
	m.reset(round)
	return m.startWorkers()
}

// roundSoFar is this round with the loss of its train actions, weighted by their samples.
func (m *Manager) roundSoFar() disdel.Round {
	if m.resumed != nil {
		return *m.resumed
	}
	round := disdel.Round{Round: m.round, Duplicates: m.duplicates, Stage: m.spec.Before}
	m.barrier.sum(&round)
	for i := range round.Trained {
		round.Trained[i].Epoch += m.spec.span(m.round).Epoch
	}
	if !m.course.still() {
		round.Observed = m.observed(round)
	}
	return round
}

func (m *Manager) roundOrder(r disdel.Round, byClass *disdel.ByClass) []Order {
	m.budget.roundOver(m.stepsOf(m.round))
	m.course.saw(r)
	return []Order{RoundOrder{r, byClass}}
}

func (m *Manager) endRound(r disdel.Round, byClass *disdel.ByClass) []Order {
	return append(m.roundOrder(r, byClass), m.next()...)
}

// next is what follows a round: the next one, or the end, before which the weights are written that no aggregation has
// written with its mean.
func (m *Manager) next() []Order {
	if why := m.enough(); why != "" && !m.last {
		m.last, m.stopped, m.written = true, why, m.spec.keepsBest() && m.evaluations.best != nil
	}
	switch {
	case m.last && !m.written:
		return m.write()
	case m.last:
		return m.finish(disdel.StatusSucceeded, nil)
	}
	if m.round+1 >= m.attempts.replayUntil {
		m.rollbacks = 0 // it has come further than where it went back
	}
	orders, stop := m.boundary()
	if m.gang.asked != nil {
		return orders
	}
	return m.goesOn(orders, stop)
}

// goesOn is what follows a boundary: the next round, or, with why, the end.
func (m *Manager) goesOn(orders []Order, stop string) []Order {
	if stop == "" {
		return append(orders, m.startRound(m.round+1)...)
	}
	m.last, m.stopped, m.written = true, stop, m.spec.keepsBest() && m.evaluations.best != nil
	return append(orders, m.next()...)
}

// forget takes back what is known of a round and those after it.
func (m *Manager) forget(round int) {
	m.evaluations.forget(round)
	m.course.forget(round)
}
