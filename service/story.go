package service

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/disdel/disdel"
)

// story is what the service knows of a job beside what its controller writes into the record: whose it is, and what it
// has been, when and why. Every record of the job that is saved or shown has it.
type story struct {
	mu     sync.Mutex
	head   disdel.Record // guarded by mu: the record as it was queued; its transitions grow
	wanted *wish         // guarded by mu: what the job is to become instead of what it was about; nil: nobody asked
}

// wish is what somebody wants a job to become.
type wish struct {
	to    disdel.Status
	cause error
}

// become tells the story on, from now.
func (s *story) become(to disdel.Status, cause string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.to(to, cause)
}

// to adds a transition; the caller holds the lock.
func (s *story) to(next disdel.Status, cause string) {
	s.head.Transitions = append(slices.Clip(s.head.Transitions),
		disdel.Transition{To: next, At: time.Now().UTC().Round(time.Millisecond), Cause: cause})
	s.head.Status = next
}

// want keeps the first wish alone.
func (s *story) want(w wish) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wanted == nil {
		s.wanted = &w
	}
}

// of is a record that the controller wrote, with the story so far. What the controller calls canceled is what was asked
// for.
func (s *story) of(rec disdel.Record) disdel.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.wanted; w != nil && rec.Status == disdel.StatusCanceled && w.to != disdel.StatusCanceled {
		rec.Status, rec.Failure, rec.Ended = w.to, nil, time.Time{}
	}
	if rec.Status != s.head.Status && s.head.Status.MayBecome(rec.Status) {
		s.to(rec.Status, s.why(&rec))
	}
	rec.Created, rec.Transitions = s.head.Created, s.head.Transitions
	rec.Tenant, rec.Priority, rec.Key, rec.Planning = s.head.Tenant, s.head.Priority, s.head.Key, s.head.Planning
	rec.Place = s.head.Place
	return rec
}

// queued is the record of a job that has not begun.
func (s *story) queued() disdel.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.head
}

// why says in a few words why a job became what it is; the caller holds the lock.
func (s *story) why(rec *disdel.Record) string {
	switch {
	case s.wanted != nil && s.wanted.cause != nil && rec.Status == s.wanted.to:
		return s.wanted.cause.Error()
	case rec.Failure != nil:
		return rec.Failure.Error()
	case rec.Status == disdel.StatusRunning:
		return "its controller has begun"
	case rec.Status == disdel.StatusSucceeded:
		return cmp.Or(rec.Stopped, "all of it is trained")
	default:
		return "it was stopped"
	}
}
