package queue

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/service/lease"
)

// poolState is the content of a pool's note: the state of its admission, and the process of each job in it.
type poolState struct {
	// Pool is the pool's memory when the first of the jobs that have room came; 0: unknown.
	Pool   disdel.Bytes             `json:"poolBytes"`
	Owners map[disdel.JobID]string  `json:"owners"` // the tokens of their sessions
	Books  scheduler.AdmissionState `json:"books"`
}

// readState reads a pool's note. A note that cannot be read is taken for an empty one: each process adds its jobs
// again.
func readState(note history.Note) (s poolState) {
	if json.Unmarshal(note.Value, &s) != nil {
		s = poolState{}
	}
	if s.Owners == nil {
		s.Owners = map[disdel.JobID]string{}
	}
	return s
}

// keep drops the jobs that do not stay.
func (s *poolState) keep(stays func(job disdel.JobID, owner string) bool) {
	s.Books.Jobs = slices.DeleteFunc(slices.Clone(s.Books.Jobs), func(d scheduler.Demand) bool {
		if stays(d.Job, s.Owners[d.Job]) {
			return false
		}
		delete(s.Owners, d.Job)
		return true
	})
}

// living reports of each process that the note names whether its session is alive.
func (q *Queue) living(ctx context.Context, h *history.Store, s *poolState) (map[string]bool, error) {
	lives := map[string]bool{q.Token: true}
	for _, owner := range s.Owners {
		if _, known := lives[owner]; known {
			continue
		}
		alive, _, err := lease.SessionAlive(ctx, h, owner, time.Now())
		if err != nil {
			return nil, err
		}
		lives[owner] = alive
	}
	return lives, nil
}

// open brings the state up to date with what this process knows, and makes an admission of it; the caller holds the
// lock.
func (q *Queue) open(s *poolState, pool scheduler.Capacity, lives map[string]bool) *scheduler.Admission {
	s.keep(func(job disdel.JobID, owner string) bool {
		_, mine := q.entries[job]
		return lives[owner] && (owner == q.Token || !mine) // else it was another's before this process took it over
	})
	q.correctOwn(s)
	for job, e := range q.entries {
		_, known := s.Owners[job]
		if !known && e.failed == nil && (e.demand.Held != nil || e.began) { // the note has lost it
			s.Books.Jobs = append(s.Books.Jobs, e.demand)
			s.Owners[job] = q.Token
		}
	}
	admission := scheduler.RestoreAdmission(q.by, pool, s.Books)
	for job, owner := range s.Owners {
		e := q.entries[job]
		switch {
		case owner != q.Token:
		case e == nil:
			admission.Return(job, q.costs[job])
		case e.gaveBack:
			admission.Return(job, 0)
			e.failed = admission.Enqueue(e.demand)
		case admission.Has(job):
			admission.Use(job)
		}
	}
	for job, e := range q.entries {
		if _, known := s.Owners[job]; !known && e.failed == nil {
			s.Owners[job] = q.Token
			e.failed = admission.Enqueue(e.demand)
		}
	}
	for _, err := range admission.NeverFit() {
		if e := q.entries[disdel.AsError(err).Job]; e != nil && !e.began {
			e.failed = err
			admission.Return(e.demand.Job, 0)
		}
	}
	return admission
}

// decide has the admission decide. It uses the pool's size of the time when the first job came: a pool made of a
// machine's free memory looks smaller to those who come later. busy is the memory in use on the platform, by anybody.
func (s *poolState) decide(admission *scheduler.Admission, token string, now disdel.Millis, busy disdel.Bytes,
) map[disdel.JobID]scheduler.Grant {
	admission.Expire(now)
	others := usedByOthers(busy, admission)
	switch memory := admission.Capacity().Memory; {
	case admission.Holding() == 0:
		s.Pool = bounded(memory)
	case s.Pool > 0 && bounded(memory) > 0:
		others += memory - s.Pool
	}
	if others != 0 {
		admission.SetOthers(scheduler.Capacity{Memory: others})
	}
	decided := map[disdel.JobID]scheduler.Grant{}
	for _, g := range admission.Decide(now) {
		decided[g.Job] = g
		if !g.Reserved && s.Owners[g.Job] == token {
			admission.Use(g.Job)
		}
	}
	s.keepFrom(admission)
	return decided
}

// keepFrom takes the admission's state over.
func (s *poolState) keepFrom(admission *scheduler.Admission) {
	s.Books = admission.State()
	owners := make(map[disdel.JobID]string, len(s.Books.Jobs))
	for _, d := range s.Books.Jobs {
		owners[d.Job] = s.Owners[d.Job]
	}
	s.Owners = owners
}

// bounded is an amount of memory, 0 for an unbounded one.
func bounded(b disdel.Bytes) disdel.Bytes {
	if b >= scheduler.Unbounded {
		return 0
	}
	return b
}

// Spent returns what the ended jobs of a tenant have cost, in GB-s.
func (q *Queue) Spent(ctx context.Context, tenant string) (float64, error) {
	h, err := q.History(ctx)
	if err != nil {
		return 0, err
	}
	note, err := h.Note(ctx, history.NotePool, q.Pool)
	if err != nil && disdel.KindOf(err) != disdel.NotFound {
		return 0, err
	}
	s := readState(note)
	return s.Books.Spent[tenant], nil
}

// usedByOthers is the busy memory that exceeds all that the jobs of the queue hold. Others may use more, while
// containers of these jobs are idle; actions then wait in the platform's own queue.
func usedByOthers(busy disdel.Bytes, admission *scheduler.Admission) disdel.Bytes {
	for _, d := range admission.Demands() {
		if d.Held != nil {
			busy -= d.Held.Room.Memory
		}
	}
	return max(0, busy)
}
