package controller

import (
	"time"

	"github.com/disdel/disdel"
)

// canProceed tells whether the policy allows a round without one more of its workers.
func (m *Manager) canProceed() bool {
	if m.spec.Job.Distribution.Missing.Policy != disdel.MissingProceed {
		return false
	}
	left := 0
	for _, s := range m.members[0] {
		if s != missing {
			left++
		}
	}
	return left > 1
}

// without goes on without a member of a level.
func (m *Manager) without(level, member int) []Order {
	m.members[level][member] = missing
	if level == 0 {
		m.close(disdel.Slot{Task: disdel.TaskTrain, Member: member}) // what it still comes to is too late
		m.lookAtTarget()
	}
	return m.advance(level, member)
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

// overdue goes on without the workers of a round that have not delivered by now.
func (m *Manager) overdue(alarm int) []Order {
	if alarm != m.alarms || !m.alarmed {
		return nil
	}
	var orders []Order
	for w := range m.members[0] {
		if m.members[0][w] == waiting && m.canProceed() {
			orders = append(orders, m.without(0, w)...)
		}
	}
	return orders
}
