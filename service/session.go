package service

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
)

// session is this Service as other processes see it: a note that is renewed for as long as it lives, and with it the
// leases of all its jobs. Beside that it looks whether somebody asks something of a job of its own, has taken one, or
// is no more.
type session struct {
	s        *core
	history  *history.Store
	identity string                     // of the history
	later    map[disdel.JobID]time.Time // when to try again to take a job over; of the loop alone

	mu   sync.Mutex
	note history.Note // guarded by mu: the newest state that was written
}

// sessionNote is what a session's note says.
type sessionNote struct {
	Owner   history.Owner `json:"owner"`
	Expires time.Time     `json:"expires"`
}

func sessionOf(n history.Note) (out sessionNote) {
	json.Unmarshal(n.Value, &out) //nolint:errcheck // what cannot be read has expired
	return out
}

// alive tells whether the owner is to be believed at a time.
func (n sessionNote) alive(now time.Time) bool {
	if n.Owner.Gone() {
		return false
	}
	until := n.Expires
	if here(n.Owner) && n.Owner.Start != 0 {
		until = until.Add(patience)
	}
	return now.Before(until)
}

// present has others see this Service until it is closed. It is called before the first lease is taken.
func (s *core) present(ctx context.Context) (*session, error) {
	return s.session.get(s.ctx, func() (*session, error) {
		h, err := s.everything(ctx)
		if err != nil {
			return nil, err
		}
		out := &session{
			s: s, history: h, note: history.Note{Kind: history.NoteSession, Name: s.token},
			later: map[disdel.JobID]time.Time{},
		}
		if out.identity, err = h.Identity(ctx); err != nil {
			return nil, err
		}
		if err := out.renew(ctx); err != nil {
			return nil, err
		}
		var done sync.WaitGroup
		ctx, stop := context.WithCancel(s.ctx)
		done.Go(func() { out.keep(ctx) })
		s.atEnd(func() error {
			stop()
			done.Wait()
			out.close()
			return nil
		})
		return out, nil
	})
}

// keep renews the session and looks around until ctx ends.
func (n *session) keep(ctx context.Context) {
	tick, others := time.NewTicker(n.s.leaseFor/4), time.NewTicker(deliverOthersEvery)
	defer tick.Stop()
	defer others.Stop()
	for {
		select {
		case <-tick.C:
			n.turn(ctx)
		case <-others.C:
			if n.s.cfg.TakeOver {
				n.s.deliver(ctx, n.history)
			}
		case <-ctx.Done():
			return
		}
	}
}

// turn is one look. A history that does not answer costs the jobs nothing: they go on, and it is asked again.
func (n *session) turn(ctx context.Context) {
	limited, stop := context.WithTimeout(ctx, releaseWithin)
	defer stop()
	err := n.renew(limited)
	if err == nil {
		err = n.look(limited)
	}
	if err != nil && ctx.Err() == nil {
		n.s.log.WithError(err).Debug("the leases could not be renewed")
	}
}

// renew writes the note anew.
func (n *session) renew(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	value, err := json.Marshal(sessionNote{n.s.owner(), time.Now().Add(n.s.leaseFor)})
	if err != nil {
		return err
	}
	next := n.note
	next.Value = value
	written, err := n.history.WriteNote(ctx, next)
	if disdel.KindOf(err) == disdel.Conflict { // an answer that was lost looks like this: nobody else has this name
		if next, err = n.history.Note(ctx, n.note.Kind, n.note.Name); err == nil {
			next.Value = value
			written, err = n.history.WriteNote(ctx, next)
		}
	}
	if err == nil {
		n.note = written
	}
	return err
}

// look compares the leases that there are with the jobs that this Service has.
func (n *session) look(ctx context.Context) error {
	leases, err := n.history.Leases(ctx)
	if err != nil {
		return err
	}
	for _, l := range leases {
		r, mine := n.s.has(l.Job)
		switch {
		case mine && l.Owner.Token == n.s.token:
			r.obey(l.StopRequest)
		case mine:
			if err := n.another(ctx, r, l.Job); err != nil {
				return err
			}
		case n.s.cfg.TakeOver:
			if err := n.takeOver(ctx, l); err != nil {
				return err
			}
		}
	}
	return nil
}

// another cancels a job that another process has taken. What was read may be of before this Service took it.
func (n *session) another(ctx context.Context, r *Run, id disdel.JobID) error {
	l, err := n.history.Lease(ctx, id)
	if disdel.KindOf(err) == disdel.NotFound || err == nil && l.Owner.Token == n.s.token {
		return nil
	}
	if err == nil && r.own != nil {
		r.Cancel(r.own.lose(l.Owner))
	}
	return err
}

// close takes the note away: nobody holds the leases of this Service from then on.
func (n *session) close() {
	ctx, stop := context.WithTimeout(context.Background(), releaseWithin)
	defer stop()
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.history.DeleteNote(ctx, n.note); err != nil {
		n.s.log.WithError(err).Debug("the session stays until it expires")
	}
}

// has finds a job of this Service, whosever it is.
func (s *core) has(id disdel.JobID) (*Run, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.runs[id]
	return r, ok
}
