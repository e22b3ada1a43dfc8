package controller

import (
	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// effort is what was put into one slot in the current round.
type effort struct {
	attempt  int    // the newest, 1 and up
	leg      int    // of the newest attempt
	awaited  string // id of the invocation whose end the slot waits for; "": none
	batches  int    // that the newest attempt came to
	stalled  int    // legs in a row that came no further
	waited   int    // legs in a row that others were waited for in
	counted  int    // failures that the job is to blame for
	platform int    // failures that the platform is to blame for, and those that are waited for
	crashes  int    // deaths of the process
}

// attempts is what was put into the slots of a job, and what came of failures: which invocation a slot waits for, which
// attempt and leg follow, what the remedy for a failure is, and which limits it led to. An attempt of a slot is above
// every earlier one of it in the round, also of a time before the job went back, so that its claim takes over whatever
// still runs.
//
// It goes by slots and activations alone: what a slot's action does, and which slot is next, is a protocol's.
type attempts struct {
	efforts     map[disdel.Slot]effort // of the current round
	highest     int                    // attempt of any slot so far
	floor       int                    // attempts of rounds before replayUntil are above it
	replayUntil int                    // rounds that the job went back over end before this one
	retries     int                    // that count against the job's limit

	limits map[disdel.Task]disdel.Limits // raised after failures
	batch  int                           // rows of a batch of evaluations; 0: the job's
}

func newAttempts() attempts {
	return attempts{efforts: map[disdel.Slot]effort{}, limits: map[disdel.Task]disdel.Limits{}}
}

// begin forgets the efforts of the round before.
func (t *attempts) begin() { t.efforts = map[disdel.Slot]effort{} }

// next is another attempt of a slot in a round.
func (t *attempts) next(s disdel.Slot, round int) effort {
	e := t.efforts[s]
	if round < t.replayUntil {
		e.attempt = max(e.attempt, t.floor)
	}
	e.attempt++
	e.leg, e.batches, e.stalled, e.waited = 0, 0, 0, 0
	t.highest = max(t.highest, e.attempt)
	return e
}

// maxStalled is how many legs in a row may come no further: one may have lost its state with the store. A worker that
// waits for what others send of a step is not to blame: whoever holds it up has bounds of its own, and maxWaited is for
// those that wait for each other.
const (
	maxStalled = 2
	maxWaited  = 24
)

// nextLeg is the leg after one that came to so many batches; stalled: it is one too many that came no further. waited:
// others were waited for at its end.
func (t *attempts) nextLeg(s disdel.Slot, batches int, waited bool) (e effort, stalled bool) {
	e = t.efforts[s]
	e.leg++
	if waited {
		e.waited++
	} else {
		e.stalled++
	}
	if batches > e.batches {
		e.batches, e.stalled, e.waited = batches, 0, 0
	}
	t.efforts[s] = e
	return e, e.stalled >= maxStalled || e.waited >= maxWaited
}

// await has a slot wait for the end of an invocation, and of no other.
func (t *attempts) await(s disdel.Slot, e effort, id string) {
	e.awaited = id
	t.efforts[s] = e
}

// awaits tells whether an activation is the one that its slot waits for: not an earlier one, and not told of before.
func (t *attempts) awaits(a disdel.Activation) bool {
	id := a.Invocation.ID
	return id != "" && t.efforts[a.Slot()].awaited == id
}

// close waits for a slot no longer.
func (t *attempts) close(s disdel.Slot) {
	e := t.efforts[s]
	e.awaited = ""
	t.efforts[s] = e
}

// closeAll waits for nothing any more. Efforts stay, so that a later attempt is always above an earlier one.
func (t *attempts) closeAll() {
	for s := range t.efforts {
		t.close(s)
	}
}

// goBack has the attempts of rounds before this one be above all that there were: they are made again.
func (t *attempts) goBack(before int) { t.floor, t.replayUntil = t.highest, max(t.replayUntil, before) }

// remedy is what scheduler.Decide has for a failed activation.
func (t *attempts) remedy(a disdel.Activation, job disdel.Job, plan disdel.Plan, planned *scheduler.PlanInput,
) scheduler.Remedy {
	e := t.efforts[a.Slot()]
	if a.Task == disdel.TaskEvaluate {
		job.Training.BatchSize = t.evaluationBatch(&job, &plan) // its own: workers have no share in it
		job.Training.Batch, plan.BatchSize = nil, 0
	}
	n := scheduler.Attempts{Job: t.retries, Worker: e.counted, Platform: e.platform, Crashes: e.crashes}
	if t.answered(a) || e.firstDeath(a) {
		n.Job = 0
	}
	return scheduler.Decide(scheduler.RemedyInput{
		Activation: a, Job: job, Plan: plan, Patient: waitsFor(job, a), Attempts: n,
		Planned: planned,
	})
}

// tried counts a failure of a slot that is tried again.
func (t *attempts) tried(a disdel.Activation, job disdel.Job) {
	e := t.efforts[a.Slot()]
	if scheduler.PlatformFault(a) || waitsFor(job, a) {
		e.platform++
	} else {
		e.counted++
		if !t.answered(a) && !e.firstDeath(a) {
			t.retries++
		}
	}
	if scheduler.CrashedItself(a) {
		e.crashes++
	}
	t.efforts[a.Slot()] = e
}

// firstDeath tells whether this is the first process of the slot that died in the round. The machine may be the cause,
// so the death does not count against the job's retries. The worker's retries in the round bound a process that always
// dies.
func (e effort) firstDeath(a disdel.Activation) bool {
	return e.crashes == 0 && a.FailureKind() == disdel.Crashed && !a.Suspected
}

// answered tells whether the limit that a failed activation lacked has been raised since, after another action of its
// task failed as it did. Actions of one kind that run side by side find the same out together, and that counts once.
func (t *attempts) answered(a disdel.Activation) bool {
	raised := t.limits[a.Task]
	switch {
	case a.LackedDevice():
		return raised.Device > a.Limits.Device
	case a.Outcome == disdel.OutcomeOutOfMemory:
		return raised.Memory > a.Limits.Memory
	case a.Outcome == disdel.OutcomeTimeout:
		return raised.Timeout > a.Limits.Timeout
	default:
		return false
	}
}

// waitsFor tells whether a job waits for a failed activation's work as long as it takes, until its own deadline.
func waitsFor(job disdel.Job, a disdel.Activation) bool {
	return job.Distribution.Missing.Policy == disdel.MissingWait &&
		(scheduler.PlatformFault(a) || a.FailureKind() == disdel.Crashed)
}

// raise has a task's limits be no lower than these: they are of all its actions, each of which may have failed at
// others.
func (t *attempts) raise(task disdel.Task, to disdel.Limits) {
	l := t.limits[task]
	t.limits[task] = disdel.Limits{
		Memory: max(l.Memory, to.Memory), Timeout: max(l.Timeout, to.Timeout), Device: max(l.Device, to.Device),
		Devices: max(l.Devices, to.Devices),
	}
}

// evaluationBatch is the rows of a batch of evaluations.
func (t *attempts) evaluationBatch(job *disdel.Job, plan *disdel.Plan) int {
	if t.batch > 0 {
		return t.batch
	}
	return plan.WorkerBatch(job)
}
