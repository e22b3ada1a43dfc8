package scheduler

import (
	"maps"
	"slices"
	"strings"

	"github.com/disdel/disdel"
)

// Books is what an Admission has entered, as a document: where several processes share a platform, each decides with
// the books that the one before it left.
type Books struct {
	Jobs  []Demand           `json:"jobs"`               // that wait or hold something (Demand.Held), by their ids
	Spent map[string]float64 `json:"spentGBs,omitempty"` // by tenants whose jobs have ended
}

// OpenAdmission continues with books that were kept: what jobs hold they go on to hold, and who waits does so in his
// old place. Who knows of a job that the books have lost enters it among theirs, with what it holds.
func OpenAdmission(by Allocator, whole Capacity, kept Books) *Admission {
	a := NewAdmission(by, whole)
	maps.Copy(a.spent, kept.Spent)
	for _, d := range kept.Jobs {
		d.note()
		k := &asker{d, -1}
		if d.Held == nil || !k.whole() {
			a.queue(k)
		}
		if d.Held != nil {
			a.hold(k)
		}
	}
	a.changed = true
	return a
}

// hold enters what a job has held since before these books were opened.
func (a *Admission) hold(k *asker) {
	a.where[k.Job] = k
	a.number(k)
	if g := *k.Held; g.Expires > 0 {
		a.unused[g.Job] = g.Expires
	}
	k.Held = new(*k.Held) // the document stays as it is
	k.place = len(a.held)
	a.free = a.free.Minus(k.room)
	a.held, a.holders = append(a.held, k.Demand), append(a.holders, k)
}

// number gives a job the number of its tenant.
func (a *Admission) number(k *asker) {
	if a.numbers[k.Tenant] == 0 {
		a.numbers[k.Tenant] = len(a.numbers) + 1
	}
	k.Demand.number = a.numbers[k.Tenant]
}

// Books is what has been entered so far, to continue with.
func (a *Admission) Books() Books {
	b := Books{Jobs: append([]Demand{}, a.Demands()...)}
	for i := range b.Jobs {
		d := &b.Jobs[i]
		d.room, d.until, d.number = Capacity{}, 0, 0
		if d.Held != nil {
			d.Held = new(*d.Held)
		}
	}
	slices.SortFunc(b.Jobs, func(x, y Demand) int { return strings.Compare(string(x.Job), string(y.Job)) })
	if len(a.spent) > 0 {
		b.Spent = maps.Clone(a.spent)
	}
	return b
}

// Line is the jobs that wait, whoever's they are, in the order of their priority and arrival. What their tenants hold
// puts them further back, and changes with every grant.
func (a *Admission) Line() []disdel.JobID {
	var all []*asker
	for _, l := range a.tenants {
		all = append(all, l.jobs...)
	}
	slices.SortFunc(all, byPlace)
	out := make([]disdel.JobID, len(all))
	for i, k := range all {
		out[i] = k.Job
	}
	return out
}
