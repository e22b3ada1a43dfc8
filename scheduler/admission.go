package scheduler

import (
	"fmt"
	"slices"

	"github.com/disdel/disdel"
)

// Admission is the books of a platform that jobs share: who waits, who holds what, and what nobody holds. It asks its
// Allocator when something has changed. It is a state machine without clock or I/O, for one goroutine: the service and
// the simulator drive the same one.
//
// A job Asks, is granted by Decide, Uses its grant as soon as it runs, and Returns it when it has ended, or when a
// round has, after which it asks anew with the arrival that it has. What is not used in time Expires, goes back whole,
// and the job waits again in its old place.
type Admission struct {
	by      Allocator
	whole   Capacity // of the platform
	others  Capacity // what those hold of it who are not in these books
	free    Capacity // what nobody holds
	held    []Demand // with room behind them for those that a decision is shown beside
	holders []*asker // of held
	tenants map[string]*line
	numbers map[string]int // of tenants
	turn    []string       // tenants with a line, in the order they came
	where   map[disdel.JobID]*asker
	fresh   []*asker // have asked since the last decision
	changed bool     // something came back since then
	waits   int
	spent   map[string]float64             // GB-s of tenants
	unused  map[disdel.JobID]disdel.Millis // when grants expire that nobody uses
}

// asker is a job in the books.
type asker struct {
	Demand
	place int // among those that hold something; -1: it holds nothing
}

// NewAdmission opens the books of a platform that has so much.
func NewAdmission(by Allocator, whole Capacity) *Admission {
	return &Admission{
		by: by, whole: whole, free: whole,
		tenants: map[string]*line{}, numbers: map[string]int{}, where: map[disdel.JobID]*asker{},
		spent: map[string]float64{}, unused: map[disdel.JobID]disdel.Millis{},
	}
}

// Has tells whether a job has its whole gang.
func (a *Admission) Has(job disdel.JobID) bool {
	d := a.where[job]
	return d != nil && d.whole()
}

// Capacity is what the platform has.
func (a *Admission) Capacity() Capacity { return a.whole }

// Free is what nobody holds.
func (a *Admission) Free() Capacity { return a.free }

// Waiting is how many jobs wait.
func (a *Admission) Waiting() int { return a.waits }

// Holding is how many jobs hold something.
func (a *Admission) Holding() int { return len(a.held) }

// Resize says what there is to divide from now on. What was granted stays.
func (a *Admission) Resize(whole Capacity) {
	a.free = a.free.Plus(whole.Minus(a.whole))
	a.whole, a.changed = whole, true
}

// Others says what others of the platform hold of it now. Jobs wait behind them; that they never fit is not concluded
// from it.
func (a *Admission) Others(hold Capacity) {
	a.free = a.free.Plus(a.others).Minus(hold)
	a.others, a.changed = hold, true
}

// Ask has a job wait for its gang. It returns OverLimit with the arithmetic for one that can never have it, and
// Conflict for one that waits or holds something already.
func (a *Admission) Ask(d Demand) error {
	if a.where[d.Job] != nil {
		return &disdel.Error{Kind: disdel.Conflict, Op: "admit job", Job: d.Job, Msg: "the job has asked already"}
	}
	d.Held, d.room = nil, d.Gang.Room()
	if err := a.fits(d); err != nil {
		return err
	}
	a.queue(&asker{d, -1})
	return nil
}

func (a *Admission) fits(d Demand) error {
	d.Quota.Spent += a.spent[d.Tenant]
	return Fits(a.whole, d)
}

// Misfits are jobs that wait and can never have their gang any more, each with the arithmetic: the platform has become
// smaller, or their tenant has used up what it may cost. They wait until somebody Returns them.
func (a *Admission) Misfits() []error {
	var out []error
	for _, tenant := range a.turn {
		for _, d := range a.tenants[tenant].jobs {
			if err := a.fits(d.Demand); err != nil {
				out = append(out, err)
			}
		}
	}
	return out
}

func (a *Admission) queue(d *asker) {
	a.number(d)
	l := a.tenants[d.Tenant]
	if l == nil {
		l = &line{}
		a.tenants[d.Tenant] = l
		a.turn = append(a.turn, d.Tenant)
	}
	l.add(d)
	a.where[d.Job], a.waits = d, a.waits+1
	a.fresh = append(a.fresh, d)
}

// Decide asks the Allocator, and enters what it grants. Reservations of those that go on waiting come with it. Where
// nothing came back since the last decision, and those that asked since do not fit, nobody is asked.
func (a *Admission) Decide(now disdel.Millis) []Grant {
	if !a.due() {
		return nil
	}
	a.fresh, a.changed = a.fresh[:0], false
	var out []Grant
	for {
		jobs, all := a.show()
		given := 0
		for _, g := range a.by.Allocate(now, a.free, jobs) {
			if !g.Reserved {
				a.enter(g)
				given++
			}
			out = append(out, g)
		}
		if given == 0 || all || a.waits == 0 {
			return out
		}
		out = slices.DeleteFunc(out, func(g Grant) bool { return g.Reserved }) // the next decision reserves anew
	}
}

// due tells whether there is anything to decide.
func (a *Admission) due() bool {
	return a.waits > 0 && (a.changed || slices.ContainsFunc(a.fresh, func(d *asker) bool {
		return a.free.Holds(d.Gang[0].Each)
	}))
}

// enter books a grant, which is added to what its job holds already.
func (a *Admission) enter(g Grant) {
	d := a.where[g.Job]
	if d == nil || d.whole() {
		panic(fmt.Sprintf("scheduler: a grant for %s, which wants none", g.Job))
	}
	a.free = a.free.Minus(g.Room)
	if d.Held != nil { // part of its gang
		a.drop(d)
		g = together(*d.Held, g)
	}
	if g.Expires > 0 {
		a.unused[g.Job] = g.Expires
	}
	d.Held, d.place = &g, len(a.held)
	d.room, d.until = g.Room, until(&g)
	a.held, a.holders = append(a.held, d.Demand), append(a.holders, d)
	if d.whole() {
		a.tenants[d.Tenant].remove(d)
		a.waits--
	}
}

// together is what two grants of a job come to.
func together(old, g Grant) Grant {
	gang := slices.Clone(old.Gang)
	for i := range gang {
		gang[i].Count += g.Gang[i].Count
	}
	old.Gang, old.Room = gang, old.Room.Plus(g.Room)
	return old
}

// drop takes a job out of those that hold something; the last of them gets its place.
func (a *Admission) drop(d *asker) {
	last := len(a.held) - 1
	a.held[d.place], a.holders[d.place] = a.held[last], a.holders[last]
	a.holders[d.place].place = d.place
	a.held[last], a.holders[last] = Demand{}, nil
	a.held, a.holders = a.held[:last], a.holders[:last]
	d.place = -1
}

// Use says that a job has begun with what it was granted: it is its own until it is returned. Without a grant it is
// nothing.
func (a *Admission) Use(job disdel.JobID) {
	delete(a.unused, job)
	if d := a.where[job]; d != nil && d.Held != nil {
		d.Held.Expires = 0
	}
}

// Return takes back all that a job holds, or its place where it waits, and enters what it has cost its tenant since it
// asked, in GB-s. Of a job that nobody knows nothing is taken.
func (a *Admission) Return(job disdel.JobID, cost float64) {
	d := a.where[job]
	if d == nil {
		return
	}
	if !d.whole() {
		a.tenants[d.Tenant].remove(d)
		a.waits--
	}
	if cost > 0 {
		a.spent[d.Tenant] += cost
	}
	a.giveBack(d)
	delete(a.where, job)
	a.fresh = slices.DeleteFunc(a.fresh, func(f *asker) bool { return f == d })
	a.changed = true // also one that waited: others may have waited behind it
}

func (a *Admission) giveBack(d *asker) {
	delete(a.unused, d.Job)
	if d.Held != nil {
		a.free = a.free.Plus(d.Held.Room)
		a.drop(d)
		d.Held, d.room, d.until = nil, d.Gang.Room(), 0
	}
}

// Expire takes back the grants that nobody used in time, and returns whose they were: those jobs wait again, where they
// stood before.
func (a *Admission) Expire(now disdel.Millis) []disdel.JobID {
	var out []disdel.JobID
	for job, at := range a.unused {
		if at <= now {
			out = append(out, job)
		}
	}
	slices.Sort(out)
	for _, job := range out {
		d := a.where[job]
		a.giveBack(d)
		delete(a.where, job)
		a.queue(d)
		a.changed = true
	}
	return out
}

// Wake is when the next grant expires that nobody uses; false: none does.
func (a *Admission) Wake() (at disdel.Millis, ok bool) {
	for _, t := range a.unused {
		if !ok || t < at {
			at, ok = t, true
		}
	}
	return at, ok
}

// Demands are the jobs that hold something, and then those that wait, by tenant.
func (a *Admission) Demands() []Demand {
	out := slices.Clone(a.held)
	for _, tenant := range a.turn {
		for _, d := range a.tenants[tenant].jobs {
			if d.Held == nil {
				out = append(out, d.Demand)
			}
		}
	}
	return out
}
