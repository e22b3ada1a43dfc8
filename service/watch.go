package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
)

// watchEvery is how often the record of a job that another process has is looked at.
const watchEvery = time.Second

// Watch looks at a job, whoever runs it: JOB is an id, the start of one, a job's name or @last. A job of this Service
// is its Run; of one that another process has, or that has ended, what its record tells becomes events, and Cancel and
// Pause ask whoever runs it. It ends with ctx where it is only looked at. It returns NotFound.
func (s *Service) Watch(ctx context.Context, job string) (*Run, error) {
	h, err := s.History(ctx)
	if err != nil {
		return nil, err
	}
	id, err := h.Resolve(ctx, job)
	if err != nil {
		return nil, err
	}
	if r, ok := s.Run(id); ok {
		return r, nil
	}
	if r, ok := s.endedHere(id); ok {
		return r, nil
	}
	rec, size, err := h.GetSized(ctx, id)
	if err != nil {
		return nil, err
	}
	r := &Run{
		id: id, stored: size, tenant: rec.Tenant, journal: newJournal(id, nil), story: &story{head: rec},
		done: make(chan struct{}),
	}
	// Of the same state of a job every look tells the same, so that who has seen some of it may go on.
	r.journal.series = fmt.Sprintf("record-%d", rec.Resumes)
	w := watcher{s: s, history: h, run: r}
	r.ask = func(to disdel.Status, cause error) error { return s.Ask(s.ctx, string(id), to, cause.Error()) }
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
	s.flying.Go(func() {
		defer unlink()
		defer stop()
		w.follow(ctx)
	})
	return r, nil
}

// Look is the record of a job as it is at this moment, whoever runs it: JOB is as for Watch. Of a job of this Service
// it is no older than the job's events, where the history has what was saved of it seconds ago. Nobody may change it.
// It returns NotFound.
func (s *Service) Look(ctx context.Context, job string) (disdel.Record, error) {
	id := disdel.JobID(job)
	if rec, ok := s.flies(id); ok {
		return rec, nil
	}
	h, err := s.History(ctx)
	if err != nil {
		return disdel.Record{}, err
	}
	if id, err = h.Resolve(ctx, job); err != nil {
		return disdel.Record{}, err
	}
	if rec, ok := s.flies(id); ok {
		return rec, nil
	}
	return h.Get(ctx, id)
}

// flies returns the record of a job that this Service runs, once its controller has begun. It also returns the record
// of a job whose end the history did not take yet.
func (s *Service) flies(id disdel.JobID) (rec disdel.Record, ok bool) {
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
	return r.story.of(*latest), true
}

// watcher makes events of what changes in a record.
type watcher struct {
	s       *Service
	history *history.Store
	run     *Run
	planned bool
	rounds  int
	stages  int
	adjusts int
	ended   int // activations, those that the record has left out by then among them
}

// follow looks until the job has ended or ctx has.
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
		rec, err := w.history.Get(ctx, w.run.id)
		if disdel.KindOf(err) == disdel.NotFound {
			w.end(nil, err)
			return
		}
		if err != nil {
			continue // it is asked again
		}
		w.tell(&rec)
		if w.over(&rec) {
			return
		}
	}
}

// tell adds what is new in a record.
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

// allEnded is how many activations of a job have ended, those that its record has left out among them.
func allEnded(rec *disdel.Record) int { return len(rec.Activations) + rec.Omitted }

// endedAfter is the activations that ended after the first so many of a job, as far as its record has them.
func endedAfter(rec *disdel.Record, first int) []disdel.Activation {
	fresh := min(len(rec.Activations), max(0, allEnded(rec)-first))
	return rec.Activations[len(rec.Activations)-fresh:]
}

// over ends the look at a job that nobody is to continue with.
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
		head := w.run.story.queued()
		rec = &head
	}
	w.run.rec, w.run.err = rec, err
	w.run.journal.close()
	close(w.run.done)
}

// Ask has a job become paused or canceled, whoever runs it: a job of this Service is told at once, one of another
// process within seconds, and one that nobody runs becomes it here and now. It returns NotFound, and Conflict for a job
// that has ended.
func (s *Service) Ask(ctx context.Context, job string, to disdel.Status, cause string) error {
	h, err := s.History(ctx)
	if err != nil {
		return err
	}
	id, err := h.Resolve(ctx, job)
	if err != nil {
		return err
	}
	if r, ok := s.Run(id); ok {
		r.end(to, errors.New(cause))
		return nil
	}
	if err := s.deliverOne(ctx, h, s.unsavedFile(id)); err != nil { // the job may have ended
		return err
	}
	for range mostWrites {
		if err = s.askOnce(ctx, h, id, history.StopRequest{To: to, Cause: cause}); disdel.KindOf(err) != disdel.Conflict ||
			errors.Is(err, errEnded) {
			return err
		}
	}
	return err
}

var errEnded = errors.New("the job has ended")

// askOnce is one try, Conflict where somebody else wrote meanwhile.
func (s *Service) askOnce(ctx context.Context, h *history.Store, id disdel.JobID, w history.StopRequest) error {
	rec, err := h.Get(ctx, id)
	if err != nil {
		return err
	}
	if !rec.Status.MayBecome(w.To) {
		return &disdel.Error{
			Kind: disdel.Conflict, Op: "stop job", Job: id, Err: errEnded,
			Msg: fmt.Sprintf("%s is %s, and cannot become %s", id, rec.Status, w.To),
		}
	}
	l, err := h.Lease(ctx, id)
	lives := false
	if err == nil {
		lives, err = s.alive(ctx, h, l)
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
	own, err := s.own(ctx, h, id)
	if err != nil {
		return err
	}
	defer own.end(ctx)
	told := &story{head: rec}
	told.become(w.To, w.Cause)
	rec.Status = w.To
	if w.To == disdel.StatusCanceled {
		rec.Ended, rec.Failure = time.Now(), &disdel.Error{Kind: disdel.Canceled, Op: "run job", Msg: w.Cause, Job: id}
	}
	return recorder{own: own, to: h, story: told}.Save(ctx, &rec)
}
