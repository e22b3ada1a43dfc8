package scheduler

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/disdel/disdel"
)

// The values of --admission.
const (
	AdmissionGang     = "gang"     // Gangs
	AdmissionFIFO     = "fifo"     // FIFO
	AdmissionGreedy   = "greedy"   // Greedy: plain OpenWhisk behaviour
	AdmissionGangLike = "ganglike" // GangLike: Coach's rule as published
)

// AllocatorOf is the allocator for a value of --admission, Gangs for "". It returns Invalid for an unknown value.
func AllocatorOf(name string) (Allocator, error) {
	switch name {
	case "", AdmissionGang:
		return Gangs{}, nil
	case AdmissionFIFO:
		return FIFO{}, nil
	case AdmissionGreedy:
		return Greedy{}, nil
	case AdmissionGangLike:
		return GangLike{}, nil
	default:
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "choose admission", Msg: "there is no admission \"" + name + "\"",
			Hint: "admission is gang, fifo, greedy or ganglike",
		}
	}
}

// waiting are the jobs that lack a part of their gang, by priority and arrival.
func waiting(jobs []Demand) []*Demand {
	var out []*Demand
	for i := range jobs {
		if !jobs[i].holdsGang() {
			out = append(out, &jobs[i])
		}
	}
	slices.SortFunc(out, compareRank)
	return fairOrder(out)
}

// merged sorts jobs of all tenants and keeps the order within each tenant. The jobs come in the order of their ranks.
// A job is never ahead of an earlier job of its own tenant.
func fairOrder(jobs []*Demand) []*Demand {
	places, last := map[*Demand]disdel.Millis{}, map[string]disdel.Millis{}
	for _, d := range jobs {
		place := rankAcross(d)
		if before, any := last[d.Tenant]; any {
			place = max(place, before)
		}
		places[d], last[d.Tenant] = place, place
	}
	slices.SortStableFunc(jobs, func(a, b *Demand) int { return cmp.Compare(places[a], places[b]) })
	return jobs
}

// holdsGang tells whether a job has its gang.
func (d *Demand) holdsGang() bool { return d.Held != nil && d.Held.Gang.Size() >= d.Gang.Size() }

// FIFO grants whole gangs strictly by priority and arrival. No job passes one that does not fit, unless that one's
// tenant is at its quota.
type FIFO struct {
	Unused disdel.Millis // time after which an unused grant goes back; 0: 100 s
}

// Allocate implements Allocator.
func (f FIFO) Allocate(now disdel.Millis, free Capacity, jobs []Demand) []Grant {
	accounts := map[string]*account{}
	of := func(d *Demand) *account {
		if accounts[d.Tenant] == nil {
			accounts[d.Tenant] = &account{}
		}
		return accounts[d.Tenant]
	}
	for i := range jobs {
		if d := &jobs[i]; d.Held != nil || d.Began {
			of(d).addBegun(d)
		}
	}
	var grants []Grant
	full, spent := map[string]bool{}, map[string]bool{} // tenants at their quota of room, and at their budget
	for _, d := range waiting(jobs) {
		capacity := d.Gang.Room()
		switch {
		case full[d.Tenant] || spent[d.Tenant] && !d.Began: // a job that began passes those that wait for its cost
			continue
		case of(d).overBudget(d):
			spent[d.Tenant] = true
			continue
		case of(d).over(d, capacity):
			full[d.Tenant] = true
			continue
		}
		if !free.Holds(capacity) {
			break
		}
		free = free.Minus(capacity)
		of(d).add(d, capacity)
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

// ProcessorShare is how many times a platform's processors are granted to jobs that run at once. A job leaves
// processors idle while it aggregates, evaluates and starts containers, so one job per processor is too few. With
// many more, jobs share caches and memory and slow each other down: on two processors, six trainings at once compute
// 1.3 times as long as one after another, and three 1.1 times.
const ProcessorShare = 1.5

// SharesAfter is how far away the end of every running job must be before a job may share processors.
const SharesAfter = disdel.Millis(3 * time.Second)

// Sharing lets an allocator grant jobs that may share processors (Demand.Shares) and lack only those: one per
// decision, if no running job is expected to end soon. So a short job does not wait for long ones, and many short
// ones take turns.
type Sharing struct{ By Allocator }

// Allocate implements Allocator.
func (s Sharing) Allocate(now disdel.Millis, free Capacity, jobs []Demand) []Grant {
	grants := s.By.Allocate(now, free, jobs)
	if slices.ContainsFunc(grants, isGranted) || !longUntilNext(now, jobs) {
		return grants
	}
	for _, d := range waiting(jobs) {
		capacity := d.Gang.Room()
		if !d.Shares || d.Held != nil || capacity.Millicores <= free.Millicores {
			continue
		}
		if capacity.Millicores = 0; !free.Holds(capacity) { // it waits for memory: others may go first
			continue
		}
		if shared := s.By.Allocate(now, free, sharing(jobs, d.Job)); slices.ContainsFunc(shared, isGranted) {
			return shared
		}
	}
	return grants
}

func isGranted(g Grant) bool { return !g.Reserved }

// longUntilNext tells whether no job that holds something is expected to end soon. A job of unknown or exceeded
// duration does not count.
func longUntilNext(now disdel.Millis, jobs []Demand) bool {
	return !slices.ContainsFunc(jobs, func(d Demand) bool {
		return d.Held != nil && d.Held.Until > now && d.Held.Until-now <= SharesAfter
	})
}

// sharing is the same jobs, one of which asks for no processors.
func sharing(jobs []Demand, job disdel.JobID) []Demand {
	out := slices.Clone(jobs)
	at := slices.IndexFunc(out, func(d Demand) bool { return d.Job == job })
	d := &out[at]
	d.Gang = slices.Clone(d.Gang)
	for i := range d.Gang {
		d.Gang[i].Each.Millicores = 0
	}
	d.capacity = d.Gang.Room()
	return out
}

// Greedy is a platform without gangs, for comparison: it serves requests for single containers in any order, and a
// job holds what it got. Jobs whose members wait for each other can block each other for ever. A service that admits
// jobs greedily starts each at once, and the platform queues.
type Greedy struct {
	Seed uint64 // of the order of requests
}

// Allocate gives single containers. Its grants add to what jobs hold, and do not expire.
func (g Greedy) Allocate(now disdel.Millis, free Capacity, jobs []Demand) []Grant {
	var all []request
	for _, d := range waiting(jobs) {
		all = append(all, requests(d)...)
	}
	slices.SortStableFunc(all, func(a, b request) int { return cmp.Compare(a.lot(g.Seed), b.lot(g.Seed)) })
	return serve(now, free, all)
}

// GangLike is the admission rule of Coach as published (its thesis, Algorithms 1 to 3, and its scheduler plugin), for
// comparison. Jobs go by priority and arrival in seconds, containers of a job by name, and no container is placed
// before each role of its job was looked at once. That does not mean that the roles fit: the gate opens when the last
// role by name is looked at, which then goes first. Containers of younger jobs pass those that do not fit. A job
// holds what it got.
type GangLike struct{}

// Allocate gives single containers. Its grants add to what jobs hold, and do not expire.
func (GangLike) Allocate(now disdel.Millis, free Capacity, jobs []Demand) []Grant {
	queue := waiting(jobs)
	slices.SortStableFunc(queue, func(a, b *Demand) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(second(a), second(b)),
			strings.Compare(string(a.Job), string(b.Job)))
	})
	var first, again []request
	for _, d := range queue {
		list := requests(d)
		slices.SortStableFunc(list, func(a, b request) int {
			return cmp.Or(strings.Compare(string(a.member.Task), string(b.member.Task)), a.number-b.number)
		})
		last := ""
		if n := len(list); n > 0 {
			last = string(list[n-1].member.Task)
		}
		for _, r := range list { // only a job that has just arrived waits at the gate
			if d.Arrived != now || string(r.member.Task) == last {
				first = append(first, r)
			} else {
				again = append(again, r)
			}
		}
	}
	return serve(now, free, append(first, again...))
}

func second(d *Demand) disdel.Millis { return d.Arrived / disdel.Millis(time.Second) }

// request is one container that a job lacks.
type request struct {
	demand *Demand
	member Member
	index  int // of the member in the gang
	number int // of the container in its member
}

// requests are the containers that a job lacks.
func requests(d *Demand) []request {
	var out []request
	for i, m := range d.Gang {
		has := 0
		if d.Held != nil && i < len(d.Held.Gang) {
			has = d.Held.Gang[i].Count
		}
		for n := has; n < m.Count; n++ {
			out = append(out, request{d, m, i, n})
		}
	}
	return out
}

// lot is a request's place in a random order.
func (r *request) lot(seed uint64) uint64 {
	h := fnv.New64a()
	b := binary.LittleEndian.AppendUint64([]byte(r.demand.Job), seed)
	b = binary.LittleEndian.AppendUint64(b, uint64(r.index))
	h.Write(binary.LittleEndian.AppendUint64(b, uint64(r.number))) //nolint:errcheck // a hash takes everything
	return h.Sum64() * 0x9e3779b97f4a7c15 >> 1
}

// serve gives each request its container if there is room, one after another, and adds up what each job got.
func serve(now disdel.Millis, free Capacity, all []request) []Grant {
	var grants []Grant
	at := map[disdel.JobID]int{}
	for _, r := range all {
		if !free.Holds(r.member.Each) {
			continue
		}
		free = free.Minus(r.member.Each)
		i, known := at[r.demand.Job]
		if !known {
			i = len(grants)
			at[r.demand.Job] = i
			grants = append(grants, granted(now, r.demand, nothing(r.demand.Gang), 0))
			grants[i].Expires = 0
		}
		grants[i].Gang[r.index].Count++
		grants[i].Room = grants[i].Room.Plus(r.member.Each)
	}
	return grants
}

// nothing is a gang with the same members and no containers.
func nothing(g Gang) Gang {
	out := slices.Clone(g)
	for i := range out {
		out[i].Count = 0
	}
	return out
}
