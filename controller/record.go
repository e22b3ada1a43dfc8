package controller

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
)

// saver writes the record of a running job without delaying the job: it writes the newest state, and skips those that
// arrived during a write.
type saver struct {
	newest chan disdel.Record
	urgent chan urgent
	quit   context.CancelFunc
	done   chan struct{}
	failed bool // the last write failed; of the loop alone
}

// urgent is a record whose writing is awaited.
type urgent struct {
	rec  disdel.Record
	done chan struct{}
}

// saveInterval is the least time between two writes of a running job's record, and saveShare the least pause in
// multiples of a write's time: a large record is written less often.
const (
	saveInterval = time.Second
	saveShare    = 10
)

func newSaver(to Recorder, log logrus.FieldLogger) *saver {
	s := &saver{newest: make(chan disdel.Record, 1), urgent: make(chan urgent), done: make(chan struct{})}
	ctx, quit := context.WithCancel(context.Background())
	s.quit = quit
	go s.loop(ctx, to, log)
	return s
}

func (s *saver) loop(ctx context.Context, to Recorder, log logrus.FieldLogger) {
	defer close(s.done)
	newest, pause := s.newest, time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case rec := <-newest:
			begun := time.Now()
			s.write(ctx, to, &rec, log)
			newest = nil // until the pause is over
			pause.Reset(max(saveInterval, saveShare*time.Since(begun)))
		case <-pause.C:
			newest = s.newest
		case u := <-s.urgent:
			s.write(ctx, to, &u.rec, log)
			close(u.done)
		case <-ctx.Done():
			return
		}
	}
}

// now writes the state of r before it returns. It waits at most saveTimeout for the history store.
func (s *saver) now(r *disdel.Record) {
	select {
	case <-s.newest: // an older state must not be written after this one
	default:
	}
	u := urgent{*r, make(chan struct{})}
	s.urgent <- u
	<-u.done
}

// within is now that gives up after d. Then the state is written later.
func (s *saver) within(r *disdel.Record, d time.Duration) {
	u := urgent{*r, make(chan struct{})}
	limit := time.NewTimer(d)
	defer limit.Stop()
	select {
	case s.urgent <- u:
	case <-limit.C:
		return // save has scheduled it
	}
	select {
	case <-u.done:
	case <-limit.C:
	}
}

func (s *saver) write(ctx context.Context, to Recorder, r *disdel.Record, log logrus.FieldLogger) {
	limited, stop := context.WithTimeout(ctx, saveTimeout)
	defer stop()
	err := to.Save(limited, r)
	if err != nil && ctx.Err() == nil && !s.failed { // logged once until a write succeeds
		log.WithError(err).Warn("the record of the running job could not be saved; a later one will be")
	}
	s.failed = err != nil
}

// save schedules the state of r. A record's lists only grow at their ends, so that a copy of the struct is enough.
func (s *saver) save(r *disdel.Record) {
	select {
	case <-s.newest:
	default:
	}
	s.newest <- *r
}

// close ends the saver, including a write that hangs. The caller writes the last state.
func (s *saver) close() {
	s.quit()
	<-s.done
}

// The limits of a record: CouchDB accepts documents of 8 MB, and a running job's record is written repeatedly.
const (
	maxActivations = 4000
	maxBeatsInAll  = 8000 // heartbeats of activations that passed
	maxLinesInAll  = 4000 // lines of their logs
)

// recordBuilder adds activations to a record and keeps it small. Failures stay with all their evidence. Of those that
// passed, the later ones of a long job keep only their last heartbeat and no log. If there are too many, every other
// one is dropped, so that the rest still spans the whole job.
type recordBuilder struct {
	beats, lines int
	limit        int // of activations, before the next thinning
}

// add appends an activation without what only the manager needs.
func (l *recordBuilder) add(r *disdel.Record, a disdel.Activation) {
	if !a.Outcome.Failed() {
		a.TrainRange = nil
	}
	a.Params, a.Result = nil, nil
	if n := len(a.Beats); !a.Outcome.Failed() && n > 0 {
		if l.beats+n > maxBeatsInAll {
			a.Beats = a.Beats[n-1:]
		}
		l.beats += n
	}
	if n := len(a.Logs); !a.Outcome.Failed() && n > 0 {
		if l.lines += n; l.lines > maxLinesInAll {
			a.Logs, a.LogLines = nil, max(n, a.LogLines)
		}
	}
	r.Activations = append(r.Activations, a)
	if len(r.Activations) > max(l.limit, maxActivations) {
		l.thin(r)
		l.limit = 2 * len(r.Activations)
	}
}

// thin makes a new list: the old one may be in the middle of a write.
func (l *recordBuilder) thin(r *disdel.Record) {
	kept := make([]disdel.Activation, 0, len(r.Activations))
	passed := 0
	for _, a := range r.Activations {
		if !a.Outcome.Failed() {
			if passed++; passed%2 == 0 {
				r.Omitted++
				continue
			}
		}
		kept = append(kept, a)
	}
	r.Activations = kept
}
