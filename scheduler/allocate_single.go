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

// Greedy is a platform that knows no gangs: it serves requests for single containers, in whatever order they come in,
// and a job holds what it got. Jobs whose members wait for each other can stop each other for ever. It is there to be
// compared with: a service that admits jobs greedily starts each at once and leaves the waiting to the platform.
type Greedy struct {
	Seed uint64 // of the order in which requests come in
}

// Allocate gives single containers: its grants are what jobs get in addition to what they hold, and do not expire.
func (g Greedy) Allocate(now disdel.Millis, free Capacity, jobs []Demand) []Grant {
	var all []request
	for _, d := range waiting(jobs) {
		all = append(all, requests(d)...)
	}
	slices.SortStableFunc(all, func(a, b request) int { return cmp.Compare(a.lot(g.Seed), b.lot(g.Seed)) })
	return serve(now, free, all)
}

// GangLike is the admission rule of Coach as published (its thesis, Algorithms 1 to 3, and its scheduler plugin): jobs
// in the order of priority and of arrival to the second, containers of a job by name, and none of a job is placed
// before each of its roles has been looked at once. That roles were asked for does not mean that they fit: the gate
// opens when the last role by name is looked at, which then goes first, and containers that do not fit are passed by
// those of younger jobs. A job holds what it got. It is there to be compared with.
type GangLike struct{}

// Allocate gives single containers: its grants are what jobs get in addition to what they hold, and do not expire.
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
		for _, r := range list { // roles that were ever looked at stay so: only a job that has just arrived waits at the gate
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

// request is one container that a job wants.
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

// lot is a request's place in an order by lot.
func (r *request) lot(seed uint64) uint64 {
	h := fnv.New64a()
	b := binary.LittleEndian.AppendUint64([]byte(r.demand.Job), seed)
	b = binary.LittleEndian.AppendUint64(b, uint64(r.index))
	h.Write(binary.LittleEndian.AppendUint64(b, uint64(r.number))) //nolint:errcheck // a hash takes everything
	return h.Sum64() * 0x9e3779b97f4a7c15 >> 1
}

// serve gives each request its container where there is room, one after another, and adds up what each job got.
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

// nothing is a gang without a container, whose members stand where the gang's do.
func nothing(g Gang) Gang {
	out := slices.Clone(g)
	for i := range out {
		out[i].Count = 0
	}
	return out
}
