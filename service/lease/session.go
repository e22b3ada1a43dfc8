package lease

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
)

// DefaultTime is how long a lease is valid after the session of its owner was last renewed. The session is renewed four
// times in that time. The clocks of machines that share a history differ by less.
const DefaultTime = 8 * time.Second

// Patience is how much longer a session is believed whose process is seen to live: a busy machine or a slow history is
// no reason to take a job from it.
const Patience = time.Minute

// writeWithin bounds one renewal, and the writing of a lease at a job's end. A lease that stays is taken over.
const writeWithin = 5 * time.Second

// Config is what a Session needs.
type Config struct {
	Home    string         // its folder "running" has the marks of versions before leases
	History *history.Store // of all tenants
	Token   string         // tells this session from all others
	Time    time.Duration  // validity of a lease, see DefaultTime
	Log     logrus.FieldLogger

	// Look is called with all leases after each renewal, by one goroutine.
	Look func(ctx context.Context, leases []history.Lease) error
}

// Session is this process as other processes see it. It is safe for concurrent use.
type Session struct {
	Config
	identity string // of the history
	stop     context.CancelFunc
	done     sync.WaitGroup

	mu   sync.Mutex
	note history.Note          // guarded by mu: the newest state that was written
	has  map[disdel.JobID]bool // guarded by mu: jobs whose leases this session takes or holds
}

// sessionNote is the content of a session's note.
type sessionNote struct {
	Owner   history.Owner `json:"owner"`
	Expires time.Time     `json:"expires"`
}

// Begin writes the note of a session, and renews it until Close or until life ends. ctx is for the first note alone.
func Begin(ctx, life context.Context, cfg Config) (*Session, error) {
	s := &Session{
		Config: cfg, note: history.Note{Kind: history.NoteSession, Name: cfg.Token}, has: map[disdel.JobID]bool{},
	}
	var err error
	if s.identity, err = cfg.History.Identity(ctx); err != nil {
		return nil, err
	}
	if err := s.renew(ctx); err != nil {
		return nil, err
	}
	life, s.stop = context.WithCancel(life)
	s.done.Go(func() { s.keep(life) })
	return s, nil
}

// Identity is the text that the session's history, and no other one, has.
func (s *Session) Identity() string { return s.identity }

// keep renews the session and looks at the leases until ctx ends.
func (s *Session) keep(ctx context.Context) {
	tick := time.NewTicker(s.Time / 4)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.turn(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// turn renews the session once. The jobs go on if the history does not answer, and the next turn tries again.
func (s *Session) turn(ctx context.Context) {
	limited, stop := context.WithTimeout(ctx, writeWithin)
	defer stop()
	err := s.renew(limited)
	var leases []history.Lease
	if err == nil {
		leases, err = s.History.Leases(limited)
	}
	if err == nil {
		err = s.Look(limited, leases)
	}
	if err != nil && ctx.Err() == nil {
		s.Log.WithError(err).Debug("the leases could not be renewed")
	}
}

// renew writes the note with a new time.
func (s *Session) renew(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	value, err := json.Marshal(sessionNote{OwnerOf(s.Token), time.Now().Add(s.Time)})
	if err != nil {
		return err
	}
	next := s.note
	next.Value = value
	written, err := s.History.WriteNote(ctx, next)
	if disdel.KindOf(err) == disdel.Conflict { // the answer to an earlier write was lost: nobody else has this name
		if next, err = s.History.Note(ctx, s.note.Kind, s.note.Name); err == nil {
			next.Value = value
			written, err = s.History.WriteNote(ctx, next)
		}
	}
	if err == nil {
		s.note = written
	}
	return err
}

// Close ends the session: its leases are not valid any more.
func (s *Session) Close() error {
	s.stop()
	s.done.Wait()
	ctx, stop := context.WithTimeout(context.Background(), writeWithin)
	defer stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.History.DeleteNote(ctx, s.note); err != nil {
		s.Log.WithError(err).Debug("the session stays until it expires")
	}
	return nil
}

// SessionAlive reports whether the session of a token was valid at a time. known is false if the history has no such
// session.
func SessionAlive(ctx context.Context, h *history.Store, token string, at time.Time) (alive, known bool, err error) {
	n, err := h.Note(ctx, history.NoteSession, token)
	if k := disdel.KindOf(err); k == disdel.NotFound || k == disdel.Invalid { // versions before sessions have none
		return false, false, nil
	}
	if err != nil {
		return false, false, err
	}
	var s sessionNote
	json.Unmarshal(n.Value, &s) //nolint:errcheck // a note that cannot be read has expired
	return s.alive(at), true, nil
}

// alive reports whether the session is valid at a time.
func (n sessionNote) alive(at time.Time) bool {
	if n.Owner.Gone() {
		return false
	}
	until := n.Expires
	if Here(n.Owner) && n.Owner.Start != 0 {
		until = until.Add(Patience)
	}
	return at.Before(until)
}
