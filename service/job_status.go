package service

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/service/lease"
)

// jobStatus tracks the status of one job: its owner and all its status changes. The controller's records know only the
// running job; jobStatus adds the rest before a record is saved or shown.
type jobStatus struct {
	mu      sync.Mutex
	record  disdel.Record // guarded by mu: as it was queued; Transitions grows with each change
	request *stopRequest  // guarded by mu: the first request to pause or cancel the job; nil: there is none
}

// stopRequest is a request to pause or cancel a job.
type stopRequest struct {
	to    disdel.Status
	cause error
}

// set records a status change that happens now.
func (s *jobStatus) set(to disdel.Status, cause string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(to, cause)
}

// add records a status change; the caller holds the lock.
func (s *jobStatus) add(next disdel.Status, cause string) {
	s.record.Transitions = append(slices.Clip(s.record.Transitions),
		disdel.Transition{To: next, At: time.Now().UTC().Round(time.Millisecond), Cause: cause})
	s.record.Status = next
}

// requestStop keeps the first request to stop the job; later requests are ignored.
func (s *jobStatus) requestStop(w stopRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.request == nil {
		s.request = &w
	}
}

// merge returns a copy of the controller's record with the owner and the status changes of the job. The controller
// reports every stopped job as canceled; merge replaces that by the requested status.
func (s *jobStatus) merge(rec disdel.Record) disdel.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.request; w != nil && rec.Status == disdel.StatusCanceled && w.to != disdel.StatusCanceled {
		rec.Status, rec.Failure, rec.Ended = w.to, nil, time.Time{}
	}
	if rec.Status != s.record.Status && s.record.Status.CanTransitionTo(rec.Status) {
		s.add(rec.Status, s.why(&rec))
	}
	rec.Created, rec.Transitions = s.record.Created, s.record.Transitions
	rec.Tenant, rec.Priority, rec.Key, rec.Planning = s.record.Tenant, s.record.Priority, s.record.Key, s.record.Planning
	rec.Place = s.record.Place
	return rec
}

// submitted returns the record as it was queued, with the status changes so far.
func (s *jobStatus) submitted() disdel.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.record
}

// why says in a few words why the status changed; the caller holds the lock.
func (s *jobStatus) why(rec *disdel.Record) string {
	switch {
	case s.request != nil && s.request.cause != nil && rec.Status == s.request.to:
		return s.request.cause.Error()
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

// recorder saves the records of a job while this Service holds its lease: another owner has newer records.
type recorder struct {
	own    *lease.Held
	to     *history.Store
	status *jobStatus

	// queued is true until the first save of a job whose record is durable already, as queued. That save may fail: a job
	// begins although the history is away. nil: every save has to succeed.
	queued *atomic.Bool
}

// Save writes a record with the status changes of the job.
func (r recorder) Save(ctx context.Context, rec *disdel.Record) error {
	if err := r.own.Lost(); err != nil {
		return err
	}
	merged := r.status.merge(*rec)
	err := r.to.Save(ctx, &merged)
	if first := r.queued != nil && r.queued.Swap(false); first && disdel.KindOf(err) == disdel.Unavailable {
		return nil
	}
	return err
}
