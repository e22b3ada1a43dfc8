package scheduler

import (
	"cmp"
	"container/heap"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/disdel/disdel"
)

// Each job has a time, and jobs go in the order of these times. Within a tenant this is the job's arrival, earlier by
// PriorityWorth for each step of its priority. Between tenants, priority moves a job forward by PriorityAcross at most.
// A tenant that holds the whole platform moves back by ShareWorth, less in proportion. So other tenants' jobs pass a
// job only if they arrive within a bounded time after it, whatever their priority: no job starves.
const (
	PriorityWorth  = disdel.Millis(10 * time.Minute)
	PriorityAcross = disdel.Millis(time.Minute)
	ShareWorth     = disdel.Millis(10 * time.Minute)
)

// mostPriority bounds the priority that counts, so that no sum of its worth and a time overflows an int64.
const mostPriority = 1_000_000

// Gangs grants whole gangs, by priority, fair share and arrival. A job that does not fit gets a reservation at the
// earliest time at which it will fit, by the longest expected durations of running jobs. A later job goes first only
// if it delays no reservation (conservative back-filling). Reserve bounds the number of reservations: behind a job
// without one, only jobs that end before the first reservation may go first. So no job starts later than it would if
// all jobs started strictly in order and took as long as expected at most.
//
// A job of unknown duration may run beside reservations, never in their place.
type Gangs struct {
	Unused  disdel.Millis // time after which an unused grant goes back; 0: 100 s
	Reserve int           // reservations per decision; 0: 8
	Look    int           // jobs that do not fit before a decision gives up; 0: 256
}

const (
	defaultUnused  = disdel.Millis(100 * time.Second)
	defaultReserve = 8
	defaultLook    = 256
)

// Name is the value of --admission.
func (Gangs) Name() string { return "gang" }

// Allocate implements Allocator. It takes n log n steps for n jobs.
func (g Gangs) Allocate(now disdel.Millis, free Capacity, jobs []Demand) []Grant {
	d := gangDecision{
		Gangs: g, now: now, free: free, total: free, jobs: jobs, accounts: map[string]*account{},
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
	free, total Capacity
	unused      disdel.Millis
	jobs        []Demand
	accounts    map[string]*account
	numbered    []*account // the same, by tenant number
	queue       queue
	profile     profile
	blocked     bool          // a job does not fit: later jobs are back-filled
	first       disdel.Millis // time of the first reservation; 0: unknown
	blind       bool          // a reservation waits for jobs of unknown duration
	reserved    int
	skipped     bool // a waiting job has no reservation
	grants      []Grant
	steps       int // for tests of their growth
}

// read finds the jobs that wait, by tenant. Those that hold something are looked at where it matters who has what:
// between tenants, and where one has a quota.
func (d *gangDecision) read() {
	own, quotas := false, false
	for i := range d.jobs {
		if d.jobs[i].capacity == (Capacity{}) {
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

// readHeld finds what tenants hold, and how far that moves their jobs back.
func (d *gangDecision) readHeld() {
	for i := range d.jobs {
		if j := &d.jobs[i]; j.Held != nil || j.Began {
			d.account(j).addBegun(j)
		}
	}
	for _, a := range d.accounts {
		d.total = d.total.Plus(a.capacity)
	}
	for _, a := range d.queue.accounts {
		d.place(a)
	}
}

// note fills in room and until, which an Admission keeps.
func (d *Demand) note() {
	d.capacity = d.Gang.Room()
	if d.Held != nil {
		d.capacity, d.until = d.Held.Room, until(d.Held)
	}
}

// until is when a grant is given back; never if that is unknown.
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
		capacity := job.capacity
		a.waiting = a.waiting[1:]
		switch {
		case a.overBudget(job): // it waits for what jobs that began will have cost: these pass it, and no others
			a.waiting = slices.DeleteFunc(a.waiting, func(j *Demand) bool { return !j.Began })
		case a.over(job, capacity): // the tenant's own later jobs do not pass it
			a.waiting = nil
		case d.fits(job, capacity):
			d.grant(a, job, capacity)
		default:
			d.wait(job, capacity)
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
func (d *gangDecision) fits(job *Demand, capacity Capacity) bool {
	d.steps++
	end := ends(d.now, job)
	switch {
	case !d.free.Holds(capacity):
		return false
	case !d.blocked:
		return true
	case end == never && d.blind, d.skipped && (end == never || d.first == 0 || end > d.first):
		return false
	}
	ok, seen := d.profile.holds(d.now, end, capacity)
	d.steps += seen
	return ok
}

func (d *gangDecision) grant(a *account, job *Demand, capacity Capacity) {
	d.free = d.free.Minus(capacity)
	end := ends(d.now, job)
	why := "its gang is free"
	if d.blocked {
		d.profile.take(d.now, end, capacity)
		why = "its gang is free, and it delays no waiting job"
	}
	g := Grant{
		Job: job.Job, Gang: job.Gang, Room: capacity, Keep: job.Keep, From: d.now, Expires: d.now + d.unused, Why: why,
	}
	if end != never {
		g.Until = end
	}
	a.add(job, capacity)
	d.place(a)
	d.grants = append(d.grants, g)
}

// wait reserves the earliest time at which a job will fit, while reservations are left.
func (d *gangDecision) wait(job *Demand, capacity Capacity) {
	if !d.blocked {
		d.blocked = true
		d.steps += d.profile.build(d.now, d.free, d.jobs, d.grants)
	} else if d.reserved >= d.Reserve {
		d.skipped = true
		return
	}
	d.reserved++
	g := Grant{Job: job.Job, Gang: job.Gang, Room: capacity, Keep: job.Keep, Reserved: true}
	from, ok, seen := d.profile.earliest(capacity, job.Takes.High)
	d.steps += seen
	if ok {
		end := ends(from, job)
		d.profile.take(from, end, capacity)
		g.From, g.Why = from, "it would delay those before it"
		if lacks := d.free.Shortfall(capacity); lacks != "" {
			g.Why = "it needs " + lacks
		}
		if end != never {
			g.Until = end
		}
	} else {
		d.blind = true
		g.Why = "it waits for jobs of unknown duration"
	}
	if d.reserved == 1 && ok {
		d.first = from
	}
	d.grants = append(d.grants, g)
}

// account is what a tenant holds and waits for.
type account struct {
	tenant   string
	jobs     int
	capacity Capacity
	cost     float64
	waiting  []*Demand // in their order
	weight   float64
	behind   disdel.Millis // how far the tenant's share puts its jobs back
}

// account is the account of a job's tenant. The number saves a look-up by name.
func (d *gangDecision) account(j *Demand) *account {
	n := j.number
	if n > 0 && n < len(d.numbered) && d.numbered[n] != nil && d.numbered[n].tenant == j.Tenant {
		return d.numbered[n]
	}
	a := d.accounts[j.Tenant]
	if a == nil {
		a = &account{tenant: j.Tenant}
		d.accounts[j.Tenant] = a
	}
	if n > 0 {
		d.numbered = append(d.numbered, make([]*account, max(0, n+1-len(d.numbered)))...)
		d.numbered[n] = a
	}
	return a
}

// addBegun counts a job that began. Between two rounds it holds nothing, and its cost still counts.
func (a *account) addBegun(d *Demand) {
	if d.Held != nil {
		a.add(d, d.Held.Room)
	} else {
		a.cost += d.Cost
	}
}

// add counts a job that holds capacity. The cost of a job between two rounds counts already.
func (a *account) add(d *Demand, capacity Capacity) {
	a.jobs++
	a.capacity = a.capacity.Plus(capacity)
	if d.Held != nil || !d.Began {
		a.cost += d.Cost
	}
}

// place moves a tenant's jobs back by its share.
func (d *gangDecision) place(a *account) {
	a.behind = disdel.Millis(float64(ShareWorth) * d.total.share(a.capacity) / cmp.Or(a.weight, 1))
}

// over tells whether one more job exceeds the tenant's quota.
func (a *account) over(d *Demand, capacity Capacity) bool {
	q := d.Quota
	return q.Jobs > 0 && a.jobs >= q.Jobs || q.Memory > 0 && a.capacity.Memory+capacity.Memory > q.Memory ||
		a.overBudget(d)
}

// overBudget tells whether one more job would cost more than the tenant has left.
func (a *account) overBudget(d *Demand) bool {
	return d.Quota.Cost > 0 && d.Quota.Spent+a.cost+d.Cost > d.Quota.Cost
}

// queue is a heap of tenants with waiting jobs, the one whose first job goes next on top.
type queue struct {
	accounts []*account
	compare  func(a, b *Demand) int
}

func (q *queue) Len() int      { return len(q.accounts) }
func (q *queue) Swap(i, j int) { q.accounts[i], q.accounts[j] = q.accounts[j], q.accounts[i] }
func (q *queue) Push(any)      {} // nobody joins

func (q *queue) Less(i, j int) bool {
	a, b := q.accounts[i], q.accounts[j]
	x, y := a.waiting[0], b.waiting[0]
	return cmp.Or(cmp.Compare(rankAcross(x)+a.behind, rankAcross(y)+b.behind), q.compare(x, y)) < 0
}

// Pop takes the last one out.
func (q *queue) Pop() any {
	n := len(q.accounts) - 1
	last := q.accounts[n]
	q.accounts = q.accounts[:n]
	return last
}

// never is the end of a job of unknown duration.
const never = disdel.Millis(math.MaxInt64)

// profile is the capacity that will be free from now on: each step lasts until the next one, the last one for ever.
type profile struct{ steps []step }

type step struct {
	at   disdel.Millis
	free Capacity
}

// build makes the profile of a platform with so much free now. Jobs give back what they hold at their expected end;
// those of unknown duration keep it. It returns the number of steps that it took.
func (p *profile) build(now disdel.Millis, free Capacity, jobs []Demand, grants []Grant) int {
	p.steps = append(p.steps[:0], step{now, Capacity{}})
	for i := range jobs {
		if d := &jobs[i]; d.Held != nil {
			p.gives(due(now, d.until, d.Held), d.capacity)
		}
	}
	for i := range grants {
		if g := &grants[i]; !g.Reserved {
			p.gives(due(now, until(g), g), g.Room)
		}
	}
	for i := range p.steps { // sum up what the steps give back
		free = free.Plus(p.steps[i].free)
		p.steps[i].free = free
	}
	return len(jobs) + len(grants) + len(p.steps)
}

// gives notes that room comes back at a time.
func (p *profile) gives(at disdel.Millis, capacity Capacity) {
	if at == never {
		return
	}
	i := p.index(at)
	if p.steps[i].at != at {
		i++
		p.steps = slices.Insert(p.steps, i, step{at, Capacity{}})
	}
	p.steps[i].free = p.steps[i].free.Plus(capacity)
}

// due is when a job gives back what it holds. A late job is expected to take a quarter more than so far, and at least
// a second.
func due(now, until disdel.Millis, g *Grant) disdel.Millis {
	if until > now {
		return until
	}
	more := max((now-g.From)/4, disdel.Millis(time.Second))
	return roundUpEnd(now+more, more)
}

// ends is when a job that starts at a time gives its gang back at the latest.
func ends(from disdel.Millis, job *Demand) disdel.Millis {
	if job.Takes.High <= 0 {
		return never
	}
	return roundUpEnd(from+job.Takes.High, job.Takes.High)
}

// roundUpEnd is a time, or later by up to a sixteenth of the duration that it ends: on a grid of 1, 2 or 5 times a
// power of ten, so that many jobs end at few times and profiles stay short.
func roundUpEnd(at, takes disdel.Millis) disdel.Millis {
	const parts = 16
	grid := disdel.Millis(1)
	for grid*10*parts <= takes {
		grid *= 10
	}
	for _, times := range []disdel.Millis{5, 2} {
		if grid*times*parts <= takes {
			grid *= times
			break
		}
	}
	return (at + grid - 1) / grid * grid
}

// index is the step at a time.
func (p *profile) index(at disdel.Millis) int {
	low, high := 0, len(p.steps)
	for low < high {
		if middle := (low + high) / 2; p.steps[middle].at > at {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low - 1
}

// holds tells whether there is room from one time to another, and how many steps it looked at.
func (p *profile) holds(from, to disdel.Millis, capacity Capacity) (ok bool, seen int) {
	for i := p.index(from); i < len(p.steps) && p.steps[i].at < to; i++ {
		seen++
		if !p.steps[i].free.Holds(capacity) {
			return false, seen
		}
	}
	return true, seen
}

// earliest is the first time with room for a duration; 0: for ever. ok is false if that cannot be foreseen.
func (p *profile) earliest(capacity Capacity, takes disdel.Millis) (from disdel.Millis, ok bool, seen int) {
	open := false
	for _, s := range p.steps {
		seen++
		if open && takes > 0 && s.at >= from+takes {
			break
		}
		switch fits := s.free.Holds(capacity); {
		case !fits:
			open = false
		case !open:
			open, from = true, s.at
		}
	}
	return from, open, seen
}

// take takes room from one time to another, or for ever.
func (p *profile) take(from, to disdel.Millis, capacity Capacity) {
	first, last := p.cut(from), len(p.steps)
	if to != never {
		last = p.cut(to)
	}
	for i := first; i < last; i++ {
		p.steps[i].free = p.steps[i].free.Minus(capacity)
	}
}

// cut lets a step begin at a time and returns its index.
func (p *profile) cut(at disdel.Millis) int {
	i := p.index(at)
	if p.steps[i].at == at {
		return i
	}
	p.steps = slices.Insert(p.steps, i+1, step{at, p.steps[i].free})
	return i + 1
}

// gang refuses a job whose workers wait for each other inside a round if not all of them can run at once.
func (b *planBuilder) gang() error {
	p := &b.plan
	if b.Job.Distribution.Exchange == nil && b.stages() == 1 || p.Parallel >= p.Workers {
		return nil
	}
	train, _ := p.Action(disdel.TaskTrain)
	if n := b.stages(); n > 1 {
		return &disdel.Error{
			Kind: disdel.OverLimit, Op: "plan job", Job: b.ID,
			Msg: fmt.Sprintf("%s of %d stages run at once, %d actions of %v. The pool has %v and runs %d activations at once",
				disdel.Counted(p.Replicas(), "replica"), n, p.Workers, train.Limits.Memory, b.Platform.Pool, b.Platform.Concurrent),
			Hint: "give the pool more memory (--pool-memory), or use fewer workers or stages",
		}
	}
	return &disdel.Error{
		Kind: disdel.OverLimit, Op: "plan job", Job: b.ID,
		Msg: fmt.Sprintf("%d workers that exchange updates wait for each other, and %d run at once: %v each, "+
			"the pool has %v, and "+
			"%d activations run at once", p.Workers, p.Parallel, train.Limits.Memory, b.Platform.Pool, b.Platform.Concurrent),
		Hint:    fmt.Sprintf("--set distribution.workers=%d, or leave distribution.exchange out", max(1, p.Parallel)),
		Changes: [][]string{{fmt.Sprintf("distribution.workers=%d", max(1, p.Parallel))}},
	}
}
