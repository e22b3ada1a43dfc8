package service

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/scheduler"
)

// ledger is what a pool's note says: the books of its admission, and which process each job in them is of.
type ledger struct {
	// Pool is the memory as it was when the first of those that hold something came; 0: not known.
	Pool   disdel.Bytes             `json:"poolBytes"`
	Owners map[disdel.JobID]string  `json:"owners"` // the tokens of their sessions
	Books  scheduler.AdmissionState `json:"books"`
}

// read is the ledger of a note, an empty one where it cannot be read: whoever looks puts himself back.
func readLedger(note history.Note) (l ledger) {
	if json.Unmarshal(note.Value, &l) != nil {
		l = ledger{}
	}
	if l.Owners == nil {
		l.Owners = map[disdel.JobID]string{}
	}
	return l
}

// keep drops the jobs of which it is not so that they stay.
func (l *ledger) keep(stays func(job disdel.JobID, owner string) bool) {
	l.Books.Jobs = slices.DeleteFunc(slices.Clone(l.Books.Jobs), func(d scheduler.Demand) bool {
		if stays(d.Job, l.Owners[d.Job]) {
			return false
		}
		delete(l.Owners, d.Job)
		return true
	})
}

// living tells of each process that a ledger names whether it is to be believed.
func (q *queue) living(ctx context.Context, h *history.Store, l *ledger) (map[string]bool, error) {
	lives := map[string]bool{q.s.token: true}
	for _, owner := range l.Owners {
		if _, known := lives[owner]; known {
			continue
		}
		n, err := h.Note(ctx, history.NoteSession, owner)
		if err != nil && disdel.KindOf(err) != disdel.NotFound {
			return nil, err
		}
		lives[owner] = err == nil && sessionOf(n).alive(time.Now())
	}
	return lives, nil
}

// open brings a ledger up to date with what this process knows, and opens its books; the caller holds the lock.
func (q *queue) open(l *ledger, whole scheduler.Capacity, lives map[string]bool) *scheduler.Admission {
	l.keep(func(job disdel.JobID, owner string) bool {
		_, mine := q.turns[job]
		return lives[owner] && (owner == q.s.token || !mine) // else it was another's before this process took it
	})
	q.ownWord(l)
	for job, t := range q.turns {
		_, known := l.Owners[job]
		if !known && t.failed == nil && (t.demand.Held != nil || t.began) { // the ledger has lost it
			l.Books.Jobs = append(l.Books.Jobs, t.demand)
			l.Owners[job] = q.s.token
		}
	}
	books := scheduler.RestoreAdmission(q.by, whole, l.Books)
	for job, owner := range l.Owners {
		t := q.turns[job]
		switch {
		case owner != q.s.token:
		case t == nil:
			books.Return(job, q.costs[job])
		case t.gaveBack:
			books.Return(job, 0)
			t.failed = books.Enqueue(t.demand)
		case books.Has(job):
			books.Use(job)
		}
	}
	for job, t := range q.turns {
		if _, known := l.Owners[job]; !known && t.failed == nil {
			l.Owners[job] = q.s.token
			t.failed = books.Enqueue(t.demand)
		}
	}
	for _, err := range books.NeverFit() {
		if t := q.turns[disdel.AsError(err).Job]; t != nil && !t.began {
			t.failed = err
			books.Return(t.run.id, 0)
		}
	}
	return books
}

// decide has the books decide, with the pool as it was for those that came first: one that is made of what is free of a
// machine is smaller for whoever comes later. Of the pool so much is at work, others' work too.
func (l *ledger) decide(books *scheduler.Admission, token string, now disdel.Millis, busy disdel.Bytes,
) map[disdel.JobID]scheduler.Grant {
	books.Expire(now)
	others := beyond(busy, books)
	switch whole := books.Capacity().Memory; {
	case books.Holding() == 0:
		l.Pool = bounded(whole)
	case l.Pool > 0 && bounded(whole) > 0:
		others += whole - l.Pool
	}
	if others != 0 {
		books.SetOthers(scheduler.Capacity{Memory: others})
	}
	decided := map[disdel.JobID]scheduler.Grant{}
	for _, g := range books.Decide(now) {
		decided[g.Job] = g
		if !g.Reserved && l.Owners[g.Job] == token {
			books.Use(g.Job)
		}
	}
	l.enter(books)
	return decided
}

// enter has the ledger say what the books do.
func (l *ledger) enter(books *scheduler.Admission) {
	l.Books = books.State()
	owners := make(map[disdel.JobID]string, len(l.Books.Jobs))
	for _, d := range l.Books.Jobs {
		owners[d.Job] = l.Owners[d.Job]
	}
	l.Owners = owners
}

// bounded is an amount of memory, 0 for one that nobody bounds.
func bounded(b disdel.Bytes) disdel.Bytes {
	if b >= scheduler.Unbounded {
		return 0
	}
	return b
}

// spent is what a tenant's jobs have cost that have ended, in GB-s.
func (q *queue) spent(ctx context.Context, tenant string) (float64, error) {
	h, err := q.s.everything(ctx)
	if err != nil {
		return 0, err
	}
	note, err := h.Note(ctx, history.NotePool, q.s.pool())
	if err != nil && disdel.KindOf(err) != disdel.NotFound {
		return 0, err
	}
	l := readLedger(note)
	return l.Books.Spent[tenant], nil
}

// pool is the name of the pool that this Service's jobs run in: that of its platform, or of this machine.
func (s *core) pool() string {
	name := s.cfg.OpenWhisk.Host
	if name == "" {
		name = "embedded." + s.owner().Host
	}
	return noteNameOf(name)
}

// noteNameOf is a text as a note's name: what no name has becomes a dash.
func noteNameOf(text string) string {
	out := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '.' {
			return c
		}
		return '-'
	}, strings.ToLower(text))
	return "p" + out[:min(len(out), 100)]
}
