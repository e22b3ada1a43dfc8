package controller

import (
	"fmt"
	"time"

	"github.com/disdel/disdel"
)

// lookAtTarget ends training once every worker that counts has reached the target loss.
func (m *Manager) lookAtTarget() {
	if m.last || m.spec.target() <= 0 || !m.barrier.reached() {
		return
	}
	m.last = true
	m.stopped = fmt.Sprintf("every action's loss is at most %g", m.spec.target())
}

// canProceed tells whether the policy allows a round without one more of its workers.
func (m *Manager) canProceed() bool {
	return m.spec.Job.Distribution.Missing.Policy == disdel.MissingProceed && m.barrier.canSpare()
}

// without continues without a worker.
func (m *Manager) without(worker int) []Order {
	next := m.barrier.without(0, worker)
	m.attempts.close(disdel.Slot{Task: disdel.TaskTrain, Member: worker}) // what it still comes to is too late
	m.lookAtTarget()
	var orders []Order
	if m.spec.Job.Distribution.Exchange != nil { // the others wait for what it sends
		orders = append(orders, EndOrder{m.round, worker})
	}
	return append(orders, m.invokeAll(next)...)
}

// alarm bounds, once a round, the time that those who delivered wait for the others.
func (m *Manager) alarm() []Order {
	p := m.spec.Job.Distribution.Missing
	if m.alarmed || p.Policy != disdel.MissingProceed || p.After <= 0 {
		return nil
	}
	m.alarmed = true
	m.alarms++
	return []Order{AlarmOrder{Number: m.alarms, Round: m.round, After: time.Duration(p.After)}}
}

// overdue continues without the workers of a round that have not delivered by now.
func (m *Manager) overdue(alarm int) []Order {
	if alarm != m.alarms || !m.alarmed {
		return nil
	}
	var orders []Order
	for _, w := range m.barrier.outstanding() {
		if m.canProceed() {
			orders = append(orders, m.without(w)...)
		}
	}
	return orders
}
