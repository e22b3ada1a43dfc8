package controller

import (
	"fmt"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// within returns the orders that the budget can pay. An invocation that finds too little waits until something that
// runs has ended. The job ends only if nothing runs and the rest of the budget does not pay the next step.
func (m *Manager) within(orders []Order) []Order {
	if m.budget.most <= 0 || m.ended {
		return orders
	}
	out := make([]Order, 0, len(orders))
	for _, o := range orders {
		begun, ok := o.(InvokeOrder)
		if !ok {
			out = append(out, o)
			continue
		}
		inv := begun.Invocation
		m.budget.waiting = append(m.budget.waiting, asking{slot: inv.Slot(), id: inv.ID, after: begun.After})
	}
	return append(out, m.pay()...)
}

// roundBegins tells whether what waits for a part of the budget is the first of a round.
func (m *Manager) roundBegins() bool {
	return m.budget.entered <= m.round && slices.ContainsFunc(m.budget.waiting, func(w asking) bool {
		e := m.attempts.efforts[w.slot]
		return w.slot.Task == disdel.TaskTrain && e.awaited == w.id && e.attempt == 1 && e.leg == 0
	})
}

// roundTooDear tells whether a round that is to begin would not end within the budget.
func (m *Manager) roundTooDear() bool {
	return m.budget.used() || m.leastOfRound() > m.budget.left()
}

// leastOfRound is the least cost of the round that is to begin, in GB-s. It assumes that every worker and aggregation
// is as fast as the fastest so far. The evaluation does not count: a round that cannot pay for it goes without. It is 0
// in the first round of a stage.
func (m *Manager) leastOfRound() float64 {
	b := &m.budget
	steps := m.stepsOf(m.round)
	least := min(b.cheapest, b.cheapestStep*float64(steps))
	if b.leg.step > 0 {
		l, _ := m.spec.limits(disdel.TaskTrain, work{limits: m.attempts.limits[disdel.TaskTrain]})
		workers, aggregations := disdel.Millis(m.spec.Plan.Workers), 0
		for _, level := range m.spec.Plan.Levels {
			aggregations += len(level.Clusters)
		}
		least = min(least, disdel.GBSeconds(l.Memory, workers*b.leg.fixed+disdel.Millis(steps)*b.leg.step)+
			float64(aggregations)*b.closing[disdel.TaskAggregate].cheapest)
	}
	return b.sure(max(0, least-b.done))
}

// stepsOf is how many steps the workers make in a round, all together, at least 1.
func (m *Manager) stepsOf(round int) (steps int) {
	span := m.spec.span(round)
	for _, rows := range shardsOf(&m.spec.Job, &m.spec.Plan) {
		steps += stepsIn(&m.spec.Job, &m.spec.Plan, span, rows)
	}
	return max(1, steps)
}

// payment is the decision about an invocation that asks for a part of the budget.
type payment uint8

const (
	paid payment = iota
	postponed
	unpayable
)

// share is the part of the budget that an invocation gets.
type share struct {
	gbs  float64       // GB-s that are reserved for it
	cost float64       // GB-s that it costs at least
	hold disdel.Millis // the shortest one that may be of use to it
	what payment
}

// pay begins the waiting invocations for which the budget has a part.
func (m *Manager) pay() (orders []Order) {
	if m.roundBegins() {
		switch {
		case !m.roundTooDear():
			m.budget.entered = m.round + 1
		case len(m.budget.running) > 0: // running actions may give back what they do not use
			return nil
		default:
			return m.broke(m.wholeRound())
		}
	}
	asked := m.budget.waiting
	m.budget.waiting = nil
	workers := len(m.barrier.outstanding()) // that share what is left for training
	for i, w := range asked {
		e := m.attempts.efforts[w.slot]
		if e.awaited != w.id { // nobody waits for it any more
			continue
		}
		limits, _ := m.spec.limits(w.slot.Task, work{limits: m.attempts.limits[w.slot.Task]})
		got := m.part(w.slot, limits, max(1, workers))
		switch got.what {
		case postponed:
			m.budget.waiting = append(m.budget.waiting, w)
			continue
		case unpayable:
			next := step{what: m.nameOf(w, e), slot: w.slot, cost: got.cost}
			if w.slot.Task != disdel.TaskEvaluate {
				return append(orders, m.broke(next)...)
			}
			m.attempts.close(w.slot)
			m.budget.waiting = append(m.budget.waiting, asked[i+1:]...)
			return append(orders, m.within(m.unevaluated(m.overBudget(next)))...)
		}
		if w.slot.Task == disdel.TaskTrain {
			workers--
		}
		m.budget.running[w.id] = got.gbs
		inv := m.built(w.slot, e, m.budget.hold(limits, got.gbs, got.hold))
		orders = append(orders, InvokeOrder{Invocation: inv, After: w.after})
	}
	return orders
}

// part is the part of the budget that a slot's invocation gets.
func (m *Manager) part(s disdel.Slot, l disdel.Limits, workers int) share {
	b := &m.budget
	var out share
	if s.Task == disdel.TaskTrain {
		out = m.partOfTraining(l, workers)
	} else {
		out = m.partOfClosing(s, l)
	}
	if b.used() {
		out.what = unpayable
	}
	if out.what == unpayable && len(b.running) > 0 { // running actions may give back what they do not use
		out.what = postponed
	}
	return out
}

// partOfClosing is the part of the budget for an aggregation or an evaluation. These cannot pause: after a hold that is
// too short they begin anew.
func (m *Manager) partOfClosing(s disdel.Slot, l disdel.Limits) share {
	b := &m.budget
	c, free, whole := b.closing[s.Task], b.free(), b.whole(l)
	hold := max(leastHold, c.tooShort)
	need, least := b.costOf(l, max(leastHold, longer*c.tooShort)), b.leastFor(l, hold)
	if c.tooShort == 0 {
		sure := min(whole, b.sure(c.cheapest))
		need, least = max(need, sure), max(least, sure)
	}
	fair := free / float64(m.toClose(s))
	if c.passed > 0 && c.tooShort == 0 { // the cost of such an action is known
		fair = max(fair, min(free, closingSpare*c.each))
	}
	known := c.passed > 0 && fair >= closingSpare*c.each && fair >= need
	switch {
	case fair >= whole:
		return share{whole, least, hold, paid}
	case known:
		return share{fair, least, hold, paid}
	case len(b.running) > 0:
		return share{0, least, hold, postponed}
	case free >= least:
		return share{free, least, hold, paid}
	default:
		return share{0, least, hold, unpayable}
	}
}

// partOfTraining is the part of the budget for one of so many train actions. If there is too little for a leg of each,
// they train one after another, and their work is kept. Workers that exchange updates in a round need each other.
func (m *Manager) partOfTraining(l disdel.Limits, workers int) share {
	b := &m.budget
	free, whole, hold := b.free(), b.whole(l), b.leg.least()
	need, least := b.costOf(l, b.leg.useful()), b.leastFor(l, hold)
	each := free / float64(workers)
	fair := (free - b.kept(free, m.costOfRound(m.round))) / float64(workers)
	together := m.spec.Job.Distribution.Exchange != nil
	if together {
		least *= float64(workers)
	}
	switch {
	case fair >= need:
		return share{min(fair, whole), least, hold, paid}
	case together && free >= least:
		return share{min(each, whole), least, hold, paid}
	case len(b.running) > 0:
		return share{0, least, hold, postponed}
	case free >= least:
		return share{min(free, need), least, hold, paid}
	default:
		return share{0, least, hold, unpayable}
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

// broke ends a job whose budget does not pay the next step.
func (m *Manager) broke(next step) []Order {
	m.budget.waiting = nil
	m.stopped = m.budget.field + " does not pay the next step"
	over := m.overBudget(next)
	h := m.halfway()
	over.Msg += m.again(h)
	orders := m.finish(disdel.StatusFailed, over)
	if o, ok := orders[0].(FinishOrder); ok {
		o.Halfway, o.unpaid = h, next
		orders[0] = o
	}
	return orders
}

// step is something that a budget has to pay.
type step struct {
	what string
	slot disdel.Slot // that it is for; zero: all of a round
	cost float64     // GB-s that it takes at least
}

// wholeRound is the round that is to begin.
func (m *Manager) wholeRound() step {
	return step{
		what: fmt.Sprintf("round %d of %d", m.round+1, m.spec.Plan.Rounds),
		cost: max(0, m.costOfRound(m.round)-m.budget.done),
	}
}

// costOfRound is the cost of a round in GB-s, by the newest one; 0: unknown.
func (m *Manager) costOfRound(round int) float64 { return m.budget.perStep * float64(m.stepsOf(round)) }

// nameOf says what an invocation is for.
func (m *Manager) nameOf(w asking, e effort) string {
	switch {
	case e.leg > 0:
		return fmt.Sprintf("leg %d of worker %d", e.leg+1, w.slot.Member)
	case e.attempt > 1 && w.slot.Task == disdel.TaskTrain:
		return fmt.Sprintf("another attempt of worker %d", w.slot.Member)
	case e.attempt > 1:
		return fmt.Sprintf("another attempt to %s round %d", w.slot.Task, m.round+1)
	case w.slot.Task == disdel.TaskTrain:
		return fmt.Sprintf("round %d of %d", m.round+1, m.spec.Plan.Rounds)
	case w.slot.Task == disdel.TaskEvaluate:
		return "the evaluation"
	default:
		return fmt.Sprintf("the aggregation of round %d", m.round+1)
	}
}

// overBudget is the failure of a job whose budget is used up. It says what was spent, what the next step takes, what
// the rest would cost, and how the job goes on.
func (m *Manager) overBudget(next step) *disdel.Error {
	b := m.budget
	left, known := m.rest()
	rest := fmt.Sprintf("what is left would cost about %.3g GB-s", left)
	enough := b.spent + max(left, next.cost)*(1+spare)
	if !known {
		enough = b.spent + max(b.most, longer*next.cost)*(1+spare)
		rest = "nobody knows what is left: nothing of a round was trained, so the proposed budget is a guess"
	}
	takes := fmt.Sprintf("%s would take about %.3g more", next.what, next.cost)
	if b.used() || next.cost == 0 {
		takes = "nothing is left for " + next.what
	}
	// a resume has seen no container start, and sets this time aside for each
	enough += m.startsAgain(max(0, firstStart-b.start))
	raised := fmt.Sprintf("%s=%sGB-s", b.field, scheduler.RoundedUp(enough))
	return &disdel.Error{
		Kind: disdel.OverLimit, Code: disdel.CodeOverBudget, Op: "run job", Job: m.spec.ID,
		Msg: fmt.Sprintf("the job has spent %.3g GB-s, %s, and %s is %.4g GB-s; %s",
			b.spent, takes, b.field, b.most, rest),
		Hint:    fmt.Sprintf("disdel resume %s --set %s", m.spec.ID, raised),
		Changes: [][]string{{raised}},
	}
}

// spare is what a proposed budget has above the likely cost, as a share of it. A busy machine makes the rest dearer,
// and a job does not spend what it does not need.
const spare = 0.5

// rest is what a resume would cost: the rounds from the newest checkpoint on.
func (m *Manager) rest() (cost float64, known bool) {
	from, rounds := m.newestCheckpoint(), m.spec.Plan.Rounds
	each := m.budget.perStep
	if now := max(0, m.budget.spent-m.budget.began) / float64(m.stepsOf(m.round)); each > 0 {
		each = max(each, now)
	} else {
		each = m.stepByProgress()
	}
	if f := m.spec.Plan.Forecast; each == 0 && f != nil {
		return f.ByUse().Likely * float64(max(1, rounds-from)) / float64(max(1, rounds)), true
	}
	cost = m.startsAgain(m.budget.start)
	for r := from; r < max(rounds, from+1); r++ {
		cost += each * float64(m.stepsOf(r))
	}
	return cost, each > 0
}

// startsAgain is the cost in GB-s of starting the containers of a round, as a resume has to: the newest round had them.
// each is the time that one start takes.
func (m *Manager) startsAgain(each disdel.Millis) (cost float64) {
	p := &m.spec.Plan
	for _, a := range p.Actions {
		containers := 1
		if a.Task == disdel.TaskTrain {
			containers = max(1, p.Workers)
			if p.Parallel > 0 {
				containers = min(containers, p.Parallel)
			}
		}
		cost += float64(containers) * disdel.GBSeconds(a.Limits.Memory, each)
	}
	return cost
}

// stepByProgress is the cost of one worker's step in GB-s, by the progress of the current round. It includes a share
// for closing the round. It is 0 if nothing was trained yet.
func (m *Manager) stepByProgress() float64 {
	total := max(1, Steps(&m.spec.Job, &m.spec.Plan, m.spec.span(m.round)))
	trained := 0
	for w := range m.spec.Plan.Workers {
		e := m.attempts.efforts[disdel.Slot{Task: disdel.TaskTrain, Member: w}]
		if _, ok := m.barrier.results[w]; ok {
			trained += total
		} else {
			trained += min(total, e.batches)
		}
	}
	if trained == 0 {
		return 0
	}
	return max(0, m.budget.spent-m.budget.began) / (1 - closingShare) / float64(trained)
}
