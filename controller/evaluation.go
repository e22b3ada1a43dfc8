package controller

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/disdel/disdel"
)

// evaluations are the results on held-out rows of a job's rounds, and which of them has the best weights.
type evaluations struct {
	patience   patience
	best       *disdel.Best  // whose weights are written; nil: none, or the last round's
	bestValue  float64       // of it, or of better
	better     *disdel.Best  // its weights are being written
	blind      *disdel.Error // why an evaluation failed
	unmeasured bool          // the last round was not evaluated
}

// newEvaluations restores a resumed job's evaluations, and the best of them if its weights are still there.
func newEvaluations(spec Spec) evaluations {
	v := evaluations{patience: patience{best: math.Inf(1)}, bestValue: math.Inf(1)}
	stop := spec.Job.Training.Stop()
	for _, r := range spec.Done {
		if r.Loss != nil {
			v.patience.watch(r.Round, stop.Value(r.Figures()))
		}
	}
	if b := spec.Best; b != nil && spec.keepsBest() {
		v.best, v.bestValue = b, stop.Value(b.Figures())
	}
	return v
}

// isBetter tells whether a round was evaluated, and its weights are better than those that the job keeps.
func (v *evaluations) isBetter(spec Spec, r disdel.Round) bool {
	return spec.keepsBest() && r.Loss != nil && spec.Job.Training.Stop().Value(r.Figures()) < v.bestValue
}

// forget removes the evaluations from a round on, which will be repeated.
func (v *evaluations) forget(round int) {
	v.patience.forget(round)
	if v.best != nil && v.best.Round >= round || v.better != nil {
		v.best, v.bestValue = nil, math.Inf(1)
	}
}

// patience counts evaluations without a better value: lower is better.
type patience struct {
	list    []heldOut
	best    float64
	without int // evaluations in a row that were not better
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

// held returns for how many evaluations in a row, including the newest, the target of e was reached.
func (p *patience) held(e *disdel.EarlyStop) (n int) {
	target := e.Of().Rank(e.Target)
	for _, l := range slices.Backward(p.list) {
		if !(l.value <= target) { // false for NaN
			break
		}
		n++
	}
	return n
}

// valueOf returns the newest value if it is that of a round.
func (p *patience) valueOf(round int) (value float64, ok bool) {
	if len(p.list) == 0 {
		return 0, false
	}
	newest := p.list[len(p.list)-1]
	return newest.value, newest.round == round
}

// forget removes the values from a round on.
func (p *patience) forget(round int) {
	list := p.list
	*p = patience{best: math.Inf(1)}
	for _, l := range list {
		if l.round < round {
			p.watch(l.round, l.value)
		}
	}
}

// evaluationDue tells whether the round is evaluated. After an evaluation has failed for good, only the last round
// is.
func (m *Manager) evaluationDue() bool {
	every := m.spec.Job.Training.ValidateEvery
	return m.spec.Plan.HeldOut > 0 && (m.last || m.evaluations.blind == nil && every > 0 && (m.round+1)%every == 0)
}

// measure evaluates the round if that is due, and ends it otherwise. Nothing is evaluated after the budget is used
// up.
func (m *Manager) measure() []Order {
	switch {
	case !m.evaluationDue():
		return m.endRound(m.roundSoFar(), nil)
	case m.budget.used():
		return m.unevaluated(m.overBudget(step{what: "the evaluation"}))
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
	round.Loss, round.Scores, round.NotEvaluated = &r.Loss, r.Scores, ""
	if !m.spec.Network.Numbers() {
		round.Accuracy = &r.Accuracy
	}
	if o := round.Observed; o != nil {
		seen := *o
		seen.HeldOut, seen.Accuracy, seen.Scores = round.Loss, round.Accuracy, round.Scores
		round.Observed = &seen
	}
	v, value := &m.evaluations, m.spec.Job.Training.Stop().Value(round.Figures())
	v.patience.watch(m.round, value)
	if !m.spec.keepsBest() || !(value < v.bestValue) {
		return m.endRound(round, r.ByClass)
	}
	v.bestValue, v.better = value,
		&disdel.Best{Round: m.round, Loss: r.Loss, Accuracy: r.Accuracy, Scores: r.Scores, ByClass: r.ByClass}
	return append(m.roundOrder(round, r.ByClass), m.write()...)
}

// unevaluated continues after a failed evaluation. The trained weights remain, and the job reports that the last
// round was not evaluated. A job that stops by its evaluations needs the earlier ones.
func (m *Manager) unevaluated(err *disdel.Error) []Order {
	if !m.last && m.spec.stopsByEvaluations() && !m.budget.used() {
		return m.fail(err)
	}
	m.evaluations.blind, m.evaluations.unmeasured = err, m.last
	round := m.roundSoFar()
	round.NotEvaluated = err.Msg
	return m.endRound(round, nil)
}

// write publishes the round's weights as the job's model.
func (m *Manager) write() []Order {
	m.publish = true
	return []Order{m.invoke(m.barrier.top())}
}

// wrote continues after that.
func (m *Manager) wrote(r disdel.AggregateResult) []Order {
	m.publish, m.written = false, true
	v := &m.evaluations
	if v.better == nil {
		return m.next()
	}
	v.best, v.better = v.better, nil
	v.best.Checksum, v.best.Size = r.Checksum, r.Size
	return append([]Order{BestOrder{*v.best}}, m.next()...)
}

// enough returns why the evaluations need no further round, "" if they need one.
func (m *Manager) enough() string {
	newest, evaluated := m.evaluations.patience.valueOf(m.round)
	if !m.spec.stopsByEvaluations() || !evaluated {
		return ""
	}
	e, without := m.spec.Job.Training.Stop(), m.evaluations.patience.without
	metric, bound := e.Of(), "most"
	if metric.Larger {
		bound = "least"
	}
	switch {
	case e.Held > 1:
		if m.evaluations.patience.held(e) < e.Held {
			return ""
		}
		return fmt.Sprintf("the goal %v has held for %d evaluations in a row", m.spec.Job.Training.Goal, e.Held)
	case e.Target != nil && newest <= metric.Rank(e.Target):
		return fmt.Sprintf("the held-out %s is at %s %g", metric.Title, bound, *e.Target)
	case e.Patience > 0 && without >= e.Patience:
		return fmt.Sprintf("no better held-out %s for %s", metric.Title, disdel.Counted(without, "evaluation"))
	default:
		return ""
	}
}
