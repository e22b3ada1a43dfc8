package controller

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/disdel/disdel"
)

// evaluations is what held-out rows have said of a job's rounds, and which of them has the best weights.
type evaluations struct {
	patience   patience
	best       *disdel.Best  // whose weights are written; nil: nobody's, or the last round's
	bestValue  float64       // of it, or of better
	better     *disdel.Best  // whose weights are being written
	blind      *disdel.Error // why an evaluation could not be had
	unmeasured bool          // that of the last round
}

// newEvaluations is what a resumed job knew before: its evaluations, and the best of them where its
// weights are still there.
func newEvaluations(spec Spec) evaluations {
	v := evaluations{patience: patience{best: math.Inf(1)}, bestValue: math.Inf(1)}
	stop := spec.Job.Training.Stop()
	for _, r := range spec.Done {
		if r.Loss != nil {
			v.patience.watch(r.Round, stop.Value(*r.Loss, orZero(r.Accuracy)))
		}
	}
	if b := spec.Best; b != nil && spec.keepsBest() {
		v.best, v.bestValue = b, stop.Value(b.Loss, b.Accuracy)
	}
	return v
}

// orZero is an accuracy, 0 where targets have none.
func orZero(accuracy *float64) float64 {
	if accuracy == nil {
		return 0
	}
	return *accuracy
}

// forget takes back the evaluations of a round and those after it, which will be made again.
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

// held is for how many evaluations in a row, the newest among them, the target of e has been reached.
func (p *patience) held(e *disdel.EarlyStop) (n int) {
	target := e.Value(e.Target, e.Target)
	for _, l := range slices.Backward(p.list) {
		if !(l.value <= target) { // which a loss that is no number is not
			break
		}
		n++
	}
	return n
}

// of is the newest value, if it is that of a round.
func (p *patience) of(round int) (value float64, ok bool) {
	if len(p.list) == 0 {
		return 0, false
	}
	newest := p.list[len(p.list)-1]
	return newest.value, newest.round == round
}

// forget takes back the values of a round and those after it.
func (p *patience) forget(round int) {
	list := p.list
	*p = patience{best: math.Inf(1)}
	for _, l := range list {
		if l.round < round {
			p.watch(l.round, l.value)
		}
	}
}

// evaluationDue tells whether the round is measured on held-out rows. Once an evaluation has failed for good, the
// rounds before the last are not.
func (m *Manager) evaluationDue() bool {
	every := m.spec.Job.Training.ValidateEvery
	return m.spec.Plan.HeldOut > 0 && (m.last || m.evaluations.blind == nil && every > 0 && (m.round+1)%every == 0)
}

// measure has the round evaluated where that is due, and ends it where not. Nothing is evaluated on a budget that is
// used up.
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
	if m.spec.Network.Sparse == nil || m.spec.Network.Classes > 1 { // numbers are near or far, and never right
		round.Accuracy = &r.Accuracy
	}
	if o := round.Observed; o != nil {
		seen := *o
		seen.HeldOut, seen.Accuracy = round.Loss, round.Accuracy
		round.Observed = &seen
	}
	v, value := &m.evaluations, m.spec.Job.Training.Stop().Value(r.Loss, r.Accuracy)
	v.patience.watch(m.round, value)
	if !m.spec.keepsBest() || !(value < v.bestValue) {
		return m.endRound(round, r.ByClass)
	}
	v.bestValue, v.better = value,
		&disdel.Best{Round: m.round, Loss: r.Loss, Accuracy: r.Accuracy, Scores: r.Scores, ByClass: r.ByClass}
	return append(m.roundOrder(round, r.ByClass), m.write()...)
}

// unevaluated continues without an evaluation that cannot be had. What was trained stays: of the last round the job
// says that it was not evaluated. A job that stops by its evaluations needs those before.
func (m *Manager) unevaluated(err *disdel.Error) []Order {
	if !m.last && m.spec.stopsByEvaluations() && !m.budget.used() {
		return m.fail(err)
	}
	m.evaluations.blind, m.evaluations.unmeasured = err, m.last
	round := m.roundSoFar()
	round.NotEvaluated = err.Msg
	return m.endRound(round, nil)
}

// write has the round's weights written as the job's model.
func (m *Manager) write() []Order {
	m.publish = true
	return []Order{m.invoke(m.barrier.top())}
}

// wrote goes on after that.
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

// enough tells why no further round is needed by what the evaluations say, "" where one is.
func (m *Manager) enough() string {
	newest, evaluated := m.evaluations.patience.of(m.round)
	if !m.spec.stopsByEvaluations() || !evaluated {
		return ""
	}
	e, name, without := m.spec.Job.Training.Stop(), "held-out loss", m.evaluations.patience.without
	if e.Metric == disdel.MetricAccuracy {
		name = "held-out accuracy"
	}
	switch {
	case e.Held > 1:
		if m.evaluations.patience.held(e) < e.Held {
			return ""
		}
		return fmt.Sprintf("the goal %v has held for %d evaluations in a row", m.spec.Job.Training.Goal, e.Held)
	case e.Target > 0 && e.Metric == disdel.MetricAccuracy && -newest >= e.Target:
		return fmt.Sprintf("the held-out accuracy is at least %g", e.Target)
	case e.Target > 0 && e.Metric != disdel.MetricAccuracy && newest <= e.Target:
		return fmt.Sprintf("the held-out loss is at most %g", e.Target)
	case e.Patience > 0 && without >= e.Patience:
		return fmt.Sprintf("no better %s for %s", name, count(without, "evaluation"))
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
