package controller

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/disdel/disdel"
)

// evaluationDue tells whether the round is measured on held-out rows. Once an evaluation has failed for good, the
// rounds before the last are not.
func (m *Manager) evaluationDue() bool {
	every := m.spec.Job.Training.ValidateEvery
	return m.spec.Plan.HeldOut > 0 && (m.last || m.blind == nil && every > 0 && (m.round+1)%every == 0)
}

// roundSoFar is this round with the loss of its train actions, weighted by their samples.
func (m *Manager) roundSoFar() disdel.Round {
	if m.resumed != nil {
		return *m.resumed
	}
	round := disdel.Round{Round: m.round, Duplicates: m.again, Stage: m.spec.Before}
	var loss, first, samples float64
	several := false
	for w := range m.spec.Plan.Workers { // in worker order: the same bits whatever ended first
		r := m.results[w]
		loss += r.Loss * float64(r.Samples)
		samples += float64(r.Samples)
		if len(r.Losses) > 0 {
			first += r.Losses[0] * float64(r.Samples)
			several = several || len(r.Losses) > 1
		}
		if m.members[0][w] == missing {
			round.Missing = append(round.Missing, w)
		}
	}
	round.TrainLoss = loss / math.Max(samples, 1)
	if several {
		round.FirstLoss = new(first / math.Max(samples, 1))
	}
	if !m.course.still() {
		round.Observed = m.observed(round)
	}
	return round
}

// measure has the round evaluated where that is due, and ends it where not. Nothing is evaluated on a budget that is
// used up.
func (m *Manager) measure() []Order {
	switch {
	case !m.evaluationDue():
		return m.endRound(m.roundSoFar())
	case m.budget.used():
		return m.unevaluated(m.overBudget("the evaluation", 0))
	default:
		return []Order{m.invoke(disdel.Slot{Task: disdel.TaskEvaluate})}
	}
}

func (m *Manager) evaluated(a disdel.Activation) []Order {
	var r disdel.EvaluateResult
	if err := json.Unmarshal(a.Result, &r); err != nil {
		return m.fail(badResult(a, err))
	}
	round := m.roundSoFar()
	round.Loss, round.Accuracy, round.NotEvaluated = &r.Loss, &r.Accuracy, ""
	if o := round.Observed; o != nil {
		seen := *o
		seen.HeldOut, seen.Accuracy = round.Loss, round.Accuracy
		round.Observed = &seen
	}
	value := m.spec.Job.Training.EarlyStop.Value(r.Loss, r.Accuracy)
	m.held.watch(m.round, value)
	if !m.spec.keepsBest() || !(value < m.bestValue) {
		return m.endRound(round)
	}
	m.bestValue, m.better = value, &disdel.Best{Round: m.round, Loss: r.Loss, Accuracy: r.Accuracy}
	return append(m.roundOrder(round), m.write()...)
}

// unevaluated goes on without an evaluation that cannot be had. What was trained stays: of the last round the job says
// that it was not evaluated. A job that stops by its evaluations needs those before.
func (m *Manager) unevaluated(err *disdel.Error) []Order {
	if !m.last && m.spec.stopsByEvaluations() && !m.budget.used() {
		return m.fail(err)
	}
	m.blind, m.unmeasured = err, m.last
	round := m.roundSoFar()
	round.NotEvaluated = err.Msg
	return m.endRound(round)
}

func (m *Manager) roundOrder(r disdel.Round) []Order {
	m.budget.roundOver()
	m.course.saw(r)
	return []Order{RoundOrder{r}}
}

func (m *Manager) endRound(r disdel.Round) []Order { return append(m.roundOrder(r), m.next()...) }

// next is what follows a round: the next one, or the end, before which the weights are written that no aggregation has
// written with its mean.
func (m *Manager) next() []Order {
	if why := m.enough(); why != "" && !m.last {
		m.last, m.stopped, m.written = true, why, m.spec.keepsBest() && m.best != nil
	}
	switch {
	case m.last && !m.written:
		return m.write()
	case m.last:
		return m.finish(disdel.StatusSucceeded, nil)
	}
	if m.round+1 >= m.revisit {
		m.backs = 0 // it has come further than where it went back
	}
	orders, stop := m.boundary()
	if stop == "" {
		return append(orders, m.startRound(m.round+1)...)
	}
	m.last, m.stopped, m.written = true, stop, m.spec.keepsBest() && m.best != nil
	return append(orders, m.next()...)
}

// write has the round's weights written as the job's model.
func (m *Manager) write() []Order {
	m.publish = true
	return []Order{m.invoke(m.top())}
}

// wrote goes on after that.
func (m *Manager) wrote(r disdel.AggregateResult) []Order {
	m.publish, m.written = false, true
	if m.better == nil {
		return m.next()
	}
	m.best = m.better
	m.best.Checksum, m.best.Size = r.Checksum, r.Size
	m.better = nil
	return append([]Order{BestOrder{*m.best}}, m.next()...)
}

// enough tells why no further round is needed by what the evaluations say, "" where one is.
func (m *Manager) enough() string {
	e, name := m.spec.Job.Training.EarlyStop, "held-out loss"
	if !m.spec.stopsByEvaluations() || len(m.held.list) == 0 || m.held.list[len(m.held.list)-1].round != m.round {
		return ""
	}
	newest := m.held.list[len(m.held.list)-1].value
	if e.Metric == disdel.MetricAccuracy {
		name = "held-out accuracy"
	}
	switch {
	case e.Target > 0 && e.Metric == disdel.MetricAccuracy && -newest >= e.Target:
		return fmt.Sprintf("the held-out accuracy is at least %g", e.Target)
	case e.Target > 0 && e.Metric != disdel.MetricAccuracy && newest <= e.Target:
		return fmt.Sprintf("the held-out loss is at most %g", e.Target)
	case e.Patience > 0 && m.held.without >= e.Patience:
		return fmt.Sprintf("no better %s for %s", name, count(m.held.without, "evaluation"))
	default:
		return ""
	}
}

// count prints "1 evaluation", "2 evaluations".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// top is the aggregation that makes the reference of the next round.
func (m *Manager) top() disdel.Slot {
	return disdel.Slot{Task: disdel.TaskAggregate, Level: len(m.spec.Plan.Levels)}
}

// patience counts evaluations without a better value: lower is better.
type patience struct {
	list    []heldOut
	best    float64
	without int // a better one, in a row
}

type heldOut struct {
	round int
	value float64
}

func (p *patience) watch(round int, value float64) {
	p.list = append(p.list, heldOut{round, value})
	if value < p.best {
		p.best, p.without = value, 0
		return
	}
	p.without++
}

// forget takes back the evaluations of a round and those after it, which will be made again.
func (p *patience) forget(round int) {
	list := p.list
	*p = patience{best: math.Inf(1)}
	for _, l := range list {
		if l.round < round {
			p.watch(l.round, l.value)
		}
	}
}

// remember takes what a job that is taken up again was before: its evaluations, and the best of them where its weights
// are still there.
func (m *Manager) remember() {
	stop := m.spec.Job.Training.EarlyStop
	for _, r := range m.spec.Done {
		if r.Loss != nil && r.Accuracy != nil {
			m.held.watch(r.Round, stop.Value(*r.Loss, *r.Accuracy))
		}
	}
	if b := m.spec.Best; b != nil && m.spec.keepsBest() {
		m.best, m.bestValue = b, stop.Value(b.Loss, b.Accuracy)
	}
}

// forget takes back what is known of a round and those after it.
func (m *Manager) forget(round int) {
	m.held.forget(round)
	m.course.forget(round)
	if m.best != nil && m.best.Round >= round || m.better != nil {
		m.best, m.bestValue = nil, math.Inf(1)
	}
}

// begin is the first round, or where a job goes on: the round after its checkpoint, or what the round before it still
// lacks.
func (m *Manager) begin() []Order {
	first := m.spec.firstRound()
	if m.spec.From == nil {
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
	case over && round.Accuracy != nil:
		return m.next()
	case over, i >= 0 && round.Accuracy == nil && round.NotEvaluated == "" && m.evaluationDue():
		return m.measure()
	default:
		return m.next()
	}
}
