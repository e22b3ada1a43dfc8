package scheduler

import (
	"slices"

	"github.com/disdel/disdel"
)

// Within is a job that continues with another gang, for as long as to keeps one, in what it holds: nobody is asked for
// that, and what it needs no more is free. ok is false where it holds nothing, or too little.
func (d Demand) Within(to Demand) (with Demand, ok bool) {
	if d.Held == nil {
		return d, false
	}
	room := d.takes(to.Gang)
	if !d.Held.Room.Holds(room) {
		return d, false
	}
	return d.holding(to, room), true
}

// takes is what another gang of a job that holds one takes up: no processors, where it shares those of others.
func (d *Demand) takes(gang Gang) Capacity {
	room := gang.Room()
	if d.Shares && d.Held.Room.Millicores == 0 {
		room.Millicores = 0
	}
	return room
}

// holding is a job that holds another gang, which takes up so much. When it is expected to end stays.
func (d Demand) holding(to Demand, room Capacity) Demand {
	held := *d.Held
	held.Gang, held.Room, held.Keep = to.Gang, room, to.Keep
	d.Gang, d.Keep, d.Held, d.room = to.Gang, to.Keep, &held, room
	return d
}

// Change has a job that holds its whole gang hold another one, and tells why where it cannot: then the job holds what
// it held. to is the job with that gang. What that needs less is free at once, for the next Decide. What it needs more
// is granted as to a job that comes now and is as urgent, at once or not at all: who waits has come before, so that no
// reservation of theirs is delayed. Nobody waits while he holds something, so that two jobs which both want more never
// wait for each other.
func (a *Admission) Change(now disdel.Millis, to Demand) (refused string) {
	d := a.where[to.Job]
	if d == nil || !d.whole() {
		return "the job has no gang yet"
	}
	room := d.takes(to.Gang)
	if more := room.beyond(d.Held.Room); more != (Capacity{}) {
		given, refused := a.more(now, d, more)
		if refused != "" {
			return refused
		}
		room = room.Minus(more).Plus(given)
	}
	a.free = a.free.Plus(d.Held.Room).Minus(room)
	d.Demand = d.holding(to, room)
	a.held[d.place] = d.Demand
	a.changed = true
	return ""
}

// more is what a job is granted beside what it holds, or why it is granted nothing. Nothing is entered.
func (a *Admission) more(now disdel.Millis, d *asker, room Capacity) (given Capacity, refused string) {
	ask := Demand{
		Job: d.Job + "/more", Tenant: d.Tenant, Priority: d.Priority, Arrived: now + 1, Keep: d.Keep, Shares: d.Shares,
		Gang: Gang{{Task: disdel.TaskTrain, Count: 1, Each: room}}, Quota: d.Quota,
	}
	ask.Quota.Jobs, ask.Quota.Cost = 0, 0 // it is no other job, and what it comes to was looked at when it came
	if left := d.until - now; d.until != never && left > 0 {
		ask.Takes = disdel.Interval[disdel.Millis]{Low: left, Likely: left, High: left}
	}
	ask.note()
	ask.number = d.number
	jobs, _ := a.show()
	for _, g := range a.by.Allocate(now, a.free, append(slices.Clip(jobs), ask)) {
		if g.Job == ask.Job && !g.Reserved {
			return g.Room, ""
		}
	}
	return Capacity{}, a.lacking(d, room)
}

// lacking is why a job is not granted so much beside what it holds.
func (a *Admission) lacking(d *asker, more Capacity) string {
	if lacks := a.free.beyond(Capacity{}).Lacks(more); lacks != "" {
		return "it needs another " + lacks
	}
	var holds disdel.Bytes
	for i := range a.held {
		if a.held[i].Tenant == d.Tenant {
			holds += a.held[i].room.Memory
		}
	}
	if q := d.Quota.Memory; q > 0 && holds+more.Memory > q {
		return "it needs another " + more.Memory.String() + ", and of the quota of " + whose(d.Tenant) + ", " + q.String() +
			", " + max(0, q-holds).String() + " are left"
	}
	return "jobs that wait would wait longer for it"
}

// beyond is what c has more than d, part by part.
func (c Capacity) beyond(d Capacity) Capacity {
	c = c.Minus(d)
	return Capacity{
		Memory: max(0, c.Memory), Device: max(0, c.Device), Millicores: max(0, c.Millicores), Devices: max(0, c.Devices),
		Concurrent: max(0, c.Concurrent), PerMinute: max(0, c.PerMinute),
	}
}
