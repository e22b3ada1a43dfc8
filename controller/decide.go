package controller

import "github.com/disdel/disdel"

// decide asks Decide what is to be done about a failed activation.
func (m *Manager) decide(a disdel.Activation) Remedy {
	e := m.efforts[slotOf(a.Invocation)]
	job := m.spec.Job
	if a.Task == disdel.TaskEvaluate {
		job.Training.BatchSize = m.evaluationBatch()
	}
	return Decide(RemedyInput{
		Activation: a, Job: job, Plan: m.spec.Plan, Spent: m.spent, Patient: m.waitsFor(a),
		Attempts: Attempts{Job: m.retries, Worker: e.counted, Platform: e.platform, Crashes: e.crashes},
	})
}

// waitsFor tells whether the job waits for a failed activation's work as long as it takes, until its own deadline.
func (m *Manager) waitsFor(a disdel.Activation) bool {
	return m.spec.Job.Distribution.Missing.Policy == disdel.MissingWait && (platformFault(a) || kindOf(a) == disdel.Crashed)
}

// tried counts a failure of a slot.
func (m *Manager) tried(s slot, a disdel.Activation) {
	e := m.efforts[s]
	if platformFault(a) || m.waitsFor(a) {
		e.platform++
	} else {
		e.counted++
		m.retries++
	}
	if crashed(a) {
		e.crashes++
	}
	m.efforts[s] = e
}
