package scheduler

import (
	"slices"
)

// line is the jobs of a tenant that wait, in their order.
type line struct{ jobs []*asker }

func byPlace(a, b *asker) int { return compareRank(&a.Demand, &b.Demand) }

func (l *line) add(d *asker) {
	i, _ := slices.BinarySearchFunc(l.jobs, d, byPlace)
	l.jobs = slices.Insert(l.jobs, i, d)
}

// remove takes a job out. It is among the first ones as a rule, however many wait behind it: those before it move.
func (l *line) remove(d *asker) {
	i, found := slices.BinarySearchFunc(l.jobs, d, byPlace)
	if !found {
		return
	}
	copy(l.jobs[1:i+1], l.jobs[:i])
	l.jobs[0] = nil
	l.jobs = l.jobs[1:]
}

// A decision is shown showTotal jobs that wait, the first ones of every tenant, and showEach of each at least. Who is
// not shown is behind all that his tenant has there.
const (
	showTotal = 256
	showEach  = 8
)

// show is what the Allocator is asked about, and whether that is all of them.
func (a *Admission) show() (jobs []Demand, all bool) {
	each := max(showEach, showTotal/max(1, len(a.turn)))
	jobs, all = a.held, true
	a.turn = slices.DeleteFunc(a.turn, func(tenant string) bool {
		l := a.tenants[tenant]
		if len(l.jobs) == 0 {
			delete(a.tenants, tenant)
			return true
		}
		for i, d := range l.jobs {
			if i == each {
				all = false
				break
			}
			if d.Held == nil { // who holds a part of what it wants is among those that hold something
				jobs = append(jobs, d.Demand)
				jobs[len(jobs)-1].Quota.Spent += a.spent[tenant]
			}
		}
		return false
	})
	a.held = jobs[:len(a.held)] // what was made longer stays so
	return jobs, all
}
