package controller

import (
	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// slotAttempts counts the attempts at one slot in the current round.
type slotAttempts struct {
	attempt          int    // the newest, 1 and up
	leg              int    // of the newest attempt
	invocation       string // id of the invocation that the slot waits for; "": none
	batchesDone      int    // finished by the newest attempt
	legsStalled      int    // legs in a row without progress
	legsWaited       int    // legs in a row that waited for other workers
	jobFailures      int    // failures that the job caused
	platformFailures int    // failures that the platform caused or that the job waits for
	crashes          int    // deaths of the process
}

// attempts tracks the slots of a job and the consequences of failures: which invocation a slot waits for, its next
// attempt and leg, the remedy for a failure, and raised limits. An attempt of a slot has a higher number than every
// earlier one in the round, including those before the job went back. So its claim takes over from any attempt that
// still runs.
//
// It knows only slots and activations. The protocol decides what an action does and which slot is next.
type attempts struct {
	slots       map[disdel.Slot]slotAttempts // of the current round
	highest     int                          // attempt of any slot so far
	floor       int                          // attempts in rounds before replayUntil exceed it
	replayUntil int                          // end of the rounds that the job repeats
	retries     int                          // counted against the job's limit

	limits map[disdel.Task]disdel.Limits // raised after failures
	batch  int                           // rows of a batch of evaluations; 0: the job's
	passed map[disdel.Task]passed        // activations that succeeded
}

// passed is the longest successful activation of a task in a stage.
type passed struct {
	stage   int
	longest disdel.Millis
}

func newAttempts() attempts {
	return attempts{
		slots: map[disdel.Slot]slotAttempts{}, limits: map[disdel.Task]disdel.Limits{}, passed: map[disdel.Task]passed{},
	}
}

// succeeded remembers how long a task takes. Another stage has other shards or batches. The last leg of several and
// work that an earlier attempt had delivered say nothing about the whole work.
func (t *attempts) succeeded(a disdel.Activation) {
	if a.Leg > 0 || a.Recovered != "" {
		return
	}
	p := t.passed[a.Task]
	if p.stage != a.Stage {
		p = passed{stage: a.Stage}
	}
	p.longest = max(p.longest, a.Duration)
	t.passed[a.Task] = p
}

// begin starts a round.
func (t *attempts) begin() { t.slots = map[disdel.Slot]slotAttempts{} }

// next starts another attempt of a slot in a round.
func (t *attempts) next(s disdel.Slot, round int) slotAttempts {
	e := t.slots[s]
	if round < t.replayUntil {
		e.attempt = max(e.attempt, t.floor)
	}
	e.attempt++
	e.leg, e.batchesDone, e.legsStalled, e.legsWaited = 0, 0, 0, 0
	t.highest = max(t.highest, e.attempt)
	return e
}

// maxStalled is how many legs in a row may make no progress: one may have lost its state with the store. maxWaited is
// for legs that waited for other workers: those have bounds of their own, unless workers wait for each other.
const (
	maxStalled = 2
	maxWaited  = 24
)

// nextLeg starts the leg after one that finished so many batches. waited says that the leg waited for other workers.
// stalled says that too many legs made no progress.
func (t *attempts) nextLeg(s disdel.Slot, batches int, waited bool) (e slotAttempts, stalled bool) {
	e = t.slots[s]
	e.leg++
	if waited {
		e.legsWaited++
	} else {
		e.legsStalled++
	}
	if batches > e.batchesDone {
		e.batchesDone, e.legsStalled, e.legsWaited = batches, 0, 0
	}
	t.slots[s] = e
	return e, e.legsStalled >= maxStalled || e.legsWaited >= maxWaited
}

// await lets a slot wait for the end of an invocation, and of no other.
func (t *attempts) await(s disdel.Slot, e slotAttempts, id string) {
	e.invocation = id
	t.slots[s] = e
}

// awaits tells whether an activation is the one that its slot waits for.
func (t *attempts) awaits(a disdel.Activation) bool {
	id := a.Invocation.ID
	return id != "" && t.slots[a.Slot()].invocation == id
}

// close stops waiting for a slot.
func (t *attempts) close(s disdel.Slot) {
	e := t.slots[s]
	e.invocation = ""
	t.slots[s] = e
}

// closeAll stops waiting for all slots. Their attempts remain, so that a later attempt always exceeds an earlier one.
func (t *attempts) closeAll() {
	for s := range t.slots {
		t.close(s)
	}
}

// goBack raises the attempts of the rounds before this one above all earlier ones: the rounds are repeated.
func (t *attempts) goBack(before int) { t.floor, t.replayUntil = t.highest, max(t.replayUntil, before) }

// remedy finds the remedy for a failed activation.
func (t *attempts) remedy(a disdel.Activation, job disdel.Job, plan disdel.Plan, planned *scheduler.PlanInput,
) scheduler.Remedy {
	e := t.slots[a.Slot()]
	if a.Task == disdel.TaskEvaluate {
		job.Training.BatchSize = t.evaluationBatch(&job, &plan) // its own batch, not the workers'
		job.Training.Batch, plan.BatchSize = nil, 0
	}
	n := scheduler.Attempts{Job: t.retries, Worker: e.jobFailures, Platform: e.platformFailures, Crashes: e.crashes}
	if t.answered(a) || e.firstDeath(a) {
		n.Job = 0
	}
	in := scheduler.RemedyInput{
		Activation: a, Job: job, Plan: plan, Patient: waitsFor(job, a), Attempts: n, Planned: planned,
	}
	if p := t.passed[a.Task]; p.stage == a.Stage {
		in.Passed = p.longest
	}
	return scheduler.FindRemedy(in)
}

// tried counts a failure that is retried.
func (t *attempts) tried(a disdel.Activation, job disdel.Job) {
	e := t.slots[a.Slot()]
	if scheduler.PlatformFault(a) || waitsFor(job, a) {
		e.platformFailures++
	} else {
		e.jobFailures++
		if !t.answered(a) && !e.firstDeath(a) {
			t.retries++
		}
	}
	if scheduler.CrashedItself(a) {
		e.crashes++
	}
	t.slots[a.Slot()] = e
}

// firstDeath tells whether this is the first process of the slot that died in the round. The machine may be the
// cause, so the death does not count against the job's retries. The worker's retries in the round bound a process
// that always dies.
func (e slotAttempts) firstDeath(a disdel.Activation) bool {
	return e.crashes == 0 && a.FailureKind() == disdel.Crashed && !a.Suspected
}

// answered tells whether the limit that a failed activation lacked was raised since, after another action of its task
// failed in the same way. Actions of one kind that run at the same time fail together, and that counts once.
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

// waitsFor tells whether a job waits for a failed activation's work until its own deadline.
func waitsFor(job disdel.Job, a disdel.Activation) bool {
	return job.Distribution.Missing.Policy == disdel.MissingWait &&
		(scheduler.PlatformFault(a) || a.FailureKind() == disdel.Crashed)
}

// raise raises a task's limits to at least these.
func (t *attempts) raise(task disdel.Task, to disdel.Limits) {
	l := t.limits[task]
	t.limits[task] = disdel.Limits{
		Memory: max(l.Memory, to.Memory), Timeout: max(l.Timeout, to.Timeout), Device: max(l.Device, to.Device),
		Devices: max(l.Devices, to.Devices),
	}
}

// evaluationBatch returns the batch size of evaluations: that of the plan, until a killed one gets a smaller one.
func (t *attempts) evaluationBatch(job *disdel.Job, plan *disdel.Plan) int {
	if t.batch > 0 {
		return t.batch
	}
	if a, _ := plan.Action(disdel.TaskEvaluate); a.Estimate.Rows > 0 {
		return a.Estimate.Rows
	}
	return plan.WorkerBatch(job)
}
