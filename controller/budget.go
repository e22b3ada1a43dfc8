package controller

import (
	"fmt"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// budget keeps a job within what it may cost. It is looked at before every round, attempt and leg: what is spent by
// then and what is about to begin are not above it, or the job stops there, to be resumed with more. What runs when the
// budget is reached ends as usual, and a round that is trained is aggregated, so that what was paid for is kept; no
// evaluation begins any more.
type budget struct {
	most  float64 // GB-s; 0: none
	field string  // that says so
	spent float64 // GB-s, see estimator.Bill.Spent
	rate  float64 // GB-s a second
	began float64 // spent when the round began
	round float64 // what the newest whole round took, GB-s; 0: none has ended
}

// tell takes what the loop knows of the bill.
func (b *budget) tell(now Moment) {
	b.spent = max(b.spent, now.Spent)
	b.rate = max(b.rate, now.Rate)
}

// roundOver learns from a round what the next one takes.
func (b *budget) roundOver() {
	if took := b.spent - b.began; took > 0 {
		b.round = took
	}
	b.began = b.spent
}

// resumed takes what was spent before for the rounds that were done.
func (b *budget) resumed(rounds int) {
	b.began = b.spent
	if rounds > 0 {
		b.round = b.spent / float64(rounds)
	}
}

// used says whether nothing is left.
func (b *budget) used() bool { return b.most > 0 && b.spent >= b.most }

// within lets orders pass that the budget holds, and ends the job where it does not.
func (m *Manager) within(orders []Order, a disdel.Activation) []Order {
	if m.budget.most <= 0 {
		return orders
	}
	for i, o := range orders {
		begun, ok := o.(InvokeOrder)
		if !ok {
			continue
		}
		inv := begun.Invocation
		what, cost, asks := m.asks(inv, a)
		if !asks || !m.budget.used() && m.budget.spent+cost <= m.budget.most {
			continue
		}
		if inv.Task == disdel.TaskEvaluate {
			return append(orders[:i:i],
				m.within(m.unevaluated(m.overBudget("another evaluation", cost)), disdel.Activation{})...)
		}
		m.stopped = m.budget.field + " is used up"
		return append(orders[:i:i], m.finish(disdel.StatusFailed, m.overBudget(what, cost))...)
	}
	return orders
}

// asks tells what an invocation begins that the budget has to hold, and what that is expected to cost: a round as much
// as the last, a leg as much as the one before, another attempt as much as the one that failed, or its whole new
// timeout after one.
func (m *Manager) asks(inv disdel.Invocation, a disdel.Activation) (what string, cost float64, ok bool) {
	switch {
	case inv.Leg > 0:
		return fmt.Sprintf("leg %d of worker %d", inv.Leg+1, inv.Member), a.Duration.Seconds() * m.budget.rate, true
	case a.Outcome == disdel.OutcomeTimeout && inv.Slot() == a.Slot():
		return "another attempt", inv.Limits.Timeout.Seconds() * m.budget.rate, true
	case a.Outcome.Failed():
		return "another attempt", a.Duration.Seconds() * m.budget.rate, true
	case inv.Task == disdel.TaskTrain:
		return fmt.Sprintf("round %d of %d", m.round+1, m.spec.Plan.Rounds), m.budget.round, true
	default:
		return "", 0, false
	}
}

// overBudget says what was spent, what the next step and the rest would cost, and how the job goes on.
func (m *Manager) overBudget(what string, cost float64) *disdel.Error {
	b := m.budget
	next := what + " is next"
	if cost > 0 {
		next = fmt.Sprintf("%s would take about %.3g more", what, cost)
	}
	left, known := m.rest()
	enough := b.spent + max(left, cost)*(1+spare)
	rest := fmt.Sprintf("what is left would cost about %.3g GB-s", left)
	if !known {
		enough = max(2*b.most, enough)
		rest = "what is left is not known: no round has ended"
	}
	return &disdel.Error{
		Kind: disdel.OverLimit, Code: disdel.CodeOverBudget, Op: "run job", Job: m.spec.ID,
		Msg:  fmt.Sprintf("the job has spent %.3g GB-s, %s, and %s is %.4g GB-s; %s", b.spent, next, b.field, b.most, rest),
		Hint: fmt.Sprintf("disdel resume %s --set %s=%sGB-s", m.spec.ID, b.field, scheduler.RoundedUp(enough)),
	}
}

// spare is what a proposed budget has above the likely cost.
const spare = 0.25

// rest is what a resume would cost: the rounds from the newest checkpoint on.
func (m *Manager) rest() (cost float64, known bool) {
	from := 0
	if m.saved != nil {
		from = m.saved.Round
	}
	rounds := float64(max(1, m.spec.Plan.Rounds-from))
	each := m.budget.round
	if f := m.spec.Plan.Forecast; each == 0 && f != nil {
		each = f.Cost.Likely / float64(max(1, m.spec.Plan.Rounds))
	}
	return each * rounds, each > 0
}
