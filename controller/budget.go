package controller

import (
	"fmt"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// budget keeps a job within what it may cost by use. It is kept to twice. Before every round, attempt and leg what is
// spent and what is about to begin are held against it: where they are above, the job stops there, to be resumed with
// more. And whatever begins is told how long the budget holds it (its hold), where that is not as long as its
// timeout: a train action stores its state before, and another leg goes on where others have left something. What all
// that runs may hold, what has ended and what it takes to close the round are together never above the budget.
type budget struct {
	most  float64 // GB-s; 0: none
	field string  // that says so
	spent float64 // GB-s by use of what has ended
	began float64 // spent when the round began, in whichever run of the job
	round float64 // what the newest whole round took, GB-s; 0: none has ended
	done  float64 // of it, what an earlier run of the job spent on the round that goes on; 0: the round began anew

	running map[string]float64 // GB-s that invocations which run may hold, by their ids
	ended   bool               // anything has
	longest disdel.Millis      // start of a container that was seen
	closing map[disdel.Task]closing
}

// closing is what one kind of action takes that closes a round: aggregations, evaluations.
type closing struct {
	each  float64 // GB-s, the most that one held
	now   float64 // of those of this round together
	round float64 // of those of a whole round, the most
}

// What is kept back, and what is too little to begin anything.
const (
	closingShare  = 0.2 // of what is left, for closing a round, before one was closed
	closingSpare  = 1.5 // times the most that closing a round has taken
	trainSpare    = 1.25
	holdSpare     = 0.05
	firstStart    = disdel.Millis(500 * time.Millisecond) // of a container, before one was seen
	leastHold     = disdel.Millis(100 * time.Millisecond)
	leastProgress = 0.1 // of the leg before, which one that the budget ended has to be worth
)

func newBudget(job disdel.Job) budget {
	b := budget{running: map[string]float64{}, closing: map[disdel.Task]closing{}}
	b.most, b.field = job.Budget()
	return b
}

// tell takes what the loop knows of the bill.
func (b *budget) tell(now Moment) { b.spent = max(b.spent, now.Spent) }

// over takes an activation's end: what it held is spent, and what it might have held is free again.
func (b *budget) over(a disdel.Activation) {
	delete(b.running, a.Invocation.ID)
	b.ended, b.longest = true, max(b.longest, a.InitTime)
	if a.Task == disdel.TaskTrain {
		return
	}
	c := b.closing[a.Task]
	c.each, c.now = max(c.each, a.HeldGBs()), c.now+a.HeldGBs()
	b.closing[a.Task] = c
}

// roundOver learns from a round what the next one takes.
func (b *budget) roundOver() {
	if took := b.spent - b.began; took > 0 {
		b.round = took
	}
	b.began, b.done = b.spent, 0
	for task, c := range b.closing {
		c.round, c.now = max(c.round, c.now), 0
		b.closing[task] = c
	}
}

// used says whether nothing is left.
func (b *budget) used() bool { return b.most > 0 && b.spent >= b.most }

// free is what nothing that runs may hold.
func (b *budget) free() float64 {
	free := b.most - b.spent
	for _, gbs := range b.running {
		free -= gbs
	}
	return max(0, free)
}

// kept is what is kept back of so much for closing the round: more than that has taken, where training has as much
// again as it needs.
func (b *budget) kept(free float64) float64 {
	aggregate := b.closing[disdel.TaskAggregate].round
	if aggregate == 0 {
		return closingShare * free
	}
	closes := aggregate + b.closing[disdel.TaskEvaluate].round
	train := max(0, b.round-closes)
	return min(free, max(closes, min(closingSpare*closes, free-trainSpare*train)))
}

// share is what one of several invocations may hold: as much as the others of what is free, and at least what the most
// expensive one of its kind has held, if there is as much.
func (b *budget) share(task disdel.Task, among int) float64 {
	free := b.free()
	if task == disdel.TaskTrain {
		return (free - b.kept(free)) / float64(max(1, among))
	}
	return max(free/float64(max(1, among)), min(free, closingSpare*b.closing[task].each))
}

// hold is for how long an action with these limits may run by what it may hold, less what starting its container and
// ending take; 0: for as long as its timeout.
func (b *budget) hold(l disdel.Limits, gbs float64) disdel.Millis {
	memory := l.Memory.Gigabytes()
	if b.most <= 0 || memory <= 0 || gbs >= memory*l.Timeout.Seconds() {
		return 0
	}
	start := b.longest
	if !b.ended {
		start = min(firstStart, disdel.Millis(gbs/memory*float64(time.Second)/2))
	}
	whole := disdel.Millis(gbs / memory * float64(time.Second))
	return max(1, disdel.Millis(float64(whole)*(1-holdSpare))-start)
}

// begins counts what an invocation may hold from now on.
func (b *budget) begins(inv disdel.Invocation, gbs float64) {
	if b.most > 0 {
		b.running[inv.ID] = min(gbs, disdel.GBSeconds(inv.Limits.Memory, inv.Limits.Timeout))
	}
}

// alone is how many invocations begin with one that begins alone: another attempt, another leg.
const alone = 0

// among is how many invocations share what is free with that of a slot, itself among them: those of the same kind that
// begin with it; where it begins alone, all workers that the round waits for, who may need more in their turn; of what
// closes a round all that are still to come.
func (m *Manager) among(s disdel.Slot, beside int) int {
	switch {
	case s.Task == disdel.TaskTrain && beside == alone:
		return len(m.barrier.outstanding())
	case s.Task != disdel.TaskAggregate:
		return beside
	}
	n := 1 // the evaluation
	for _, l := range m.spec.Plan.Levels {
		if l.Height >= s.Level {
			n += len(l.Clusters)
		}
	}
	return n
}

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
		next := m.asks(inv, a)
		if next.fits(m.budget, inv) {
			continue
		}
		for _, o := range orders[i:] { // none of them begins
			if dropped, ok := o.(InvokeOrder); ok {
				delete(m.budget.running, dropped.Invocation.ID)
			}
		}
		if inv.Task == disdel.TaskEvaluate {
			return append(orders[:i:i],
				m.within(m.unevaluated(m.overBudget(next)), disdel.Activation{})...)
		}
		return append(orders[:i:i], m.broke(next)...)
	}
	return orders
}

// broke ends a job whose budget does not hold what is next.
func (m *Manager) broke(next step) []Order {
	m.stopped = m.budget.field + " is used up"
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

// step is something that a budget has to hold.
type step struct {
	what  string
	cost  float64       // GB-s that it is expected to take; 0: not known
	whole bool          // it is all that runs, and not one of several
	least disdel.Millis // less than this is of no use
}

// fits tells whether the budget holds a step that begins with an invocation.
func (s step) fits(b budget, inv disdel.Invocation) bool {
	has := b.running[inv.ID]
	if s.whole {
		has = b.most - b.spent
	}
	return !b.used() && s.cost <= has && (inv.Hold == 0 || inv.Hold >= s.least)
}

// asks tells what an invocation begins that the budget has to hold, and what that is expected to cost: a round as much
// as the last, less what an earlier run spent on it, a leg as much as the one before, another attempt as much as the
// one that failed, or its whole new timeout after one; what closes a round as much as the most expensive of its kind so
// far.
func (m *Manager) asks(inv disdel.Invocation, a disdel.Activation) step {
	s := step{least: leastHold}
	if m.budget.round > 0 { // what a round takes is known, and may be less than that
		s.least = 0
	}
	same := inv.Slot() == a.Slot()
	switch {
	case inv.Leg > 0:
		s.what = fmt.Sprintf("leg %d of worker %d", inv.Leg+1, inv.Member)
		if a.Hold > 0 { // it ended for the budget's sake, and nobody knows how much was left to do
			s.least = max(leastHold, disdel.Millis(leastProgress*float64(a.Duration)))
			return s
		}
		s.cost = a.HeldGBs()
	case a.Outcome == disdel.OutcomeTimeout && same:
		s.what, s.cost = "another attempt", disdel.GBSeconds(inv.Limits.Memory, inv.Limits.Timeout)
	case a.Outcome.Failed():
		s.what, s.cost = "another attempt", a.HeldGBs()
	case inv.Task == disdel.TaskTrain:
		s.what = fmt.Sprintf("round %d of %d", m.round+1, m.spec.Plan.Rounds)
		s.cost, s.whole = max(0, m.budget.round-m.budget.done), true
		if m.budget.done > 0 { // the last round says little of how much is left of it
			s.least = leastHold
		}
	case inv.Task == disdel.TaskEvaluate:
		s.what, s.cost = "the evaluation", m.budget.closing[inv.Task].each
	default:
		s.what, s.cost = fmt.Sprintf("the aggregation of round %d", m.round+1), m.budget.closing[inv.Task].each
	}
	return s
}

// overBudget says what was spent, what the next step and the rest would cost, and how the job goes on.
func (m *Manager) overBudget(next step) *disdel.Error {
	b := m.budget
	text := next.what + " is next"
	if next.cost > 0 {
		text = fmt.Sprintf("%s would take about %.3g more", next.what, next.cost)
	}
	left, known := m.rest()
	enough := b.spent + max(left, next.cost)*(1+spare)
	rest := fmt.Sprintf("what is left would cost about %.3g GB-s", left)
	if !known {
		enough = max(2*b.most, enough)
		rest = "what is left is not known: no round has ended"
	}
	return &disdel.Error{
		Kind: disdel.OverLimit, Code: disdel.CodeOverBudget, Op: "run job", Job: m.spec.ID,
		Msg:  fmt.Sprintf("the job has spent %.3g GB-s, %s, and %s is %.4g GB-s; %s", b.spent, text, b.field, b.most, rest),
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
		each = f.ByUse().Likely / float64(max(1, m.spec.Plan.Rounds))
	}
	return each * rounds, each > 0
}
