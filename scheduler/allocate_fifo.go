package scheduler

import (
	"cmp"

	"github.com/disdel/disdel"
)

// FIFO grants whole gangs strictly in the order of priority and arrival: nobody passes a job that does not fit, but
// for one whose tenant has as much as it may have.
type FIFO struct {
	Unused disdel.Millis // a grant that is not used for so long goes back; 0: 100 s
}

// Allocate is the decision of an Allocator.
func (f FIFO) Allocate(now disdel.Millis, free Capacity, jobs []Demand) []Grant {
	accounts := map[string]*account{}
	of := func(d *Demand) *account {
		if accounts[d.Tenant] == nil {
			accounts[d.Tenant] = &account{}
		}
		return accounts[d.Tenant]
	}
	for i := range jobs {
		if d := &jobs[i]; d.Held != nil {
			of(d).add(d, d.Held.Room)
		}
	}
	var grants []Grant
	full := map[string]bool{} // tenants that have as much as they may have
	for _, d := range waiting(jobs) {
		room := d.Gang.Room()
		if full[d.Tenant] || of(d).over(d, room) {
			full[d.Tenant] = true
			continue
		}
		if !free.Holds(room) {
			break
		}
		free = free.Minus(room)
		of(d).add(d, room)
		grants = append(grants, granted(now, d, d.Gang, cmp.Or(f.Unused, defaultUnused)))
	}
	return grants
}

// granted is a grant from now on, of a gang or a part of it.
func granted(now disdel.Millis, d *Demand, gang Gang, unused disdel.Millis) Grant {
	g := Grant{Job: d.Job, Gang: gang, Room: gang.Room(), Keep: d.Keep, From: now, Expires: now + unused}
	if end := ends(now, d); end != never {
		g.Until = end
	}
	return g
}
