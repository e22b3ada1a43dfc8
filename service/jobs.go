package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/service/lease"
	"github.com/disdel/disdel/service/tenant"
)

// watchEvery is the time between looks at the record of a job that another process runs.
const watchEvery = time.Second

// Watch returns a Run of a job, whichever process runs it. job is an id, the start of one, a job's name or @last. For a
// job of this Service it is the Run of Submit. For any other job, changes of the record become events, Cancel and Pause
// ask the process that runs it, and the Run ends with ctx. Watch returns NotFound.
func (s *Service) Watch(ctx context.Context, job string) (*Run, error) {
	at, id, err := s.FindJob(ctx, job)
	if err != nil {
		return nil, err
	}
	if at == s {
		if r, ok := s.Run(id); ok {
			return r, nil
		}
		if r, ok := s.endedHere(id); ok {
			return r, nil
		}
	}
	h, err := at.History(ctx)
	if err != nil {
		return nil, err
	}
	rec, size, err := h.GetSized(ctx, id)
	if err != nil {
		return nil, err
	}
	rec = s.shown(rec)
	r := &Run{
		id: id, stored: size, tenant: rec.Tenant, journal: newJournal(id, nil), status: &jobStatus{record: rec},
		done: make(chan struct{}),
	}
	// Every Run of the same state of a job has the same events, so that a reader can continue with another one.
	r.journal.series = fmt.Sprintf("record-%d", rec.Resumes)
	w := watcher{s: s, history: h, run: r, shared: at != s}
	r.ask = func(to disdel.Status, cause error) error { return s.RequestStop(s.ctx, string(id), to, cause.Error()) }
	w.tell(&rec)
	if w.over(&rec) {
		return r, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, &disdel.Error{Kind: disdel.Canceled, Op: "watch job", Job: id, Err: errClosed}
	}
	ctx, stop := context.WithCancel(ctx)
	unlink := context.AfterFunc(s.open, stop)
	s.running.Go(func() {
		defer unlink()
		defer stop()
		w.follow(ctx)
	})
	return r, nil
}

// Look returns the current record of a job, whichever process runs it; job is as for Watch. For a job of this Service
// it is as new as the events, while the record in the history may be some seconds old. Callers must not change it. It
// also finds a job that another tenant shares. Look returns NotFound.
func (s *Service) Look(ctx context.Context, job string) (disdel.Record, error) {
	id := disdel.JobID(job)
	if rec, ok := s.latestRecord(id); ok {
		return rec, nil
	}
	at, id, err := s.FindJob(ctx, job)
	if err != nil {
		return disdel.Record{}, err
	}
	if rec, ok := at.latestRecord(id); ok {
		return s.shown(rec), nil
	}
	rec, err := at.recordOf(ctx, id)
	return s.shown(rec), err
}

// latestRecord returns the newest record of a job that this Service runs, once its controller has begun, and of a job
// whose end the history did not take yet.
func (s *Service) latestRecord(id disdel.JobID) (rec disdel.Record, ok bool) {
	if rec, ok := s.Undelivered(id); ok {
		return rec, true
	}
	r, ok := s.Run(id)
	if !ok {
		return rec, false
	}
	latest := r.latest.Load()
	if latest == nil {
		return rec, false
	}
	return r.status.merge(*latest), true
}

// watcher turns changes of a record into events.
type watcher struct {
	s       *Service
	history *history.Store
	run     *Run
	shared  bool // the job is another tenant's, who may end the sharing
	planned bool
	rounds  int
	stages  int
	adjusts int
	ended   int // activations, those that the record has left out by then among them
}

// follow reads the record until the job or ctx has ended.
func (w *watcher) follow(ctx context.Context) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			w.end(nil, context.Cause(ctx))
			return
		}
		if w.shared && w.unshared(ctx) {
			w.end(nil, w.s.notShared(tenant.ItemJob, w.run.tenant+"/"+string(w.run.id)))
			return
		}
		rec, err := w.history.Get(ctx, w.run.id)
		if disdel.KindOf(err) == disdel.NotFound {
			w.end(nil, err)
			return
		}
		if err != nil {
			continue // it is asked again
		}
		rec = w.s.shown(rec)
		w.tell(&rec)
		if w.over(&rec) {
			return
		}
	}
}

// unshared reports whether the owner of the job does not share it any more.
func (w *watcher) unshared(ctx context.Context) bool {
	share, err := w.s.registry.ShareOf(ctx, tenant.Item{
		Kind: tenant.ItemJob, Owner: cmp.Or(w.run.tenant, tenant.HomeOwner), Name: string(w.run.id),
	})
	return err == nil && !share.Allows(w.s.whose())
}

// tell adds the events for what is new in a record.
func (w *watcher) tell(rec *disdel.Record) {
	j := w.run.journal
	if !w.planned {
		w.planned = true
		j.add(Planned{*rec})
	}
	for ; w.stages < len(rec.Stages); w.stages++ {
		if rec.Stages[w.stages].Decision != nil {
			j.add(StageBegan{rec.Stages[w.stages]})
		}
	}
	for ; w.adjusts < len(rec.Adjustments); w.adjusts++ {
		j.add(Adjusted{rec.Adjustments[w.adjusts]})
	}
	ended := endedAfter(rec, w.ended)
	w.ended = allEnded(rec)
	for ; w.rounds < len(rec.Rounds); w.rounds++ {
		for len(ended) > 0 && ended[0].Round <= rec.Rounds[w.rounds].Round {
			j.add(Ended{ended[0]})
			ended = ended[1:]
		}
		j.add(RoundEnded{rec.Rounds[w.rounds]})
	}
	w.rounds = len(rec.Rounds) // of a job that went back
	for i := range ended {
		j.add(Ended{ended[i]})
	}
}

// allEnded is the number of ended activations of a job, with those that its record has left out.
func allEnded(rec *disdel.Record) int { return len(rec.Activations) + rec.Omitted }

// endedAfter returns the ended activations after the first so many, as far as the record has them.
func endedAfter(rec *disdel.Record, first int) []disdel.Activation {
	fresh := min(len(rec.Activations), max(0, allEnded(rec)-first))
	return rec.Activations[len(rec.Activations)-fresh:]
}

// over ends the Run if no process will continue the job.
func (w *watcher) over(rec *disdel.Record) bool {
	if rec.Status.Unfinished() {
		return false
	}
	w.run.journal.add(Finished{*rec})
	w.end(rec, nil)
	return true
}

func (w *watcher) end(rec *disdel.Record, err error) {
	if rec == nil {
		head := w.run.status.submitted()
		rec = &head
	}
	w.run.rec, w.run.err = rec, err
	w.run.journal.close()
	close(w.run.done)
}

// RequestStop asks for a job to become paused or canceled, whichever process runs it. A job of this Service stops at
// once, one of another process within seconds. If no process runs the job, its record changes now. RequestStop returns
// NotFound, and Conflict for a job that has ended.
func (s *Service) RequestStop(ctx context.Context, job string, to disdel.Status, cause string) error {
	h, err := s.History(ctx)
	if err != nil {
		return err
	}
	id, err := s.ResolveOwn(ctx, job)
	if err != nil {
		return err
	}
	if r, ok := s.Run(id); ok {
		if !r.ending() {
			r.end(to, errors.New(cause))
			return nil
		}
		select { // whether the job can still change its status is known once its last record is saved
		case <-r.done:
		case <-ctx.Done():
			return &disdel.Error{Kind: disdel.KindOf(ctx.Err()), Op: "stop job", Job: id, Err: context.Cause(ctx)}
		}
	}
	if err := s.deliverOne(ctx, h, s.unsavedFile(id)); err != nil { // the job may have ended
		return err
	}
	for range mostWrites {
		err = s.requestStopOnce(ctx, h, id, history.StopRequest{To: to, Cause: cause})
		if disdel.KindOf(err) != disdel.Conflict || errors.Is(err, errEnded) {
			return err
		}
	}
	return err
}

// mostWrites is how often a request to stop is tried again because another process was faster.
const mostWrites = 50

var errEnded = errors.New("the job has ended")

// requestStopOnce tries once. It returns Conflict if another process wrote at the same time.
func (s *Service) requestStopOnce(ctx context.Context, h *history.Store, id disdel.JobID, w history.StopRequest) error {
	rec, err := h.Get(ctx, id)
	if err != nil {
		return err
	}
	if !rec.Status.CanTransitionTo(w.To) {
		return &disdel.Error{
			Kind: disdel.Conflict, Op: "stop job", Job: id, Err: errEnded,
			Msg:  fmt.Sprintf("the job is %s already, and nothing was changed", rec.Status),
			Hint: "disdel jobs show " + string(id),
		}
	}
	l, err := h.Lease(ctx, id)
	lives := false
	if err == nil {
		lives, err = lease.Alive(ctx, h, l)
	} else if disdel.KindOf(err) == disdel.NotFound {
		err = nil
	}
	if err != nil {
		return err
	}
	if lives {
		l.StopRequest = &w
		_, err = h.Take(ctx, l)
		return err
	}
	own, err := s.own(ctx, id, rec.Data.Name)
	if err != nil {
		return err
	}
	defer own.End(ctx)
	status := &jobStatus{record: rec}
	status.set(w.To, w.Cause)
	rec.Status = w.To
	if w.To == disdel.StatusCanceled {
		rec.Ended, rec.Failure = time.Now(), &disdel.Error{Kind: disdel.Canceled, Op: "run job", Msg: w.Cause, Job: id}
	}
	return recorder{own: own, to: h, status: status}.Save(ctx, &rec)
}

// Runner says which process runs a job.
type Runner struct {
	PID   int    // 0: unknown, or of another machine
	Text  string // for a person, as "process 12" or "another process"
	Known bool   // it is known from the job's lease
}

// Runner reports whether a job is run, and by which process.
func (s *Service) Runner(ctx context.Context, id disdel.JobID) (who Runner, runs bool, err error) {
	if pid, runs := lease.Marked(s.cfg.Home, id); runs {
		return Runner{PID: pid, Text: lease.ProcessText(pid)}, true, nil
	}
	h, err := s.History(ctx)
	if err != nil {
		return who, false, err
	}
	l, err := h.Lease(ctx, id)
	if err != nil {
		if disdel.KindOf(err) == disdel.NotFound {
			err = nil
		}
		return who, false, err
	}
	who = Runner{Text: lease.OwnerText(l.Owner), Known: true}
	if lease.Here(l.Owner) {
		who.PID = l.Owner.PID
	}
	lives, err := lease.Alive(ctx, h, l)
	return who, lives, err
}

// Forget deletes the record of an ended job, the remarks about it and its checkpoints. Its model stays. Forget also
// deletes a damaged record, unless a process runs its job; it keeps the record of another version of disdel. It returns
// NotFound, and Conflict for a job that can be resumed.
func (s *Service) Forget(ctx context.Context, job string) (disdel.JobID, error) {
	return s.forget(ctx, job, &modelList{})
}

func (s *Service) forget(ctx context.Context, job string, known *modelList) (disdel.JobID, error) {
	h, err := s.History(ctx)
	if err != nil {
		return "", err
	}
	id, err := s.ResolveOwn(ctx, job)
	if err != nil {
		return "", err
	}
	rec, err := h.Get(ctx, id)
	if damaged(err) {
		return id, s.forgetUnread(ctx, h, id)
	}
	if err != nil {
		return id, err
	}
	if rec.Status < disdel.StatusSucceeded {
		return id, &disdel.Error{
			Kind: disdel.Conflict, Op: "delete record", Job: id, Msg: fmt.Sprintf("%s is %s", id, rec.Status),
			Hint: "disdel jobs cancel " + string(id),
		}
	}
	if err := s.deleteRecord(ctx, h, id); err != nil {
		return id, err
	}
	models, err := s.Models(ctx)
	if err == nil {
		err = discardCheckpoints(ctx, models, &rec, known)
	}
	if err != nil {
		s.log.WithError(err).WithField("job", id).Warn("checkpoints of a deleted job stay: disdel prune checkpoints")
	}
	return id, nil
}

// deleteRecord ends the sharing of a job, and deletes its record.
func (s *Service) deleteRecord(ctx context.Context, h *history.Store, id disdel.JobID) error {
	if err := s.Forsake(ctx, tenant.ItemJob, string(id)); err != nil {
		return err
	}
	return h.Delete(ctx, id)
}

// damaged reports whether no version of disdel can read a record. The record of a newer version may be of a running
// job.
func damaged(err error) bool {
	if err == nil {
		return false
	}
	e := disdel.AsError(err)
	return e.Code == disdel.CodeUnreadable && e.Kind == disdel.Corrupt
}

// forgetUnread deletes a record that cannot be read. Only a lease shows that its job still runs.
func (s *Service) forgetUnread(ctx context.Context, h *history.Store, id disdel.JobID) error {
	who, runs, err := s.Runner(ctx, id)
	switch {
	case err != nil:
		return err
	case runs:
		return &disdel.Error{
			Kind: disdel.Conflict, Op: "delete record", Job: id, Msg: fmt.Sprintf("%s still runs in %s", id, who.Text),
			Hint: "wait until it has ended",
		}
	}
	return s.deleteRecord(ctx, h, id)
}
