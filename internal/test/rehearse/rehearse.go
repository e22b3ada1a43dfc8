// Package rehearse drives admission alone in virtual time, for tests and benches: jobs come, hold their gangs for a
// while and go. Equal visits give equal results.
package rehearse

import (
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/scheduler/sim"
)

// Visit is a job as admission sees it: its demand, and how long it holds its gang once it has all of it.
type Visit struct {
	scheduler.Demand
	Lasts disdel.Millis `json:"lastsMs"`
}

// Stay is what became of a Visit.
type Stay struct {
	Job      disdel.JobID
	Refused  error         // it can never fit
	Started  disdel.Millis // when it had its whole gang
	Ended    disdel.Millis
	Ran      bool          // it started
	Promised disdel.Millis // the earliest start that was reserved for it
	Reserved bool          // one was
}

// Result is what became of all visits.
type Result struct {
	Stays    []Stay // in the order of the visits
	Makespan disdel.Millis
	// Stuck are the jobs that wait for ever: nothing happens any more, no job runs, and each of them would fit alone.
	Stuck     []disdel.JobID
	Decisions int
}

// Run lets jobs arrive at a platform with a capacity, which the allocator divides among them. Every job uses its grant
// at once, so no grant expires. see, unless nil, gets every decision.
func Run(by scheduler.Allocator, capacity scheduler.Capacity, visits []Visit, see func(See)) Result {
	r := run{books: scheduler.NewAdmission(by, capacity), see: see, at: map[disdel.JobID]int{}}
	r.out.Stays = make([]Stay, len(visits))
	for i := range visits {
		v := &visits[i]
		r.at[v.Job], r.out.Stays[i].Job = i, v.Job
		r.visits = append(r.visits, v)
		r.clock.At(v.Arrived, func() { r.arrive(i) })
	}
	for r.clock.Step() {
		if next, ok := r.clock.Next(); !ok || next > r.clock.Now() { // what comes at once is decided at once
			r.decide()
		}
	}
	for _, s := range r.out.Stays {
		if !s.Ran && s.Refused == nil {
			r.out.Stuck = append(r.out.Stuck, s.Job)
		}
	}
	return r.out
}

// See is one decision.
type See struct {
	Now     disdel.Millis
	Demands []scheduler.Demand // before it
	Free    scheduler.Capacity // before it
	Grants  []scheduler.Grant
}

type run struct {
	clock  sim.Clock
	books  *scheduler.Admission
	visits []*Visit
	at     map[disdel.JobID]int
	see    func(See)
	out    Result
}

func (r *run) arrive(i int) {
	r.out.Stays[i].Refused = r.books.Enqueue(r.visits[i].Demand)
}

func (r *run) decide() {
	now := r.clock.Now()
	s := See{Now: now, Free: r.books.Free()}
	if r.see != nil {
		s.Demands = slices.Clone(r.books.Demands())
	}
	s.Grants = r.books.Decide(now)
	r.out.Decisions++
	for _, g := range s.Grants {
		r.granted(g)
	}
	if r.see != nil {
		r.see(s)
	}
}

func (r *run) granted(g scheduler.Grant) {
	i := r.at[g.Job]
	s, v := &r.out.Stays[i], r.visits[i]
	if g.Reserved {
		if !s.Reserved && g.From > 0 {
			s.Reserved, s.Promised = true, g.From
		}
		return
	}
	r.books.Use(g.Job)
	if !r.books.Has(g.Job) {
		return // it holds a part of its gang, and waits for the rest
	}
	s.Ran, s.Started = true, r.clock.Now()
	r.clock.After(v.Lasts, func() {
		s.Ended = r.clock.Now()
		r.out.Makespan = max(r.out.Makespan, s.Ended)
		r.books.Return(g.Job, 0)
	})
}
