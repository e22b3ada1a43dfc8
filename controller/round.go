package controller

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/disdel/disdel"
)

func (m *Manager) evaluationDue() bool {
	every := m.spec.Job.Training.ValidateEvery
	return m.spec.Plan.HeldOut > 0 && (m.last || every > 0 && (m.round+1)%every == 0)
}

// roundSoFar is this round with the loss of its train actions, weighted by their samples.
func (m *Manager) roundSoFar() disdel.Round {
	round := disdel.Round{Round: m.round, Again: m.again}
	var loss, samples float64
	for w := range m.spec.Plan.Workers { // in worker order: the same bits whatever ended first
		loss += m.results[w].Loss * float64(m.results[w].Samples)
		samples += float64(m.results[w].Samples)
		if m.members[0][w] == missing {
			round.Missing = append(round.Missing, w)
		}
	}
	round.TrainLoss = loss / math.Max(samples, 1)
	return round
}

func (m *Manager) evaluated(a disdel.Activation) []Order {
	var r disdel.EvaluateResult
	if err := json.Unmarshal(a.Result, &r); err != nil {
		return m.fail(badResult(a, err))
	}
	round := m.roundSoFar()
	round.Loss, round.Accuracy = &r.Loss, &r.Accuracy
	m.held.watch(m.round, r.Loss)
	return m.endRound(round)
}

func (m *Manager) endRound(r disdel.Round) []Order {
	orders := []Order{{Kind: OrderRound, Round: r}}
	m.budget.roundOver()
	switch {
	case m.last:
		return append(orders, m.finish(disdel.StatusSucceeded, nil)...)
	case m.outOfPatience():
		m.stopped = fmt.Sprintf("no better held-out loss for %d evaluations", m.held.without)
		m.publish = true
		return append(orders, m.invoke(m.top()))
	default:
		if m.round+1 >= m.revisit {
			m.backs = 0 // it has come further than where it went back
		}
		return append(orders, m.startRound(m.round+1)...)
	}
}

func (m *Manager) outOfPatience() bool {
	e := m.spec.Job.Training.EarlyStop
	return e != nil && e.Metric == "valLoss" && m.held.without >= e.Patience
}

// top is the aggregation that makes the reference of the next round.
func (m *Manager) top() slot { return slot{disdel.TaskAggregate, len(m.spec.Plan.Levels), 0} }

// patience counts evaluations without a better held-out loss.
type patience struct {
	losses  []heldOut
	best    float64
	without int // a better one, in a row
}

type heldOut struct {
	round int
	loss  float64
}

func (p *patience) watch(round int, loss float64) {
	p.losses = append(p.losses, heldOut{round, loss})
	if loss < p.best {
		p.best, p.without = loss, 0
		return
	}
	p.without++
}

// forget takes back the evaluations of a round and those after it, which will be made again.
func (p *patience) forget(round int) {
	losses := p.losses
	*p = patience{best: math.Inf(1)}
	for _, l := range losses {
		if l.round < round {
			p.watch(l.round, l.loss)
		}
	}
}
