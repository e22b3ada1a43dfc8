package controller

import (
	"fmt"
	"slices"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// budget counts what a job may spend, in GB-s by use. It reserves a part for every running invocation, so that the
// spent and the reserved GB-s together never exceed the budget.
//
// An invocation may get less time than its timeout: its hold. A train action stores its state before its hold ends,
// and another leg continues. The part is free again when the invocation ends, so an action that finds too little
// waits while others run. The cost of a step is derived from what earlier steps used, never from their limits.
//
// By how much an action exceeds its hold is unknown in advance. reserveSpare covers that.
type budget struct {
	maximum float64 // GB-s; 0: none
	field   string  // of the job file that sets it
	spent   float64 // GB-s by use of ended activations
	began   float64 // spent when the round began, in any run of the job
	done    float64 // GB-s that an earlier run of the job spent on the current round; 0: it started again

	rounds       int     // whole ones observed in this stage
	cheapest     float64 // GB-s of the cheapest of them
	cheapestStep float64 // GB-s of a step of one worker in the cheapest of them, including the round's other costs
	perStep      float64 // GB-s of a step of one worker in the newest round, including the round's other costs
	entered      int     // rounds that the budget could pay for at their start

	running map[string]float64 // GB-s reserved for running invocations, by id
	waiting []asking           // invocations that wait for a part of the budget
	ended   bool               // an activation has run and ended
	start   disdel.Millis      // longest observed start of a container
	overrun disdel.Millis      // the most by which an activation exceeded its timeout
	late    disdel.Millis      // the most by which an activation exceeded its hold
	leg     legCost
	closing map[disdel.Task]closing
}

// asking is an invocation that waits for a part of the budget.
type asking struct {
	slot  disdel.Slot
	id    string
	after time.Duration
}

// legCost is the measured time of the shortest useful leg of a train action.
type legCost struct {
	fixed, step disdel.Millis // least times so far: of everything except training, and of one batch
	tooShort    disdel.Millis // the longest hold that failed
}

// closing is the cost of one kind of action that closes a round: aggregation or evaluation. These cannot pause.
type closing struct {
	passed   int           // how many
	each     float64       // GB-s, the most of one
	cheapest float64       // GB-s, the least of a passed one
	now      float64       // GB-s of all of them in this round
	round    float64       // GB-s of all of them in a round, the most so far
	tooShort disdel.Millis // the longest hold that failed
}

const (
	closingShare = 0.2 // of what is left, for closing the first round
	closingSpare = 1.5 // times the most that closing a round, or one action of it, has cost
	trainSpare   = 1.25
	reserveSpare = 0.05                                  // of what is reserved: an action ends some time after its hold
	firstStart   = disdel.Millis(500 * time.Millisecond) // of a container, before one was seen
	leastHold    = disdel.Millis(100 * time.Millisecond)
	legSpare     = 1.5 // times the shortest leg that would have trained one batch
	longer       = 2   // times a hold that was too short
	sureAfter    = 4   // observations of a kind: the cheapest of them is then a bound
)

func newBudget(job disdel.Job) budget {
	b := budget{running: map[string]float64{}, closing: map[disdel.Task]closing{}}
	b.maximum, b.field = job.Budget()
	return b
}

// tell updates what was spent.
func (b *budget) tell(now Moment) { b.spent = max(b.spent, now.Spent) }

// over handles the end of an activation: its GB-s are spent, and its part of the budget is free again. batch is the
// number of rows in a worker's batch.
func (b *budget) over(a disdel.Activation, batch int) {
	delete(b.running, a.Invocation.ID)
	if a.Duration <= 0 { // it never ran
		return
	}
	b.ended = true
	if frozen(a) { // its times say nothing about other containers
		return
	}
	b.start = max(b.start, a.InitTime)
	if a.Limits.Timeout > 0 {
		b.overrun = max(b.overrun, a.Duration-a.Limits.Timeout)
	}
	if a.Hold > 0 {
		b.late = max(b.late, a.Duration-a.InitTime-a.Hold)
	}
	short := disdel.Millis(0)
	if holdTooShort(a) {
		short = max(a.Hold, leastHold)
	}
	if a.Task == disdel.TaskTrain {
		b.leg.tooShort = max(b.leg.tooShort, short)
		b.leg.seen(a, batch)
		return
	}
	c := b.closing[a.Task]
	c.each, c.now, c.tooShort = max(c.each, a.HeldGBs()), c.now+a.HeldGBs(), max(c.tooShort, short)
	if a.Outcome == disdel.OutcomeSuccess {
		c.cheapest = lower(c.cheapest, a.HeldGBs())
		c.passed++
	}
	b.closing[a.Task] = c
}

// frozen tells whether an activation hung until the platform ended it. Its times say nothing about others.
func frozen(a disdel.Activation) bool {
	_, stalled := a.Stalled()
	return stalled || a.Outcome == disdel.OutcomeTimeout && a.Hold > 0 && a.Duration >= a.Limits.Timeout
}

// holdTooShort tells whether an activation failed because its hold was over. Its error may name something else: what
// the action waited for at that moment.
func holdTooShort(a disdel.Activation) bool {
	return a.FailureCode() == disdel.CodeOverBudget ||
		a.Hold > 0 && a.Outcome == disdel.OutcomeTimeout && a.Duration < a.Limits.Timeout
}

// seen learns from a train action that trained something.
func (l *legCost) seen(a disdel.Activation, batch int) {
	compute := a.Phases["compute"]
	if a.Rows <= 0 || compute <= 0 || batch <= 0 {
		return
	}
	steps := (a.Rows + batch - 1) / batch
	l.fixed = lower(l.fixed, max(1, a.Duration-a.InitTime-compute))
	l.step = lower(l.step, max(1, compute/disdel.Millis(steps)))
}

// useful is a hold in which a leg surely trains something.
func (l *legCost) useful() disdel.Millis {
	return max(leastHold, longer*l.tooShort, disdel.Millis(legSpare*float64(l.fixed+l.step)))
}

// minimum is the shortest hold in which a leg may train something: in a shorter one, none has.
func (l *legCost) minimum() disdel.Millis { return max(leastHold, l.tooShort, l.fixed+l.step) }

// lower returns the lower of an earlier and a new measurement; an earlier 0 means none.
func lower[T ~int64 | ~float64](before, now T) T {
	if before == 0 {
		return now
	}
	return min(before, now)
}

// sure is the least that a step costs, in GB-s. It is derived from the cheapest step in whole rounds. After few
// rounds it is lower: the first round starts containers, and a busy machine may be quiet next time.
func (b *budget) sure(cheapest float64) float64 {
	return cheapest * min(1, float64(b.rounds)/sureAfter)
}

// roundOver learns from the ended round how much the next one costs. steps are those of all workers together.
func (b *budget) roundOver(steps int) {
	if took := b.spent - b.began; took > 0 {
		b.perStep = took / float64(max(1, steps))
		b.cheapest, b.cheapestStep = lower(b.cheapest, took), lower(b.cheapestStep, b.perStep)
		b.rounds++
	}
	b.began, b.done = b.spent, 0
	for task, c := range b.closing {
		c.round, c.now = max(c.round, c.now), 0
		b.closing[task] = c
	}
}

// stageBegins forgets the least costs of actions and rounds: another stage has other workers or limits.
func (b *budget) stageBegins() {
	b.rounds, b.cheapest, b.cheapestStep, b.leg = 0, 0, 0, legCost{}
	for task, c := range b.closing {
		c.cheapest, c.tooShort = 0, 0
		b.closing[task] = c
	}
}

func (b *budget) used() bool { return b.maximum > 0 && b.spent >= b.maximum }

func (b *budget) remaining() float64 { return max(0, b.maximum-b.spent) }

// free is the part of the budget, in GB-s, that is neither spent nor reserved.
func (b *budget) free() float64 {
	free := b.maximum - b.spent
	for _, gbs := range b.running {
		free -= gbs
	}
	return max(0, free)
}

// kept is the part of free that is kept for closing the round, in GB-s. It is more than closing a round has cost, if
// that leaves enough for training. round is the cost of a whole round.
func (b *budget) kept(free, round float64) float64 {
	aggregate := b.closing[disdel.TaskAggregate].round
	if aggregate == 0 {
		return closingShare * free
	}
	closes := aggregate + b.closing[disdel.TaskEvaluate].round
	train := max(0, round-closes)
	return min(free, max(closes, min(closingSpare*closes, free-trainSpare*train)))
}

// fullCost is the cost of an action that runs until its timeout.
func (b *budget) fullCost(l disdel.Limits) float64 {
	return disdel.GBSeconds(l.Memory, l.Timeout+b.overrun)
}

// hold is how long an action may run if gbs GB-s are reserved for it: without the start of its container, and without
// the time by which others exceeded their holds. If that would be shorter than minimum, hold omits the latter. It is 0
// if the action may run until its timeout.
func (b *budget) hold(l disdel.Limits, gbs float64, minimum disdel.Millis) disdel.Millis {
	memory := l.Memory.Gigabytes()
	if memory <= 0 || gbs >= b.fullCost(l) {
		return 0
	}
	usable := disdel.Millis(gbs / memory * float64(time.Second) * (1 - reserveSpare))
	start := b.start
	if !b.ended {
		start = min(firstStart, usable/2)
	}
	return max(1, usable-start-b.late, min(minimum, usable-start))
}

// costOf is what to reserve, in GB-s, for an action that runs for hold and may end as late as others have.
func (b *budget) costOf(l disdel.Limits, hold disdel.Millis) float64 {
	return min(b.fullCost(l), b.leastFor(l, hold+b.late))
}

// leastFor is the least to reserve, in GB-s, for an action that runs for hold.
func (b *budget) leastFor(l disdel.Limits, hold disdel.Millis) float64 {
	start := b.start
	if !b.ended {
		start = min(firstStart, hold)
	}
	return min(b.fullCost(l), disdel.GBSeconds(l.Memory, hold+start)/(1-reserveSpare)*(1+1e-9))
}

// payFor returns the orders that the budget can pay for. An invocation that finds too little waits until a running
// one ends. The job ends only if nothing runs and the rest of the budget cannot pay for the next step.
func (m *Manager) payFor(orders []Order) []Order {
	if m.budget.maximum <= 0 || m.ended {
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

// roundBegins tells whether the first invocation of a round waits for a part of the budget.
func (m *Manager) roundBegins() bool {
	return m.budget.entered <= m.round && slices.ContainsFunc(m.budget.waiting, func(w asking) bool {
		e := m.attempts.slots[w.slot]
		return w.slot.Task == disdel.TaskTrain && e.invocation == w.id && e.attempt == 1 && e.leg == 0
	})
}

// roundTooDear tells whether the next round would not end within the budget.
func (m *Manager) roundTooDear() bool {
	return m.budget.used() || m.leastOfRound() > m.budget.remaining()
}

// leastOfRound is the least cost of the next round, in GB-s. It assumes that every worker and aggregation is as fast
// as the fastest so far. The evaluation does not count: a round that cannot pay for it goes without. It is 0 in the
// first round of a stage.
func (m *Manager) leastOfRound() float64 {
	b := &m.budget
	steps := m.stepsOf(m.round)
	minimum := min(b.cheapest, b.cheapestStep*float64(steps))
	if b.leg.step > 0 {
		l, _ := m.spec.limits(disdel.TaskTrain, work{limits: m.attempts.limits[disdel.TaskTrain]})
		workers, aggregations := disdel.Millis(m.spec.Plan.Workers), m.spec.Plan.ActionCount(disdel.TaskAggregate)
		minimum = min(minimum, disdel.GBSeconds(l.Memory, workers*b.leg.fixed+disdel.Millis(steps)*b.leg.step)+
			float64(aggregations)*b.closing[disdel.TaskAggregate].cheapest)
	}
	return b.sure(max(0, minimum-b.done))
}

// stepsOf is the number of steps of all workers in a round, at least 1.
func (m *Manager) stepsOf(round int) (steps int) {
	span := m.spec.span(round)
	for _, rows := range shardsOf(&m.spec.Job, &m.spec.Plan) {
		steps += stepsIn(&m.spec.Job, &m.spec.Plan, span, rows)
	}
	return max(1, steps)
}

// payment is the decision about an invocation that needs a part of the budget.
type payment uint8

const (
	paid payment = iota
	postponed
	unpayable
)

// share is the part of the budget that an invocation gets.
type share struct {
	gbs  float64       // reserved
	cost float64       // GB-s, at least
	hold disdel.Millis // the shortest useful one
	what payment
}

// pay starts the waiting invocations for which the budget has a part.
func (m *Manager) pay() (orders []Order) {
	if m.roundBegins() {
		switch {
		case !m.roundTooDear():
			m.budget.entered = m.round + 1
		case len(m.budget.running) > 0: // running actions may return what they do not use
			return nil
		default:
			return m.outOfBudget(m.wholeRound())
		}
	}
	asked := m.budget.waiting
	m.budget.waiting = nil
	workers := len(m.barrier.outstanding()) // they share what is left for training
	for i, w := range asked {
		e := m.attempts.slots[w.slot]
		if e.invocation != w.id { // it is no longer awaited
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
				return append(orders, m.outOfBudget(next)...)
			}
			m.attempts.close(w.slot)
			m.budget.waiting = append(m.budget.waiting, asked[i+1:]...)
			return append(orders, m.payFor(m.unevaluated(m.overBudget(next)))...)
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

// part computes the part of the budget that a slot's invocation gets.
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
	if out.what == unpayable && len(b.running) > 0 { // running actions may return what they do not use
		out.what = postponed
	}
	return out
}

// partOfClosing is the part of the budget for an aggregation or an evaluation. These cannot pause: after a hold that
// is too short they start again.
func (m *Manager) partOfClosing(s disdel.Slot, l disdel.Limits) share {
	b := &m.budget
	c, free, fullCost := b.closing[s.Task], b.free(), b.fullCost(l)
	hold := max(leastHold, c.tooShort)
	need, minimum := b.costOf(l, max(leastHold, longer*c.tooShort)), b.leastFor(l, hold)
	if c.tooShort == 0 {
		sure := min(fullCost, b.sure(c.cheapest))
		need, minimum = max(need, sure), max(minimum, sure)
	}
	fair := free / float64(m.toClose(s))
	if c.passed > 0 && c.tooShort == 0 { // the cost of such an action is known
		fair = max(fair, min(free, closingSpare*c.each))
	}
	known := c.passed > 0 && fair >= closingSpare*c.each && fair >= need
	switch {
	case fair >= fullCost:
		return share{fullCost, minimum, hold, paid}
	case known:
		return share{fair, minimum, hold, paid}
	case len(b.running) > 0:
		return share{0, minimum, hold, postponed}
	case free >= minimum:
		return share{free, minimum, hold, paid}
	default:
		return share{0, minimum, hold, unpayable}
	}
}

// partOfTraining is the part of the budget for one of so many train actions. If there is too little for a leg of
// each, they train one after another, and their work is kept. Workers that exchange updates in a round need each
// other.
func (m *Manager) partOfTraining(l disdel.Limits, workers int) share {
	b := &m.budget
	free, fullCost, hold := b.free(), b.fullCost(l), b.leg.minimum()
	need, minimum := b.costOf(l, b.leg.useful()), b.leastFor(l, hold)
	each := free / float64(workers)
	fair := (free - b.kept(free, m.costOfRound(m.round))) / float64(workers)
	together := m.spec.Job.Distribution.Exchange != nil
	if together {
		minimum *= float64(workers)
	}
	switch {
	case fair >= need:
		return share{min(fair, fullCost), minimum, hold, paid}
	case together && free >= minimum:
		return share{min(each, fullCost), minimum, hold, paid}
	case len(b.running) > 0:
		return share{0, minimum, hold, postponed}
	case free >= minimum:
		return share{min(free, need), minimum, hold, paid}
	default:
		return share{0, minimum, hold, unpayable}
	}
}

// toClose counts the invocations, from a slot on, that are still needed to close the round.
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

// outOfBudget ends a job whose budget cannot pay for the next step.
func (m *Manager) outOfBudget(next step) []Order {
	m.budget.waiting = nil
	m.stopped = m.budget.field + " does not pay the next step"
	over := m.overBudget(next)
	h := m.unfinishedRound()
	over.Msg += m.repeatedBy(h)
	orders := m.finish(disdel.StatusFailed, over)
	if o, ok := orders[0].(FinishOrder); ok {
		o.Halfway, o.unpaid = h, next
		orders[0] = o
	}
	return orders
}

// step is something that the budget has to pay for.
type step struct {
	what string
	slot disdel.Slot // zero: a whole round
	cost float64     // GB-s, at least
}

// wholeRound is the next round.
func (m *Manager) wholeRound() step {
	return step{
		what: fmt.Sprintf("round %d of %d", m.round+1, m.spec.Plan.Rounds),
		cost: max(0, m.costOfRound(m.round)-m.budget.done),
	}
}

// costOfRound is the cost of a round in GB-s, by the newest one; 0: unknown.
func (m *Manager) costOfRound(round int) float64 { return m.budget.perStep * float64(m.stepsOf(round)) }

// nameOf describes an invocation.
func (m *Manager) nameOf(w asking, e slotAttempts) string {
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

// overBudget is the failure of a job whose budget is used up. It names what was spent, the next step's cost, the
// estimated rest, and how to continue the job.
func (m *Manager) overBudget(next step) *disdel.Error {
	b := m.budget
	remaining, known := m.rest()
	rest := fmt.Sprintf("what is left would cost about %.3g GB-s", remaining)
	enough := b.spent + max(remaining, next.cost)*(1+spare)
	if !known {
		enough = b.spent + max(b.maximum, longer*next.cost)*(1+spare)
		rest = "what is left is unknown: nothing of a round was trained, so the proposed budget is a guess"
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
			b.spent, takes, b.field, b.maximum, rest),
		Hint:    fmt.Sprintf("disdel resume %s --set %s", m.spec.ID, raised),
		Changes: [][]string{{raised}},
	}
}

// spare is the margin of a proposed budget above the likely cost. A busy machine makes the rest dearer, and a job
// does not spend what it does not need.
const spare = 0.5

// rest estimates the cost of a resume: the rounds from the newest checkpoint on.
func (m *Manager) rest() (cost float64, known bool) {
	from, rounds := m.newestCheckpoint(), m.spec.Plan.Rounds
	each := m.budget.perStep
	if now := max(0, m.budget.spent-m.budget.began) / float64(m.stepsOf(m.round)); each > 0 {
		each = max(each, now)
	} else {
		each = m.stepByProgress()
	}
	if f := m.spec.Plan.Forecast; each == 0 && f != nil {
		return f.MeteredCost().Likely * float64(max(1, rounds-from)) / float64(max(1, rounds)), true
	}
	cost = m.startsAgain(m.budget.start)
	for r := from; r < max(rounds, from+1); r++ {
		cost += each * float64(m.stepsOf(r))
	}
	return cost, each > 0
}

// startsAgain is the cost in GB-s of starting the containers of a round, as a resume has to. each is the time of one
// start.
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
		e := m.attempts.slots[disdel.Slot{Task: disdel.TaskTrain, Member: w}]
		if _, ok := m.barrier.results[w]; ok {
			trained += total
		} else {
			trained += min(total, e.batchesDone)
		}
	}
	if trained == 0 {
		return 0
	}
	return max(0, m.budget.spent-m.budget.began) / (1 - closingShare) / float64(trained)
}
