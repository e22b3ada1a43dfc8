package controller

import (
	"fmt"
	"math"

	"github.com/disdel/disdel"
)

// budget keeps a job within resources.maxCost. It is looked at before every round, attempt and leg: what is spent by then and
// what is about to begin are not above it, or the job stops there, to be resumed with more. What runs when the budget is reached
// ends as usual, and a round that is trained is aggregated, so that what was paid for is kept; no evaluation begins any more.
type budget struct {
	most  float64 // GB-s; 0: none
	spent float64 // GB-s, see bill.spent
	rate  float64 // GB-s a second
	began float64 // spent when the round began
	round float64 // what the newest whole round took, GB-s; 0: none has ended
}

// tell takes what the loop knows of the bill.
func (b *budget) tell(e Event) {
	b.spent = max(b.spent, e.Spent)
	b.rate = max(b.rate, e.Rate)
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
		what, cost, asks := m.asks(o, a)
		if !asks || !m.budget.used() && m.budget.spent+cost <= m.budget.most {
			continue
		}
		if o.Invocation.Task == disdel.TaskEvaluate {
			return append(orders[:i:i], m.within(m.unevaluated(m.overBudget("another evaluation", cost)), disdel.Activation{})...)
		}
		m.stopped = "resources.maxCost is used up"
		return append(orders[:i:i], m.finish(disdel.StatusFailed, m.overBudget(what, cost))...)
	}
	return orders
}

// asks tells what an order begins that the budget has to hold, and what that is expected to cost: a round as much as the last, a
// leg as much as the one before, another attempt as much as the one that failed, or its whole new timeout after one.
func (m *Manager) asks(o Order, a disdel.Activation) (what string, cost float64, ok bool) {
	inv := o.Invocation
	switch {
	case o.Kind != OrderInvoke:
		return "", 0, false
	case inv.Leg > 0:
		return fmt.Sprintf("leg %d of worker %d", inv.Leg+1, inv.Member), a.Duration.Seconds() * m.budget.rate, true
	case a.Outcome == disdel.OutcomeTimeout && slotOf(inv) == slotOf(a.Invocation):
		return "another attempt", inv.Limits.Timeout.Seconds() * m.budget.rate, true
	case Failed(a.Outcome):
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
		Msg:  fmt.Sprintf("the job has spent %.3g GB-s, %s, and resources.maxCost is %.4g GB-s; %s", b.spent, next, b.most, rest),
		Hint: fmt.Sprintf("disdel resume %s --set resources.maxCost=%sGB-s", m.spec.ID, roundedUp(enough)),
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

// roundedUp is a cost as a job file says it, with two digits that are not below it.
func roundedUp(cost float64) string {
	if cost <= 0 || math.IsInf(cost, 0) || math.IsNaN(cost) {
		return "1"
	}
	step := math.Pow(10, math.Floor(math.Log10(cost))-1)
	return fmt.Sprintf("%.4g", math.Ceil(cost/step)*step)
}

// CheckBudget refuses a plan whose likely cost, or the least that it can cost, is above resources.maxCost (OverLimit). What
// nothing is known of passes: the job is watched while it runs.
func CheckBudget(id disdel.JobID, job disdel.Job, plan disdel.Plan) error {
	most := job.Resources.MaxCost
	if most <= 0 {
		return nil
	}
	text, enough := "", 0.0
	least := leastCost(plan)
	switch f := plan.Forecast; {
	case f != nil && f.Cost.Likely > most:
		text = fmt.Sprintf("the job is likely to cost %.4g GB-s (%.4g to %.4g, by %s)", f.Cost.Likely, f.Cost.Low, f.Cost.High, f.Source)
		enough = f.Cost.High
	case least > most:
		text = fmt.Sprintf("the job costs %.4g GB-s at the least: no activation takes less than a millisecond", least)
		enough = 10 * least
	default:
		return nil
	}
	return &disdel.Error{
		Kind: disdel.OverLimit, Op: "plan job", Job: id,
		Msg:  fmt.Sprintf("%s, and resources.maxCost is %.4g GB-s", text, most),
		Hint: fmt.Sprintf("--set resources.maxCost=%sGB-s, or fewer training.epochs", roundedUp(enough)),
	}
}

// leastCost is Eq. 6 with every activation as short as OpenWhisk counts: what no job can be below.
func leastCost(plan disdel.Plan) float64 {
	const shortest = 0.001 // s
	var memory disdel.Bytes
	for _, a := range plan.Actions {
		memory += disdel.Bytes(actionsOf(plan, a.Task)) * a.Limits.Memory
	}
	return shortest * float64(max(1, plan.Rounds)*(1+len(plan.Levels))) * gigabytes(memory)
}

// actionsOf is how many actions of a task Eq. 6 counts.
func actionsOf(plan disdel.Plan, task disdel.Task) (n int) {
	switch task {
	case disdel.TaskTrain:
		return plan.Workers
	case disdel.TaskAggregate:
		for _, l := range plan.Levels {
			n += len(l.Clusters)
		}
	}
	return n
}
