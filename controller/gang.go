package controller

import (
	"github.com/disdel/disdel"
)

// gang is what a job that was granted its containers (Spec.Gangs) holds, and what it asks for: the containers of a
// stage are asked for before it begins. A stage that a policy wants is asked for while the job keeps what it has, and
// refused where there is no room at once: then the policy is asked again, for fewer workers. A stage that the job
// cannot do without, because it was decided before or because it is a remedy, is waited for with nothing in hand.
type gang struct {
	stage   int              // whose containers the job holds, by its number
	asked   *asked           // that no answer has come to yet; nil: none
	refused []disdel.Refusal // at this boundary
	bound   int              // workers that may be asked for at this boundary, after a refusal; 0: no bound
}

// asked is a GrantOrder.
type asked struct {
	wants *candidate    // that the policy wants; nil: the round that the manager is in cannot do without
	since disdel.Millis // when it was asked
}

// most is what bounds a policy that is asked again; 0: nothing does.
func (g *gang) most() int {
	if len(g.refused) == 0 {
		return 0
	}
	return g.bound
}

// wants asks for the containers of a stage that a policy wants.
func (m *Manager) wants(c candidate) []Order {
	m.gang.asked = &asked{wants: &c, since: m.watch.now}
	return []Order{GrantOrder{Round: c.round, Plan: c.plan}}
}

// startWorkers begins what a round's workers do, once the job has the containers of the round's stage: it may have gone
// back to an earlier one, begun one that was decided before, or one that a failure led to.
func (m *Manager) startWorkers() []Order {
	if !m.spec.Gangs || m.gang.stage == m.spec.Before {
		return m.invokeAll(m.barrier.start())
	}
	m.gang.asked = &asked{since: m.watch.now}
	return []Order{GrantOrder{Round: m.round, Plan: m.spec.Plan, Waits: true}}
}

// granted continues with the answer of the admission.
func (m *Manager) granted(e GrantedEvent) []Order {
	a := m.gang.asked
	if a == nil {
		return nil // nobody waits for it any more
	}
	m.gang.asked = nil
	switch {
	case a.wants == nil && e.Err != nil:
		return m.fail(e.Err)
	case a.wants == nil:
		m.gang.stage = m.spec.Before
		m.watch.since += m.watch.now - a.since // it is nothing that the round took
		return m.invokeAll(m.barrier.start())
	case e.Err != nil:
		return m.refused(*a.wants, e.Err.Error())
	case e.Refused != "":
		return m.refused(*a.wants, e.Refused)
	}
	orders := m.change(*a.wants)
	m.gang.stage = m.course.number
	return m.goesOn(orders, "")
}

// refused asks the policy again, with half as many workers more than there are; where that is none, the job stays as it
// is. At the next boundary it may ask for any number again: somebody may have ended.
func (m *Manager) refused(c candidate, why string) []Order {
	now := m.setting().Workers
	m.gang.refused = append(m.gang.refused, disdel.Refusal{Workers: c.plan.Workers, Why: why})
	m.gang.bound = (now + c.plan.Workers) / 2
	d := c.decision
	d.Next, d.BatchSize, d.Expect = m.setting(), 0, nil
	if m.gang.bound > now {
		d = m.consult(d.Boundary, c.round, m.course.policy, nil)
	}
	orders, stop := m.decided(d, c.at)
	if m.gang.asked != nil {
		return orders
	}
	return m.goesOn(orders, stop)
}
