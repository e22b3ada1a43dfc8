package batch

import (
	"cmp"
	"errors"
	"sync"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/service"
)

// board is the state of a running batch.
type board struct {
	by      Measure
	observe func(*View)
	began   time.Time

	mu      sync.Mutex
	entries []*entry  // guarded by mu
	pool    recording // guarded by mu
	contest *contest  // guarded by mu
}

func newBoard(cfg Config) *board {
	b := &board{by: cmp.Or(cfg.By, ByAccuracy), observe: cfg.Observe, began: time.Now()}
	b.contest = newContest(cfg.Halving, b.by, len(cfg.Jobs))
	for _, j := range cfg.Jobs {
		e := &entry{flying: map[string]disdel.Bytes{}, epochs: j.Request.Job.Training.Epochs}
		e.Name, e.File, e.Choices = j.Request.Job.Metadata.Name, j.Request.Source.Name, j.Choices
		b.entries = append(b.entries, e)
	}
	return b
}

func (b *board) now() disdel.Millis { return disdel.Millis(time.Since(b.began)) }

// submitted notes an acknowledged job, and how to cancel it.
func (b *board) submitted(i int, id disdel.JobID, cancel func(error)) {
	b.change(func(now disdel.Millis) {
		e := b.entries[i]
		e.Job, e.cancel, e.Submitted, e.Status = id, cancel, now, disdel.StatusQueued
	})
}

// refused notes a job that was not acknowledged.
func (b *board) refused(i int, err error) {
	b.change(func(now disdel.Millis) {
		e := b.entries[i]
		e.Status, e.Failure = disdel.StatusFailed, disdel.AsError(err)
		if e.Failure.Kind == disdel.Internal { // faults, of a data set that was changed since
			e.Failure = &disdel.Error{Kind: disdel.KindOf(err), Op: "submit job", Msg: err.Error()}
		}
		e.Submitted, e.Ended, e.Refused = now, max(now, 1), true
		if disdel.KindOf(err) == disdel.Canceled {
			e.Status, e.Refused = disdel.StatusCanceled, false
		}
		b.contest.leaves(i)
	})
}

// unsaved notes a job whose end could not be saved.
func (b *board) unsaved(i int, err error) {
	b.change(func(disdel.Millis) {
		if e := b.entries[i]; e.Failure == nil {
			e.Failure = disdel.AsError(err)
		}
	})
}

// see notes an event of a job, and stops the jobs that fall behind because of it.
func (b *board) see(i int, what service.EventData) {
	b.change(func(now disdel.Millis) {
		e := b.entries[i]
		e.see(what, now)
		switch what := what.(type) {
		case service.Planned:
			b.pool.Bytes = max(b.pool.Bytes, what.Plan.Platform.Pool)
		case service.Finished:
			e.takeTimes(&what.Record, b.began)
			if e.Status != disdel.StatusSucceeded {
				b.contest.leaves(i)
			}
		case service.RoundEnded:
			for _, out := range b.contest.reached(i, e.epochs, e.Curve[len(e.Curve)-1]) {
				b.stop(b.entries[out.job], out.why)
			}
		}
	})
}

// stop cancels a job that fell behind, unless it has ended; the caller holds the lock.
func (b *board) stop(e *entry, why string) {
	if e.Ended == 0 && e.cancel != nil {
		e.Behind = why
		e.cancel(errors.New(why))
	}
}

// change makes a change and calls Observe.
func (b *board) change(f func(now disdel.Millis)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	f(now)
	s := Sample{At: now}
	for _, e := range b.entries {
		if e.Job == "" || e.Ended > 0 {
			continue
		}
		s.Resident += e.resident
		for _, held := range e.flying {
			s.Held += held
		}
		if e.Started > 0 {
			s.Running++
			s.Reserved += e.Room
		} else {
			s.Waiting++
		}
	}
	if b.pool.Bytes > 0 { // an event that a job has given room back may be late
		s.Reserved = min(s.Reserved, b.pool.Bytes)
	}
	b.pool.add(s)
	if b.observe != nil {
		b.observe(&View{Rows: b.rows(), Now: s, Pool: b.pool.Bytes})
	}
}

// rows is the state of each job; the caller holds the lock.
func (b *board) rows() []Row {
	out := make([]Row, len(b.entries))
	for i, e := range b.entries {
		out[i] = e.Row
	}
	return out
}
