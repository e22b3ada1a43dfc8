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
)

// Run is a job that is queued or run. It is safe for concurrent use.
type Run struct {
	id      disdel.JobID
	tenant  string
	journal *journal
	story   *story
	own     *ownership                                // nil: another process has the job, and this is a look at it
	ask     func(to disdel.Status, cause error) error // of a job that another process has
	cancel  context.CancelCauseFunc
	latest  atomic.Pointer[disdel.Record] // as its controller shows it; nil: it does not run, or elsewhere
	done    chan struct{}                 // closed once it has ended; rec and err are set before
	rec     *disdel.Record
	err     error
	adopted bool         // it was acknowledged before, by a process that is no more
	stored  disdel.Bytes // see Stored
	release func()       // gives back what the run claims of its tenant's disk quota; nil: nothing
}

// ID is the job's.
func (r *Run) ID() disdel.JobID { return r.id }

// Stored is the size in the history, in bytes, of the record that this Run was read from. Every reader of such a job
// holds its own copy. It is 0 for a job of this Service: its readers share one record.
func (r *Run) Stored() disdel.Bytes { return r.stored }

// Submitted is the job's record as it was acknowledged, or found, with what has become of the job since.
func (r *Run) Submitted() disdel.Record { return r.story.queued() }

// Events is everything that happens to the job, from its first event on, those that came before the call too; it ends
// with the job. An onlooker never holds the job up: who is slow or late reads what was kept for him, which is all but
// pictures of progress that newer ones replaced, and the oldest invocations of a very long job. Each call reads for
// itself.
func (r *Run) Events() iter.Seq[Event] { return r.EventsAfter(context.Background(), 0) }

// EventsAfter is Events from after a number on, until ctx ends.
func (r *Run) EventsAfter(ctx context.Context, number int) iter.Seq[Event] {
	return r.journal.read(ctx, number)
}

// Series tells this Run's numbers of events from those of another Run of the same job: after a resume, or in another
// process, they begin anew.
func (r *Run) Series() string { return r.journal.series }

// Cancel stops the job: its actions are asked to stop, and its record says canceled, with the cause. The first cause
// counts; a job that has ended stays as it is.
func (r *Run) Cancel(cause error) { r.end(disdel.StatusCanceled, cause) }

// Pause stops the job for a while: it goes on where its newest checkpoint is once it is resumed.
func (r *Run) Pause(cause error) { r.end(disdel.StatusPaused, cause) }

// end has the job become what somebody wants.
func (r *Run) end(to disdel.Status, cause error) {
	if r.ask != nil {
		r.ask(to, cause) //nolint:errcheck // the job goes on, as its events tell
		return
	}
	r.story.want(wish{to, cause})
	r.cancel(cause)
}

// obey does what another process asks.
func (r *Run) obey(w *history.Wish) {
	if w != nil {
		r.end(w.To, errors.New(w.Cause))
	}
}

// Done is closed once the job has ended.
func (r *Run) Done() <-chan struct{} { return r.done }

// Wait returns the job's record once it has ended, or is paused. That the job failed is no error: its record says so.
// Errors are those of ctx, and of a history that did not take the record where Home could not keep it either; the
// record is whole then too.
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

// work is a job that is ready to run: its plan, and what a controller does with it.
type work struct {
	plan    disdel.Plan
	execute func(ctx context.Context, c *controller.Controller) (*disdel.Record, error)
}

// begin acknowledges a job, whose record is saved as queued with the cause of that, and has it run once it is ready and
// has its turn. Until it is acknowledged ctx ends it; from then on nothing but Cancel, Pause and Close do.
func (s *Service) begin(ctx context.Context, p *preparation, own *ownership, rec disdel.Record, because string,
	ready func(ctx context.Context) (work, error),
) (*Run, error) {
	rec.Failure, rec.Ended = nil, time.Time{} // of a run before this one
	switch {
	case rec.Tenant != "":
	case s.cfg.Place != nil:
		rec.Place = s.cfg.Place
	case rec.Place != nil: // the flags are not known, and those of the job may lead to where it was
		rec.Place = s.addresses()
	}
	life, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	r := &Run{
		id: p.id, tenant: rec.Tenant, journal: p.journal, story: &story{head: rec}, own: own, cancel: cancel,
		done: make(chan struct{}), release: p.release, adopted: p.adopted,
	}
	if err := s.enter(r); err != nil {
		if r.release != nil {
			r.release()
		}
		own.end(life)
		cancel(nil)
		return nil, err
	}
	r.story.become(disdel.StatusQueued, because)
	queued := r.story.queued()
	if err := p.parts.History.Save(ctx, &queued); err != nil {
		own.end(life)
		s.leave(r)
		cancel(nil)
		return nil, err
	}
	r.journal.acknowledged(func(e Event) { s.tally.take(rec.Tenant, e) })
	r.journal.add(Planned{queued})
	go func() {
		defer s.leave(r)
		defer cancel(nil)
		p.live(life, r, ready)
	}()
	return r, nil
}

// live is a job from its acknowledgement to its end.
func (p *preparation) live(ctx context.Context, r *Run, ready func(ctx context.Context) (work, error)) {
	w, err := ready(ctx)
	r.release = p.release // a job that is taken over claims its disk once it is planned
	var d scheduler.Demand
	if err == nil {
		d, _ = p.demand(ctx, r.story.queued(), w.plan)
		err = p.queue.enter(ctx, r, d)
	}
	if err == nil {
		was := r.story.queued()
		holds := &gangKeeper{
			Invoker: p.parts.Executor, queue: p.queue, job: r.id, life: ctx, keep: d.Keep,
			stage: func(ctx context.Context, o controller.GrantOrder) scheduler.Demand { return p.stage(ctx, was, o) },
		}
		began := time.Now()
		r.rec, r.err = w.execute(ctx, p.controller(r, holds))
		p.queue.leave(r.id, spent(r.rec)-was.ByUse())
		if r.rec != nil {
			p.contradict(runEvidence{r.id, began, endedAfter(r.rec, allEnded(&was))}, p.parts.Executor.Refused)
		}
	}
	p.end(ctx, r, err)
}

// spent is what a job has cost by use, in GB-s; 0 for one that could not begin.
func spent(rec *disdel.Record) float64 {
	if rec == nil {
		return 0
	}
	return rec.ByUse()
}

// end tells what became of a job, and gives it back. Of one that never ran the service writes the record itself.
func (p *preparation) end(ctx context.Context, r *Run, never error) {
	if r.rec == nil {
		rec := r.story.queued()
		r.rec = &rec
		if never == nil { // the controller could not begin: nothing of the job is on the platform
			never = r.err
		}
		p.neverRan(ctx, r, never)
	} else {
		told := r.story.of(*r.rec)
		r.rec = &told
		if r.err != nil && r.own.held() == nil {
			r.err = p.keep(r.rec, r.err)
		}
	}
	if r.rec.Status == disdel.StatusQueued {
		r.own.handOver(ctx)
	} else {
		r.own.end(ctx)
	}
	r.latest.Store(nil) // who hears of the end reads what was saved of it
	r.journal.add(Finished{*r.rec})
	r.journal.close()
	close(r.done)
}

// neverRan writes the record of a job that ended before it ran.
func (p *preparation) neverRan(ctx context.Context, r *Run, why error) {
	rec := *r.rec
	rec.Status, rec.Failure, rec.Ended = disdel.StatusFailed, disdel.AsError(why), time.Now()
	if ctx.Err() != nil {
		rec.Status = disdel.StatusCanceled
		rec.Failure = &disdel.Error{
			Kind: disdel.Canceled, Op: "run job", Msg: "the job was stopped before it ran", Err: context.Cause(ctx),
		}
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), releaseWithin)
	defer stop()
	rec = r.story.of(rec)
	r.err = (recorder{own: r.own, to: p.parts.History, story: r.story}).Save(ctx, &rec)
	if r.err != nil && r.own.held() == nil {
		r.err = p.keep(&rec, r.err)
	}
	r.rec = &rec
}

// enter counts a run among those of the Service.
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
	s.flying.Add(1)
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
	s.flying.Done()
}

// controller is one job's: it tells the job's journal, saves what it owns, and keeps its model.
func (p *preparation) controller(r *Run, holds *gangKeeper) *controller.Controller {
	queued := &atomic.Bool{}
	queued.Store(true)
	return controller.New(controller.Config{
		Invoker: holds, Grant: holds.grant, Store: p.parts.Board, Log: p.log,
		Keeps:    len(p.cfg.Redis) > 0 || p.cfg.TakeOver, // else the store ends with this process
		Recorder: recorder{own: r.own, to: p.parts.History, story: r.story, queued: queued},
		Models:   &shelf{log: p.log, journal: p.journal, store: p.parts.Models, data: p.parts.Data},
		Show:     func(rec disdel.Record) { r.latest.Store(&rec) },
		Observe: func(n controller.Notice) {
			if n.Planned == nil { // that was told when the job was acknowledged
				r.journal.add(happeningOf(n))
			}
		},
	})
}
