package controller

import (
	"time"

	"github.com/disdel/disdel"
)

// budget counts what a job may spend, in GB-s by use. It reserves a part for every invocation that runs, so that the
// spent and the reserved GB-s together never pass the budget.
//
// An invocation may get less time than its timeout: its hold. A train action stores its state before its hold ends, and
// another leg goes on. The part is free again when the invocation ends, so an action that finds too little waits while
// others run. The cost of a step follows from what earlier steps used, never from their limits.
//
// Nobody knows in advance by how much an action passes its hold. reserveSpare is kept for that.
type budget struct {
	most  float64 // GB-s; 0: none
	field string  // that says so
	spent float64 // GB-s by use of what has ended
	began float64 // spent when the round began, in whichever run of the job
	done  float64 // GB-s that an earlier run of the job spent on the current round; 0: the round began anew

	rounds       int     // whole ones that were seen in this stage
	cheapest     float64 // GB-s of the cheapest of them
	cheapestStep float64 // GB-s of a step of one worker in the cheapest of them, all of the round included
	perStep      float64 // GB-s of a step of one worker in the newest round, all of the round included
	entered      int     // rounds that began because the budget could pay them

	running map[string]float64 // GB-s that are reserved for invocations which run, by their ids
	waiting []asking           // invocations that wait for a part of the budget
	ended   bool               // an activation has ended after it ran
	start   disdel.Millis      // longest start of a container that was seen
	overrun disdel.Millis      // the most by which an activation passed its timeout
	late    disdel.Millis      // the most by which an activation passed its hold
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
	fixed, step disdel.Millis // least times so far: of all that is no training, and of one batch
	tooShort    disdel.Millis // the longest hold that failed
}

// closing is the cost of one kind of action that closes a round: aggregation or evaluation. These cannot pause.
type closing struct {
	passed   int           // how many
	each     float64       // GB-s, the most that one held
	cheapest float64       // GB-s, the least that a passed one held
	now      float64       // GB-s of all of them in this round
	round    float64       // GB-s of all of them in a round, the most so far
	tooShort disdel.Millis // the longest hold that failed
}

const (
	closingShare = 0.2 // of what is left, for closing a round, before one was closed
	closingSpare = 1.5 // times the most that closing a round, or one action of it, has taken
	trainSpare   = 1.25
	reserveSpare = 0.05                                  // of what is reserved: an action ends some time after its hold
	firstStart   = disdel.Millis(500 * time.Millisecond) // of a container, before one was seen
	leastHold    = disdel.Millis(100 * time.Millisecond)
	legSpare     = 1.5 // times the shortest leg that would have trained one batch
	longer       = 2   // times a hold that was too short
	sureAfter    = 4   // steps of a kind that were seen: the cheapest of them is then a bound
)

func newBudget(job disdel.Job) budget {
	b := budget{running: map[string]float64{}, closing: map[disdel.Task]closing{}}
	b.most, b.field = job.Budget()
	return b
}

// tell takes what the loop knows of the bill.
func (b *budget) tell(now Moment) { b.spent = max(b.spent, now.Spent) }

// over notes that an activation has ended: its GB-s are spent, and its part of the budget is free again. batch is the
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

// frozen tells whether an activation stood still until the platform ended it. Its times say nothing about others.
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

// least is the shortest hold in which a leg may train something: in a shorter one, none has.
func (l *legCost) least() disdel.Millis { return max(leastHold, l.tooShort, l.fixed+l.step) }

// lower returns the lower of an earlier and a new measurement. An earlier one of 0 means that there was none.
func lower[T ~int64 | ~float64](before, now T) T {
	if before == 0 {
		return now
	}
	return min(before, now)
}

// sure is the least that a step costs, in GB-s. It follows from the cheapest step in whole rounds. After few rounds it
// is lower: the first round starts containers, and a busy machine may be quiet next time.
func (b *budget) sure(cheapest float64) float64 {
	return cheapest * min(1, float64(b.rounds)/sureAfter)
}

// roundOver learns from the round that ended how much the next one takes. steps are those of all workers together.
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

// used says whether nothing is left.
func (b *budget) used() bool { return b.most > 0 && b.spent >= b.most }

// left is what is not spent yet.
func (b *budget) left() float64 { return max(0, b.most-b.spent) }

// free is the part of the budget, in GB-s, that is neither spent nor reserved.
func (b *budget) free() float64 {
	free := b.most - b.spent
	for _, gbs := range b.running {
		free -= gbs
	}
	return max(0, free)
}

// kept is the part of free that is kept for closing the round, in GB-s. It is more than closing a round has taken, if
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

// whole is what an action with these limits may hold until its timeout.
func (b *budget) whole(l disdel.Limits) float64 {
	return disdel.GBSeconds(l.Memory, l.Timeout+b.overrun)
}

// hold is how long an action may run if gbs GB-s are reserved for it: without the start of its container, and without
// the time by which others passed their holds. If that would be shorter than least, hold leaves out the latter.
// It is 0 if the action may run until its timeout.
func (b *budget) hold(l disdel.Limits, gbs float64, least disdel.Millis) disdel.Millis {
	memory := l.Memory.Gigabytes()
	if memory <= 0 || gbs >= b.whole(l) {
		return 0
	}
	usable := disdel.Millis(gbs / memory * float64(time.Second) * (1 - reserveSpare))
	start := b.start
	if !b.ended {
		start = min(firstStart, usable/2)
	}
	return max(1, usable-start-b.late, min(least, usable-start))
}

// costOf is what to reserve, in GB-s, for an action that runs for hold and may end as late as others have.
func (b *budget) costOf(l disdel.Limits, hold disdel.Millis) float64 {
	return min(b.whole(l), b.leastFor(l, hold+b.late))
}

// leastFor is the least to reserve, in GB-s, for an action that runs for hold.
func (b *budget) leastFor(l disdel.Limits, hold disdel.Millis) float64 {
	start := b.start
	if !b.ended {
		start = min(firstStart, hold)
	}
	return min(b.whole(l), disdel.GBSeconds(l.Memory, hold+start)/(1-reserveSpare)*(1+1e-9))
}
