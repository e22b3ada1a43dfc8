package controller

import "github.com/disdel/disdel"

// decide asks Decide what is to be done about a failed activation.
func (m *Manager) decide(a disdel.Activation) Remedy {
	e := m.efforts[slotOf(a.Invocation)]
	tries := Attempts{Job: m.retries, Worker: e.counted, Platform: e.platform, Crashes: e.crashes}
	if m.spec.Job.Distribution.Missing.Policy == disdel.MissingWait && (platformFault(a) || kindOf(a) == disdel.Crashed) {
		tries = Attempts{} // it is waited for, until the job's own deadline
	}
	return Decide(RemedyInput{Activation: a, Job: m.spec.Job, Plan: m.spec.Plan, Attempts: tries, Spent: m.spent})
}

// tried counts a failure of a slot.
func (m *Manager) tried(s slot, a disdel.Activation) {
	e := m.efforts[s]
	switch {
	case platformFault(a):
		e.platform++
	default:
		e.counted++
		m.retries++
	}
	if crashed(a) {
		e.crashes++
	}
	m.efforts[s] = e
}
