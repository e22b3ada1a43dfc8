package scheduler

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/disdel/disdel"
)

// Admission keeps which jobs wait for a shared platform, which hold a part of it, and what is free. It asks its
// Allocator when something has changed. It is a state machine without clock or I/O, for one goroutine; the service
// and the simulator use the same one.
//
// Enqueue adds a job, Decide grants it a gang, Use marks the grant as used, and Return ends it: at the job's end, or
// after a round if the job asks for each round. An unused grant expires: it goes back whole, and the job waits again
// in its old place.
type Admission struct {
	by          Allocator
	total       Capacity // of the platform
	others      Capacity // held by jobs that this Admission does not know
	free        Capacity
	held        []Demand     // of jobs that hold something; the slice has spare room for waiting jobs
	holders     []*queuedJob // of held
	tenants     map[string]*tenantQueue
	numbers     map[string]int // of tenants
	tenantOrder []string       // tenants with waiting jobs, in order of arrival
	byID        map[disdel.JobID]*queuedJob
	newJobs     []*queuedJob // that were enqueued since the last decision
	changed     bool         // something was returned since then
	waits       int
	spent       map[string]float64             // GB-s of tenants
	unused      map[disdel.JobID]disdel.Millis // when unused grants expire
}

// queuedJob is a job that waits or holds something.
type queuedJob struct {
	Demand
	place int // index in held; -1: it holds nothing
}

// NewAdmission returns the Admission of a platform with a capacity.
func NewAdmission(by Allocator, total Capacity) *Admission {
	return &Admission{
		by: by, total: total, free: total,
		tenants: map[string]*tenantQueue{}, numbers: map[string]int{}, byID: map[disdel.JobID]*queuedJob{},
		spent: map[string]float64{}, unused: map[disdel.JobID]disdel.Millis{},
	}
}

// Has tells whether a job has its whole gang.
func (a *Admission) Has(job disdel.JobID) bool {
	d := a.byID[job]
	return d != nil && d.holdsGang()
}

// Capacity is the capacity of the platform.
func (a *Admission) Capacity() Capacity { return a.total }

// Free is the capacity that no job holds.
func (a *Admission) Free() Capacity { return a.free }

// Waiting is the number of waiting jobs.
func (a *Admission) Waiting() int { return a.waits }

// Holding is the number of jobs that hold something.
func (a *Admission) Holding() int { return len(a.held) }

// Resize changes the capacity of the platform. Grants stay.
func (a *Admission) Resize(total Capacity) {
	a.free = a.free.Plus(total.Minus(a.total))
	a.total, a.changed = total, true
}

// SetOthers sets what jobs outside of this Admission hold now. Jobs wait for them, but are not refused because of
// them.
func (a *Admission) SetOthers(hold Capacity) {
	a.free = a.free.Plus(a.others).Minus(hold)
	a.others, a.changed = hold, true
}

// Enqueue lets a job wait for its gang. It returns OverLimit with the arithmetic if the job can never have it, and
// Conflict if the job is there already.
func (a *Admission) Enqueue(d Demand) error {
	if a.byID[d.Job] != nil {
		return &disdel.Error{Kind: disdel.Conflict, Op: "admit job", Job: d.Job, Msg: "the job has asked already"}
	}
	d.Held, d.capacity = nil, d.Gang.Room()
	if err := a.fits(d); err != nil {
		return err
	}
	a.queue(&queuedJob{d, -1})
	return nil
}

func (a *Admission) fits(d Demand) error {
	d.Quota.Spent += a.spent[d.Tenant]
	return CheckFits(a.total, d)
}

// NeverFit returns the waiting jobs that can never have their gang any more, each with the arithmetic: the platform
// became smaller, or the tenant has used up its quota. They wait until they are returned.
func (a *Admission) NeverFit() []error {
	var out []error
	for _, tenant := range a.tenantOrder {
		for _, d := range a.tenants[tenant].jobs {
			if err := a.fits(d.Demand); err != nil {
				out = append(out, err)
			}
		}
	}
	return out
}

func (a *Admission) queue(d *queuedJob) {
	a.number(d)
	l := a.tenants[d.Tenant]
	if l == nil {
		l = &tenantQueue{}
		a.tenants[d.Tenant] = l
		a.tenantOrder = append(a.tenantOrder, d.Tenant)
	}
	l.add(d)
	a.byID[d.Job], a.waits = d, a.waits+1
	a.newJobs = append(a.newJobs, d)
}

// Decide asks the Allocator and enters its grants. It returns them with the reservations of jobs that go on waiting.
// It does not ask if nothing was returned since the last decision and the new jobs do not fit.
func (a *Admission) Decide(now disdel.Millis) []Grant {
	if !a.due() {
		return nil
	}
	a.newJobs, a.changed = a.newJobs[:0], false
	var out []Grant
	for {
		jobs, all := a.candidates()
		granted := 0
		for _, g := range a.by.Allocate(now, a.free, jobs) {
			if !g.Reserved {
				a.enter(g)
				granted++
			}
			out = append(out, g)
		}
		if granted == 0 || all || a.waits == 0 {
			return out
		}
		out = slices.DeleteFunc(out, func(g Grant) bool { return g.Reserved }) // the next decision makes new ones
	}
}

// due tells whether there is anything to decide.
func (a *Admission) due() bool {
	return a.waits > 0 && (a.changed || slices.ContainsFunc(a.newJobs, func(d *queuedJob) bool {
		return a.free.Holds(d.Gang[0].Each)
	}))
}

// enter adds a grant to what its job holds.
func (a *Admission) enter(g Grant) {
	d := a.byID[g.Job]
	if d == nil || d.holdsGang() {
		panic(fmt.Sprintf("scheduler: a grant for %s, which wants none", g.Job))
	}
	a.free = a.free.Minus(g.Room)
	if d.Held != nil { // part of its gang
		a.drop(d)
		g = addGrants(*d.Held, g)
	}
	if g.Expires > 0 {
		a.unused[g.Job] = g.Expires
	}
	d.Held, d.place = &g, len(a.held)
	d.capacity, d.until = g.Room, until(&g)
	a.held, a.holders = append(a.held, d.Demand), append(a.holders, d)
	if d.holdsGang() {
		a.tenants[d.Tenant].remove(d)
		a.waits--
	}
}

// together is the sum of two grants of a job.
func addGrants(old, g Grant) Grant {
	gang := slices.Clone(old.Gang)
	for i := range gang {
		gang[i].Count += g.Gang[i].Count
	}
	old.Gang, old.Room = gang, old.Room.Plus(g.Room)
	return old
}

// drop removes a job from held; the last one takes its place.
func (a *Admission) drop(d *queuedJob) {
	last := len(a.held) - 1
	a.held[d.place], a.holders[d.place] = a.held[last], a.holders[last]
	a.holders[d.place].place = d.place
	a.held[last], a.holders[last] = Demand{}, nil
	a.held, a.holders = a.held[:last], a.holders[:last]
	d.place = -1
}

// Use says that a job has begun with its grant, so that the grant does not expire. Without a grant it does nothing.
func (a *Admission) Use(job disdel.JobID) {
	delete(a.unused, job)
	if d := a.byID[job]; d != nil && d.Held != nil {
		d.Held.Expires = 0
	}
}

// Return takes back everything that a job holds, or its place in the queue. cost is what the job has cost its tenant
// since it was enqueued, in GB-s. An unknown job is ignored.
func (a *Admission) Return(job disdel.JobID, cost float64) {
	d := a.byID[job]
	if d == nil {
		return
	}
	if !d.holdsGang() {
		a.tenants[d.Tenant].remove(d)
		a.waits--
	}
	if cost > 0 {
		a.spent[d.Tenant] += cost
	}
	a.giveBack(d)
	delete(a.byID, job)
	a.newJobs = slices.DeleteFunc(a.newJobs, func(f *queuedJob) bool { return f == d })
	a.changed = true // even if it only waited: others may have waited behind it
}

func (a *Admission) giveBack(d *queuedJob) {
	delete(a.unused, d.Job)
	if d.Held != nil {
		a.free = a.free.Plus(d.Held.Room)
		a.drop(d)
		d.Held, d.capacity, d.until = nil, d.Gang.Room(), 0
	}
}

// Expire takes back the grants that were not used in time, and returns their jobs. Those wait again in their old
// places.
func (a *Admission) Expire(now disdel.Millis) []disdel.JobID {
	var out []disdel.JobID
	for job, at := range a.unused {
		if at <= now {
			out = append(out, job)
		}
	}
	slices.Sort(out)
	for _, job := range out {
		d := a.byID[job]
		a.giveBack(d)
		delete(a.byID, job)
		a.queue(d)
		a.changed = true
	}
	return out
}

// Demands are the jobs that hold something, followed by those that wait, by tenant.
func (a *Admission) Demands() []Demand {
	out := slices.Clone(a.held)
	for _, tenant := range a.tenantOrder {
		for _, d := range a.tenants[tenant].jobs {
			if d.Held == nil {
				out = append(out, d.Demand)
			}
		}
	}
	return out
}

// AdmissionState is the state of an Admission as a document. Several processes that share a platform decide one after
// another, each with the state that the previous one left.
type AdmissionState struct {
	Jobs  []Demand           `json:"jobs"`               // that wait or hold something (Demand.Held), sorted by id
	Spent map[string]float64 `json:"spentGBs,omitempty"` // by tenants whose jobs have ended
}

// RestoreAdmission returns an Admission with a kept state: jobs hold what they held, and wait in their old places. A
// caller that knows of a job that the state lacks adds it first, with what it holds.
func RestoreAdmission(by Allocator, total Capacity, kept AdmissionState) *Admission {
	a := NewAdmission(by, total)
	maps.Copy(a.spent, kept.Spent)
	for _, d := range kept.Jobs {
		d.note()
		k := &queuedJob{d, -1}
		if d.Held == nil || !k.holdsGang() {
			a.queue(k)
		}
		if d.Held != nil {
			a.hold(k)
		}
	}
	a.changed = true
	return a
}

// hold enters what a job held in the kept state.
func (a *Admission) hold(k *queuedJob) {
	a.byID[k.Job] = k
	a.number(k)
	if g := *k.Held; g.Expires > 0 {
		a.unused[g.Job] = g.Expires
	}
	k.Held = new(*k.Held) // the document must not change
	k.place = len(a.held)
	a.free = a.free.Minus(k.capacity)
	a.held, a.holders = append(a.held, k.Demand), append(a.holders, k)
}

// number sets the number of a job's tenant.
func (a *Admission) number(k *queuedJob) {
	if a.numbers[k.Tenant] == 0 {
		a.numbers[k.Tenant] = len(a.numbers) + 1
	}
	k.Demand.number = a.numbers[k.Tenant]
}

// State is the state to continue with.
func (a *Admission) State() AdmissionState {
	b := AdmissionState{Jobs: append([]Demand{}, a.Demands()...), Spent: maps.Clone(a.spent)}
	for i := range b.Jobs {
		d := &b.Jobs[i]
		d.capacity, d.until, d.number = Capacity{}, 0, 0
		if d.Held != nil {
			d.Held = new(*d.Held)
		}
	}
	slices.SortFunc(b.Jobs, func(x, y Demand) int { return strings.Compare(string(x.Job), string(y.Job)) })
	return b
}

// Queue is all waiting jobs, by priority and arrival. Their actual order also depends on what their tenants hold,
// which changes with every grant.
func (a *Admission) Queue() []disdel.JobID {
	var all []*queuedJob
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

// WithinHeld is a job that continues with another gang inside of what it holds, so that no Allocator is asked; the
// rest becomes free. ok is false if the job holds nothing or too little.
func (d Demand) WithinHeld(to Demand) (with Demand, ok bool) {
	if d.Held == nil {
		return d, false
	}
	capacity := d.roomFor(to.Gang)
	if !d.Held.Room.Holds(capacity) {
		return d, false
	}
	return d.withGang(to, capacity), true
}

// takes is the room of another gang of a job; a job that shares processors takes none.
func (d *Demand) roomFor(gang Gang) Capacity {
	capacity := gang.Room()
	if d.Shares && d.Held.Room.Millicores == 0 {
		capacity.Millicores = 0
	}
	return capacity
}

// holding is the job with another gang, which takes up room. Its expected end stays.
func (d Demand) withGang(to Demand, capacity Capacity) Demand {
	held := *d.Held
	held.Gang, held.Room, held.Keep = to.Gang, capacity, to.Keep
	d.Gang, d.Keep, d.Held, d.capacity = to.Gang, to.Keep, &held, capacity
	return d
}

// Change gives another gang to a job that holds its whole gang. It returns why it cannot; then nothing changes. Room
// that the new gang does not need is free at once, for the next Decide. Additional room is granted as to a job that
// comes now with the same priority, at once or not at all: it delays no reservation of waiting jobs. No job waits
// while it holds something, so two jobs that want more never wait for each other.
func (a *Admission) Change(now disdel.Millis, to Demand) (refused string) {
	d := a.byID[to.Job]
	if d == nil || !d.holdsGang() {
		return "the job has no gang yet"
	}
	capacity := d.roomFor(to.Gang)
	if more := capacity.excess(d.Held.Room); more != (Capacity{}) {
		granted, refused := a.more(now, d, more)
		if refused != "" {
			return refused
		}
		capacity = capacity.Minus(more).Plus(granted)
	}
	a.free = a.free.Plus(d.Held.Room).Minus(capacity)
	d.Demand = d.withGang(to, capacity)
	a.held[d.place] = d.Demand
	a.changed = true
	return ""
}

// more is what a job is granted beside what it holds, or why it gets nothing. It enters nothing.
func (a *Admission) more(now disdel.Millis, d *queuedJob, capacity Capacity) (granted Capacity, refused string) {
	ask := Demand{
		Job: d.Job + "/more", Tenant: d.Tenant, Priority: d.Priority, Arrived: now + 1, Keep: d.Keep, Shares: d.Shares,
		Gang: Gang{{Task: disdel.TaskTrain, Count: 1, Each: capacity}}, Quota: d.Quota,
	}
	ask.Quota.Jobs, ask.Quota.Cost = 0, 0 // it is no additional job, and its cost was checked when it came
	if remaining := d.until - now; d.until != never && remaining > 0 {
		ask.Takes = disdel.Interval[disdel.Millis]{Low: remaining, Likely: remaining, High: remaining}
	}
	ask.note()
	ask.number = d.number
	jobs, _ := a.candidates()
	for _, g := range a.by.Allocate(now, a.free, append(slices.Clip(jobs), ask)) {
		if g.Job == ask.Job && !g.Reserved {
			return g.Room, ""
		}
	}
	return Capacity{}, a.lacking(d, capacity)
}

// lacking is why a job does not get more room.
func (a *Admission) lacking(d *queuedJob, more Capacity) string {
	if lacks := a.free.excess(Capacity{}).Shortfall(more); lacks != "" {
		return "it needs another " + lacks
	}
	var holds disdel.Bytes
	for i := range a.held {
		if a.held[i].Tenant == d.Tenant {
			holds += a.held[i].capacity.Memory
		}
	}
	if q := d.Quota.Memory; q > 0 && holds+more.Memory > q {
		return "it needs another " + more.Memory.String() + ", and of the quota of " + whose(d.Tenant) + ", " + q.String() +
			", " + max(0, q-holds).String() + " are left"
	}
	return "jobs that wait would wait longer for it"
}

// excess is what c has more than d, part by part.
func (c Capacity) excess(d Capacity) Capacity {
	c = c.Minus(d)
	return Capacity{
		Memory: max(0, c.Memory), Device: max(0, c.Device), Millicores: max(0, c.Millicores), Devices: max(0, c.Devices),
		Concurrent: max(0, c.Concurrent), PerMinute: max(0, c.PerMinute),
	}
}

// tenantQueue is the waiting jobs of a tenant, in order.
type tenantQueue struct{ jobs []*queuedJob }

func byPlace(a, b *queuedJob) int { return compareRank(&a.Demand, &b.Demand) }

func (l *tenantQueue) add(d *queuedJob) {
	i, _ := slices.BinarySearchFunc(l.jobs, d, byPlace)
	l.jobs = slices.Insert(l.jobs, i, d)
}

// remove takes a job out. It is usually among the first ones, so the jobs before it move.
func (l *tenantQueue) remove(d *queuedJob) {
	i, found := slices.BinarySearchFunc(l.jobs, d, byPlace)
	if !found {
		return
	}
	copy(l.jobs[1:i+1], l.jobs[:i])
	l.jobs[0] = nil
	l.jobs = l.jobs[1:]
}

// The Allocator sees showTotal waiting jobs, the first ones of every tenant, but at least showEach of each. Other jobs
// are behind all those of their tenant.
const (
	showTotal = 256
	showEach  = 8
)

// show returns the jobs that the Allocator sees, and whether they are all.
func (a *Admission) candidates() (jobs []Demand, all bool) {
	each := max(showEach, showTotal/max(1, len(a.tenantOrder)))
	jobs, all = a.held, true
	a.tenantOrder = slices.DeleteFunc(a.tenantOrder, func(tenant string) bool {
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
			if d.Held == nil { // a job that holds a part of its gang is in held
				jobs = append(jobs, d.Demand)
				jobs[len(jobs)-1].Quota.Spent += a.spent[tenant]
			}
		}
		return false
	})
	a.held = jobs[:len(a.held)] // keeps the larger memory
	return jobs, all
}
