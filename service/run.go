package service

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/service/lease"
	"github.com/disdel/disdel/service/queue"
)

// Run is a queued or running job. It is safe for concurrent use.
type Run struct {
	id      disdel.JobID
	tenant  string
	journal *journal
	status  *jobStatus
	own     *lease.Held                               // nil: another process has the job
	ask     func(to disdel.Status, cause error) error // asks the process that has the job; nil: this one
	cancel  context.CancelCauseFunc
	latest  atomic.Pointer[disdel.Record] // newest record of its controller; nil: it does not run here
	done    chan struct{}                 // closed at its end; rec and err are set before
	rec     *disdel.Record
	err     error
	adopted bool         // another process acknowledged it, and is gone
	stored  disdel.Bytes // see Stored
	release func()       // releases its claims on the tenant's quotas; nil: there are none
}

// ID is the job's.
func (r *Run) ID() disdel.JobID { return r.id }

// Stored is the size, in bytes, of the record in the history that this Run was read from. Each such Run has its own
// copy. It is 0 for a job of this Service, whose readers share one record.
func (r *Run) Stored() disdel.Bytes { return r.stored }

// Submitted returns the job's record as it was acknowledged or found, with its status changes since.
func (r *Run) Submitted() disdel.Record { return r.status.submitted() }

// Events yields all events of the job, from the first one on, and ends with the job. A reader never delays the job: it
// reads what was kept, which is all but older Progress events and the oldest invocations of a very long job. Each call
// reads independently.
func (r *Run) Events() iter.Seq[Event] { return r.EventsAfter(context.Background(), 0) }

// EventsAfter yields the events after a number, until ctx ends.
func (r *Run) EventsAfter(ctx context.Context, number int) iter.Seq[Event] {
	return r.journal.read(ctx, number)
}

// Series identifies the numbering of this Run's events. Numbers begin anew after a resume and in another process.
func (r *Run) Series() string { return r.journal.series }

// Cancel stops the job: its actions are asked to stop, and its record says canceled, with the cause. The first request
// to stop counts. It changes nothing after the job's end.
func (r *Run) Cancel(cause error) { r.end(disdel.StatusCanceled, cause) }

// Pause stops the job so that Resume continues it at its newest checkpoint.
func (r *Run) Pause(cause error) { r.end(disdel.StatusPaused, cause) }

// end stops the job, so that it gets the given status.
func (r *Run) end(to disdel.Status, cause error) {
	if r.ask != nil {
		r.ask(to, cause) //nolint:errcheck // the job continues, and its events show that
		return
	}
	r.status.requestStop(stopRequest{to, cause})
	r.cancel(cause)
}

// ending tells whether the job has ended or is paused, although its last record may not be saved yet.
func (r *Run) ending() bool { return !r.status.submitted().Status.Unfinished() }

// follow carries out the request of another process.
func (r *Run) follow(w *history.StopRequest) {
	if w != nil {
		r.end(w.To, errors.New(w.Cause))
	}
}

// Done is closed once the job has ended.
func (r *Run) Done() <-chan struct{} { return r.done }

// Wait returns the job's record once it has ended or is paused. A failure of the job is no error: its record says so.
// Wait returns the error of ctx, and of a history that did not take the record if Home could not keep it either; the
// record is complete then too.
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

// readyJob is a job that is ready to run: its plan, and what its controller has to do.
type readyJob struct {
	plan    disdel.Plan
	execute func(ctx context.Context, c *controller.Controller) (*disdel.Record, error)
}

// begin acknowledges a job: it saves the record as queued, with the cause of that. Then the job runs once it is ready
// and has room. ctx ends the job before it is acknowledged; later only Cancel, Pause and Close do.
func (s *Service) begin(ctx context.Context, p *planner, own *lease.Held, rec disdel.Record, because string,
	ready func(ctx context.Context) (readyJob, error),
) (*Run, error) {
	rec.Failure, rec.Ended = nil, time.Time{} // of a run before this one
	switch {
	case rec.Tenant != "":
	case s.cfg.Place != nil:
		rec.Place = s.cfg.Place
	case rec.Place != nil: // its flags may name another place than this one
		rec.Place = s.addresses()
	}
	life, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	r := &Run{
		id: p.id, tenant: rec.Tenant, journal: p.journal, status: &jobStatus{record: rec}, own: own, cancel: cancel,
		done: make(chan struct{}), release: p.release, adopted: p.adopted,
	}
	if err := s.enter(r); err != nil {
		if r.release != nil {
			r.release()
		}
		if p.adopted { // another process finds the job by its lease
			own.HandOver(life)
		} else {
			own.End(life)
		}
		cancel(nil)
		return nil, err
	}
	r.status.set(disdel.StatusQueued, because)
	queued := r.status.submitted()
	if err := saveQueued(ctx, p.parts.History, queued); err != nil {
		own.End(life)
		s.leave(r)
		cancel(nil)
		return nil, err
	}
	r.journal.acknowledged(func(e Event) { s.counters.take(rec.Tenant, e) })
	r.journal.add(Planned{queued})
	go func() {
		defer s.leave(r)
		defer cancel(nil)
		p.live(life, r, ready)
	}()
	return r, nil
}

// saveQueued saves the record of a job that begins. The history may have saved it although its answer was lost: nobody
// would run that job, and its next submit by the same key would wait for it for ever. So the record is read again.
func saveQueued(ctx context.Context, h *history.Store, queued disdel.Record) error {
	err := h.Save(ctx, &queued)
	if err == nil {
		return nil
	}
	stored, unread := h.Get(ctx, queued.ID)
	if n := len(queued.Transitions); unread != nil || len(stored.Transitions) != n ||
		!stored.Transitions[n-1].At.Equal(queued.Transitions[n-1].At) {
		return err
	}
	return nil
}

// live runs a job from its acknowledgement to its end.
func (p *planner) live(ctx context.Context, r *Run, ready func(ctx context.Context) (readyJob, error)) {
	w, err := ready(ctx)
	r.release = p.release // a job that is taken over claims its room once it is planned
	var d scheduler.Demand
	if err == nil {
		d, _ = p.demand(ctx, r.status.submitted(), w.plan)
		err = p.queue.Enter(ctx, d, r.waiter())
	}
	if err == nil {
		was := r.status.submitted()
		gang := p.queue.Gang(ctx, r.id, d.Keep, p.parts.Executor,
			func(ctx context.Context, o controller.GrantOrder) scheduler.Demand { return p.stage(ctx, was, o) })
		began := time.Now()
		r.rec, r.err = w.execute(ctx, p.controller(r, gang))
		p.queue.Leave(r.id, spent(r.rec)-was.MeteredCost())
		if r.rec != nil {
			p.contradict(runEvidence{r.id, began, endedAfter(r.rec, allEnded(&was))}, p.parts.Executor.QuotasRefused)
		}
	}
	p.end(ctx, r, err)
}

// waiter tells the job's journal how it gets on in the queue.
func (r *Run) waiter() queue.Waiter {
	return queue.Waiter{
		Queued: func(ahead int, why string) { r.journal.add(Queued{Ahead: ahead, Why: why}) },
		Admitted: func(cause string, capacity scheduler.Capacity, waited time.Duration) {
			r.status.set(disdel.StatusAdmitted, cause)
			r.journal.add(Admitted{Room: capacity, Waited: waited})
		},
	}
}

// spent is the metered cost of a job, in GB-s; 0 for a job that could not begin.
func spent(rec *disdel.Record) float64 {
	if rec == nil {
		return 0
	}
	return rec.MeteredCost()
}

// end publishes the end of a job and gives its lease back. never is why the job did not run; its record is written
// here.
func (p *planner) end(ctx context.Context, r *Run, never error) {
	if r.rec == nil {
		rec := r.status.submitted()
		r.rec = &rec
		if never == nil { // the controller could not begin: nothing of the job is on the platform
			never = r.err
		}
		p.neverRan(ctx, r, never)
	} else {
		merged := r.status.merge(*r.rec)
		r.rec = &merged
		if r.err != nil && r.own.Lost() == nil {
			r.err = p.keep(r.rec, r.err)
		}
	}
	if r.rec.Status == disdel.StatusQueued {
		r.own.HandOver(ctx)
	} else {
		r.own.End(ctx)
	}
	r.latest.Store(nil) // readers of the end read what was saved
	r.journal.add(Finished{*r.rec})
	r.journal.close()
	close(r.done)
}

// releaseWithin bounds work for which nobody should wait long, such as the writes at a job's end.
const releaseWithin = 5 * time.Second

// neverRan writes the record of a job that ended before it ran.
func (p *planner) neverRan(ctx context.Context, r *Run, why error) {
	rec := *r.rec
	rec.Status, rec.Failure, rec.Ended = disdel.StatusFailed, disdel.AsError(why), time.Now().UTC()
	if ctx.Err() != nil {
		rec.Status = disdel.StatusCanceled
		rec.Failure = &disdel.Error{
			Kind: disdel.Canceled, Op: "run job", Msg: "the job was stopped before it ran", Err: context.Cause(ctx),
		}
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), releaseWithin)
	defer stop()
	rec = r.status.merge(rec)
	r.err = (recorder{own: r.own, to: p.parts.History, status: r.status}).Save(ctx, &rec)
	if r.err != nil && r.own.Lost() == nil {
		r.err = p.keep(&rec, r.err)
	}
	r.rec = &rec
}

// enter adds a run to those of the Service.
func (s *core) enter(r *Run) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return &disdel.Error{Kind: disdel.Canceled, Op: "run job", Job: r.id, Err: errClosed}
	}
	if !r.adopted {
		if err := s.mayRun(r.tenant); err != nil {
			return err
		}
	}
	s.runs[r.id] = r
	s.unfinished[r.tenant]++
	s.running.Add(1)
	return nil
}

func (s *core) leave(r *Run) {
	if r.release != nil {
		r.release()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.runs, r.id)
	if s.unfinished[r.tenant]--; s.unfinished[r.tenant] == 0 {
		delete(s.unfinished, r.tenant)
	}
	s.running.Done()
}

// controller returns the controller of a job.
func (p *planner) controller(r *Run, gang *queue.GangInvoker) *controller.Controller {
	queued := &atomic.Bool{}
	queued.Store(true)
	return controller.New(controller.Config{
		Invoker: gang, Grant: gang.Grant, Store: p.parts.Board, Log: p.log,
		Keeps:    len(p.cfg.Redis) > 0 || p.cfg.TakeOver, // else the store ends with this process
		Recorder: recorder{own: r.own, to: p.parts.History, status: r.status, queued: queued},
		Models:   &modelSink{log: p.log, journal: p.journal, store: p.parts.Models, find: p.FindDataset},
		Show:     func(rec disdel.Record) { r.latest.Store(&rec) },
		Observe: func(n controller.Notice) {
			if n.Planned == nil { // begin has added it
				r.journal.add(eventOf(n))
			}
		},
	})
}
