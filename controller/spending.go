package controller

import (
	"fmt"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// within lets orders pass that the budget can pay. What finds too little free waits until something that runs has
// ended. The job ends only where nothing runs and what is left of the budget does not pay the next step. a is the
// activation whose end the orders follow, if it is one.
func (m *Manager) within(orders []Order, a disdel.Activation) []Order {
	if m.budget.most <= 0 || m.ended {
		return orders
	}
	out := make([]Order, 0, len(orders))
	trains := false
	for _, o := range orders {
		begun, ok := o.(InvokeOrder)
		if !ok {
			out = append(out, o)
			continue
		}
		inv := begun.Invocation
		trains = trains || inv.Task == disdel.TaskTrain
		m.budget.waiting = append(m.budget.waiting, asking{slot: inv.Slot(), id: inv.ID, after: begun.After, cause: a})
	}
	if anew := a.Outcome.Failed() || a.Outcome == disdel.OutcomePaused; trains && !anew && m.budget.roundTooDear() {
		return append(out, m.broke(m.wholeRound())...)
	}
	return append(out, m.pay()...)
}

// roundTooDear tells whether a round that is to begin would not end within the budget: even as cheap as the cheapest.
func (b *budget) roundTooDear() bool {
	return b.used() || sure(max(0, b.cheapest-b.done), b.rounds) > b.left()
}

// payment is what becomes of an invocation that asks for a part of the budget.
type payment uint8

const (
	paid payment = iota
	postponed
	unpayable
)

// pay begins what waits for a part of the budget and finds one.
func (m *Manager) pay() (orders []Order) {
	asked := m.budget.waiting
	m.budget.waiting = nil
	workers := len(m.barrier.outstanding()) // that share what is left for training
	for i, w := range asked {
		e := m.attempts.efforts[w.slot]
		if e.awaited != w.id { // nobody waits for it any more
			continue
		}
		limits, _ := m.spec.limits(w.slot.Task, work{limits: m.attempts.limits[w.slot.Task]})
		gbs, need, what := m.part(w.slot, limits, max(1, workers))
		switch what {
		case postponed:
			m.budget.waiting = append(m.budget.waiting, w)
			continue
		case unpayable:
			next := step{what: m.nameOf(w, e), cost: need}
			if w.slot.Task != disdel.TaskEvaluate {
				return append(orders, m.broke(next)...)
			}
			m.attempts.close(w.slot)
			m.budget.waiting = append(m.budget.waiting, asked[i+1:]...)
			return append(orders, m.within(m.unevaluated(m.overBudget(next)), disdel.Activation{})...)
		}
		if w.slot.Task == disdel.TaskTrain {
			workers--
		}
		m.budget.running[w.id] = gbs
		inv := m.built(w.slot, e, m.budget.hold(limits, gbs))
		orders = append(orders, InvokeOrder{Invocation: inv, After: w.after})
	}
	return orders
}

// part is what of the budget a slot's invocation gets, and the least that would be of use to it.
func (m *Manager) part(s disdel.Slot, l disdel.Limits, workers int) (gbs, need float64, what payment) {
	if s.Task == disdel.TaskTrain {
		return m.partOfTraining(l, workers)
	}
	b := &m.budget
	c, free, whole, alone := b.closing[s.Task], b.free(), b.whole(l), len(b.running) == 0
	need = b.costOf(l, max(leastHold, c.least))
	if c.least == 0 {
		need = max(need, min(whole, sure(c.cheapest, c.passed)))
	}
	fair := free / float64(m.toClose(s))
	if c.passed > 0 && c.least == 0 { // it is known what such an action takes
		fair = max(fair, min(free, closingSpare*c.each))
	}
	known := c.passed > 0 && fair >= closingSpare*c.each && fair >= need
	switch {
	case b.used():
		return 0, need, unpayable
	case fair >= whole:
		return whole, need, paid
	case known:
		return fair, need, paid
	case !alone: // it would have to begin anew after too short a hold
		return 0, need, postponed
	case free >= need:
		return free, need, paid
	default:
		return 0, need, unpayable
	}
}

// partOfTraining shares what training may hold among so many workers. Where that is too little for a leg of each, they
// train one after another: what they came to is kept. Those that exchange updates in a round need each other.
func (m *Manager) partOfTraining(l disdel.Limits, workers int) (gbs, need float64, what payment) {
	b := &m.budget
	free := b.free()
	need = b.costOf(l, b.leg.useful())
	fair := (free - b.kept(free)) / float64(workers)
	switch {
	case b.used():
		return 0, need, unpayable
	case fair >= min(need, b.whole(l)):
		return min(fair, b.whole(l)), need, paid
	case len(b.running) > 0:
		return 0, need, postponed
	case m.spec.Job.Distribution.Exchange != nil:
		return 0, need * float64(workers), unpayable
	case free >= need:
		return need, need, paid
	default:
		return 0, need, unpayable
	}
}

// toClose is how many invocations that close the round are still to come, from a slot on.
func (m *Manager) toClose(s disdel.Slot) int {
	if s.Task != disdel.TaskAggregate {
		return 1
	}
	n := 1 // the evaluation
	for _, l := range m.spec.Plan.Levels {
		if l.Height >= s.Level {
			n += len(l.Clusters)
		}
	}
	return n
}

// broke ends a job whose budget does not pay what is next.
func (m *Manager) broke(next step) []Order {
	m.budget.waiting = nil
	m.stopped = m.budget.field + " does not pay the next step"
	m.unpaid = next
	over := m.overBudget(next)
	h := m.halfway()
	over.Msg += m.again(h)
	orders := m.finish(disdel.StatusFailed, over)
	if o, ok := orders[0].(FinishOrder); ok {
		o.Halfway = h
		orders[0] = o
	}
	return orders
}

// step is something that a budget has to pay.
type step struct {
	what string
	cost float64 // GB-s that it takes at least
}

// wholeRound is the round that is to begin.
func (m *Manager) wholeRound() step {
	return step{
		what: fmt.Sprintf("round %d of %d", m.round+1, m.spec.Plan.Rounds),
		cost: max(0, m.budget.cheapest-m.budget.done),
	}
}

// nameOf says what an invocation is for.
func (m *Manager) nameOf(w asking, e effort) string {
	switch {
	case e.leg > 0:
		return fmt.Sprintf("leg %d of worker %d", e.leg+1, w.slot.Member)
	case w.cause.Outcome.Failed() && w.slot.Task == disdel.TaskTrain:
		return fmt.Sprintf("another attempt of worker %d", w.slot.Member)
	case w.cause.Outcome.Failed():
		return fmt.Sprintf("another attempt to %s round %d", w.slot.Task, m.round+1)
	case w.slot.Task == disdel.TaskTrain:
		return fmt.Sprintf("round %d of %d", m.round+1, m.spec.Plan.Rounds)
	case w.slot.Task == disdel.TaskEvaluate:
		return "the evaluation"
	default:
		return fmt.Sprintf("the aggregation of round %d", m.round+1)
	}
}

// overBudget says what was spent, what the next step takes, what the rest would cost, and how the job goes on.
func (m *Manager) overBudget(next step) *disdel.Error {
	b := m.budget
	left, known := m.rest()
	rest := fmt.Sprintf("what is left would cost about %.3g GB-s", left)
	enough := b.spent + max(left, next.cost)*(1+spare)
	if !known {
		enough = b.spent + max(b.most, longer*next.cost)*(1+spare)
		rest = "nobody knows what is left: nothing of a round was trained, so the proposed budget is a guess"
	}
	return &disdel.Error{
		Kind: disdel.OverLimit, Code: disdel.CodeOverBudget, Op: "run job", Job: m.spec.ID,
		Msg: fmt.Sprintf("the job has spent %.3g GB-s, %s would take about %.3g more, and %s is %.4g GB-s; %s",
			b.spent, next.what, next.cost, b.field, b.most, rest),
		Hint:    fmt.Sprintf("disdel resume %s --set %s=%sGB-s", m.spec.ID, b.field, scheduler.RoundedUp(enough)),
		Changes: [][]string{{fmt.Sprintf("%s=%sGB-s", b.field, scheduler.RoundedUp(enough))}},
	}
}

// spare is what a proposed budget has above the likely cost.
const spare = 0.25

// rest is what a resume would cost: the rounds from the newest checkpoint on.
func (m *Manager) rest() (cost float64, known bool) {
	rounds := float64(max(1, m.spec.Plan.Rounds-m.newestCheckpoint()))
	each := max(m.budget.round, m.budget.spent-m.budget.began)
	if m.budget.round == 0 {
		each = m.roundByProgress()
	}
	if f := m.spec.Plan.Forecast; each == 0 && f != nil {
		each = f.ByUse().Likely / float64(max(1, m.spec.Plan.Rounds))
	}
	return each * rounds, each > 0
}

// roundByProgress is what the round that runs comes to by what its workers have trained of it so far; 0: nothing, or
// not known. What closes it takes a share of its own.
func (m *Manager) roundByProgress() float64 {
	total := max(1, Steps(&m.spec.Job, &m.spec.Plan, m.spec.span(m.round)))
	trained, all := 0, total*m.spec.Plan.Workers
	for w := range m.spec.Plan.Workers {
		e := m.attempts.efforts[disdel.Slot{Task: disdel.TaskTrain, Member: w}]
		if _, ok := m.barrier.results[w]; ok {
			trained += total
		} else {
			trained += min(total, e.batches)
		}
	}
	if trained == 0 || all == 0 {
		return 0
	}
	spent := max(0, m.budget.spent-m.budget.began) / (1 - closingShare)
	return spent * float64(all) / float64(trained)
}
