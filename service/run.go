package service

import (
	"context"
	"iter"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
)

// Run is a job that is run. It is safe for concurrent use.
type Run struct {
	id       disdel.JobID
	journal  *journal
	cancel   context.CancelCauseFunc
	accepted chan struct{} // closed once its record is durable
	done     chan struct{} // closed once it has ended; rec and err are set before
	rec      *disdel.Record
	err      error
}

// ID is the job's.
func (r *Run) ID() disdel.JobID { return r.id }

// Events is everything that happens to the job, from its first event on, those that came before the call too; it ends
// with the job. An onlooker never holds the job up: who is slow or late reads what was kept for him, which is all but
// pictures of progress that newer ones replaced, and the oldest invocations of a very long job. Each call reads for
// itself.
func (r *Run) Events() iter.Seq[Event] { return r.EventsAfter(context.Background(), 0) }

// EventsAfter is Events from after a number on, until ctx ends.
func (r *Run) EventsAfter(ctx context.Context, number int) iter.Seq[Event] {
	return r.journal.read(ctx, number)
}

// Cancel stops the job: its actions are asked to stop, and its record says canceled, with the cause. The first cause
// counts; a job that has ended stays as it is.
func (r *Run) Cancel(cause error) { r.cancel(cause) }

// Done is closed once the job has ended.
func (r *Run) Done() <-chan struct{} { return r.done }

// Wait returns the job's record once it has ended. That the job failed is no error: its record says so. Errors are
// those of ctx, and of a history that did not take the record where Home could not keep it either; the record is whole
// then too.
func (r *Run) Wait(ctx context.Context) (disdel.Record, error) {
	select {
	case <-r.done:
		return *r.rec, r.err
	case <-ctx.Done():
		return disdel.Record{}, &disdel.Error{
			Kind: disdel.KindOf(ctx.Err()), Op: "wait for job", Job: r.id,
			Err: context.Cause(ctx),
		}
	}
}

// execution is what a controller does with a job: run it, or take it up again.
type execution func(ctx context.Context, c *controller.Controller) (*disdel.Record, error)

// begin runs a job and returns once it is acknowledged. Until then ctx ends it; from then on nothing but Cancel and
// Close do.
func (s *Service) begin(ctx context.Context, p *preparation, own *ownership, execute execution) (*Run, error) {
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	r := &Run{id: p.id, journal: p.journal, cancel: cancel, accepted: make(chan struct{}), done: make(chan struct{})}
	if err := s.enter(r); err != nil {
		own.end(work)
		cancel(nil)
		return nil, err
	}
	go func() {
		defer s.leave(r)
		stop := own.keep(work, cancel)
		r.rec, r.err = execute(work, p.controller(r, own))
		stop()
		if r.err != nil && r.rec != nil {
			r.err = s.keep(r.rec, r.err)
		}
		own.end(work)
		cancel(nil)
		if r.rec != nil {
			r.journal.add(Finished{*r.rec})
		}
		r.journal.close()
		close(r.done)
	}()
	defer context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })()
	select {
	case <-r.accepted:
		return r, nil
	case <-r.done:
		if r.rec == nil {
			return nil, r.err
		}
		return r, nil
	}
}

// enter counts a run among those of the Service.
func (s *Service) enter(r *Run) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return &disdel.Error{Kind: disdel.Canceled, Op: "run job", Job: r.id, Err: errClosed}
	}
	s.runs[r.id] = r
	s.flying.Add(1)
	return nil
}

func (s *Service) leave(r *Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.runs, r.id)
	s.flying.Done()
}

// controller is one job's: it tells the job's journal, saves what it owns, and keeps its model.
func (p *preparation) controller(r *Run, own *ownership) *controller.Controller {
	return controller.New(controller.Config{
		Invoker: p.parts.Executor, Recorder: recorder{own, p.parts.History}, Board: p.parts.Board, Log: p.log,
		Shelf: &shelf{log: p.log, journal: p.journal, store: p.parts.Models, data: p.parts.Data},
		Observe: func(n controller.Notice) {
			if n.Planned != nil {
				r.journal.acknowledged()
				defer close(r.accepted)
			}
			r.journal.add(happeningOf(n))
		},
	})
}
