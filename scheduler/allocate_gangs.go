package scheduler

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"
	"time"

	"github.com/disdel/disdel"
)

// Jobs go in the order of one time each. Within a tenant this time is a job's arrival, earlier by PriorityWorth for
// each step of its priority. Between tenants, priority moves a job forward by PriorityAcross at most. A tenant that
// holds the whole platform moves back by ShareWorth, less in proportion. So other tenants' jobs pass a job only if they
// arrive within a bounded time after it, whatever their priority: nobody starves.
const (
	PriorityWorth  = disdel.Millis(10 * time.Minute)
	PriorityAcross = disdel.Millis(time.Minute)
	ShareWorth     = disdel.Millis(10 * time.Minute)
)

// mostPriority bounds the priority that counts: no sum of its worth and a moment passes an int64.
const mostPriority = 1_000_000

// Gangs grants whole gangs, in the order of priority, fair share and arrival. Who does not fit has the earliest time
// reserved at which it will, by what those that run are expected to take at most; a later one goes first only if it
// delays none of those reservations (conservative back-filling). Reserve bounds how many have one: behind a job that
// has none, only what is over before the first reservation may go first. So no job starts later than it would if all
// started strictly in order and took as long as they are expected to take at most.
//
// A job of which nobody knows how long it takes may run beside reservations, never in their place.
type Gangs struct {
	Unused  disdel.Millis // a grant that is not used for so long goes back; 0: 100 s
	Reserve int           // reservations of a decision; 0: 8
	Look    int           // jobs that a decision looks at in vain before it gives up; 0: 256
}

const (
	defaultUnused  = disdel.Millis(100 * time.Second)
	defaultReserve = 8
	defaultLook    = 256
)

// Name is the word of --admission.
func (Gangs) Name() string { return "gang" }

// Allocate is the decision of an Allocator; it takes n log n steps for n jobs.
func (g Gangs) Allocate(now disdel.Millis, free Capacity, jobs []Demand) []Grant {
	d := gangDecision{
		Gangs: g, now: now, free: free, whole: free, jobs: jobs, accounts: map[string]*account{},
		unused: cmp.Or(g.Unused, defaultUnused),
	}
	d.Reserve, d.Look = cmp.Or(g.Reserve, defaultReserve), cmp.Or(g.Look, defaultLook)
	d.read()
	d.decide()
	return d.grants
}

// gangDecision is one decision of Gangs.
type gangDecision struct {
	Gangs
	now         disdel.Millis
	free, whole Capacity
	unused      disdel.Millis
	jobs        []Demand
	accounts    map[string]*account
	numbered    []*account // the same, by the numbers that jobs have
	queue       queue
	profile     profile
	blocked     bool          // a job does not fit: those behind it are back-filled
	first       disdel.Millis // when the first of them will have its gang; 0: that is not known
	blind       bool          // a reservation waits for jobs of which nobody knows how long they take
	reserved    int
	skipped     bool // a job has no reservation although it waits
	grants      []Grant
	steps       int // taken, for tests of how they grow
}

// read finds the jobs that wait, by tenant. Those that hold something are looked at where it matters who has what:
// between tenants, and where one has a quota.
func (d *gangDecision) read() {
	own, quotas := false, false
	for i := range d.jobs {
		if d.jobs[i].room == (Capacity{}) {
			if !own { // what was told stays as it is
				d.jobs, own = slices.Clone(d.jobs), true
			}
			d.jobs[i].note()
		}
		if j := &d.jobs[i]; j.Held == nil {
			a := d.account(j)
			a.waiting = append(a.waiting, j)
			a.weight = max(a.weight, j.Quota.Weight)
			quotas = quotas || j.Quota.Jobs > 0 || j.Quota.Memory > 0 || j.Quota.Cost > 0
		}
	}
	for _, a := range d.accounts {
		slices.SortFunc(a.waiting, d.byRank)
		d.queue.accounts = append(d.queue.accounts, a)
	}
	if len(d.queue.accounts) > 1 || quotas {
		d.readHeld()
	}
	d.queue.compare = d.byRank
	heap.Init(&d.queue)
}

// readHeld finds what tenants have, and where that puts their jobs.
func (d *gangDecision) readHeld() {
	for i := range d.jobs {
		if j := &d.jobs[i]; j.Held != nil {
			d.account(j).add(j, j.room)
		}
	}
	for _, a := range d.accounts {
		d.whole = d.whole.Plus(a.room)
	}
	for _, a := range d.queue.accounts {
		d.place(a)
	}
}

// note looks for what no books have noted.
func (d *Demand) note() {
	d.room = d.Gang.Room()
	if d.Held != nil {
		d.room, d.until = d.Held.Room, until(d.Held)
	}
}

// until is when a grant is given back; never where that is not known.
func until(g *Grant) disdel.Millis {
	if g.Until == 0 {
		return never
	}
	return g.Until
}

// byRank is the order of two jobs of one tenant, or of tenants that hold equal shares.
func (d *gangDecision) byRank(a, b *Demand) int {
	d.steps++
	return compareRank(a, b)
}

func compareRank(a, b *Demand) int {
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Arrived, b.Arrived), strings.Compare(string(a.Job),
		string(b.Job)))
}

// rank orders the jobs of one tenant: the job with the earliest time goes first.
func rank(d *Demand) disdel.Millis {
	return d.Arrived - disdel.Millis(min(max(d.Priority, -mostPriority), mostPriority))*PriorityWorth
}

// rankAcross orders jobs of different tenants in the same way.
func rankAcross(d *Demand) disdel.Millis {
	return d.Arrived - min(max(d.Arrived-rank(d), -PriorityAcross), PriorityAcross)
}

func (d *gangDecision) decide() {
	for looked := 0; len(d.queue.accounts) > 0 && looked < d.Look; {
		a := d.queue.accounts[0]
		job := a.waiting[0]
		room := job.room
		if a.over(job, room) { // the tenant's own later jobs do not pass it
			heap.Pop(&d.queue)
			continue
		}
		a.waiting = a.waiting[1:]
		if d.fits(job, room) {
			d.grant(a, job, room)
		} else {
			d.wait(job, room)
			looked++
		}
		if len(a.waiting) == 0 {
			heap.Pop(&d.queue)
		} else {
			heap.Fix(&d.queue, 0)
		}
	}
}

// fits tells whether a job may have its gang now.
func (d *gangDecision) fits(job *Demand, room Capacity) bool {
	d.steps++
	end := ends(d.now, job)
	switch {
	case !d.free.Holds(room):
		return false
	case !d.blocked:
		return true
	case end == never && d.blind, d.skipped && (end == never || d.first == 0 || end > d.first):
		return false
	}
	ok, seen := d.profile.holds(d.now, end, room)
	d.steps += seen
	return ok
}

func (d *gangDecision) grant(a *account, job *Demand, room Capacity) {
	d.free = d.free.Minus(room)
	end := ends(d.now, job)
	why := "its gang is free"
	if d.blocked {
		d.profile.take(d.now, end, room)
		why = "its gang is free, and it delays nobody who waits"
	}
	g := Grant{
		Job: job.Job, Gang: job.Gang, Room: room, Keep: job.Keep, From: d.now, Expires: d.now + d.unused, Why: why,
	}
	if end != never {
		g.Until = end
	}
	a.add(job, room)
	d.place(a)
	d.grants = append(d.grants, g)
}

// wait reserves the earliest time for a job at which it will fit, while there are reservations to be had.
func (d *gangDecision) wait(job *Demand, room Capacity) {
	if !d.blocked {
		d.blocked = true
		d.steps += d.profile.build(d.now, d.free, d.jobs, d.grants)
	} else if d.reserved >= d.Reserve {
		d.skipped = true
		return
	}
	d.reserved++
	g := Grant{Job: job.Job, Gang: job.Gang, Room: room, Keep: job.Keep, Reserved: true}
	from, ok, seen := d.profile.earliest(room, job.Takes.High)
	d.steps += seen
	if ok {
		end := ends(from, job)
		d.profile.take(from, end, room)
		g.From, g.Why = from, "it would delay those before it"
		if lacks := d.free.Lacks(room); lacks != "" {
			g.Why = "it needs " + lacks
		}
		if end != never {
			g.Until = end
		}
	} else {
		d.blind = true
		g.Why = "it waits for jobs of which nobody knows how long they take"
	}
	if d.reserved == 1 && ok {
		d.first = from
	}
	d.grants = append(d.grants, g)
}
