package sim

import (
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// Visit is a job as admission alone sees it: what it asks for, and how long it holds its gang once it has all of it.
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

// Rehearsal is what came of jobs that came, waited, ran and went.
type Rehearsal struct {
	Stays    []Stay // in the order of the visits
	Makespan disdel.Millis
	// Stuck are the jobs that wait for ever: nothing is going to happen any more, nobody runs, and each of them would fit
	// alone.
	Stuck     []disdel.JobID
	Decisions int
}

// Rehearse lets jobs come at their arrivals to a platform that has so much, which the allocator divides among them.
// Each looks at what it was granted at once: no grant expires. See, if there is one, gets every decision.
func Rehearse(by scheduler.Allocator, whole scheduler.Capacity, visits []Visit, see func(See)) Rehearsal {
	r := rehearsal{books: scheduler.NewAdmission(by, whole), see: see, at: map[disdel.JobID]int{}}
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

// See is a decision of a rehearsal, for those who look on.
type See struct {
	Now     disdel.Millis
	Demands []scheduler.Demand // before it
	Free    scheduler.Capacity // before it
	Grants  []scheduler.Grant
}

type rehearsal struct {
	clock  Clock
	books  *scheduler.Admission
	visits []*Visit
	at     map[disdel.JobID]int
	see    func(See)
	out    Rehearsal
}

func (r *rehearsal) arrive(i int) {
	r.out.Stays[i].Refused = r.books.Ask(r.visits[i].Demand)
}

func (r *rehearsal) decide() {
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

func (r *rehearsal) granted(g scheduler.Grant) {
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
