package controller

import (
	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// decide asks scheduler.Decide what is to be done about a failed activation.
func (m *Manager) decide(a disdel.Activation) scheduler.Remedy {
	e := m.efforts[a.Slot()]
	job := m.spec.Job
	if a.Task == disdel.TaskEvaluate {
		job.Training.BatchSize = m.evaluationBatch()
	}
	attempts := scheduler.Attempts{Job: m.retries, Worker: e.counted, Platform: e.platform, Crashes: e.crashes}
	if m.answered(a) {
		attempts.Job = 0
	}
	return scheduler.Decide(scheduler.RemedyInput{
		Activation: a, Job: job, Plan: m.spec.Plan, Patient: m.waitsFor(a),
		Attempts: attempts,
	})
}

// answered tells whether the limit that a failed activation lacked has been raised since, after another action of its
// task failed as it did. Actions of one kind that run side by side find the same out together, and that counts once.
func (m *Manager) answered(a disdel.Activation) bool {
	switch raised := m.limits[a.Task]; a.Outcome {
	case disdel.OutcomeOutOfMemory:
		return raised.Memory > a.Limits.Memory
	case disdel.OutcomeTimeout:
		return raised.Timeout > a.Limits.Timeout
	default:
		return false
	}
}

// waitsFor tells whether the job waits for a failed activation's work as long as it takes, until its own deadline.
func (m *Manager) waitsFor(a disdel.Activation) bool {
	return m.spec.Job.Distribution.Missing.Policy == disdel.MissingWait &&
		(scheduler.PlatformFault(a) || a.FailureKind() == disdel.Crashed)
}

// tried counts a failure of a slot.
func (m *Manager) tried(s disdel.Slot, a disdel.Activation) {
	e := m.efforts[s]
	if scheduler.PlatformFault(a) || m.waitsFor(a) {
		e.platform++
	} else {
		e.counted++
		if !m.answered(a) {
			m.retries++
		}
	}
	if scheduler.CrashedItself(a) {
		e.crashes++
	}
	m.efforts[s] = e
}
