package service

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/scheduler"
)

// queue is the line that jobs wait in for their gangs. It is one for all processes that work with the same pool: who
// waits and who holds what is in a note of the history, its ledger, and each change of it names the state that it
// follows. Whoever changes it decides for all, since the decision is a pure function of what is in it; each process
// finds its own grants there. What a process held goes when its session does.
type queue struct {
	s    *core
	by   scheduler.Allocator // nil: nobody waits
	kick chan struct{}

	mu      sync.Mutex
	turns   map[disdel.JobID]*turn // guarded by mu: those that wait or hold something
	looking bool                   // guarded by mu: somebody looks at the ledger while jobs wait
}

// turn is a job of this process in the queue.
type turn struct {
	demand  scheduler.Demand
	since   time.Time
	run     *Run
	granted chan struct{} // closed once it has its gang
	told    Queued
	waits   bool // it was told that it waits
}

// ledger is what a pool's note says.
type ledger struct {
	Pool   disdel.Bytes `json:"poolBytes"` // as it was when the first of those that hold something came; 0: not known
	Places []place      `json:"places"`
}

// place is a job in the ledger.
type place struct {
	Owner string `json:"owner"` // the token of its session
	scheduler.Demand
}

// Bounds of the queue: how often the ledger is looked at while a job waits for another process's, and how often a
// change is tried again that others came before.
const (
	lookEvery  = 250 * time.Millisecond
	mostWrites = 50
)

func newQueue(s *core, by scheduler.Allocator) *queue {
	return &queue{s: s, by: by, kick: make(chan struct{}, 1), turns: map[disdel.JobID]*turn{}}
}

// admission is the allocator of Config.Admission, nil for one that makes nobody wait.
func admission(name string) (scheduler.Allocator, error) {
	switch name {
	case scheduler.AdmissionGreedy:
		return nil, nil
	case "", scheduler.AdmissionGang, scheduler.AdmissionFIFO:
		return scheduler.AllocatorOf(name)
	}
	return nil, &disdel.Error{
		Kind: disdel.Invalid, Op: "open service", Msg: "there is no admission \"" + name + "\"",
		Hint: "admission is gang, fifo or greedy",
	}
}

// sinceEpoch is a moment on the clock of the ledger, which all processes share.
func sinceEpoch(t time.Time) disdel.Millis {
	return disdel.Millis(t.UnixMilli()) * disdel.Millis(time.Millisecond)
}

// enter waits for a job's gang, until ctx ends.
func (q *queue) enter(ctx context.Context, r *Run, d scheduler.Demand) error {
	t := &turn{demand: d, since: time.Now(), run: r, granted: make(chan struct{})}
	if q.by == nil {
		q.admitted(t, d.Gang)
		return nil
	}
	q.mu.Lock()
	q.turns[r.id] = t
	begin := !q.looking
	q.looking = true
	q.mu.Unlock()
	if begin {
		q.s.flying.Go(q.look)
	}
	q.wake()
	select {
	case <-t.granted:
		return nil
	case <-ctx.Done():
		q.leave(r.id)
		return context.Cause(ctx)
	}
}

// leave gives back what a job holds, or its place in the line.
func (q *queue) leave(id disdel.JobID) {
	q.mu.Lock()
	_, there := q.turns[id]
	delete(q.turns, id)
	q.mu.Unlock()
	if !there {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(q.s.ctx), releaseWithin)
	defer stop()
	if err := q.settle(ctx); err != nil {
		q.s.log.WithError(err).WithField("job", id).Debug("what the job held is given back with the session")
	}
}

func (q *queue) wake() {
	select {
	case q.kick <- struct{}{}:
	default:
	}
}

// look settles the ledger while jobs of this process wait.
func (q *queue) look() {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if err := q.settle(q.s.ctx); err != nil && q.s.ctx.Err() == nil {
			q.s.log.WithError(err).Debug("the queue could not be looked at")
		}
		q.mu.Lock()
		if !q.waiting() {
			q.looking = false
			q.mu.Unlock()
			return
		}
		q.mu.Unlock()
		select {
		case <-q.kick:
		case <-tick.C:
		}
	}
}

// waiting tells whether a job of this process waits; the caller holds the lock.
func (q *queue) waiting() bool {
	for _, t := range q.turns {
		if t.demand.Held == nil {
			return true
		}
	}
	return false
}

// settle brings the ledger up to date, decides, and tells the jobs of this process what came of it.
func (q *queue) settle(ctx context.Context) error {
	h, err := q.s.everything(ctx)
	if err != nil {
		return err
	}
	w, err := q.s.openWhisk(ctx)
	if err != nil {
		return err
	}
	limits, err := w.executor.Limits(ctx)
	if err != nil {
		return err
	}
	limits.Pool = w.pool
	for range mostWrites {
		err = q.try(ctx, h, capacity(limits))
		if disdel.KindOf(err) != disdel.Conflict {
			return err
		}
	}
	return err
}

// try is one look at the ledger. It returns Conflict where another process was faster.
func (q *queue) try(ctx context.Context, h *history.Store, whole scheduler.Capacity) error {
	note, err := h.Note(ctx, history.NotePool, q.s.pool())
	if err != nil && disdel.KindOf(err) != disdel.NotFound {
		return err
	}
	var was ledger
	json.Unmarshal(note.Value, &was) //nolint:errcheck // what cannot be read is written anew
	now, err := q.living(ctx, h, was)
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.enroll(&now)
	grants := now.decide(q.by, whole, q.s.token, sinceEpoch(time.Now()))
	value, err := json.Marshal(now)
	if err != nil {
		return err
	}
	if string(value) != string(note.Value) {
		note.Value = value
		if _, err := h.WriteNote(ctx, note); err != nil {
			return err
		}
	}
	q.tell(&now, grants)
	return nil
}

// living is a ledger without those whose process is no more.
func (q *queue) living(ctx context.Context, h *history.Store, l ledger) (ledger, error) {
	lives := map[string]bool{q.s.token: true}
	for _, p := range l.Places {
		if _, known := lives[p.Owner]; known {
			continue
		}
		n, err := h.Note(ctx, history.NoteSession, p.Owner)
		if err != nil && disdel.KindOf(err) != disdel.NotFound {
			return l, err
		}
		lives[p.Owner] = err == nil && sessionOf(n).alive(time.Now())
	}
	l.Places = slices.DeleteFunc(slices.Clone(l.Places), func(p place) bool { return !lives[p.Owner] })
	return l, nil
}

// enroll puts the jobs of this process into a ledger, with what it has granted them; the caller holds the lock.
func (q *queue) enroll(l *ledger) {
	known := map[disdel.JobID]bool{}
	l.Places = slices.DeleteFunc(l.Places, func(p place) bool {
		_, mine := q.turns[p.Job]
		if p.Owner != q.s.token {
			return mine // it was another's before this process took it
		}
		known[p.Job] = mine
		return !mine
	})
	for _, t := range q.turns {
		if !known[t.demand.Job] {
			l.Places = append(l.Places, place{q.s.token, t.demand})
		}
	}
	slices.SortFunc(l.Places, func(a, b place) int { return strings.Compare(string(a.Job), string(b.Job)) })
}

// decide gives those that wait what there is for them, and returns what was decided of each.
func (l *ledger) decide(by scheduler.Allocator, whole scheduler.Capacity, token string,
	now disdel.Millis,
) map[disdel.JobID]scheduler.Grant {
	free, holders := whole, 0
	for i := range l.Places {
		p := &l.Places[i]
		if p.Held == nil {
			continue
		}
		if p.Held.Expires > 0 && p.Held.Expires < now {
			p.Held = nil // it was given to a process that did not take it
			continue
		}
		holders++
		if p.Owner == token {
			p.Held.Expires = 0
		}
	}
	switch {
	case holders == 0:
		l.Pool = poolBytes(whole)
	case l.Pool > 0: // a pool that is made of what is free is smaller for who comes later
		free.Memory = l.Pool
	}
	demands := make([]scheduler.Demand, len(l.Places))
	for i, p := range l.Places {
		demands[i] = p.Demand
		if p.Held != nil {
			free = free.Minus(p.Held.Room)
		}
	}
	decided := map[disdel.JobID]scheduler.Grant{}
	for _, g := range by.Allocate(now, free, demands) {
		decided[g.Job] = g
	}
	for i := range l.Places {
		p := &l.Places[i]
		if g, ok := decided[p.Job]; ok && !g.Reserved && p.Held == nil {
			if p.Owner == token {
				g.Expires = 0
			}
			p.Held = &g
		}
	}
	return decided
}

func poolBytes(c scheduler.Capacity) disdel.Bytes {
	if c.Memory >= scheduler.Unbounded {
		return 0
	}
	return c.Memory
}

// tell tells the jobs of this process where they stand; the caller holds the lock.
func (q *queue) tell(l *ledger, decided map[disdel.JobID]scheduler.Grant) {
	for _, p := range l.Places {
		t := q.turns[p.Job]
		if t == nil || t.demand.Held != nil {
			continue
		}
		if p.Held != nil {
			t.demand.Held = p.Held
			q.admitted(t, p.Held.Gang)
			continue
		}
		now := Queued{Ahead: l.ahead(p), Why: decided[p.Job].Why}
		if !t.waits || now.Ahead != t.told.Ahead {
			t.waits, t.told = true, now
			t.run.journal.add(now)
		}
	}
}

// ahead is how many jobs wait that came before one.
func (l *ledger) ahead(of place) (n int) {
	for _, p := range l.Places {
		if p.Held == nil && (p.Priority > of.Priority ||
			p.Priority == of.Priority && (p.Arrived < of.Arrived || p.Arrived == of.Arrived && p.Job < of.Job)) {
			n++
		}
	}
	return n
}

// admitted lets a job go.
func (q *queue) admitted(t *turn, gang scheduler.Gang) {
	cause := "the platform makes it wait, if it must"
	if q.by != nil {
		cause = "it has room for " + gangText(gang)
	}
	t.run.story.become(disdel.StatusAdmitted, cause)
	t.run.journal.add(Admitted{Room: gang.Room(), Waited: time.Since(t.since)})
	close(t.granted)
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
