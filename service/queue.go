package service

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/scheduler"
)

// queue is the line that jobs wait in for their gangs. It is one for all processes that work with the same pool: the
// books of its admission are in a note of the history, its ledger, and each change of it names the state that it
// follows. Whoever changes it decides for all, as scheduler.Admission does, which is a pure function of what is in it;
// each process finds its own grants there. What a process held goes when its session does.
type queue struct {
	s    *core
	by   scheduler.Allocator // nil: nobody waits
	kick chan struct{}

	mu      sync.Mutex
	turns   map[disdel.JobID]*turn   // guarded by mu: those that wait or hold something
	costs   map[disdel.JobID]float64 // guarded by mu: of jobs that have ended, which no ledger has yet
	looking bool                     // guarded by mu: somebody looks at the ledger while jobs wait
}

// turn is a job of this process in the queue.
type turn struct {
	demand   scheduler.Demand
	since    time.Time
	run      *Run
	began    bool          // it has had its gang before, and asks for the next round
	gaveBack bool          // which the ledger has yet to be told
	granted  chan struct{} // closed once it has its gang, or never will
	failed   error         // why it never will
	told     Queued
	waits    bool // it was told that it waits
	change   *change
	gaveSome bool // it holds less than the ledger says
}

// Bounds of the queue: how often the ledger is looked at while a job waits for another process's, and how often a
// change is tried again that others came before.
const (
	lookEvery  = 250 * time.Millisecond
	mostWrites = 50
	blindFor   = 3 * time.Second // a history is away for as long before a process decides for its own jobs alone
	lookShare  = 4               // looks take one part in so many and one of the time: a long line makes them long
)

func newQueue(s *core, by scheduler.Allocator) *queue {
	return &queue{
		s: s, by: by, kick: make(chan struct{}, 1), turns: map[disdel.JobID]*turn{}, costs: map[disdel.JobID]float64{},
	}
}

// admission is the allocator of Config.Admission, nil for one that makes nobody wait.
func admission(name string) (scheduler.Allocator, error) {
	switch name {
	case scheduler.AdmissionGreedy:
		return nil, nil
	case "", scheduler.AdmissionGang, scheduler.AdmissionFIFO:
		by, err := scheduler.AllocatorOf(name)
		return scheduler.Sharing{By: by}, err
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

// enter waits for a job's gang, until ctx ends. It returns OverLimit where the job can never have it.
func (q *queue) enter(ctx context.Context, r *Run, d scheduler.Demand) error {
	t := &turn{demand: d, since: time.Now(), run: r, granted: make(chan struct{})}
	if q.by == nil {
		q.admitted(t, d.Gang)
		return nil
	}
	q.mu.Lock()
	q.turns[r.id] = t
	q.mu.Unlock()
	err := q.await(ctx, t, t.granted)
	if err != nil {
		q.leave(r.id, 0)
	}
	return err
}

// again gives a job's gang back and waits for it anew, in the place that the job's arrival gives it.
func (q *queue) again(ctx context.Context, job disdel.JobID) error {
	q.mu.Lock()
	t := q.turns[job]
	if t == nil { // nobody waits
		q.mu.Unlock()
		return nil
	}
	granted := make(chan struct{})
	t.began, t.gaveBack, t.waits, t.granted, t.since = true, true, false, granted, time.Now()
	t.demand.Held, t.demand.Quota.Cost = nil, 0 // what it comes to was looked at when it began
	q.mu.Unlock()
	return q.await(ctx, t, granted)
}

// await waits until a job has its gang.
func (q *queue) await(ctx context.Context, t *turn, granted <-chan struct{}) error {
	q.attend()
	select {
	case <-granted:
		q.mu.Lock()
		defer q.mu.Unlock()
		return t.failed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// attend has the ledger looked at until nobody waits.
func (q *queue) attend() {
	q.mu.Lock()
	begin := !q.looking
	q.looking = true
	q.mu.Unlock()
	if begin {
		q.s.flying.Go(q.look)
	}
	q.wake()
}

// leave gives back what a job holds, or its place in the line, and enters what it has cost in GB-s.
func (q *queue) leave(id disdel.JobID, cost float64) {
	q.mu.Lock()
	_, there := q.turns[id]
	delete(q.turns, id)
	if there {
		q.costs[id] = cost
	}
	looking := q.looking
	if looking {
		q.wake() // whoever looks for those that wait enters it
	}
	q.mu.Unlock()
	if !there || looking {
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
	seen := time.Now()
	for {
		began := time.Now()
		err := q.settle(q.s.ctx)
		took := time.Since(began)
		if err == nil {
			seen = time.Now()
		} else if time.Since(seen) > blindFor {
			err = errors.Join(err, q.alone(q.s.ctx))
		}
		if err != nil && q.s.ctx.Err() == nil {
			q.s.log.WithError(err).Debug("the queue could not be looked at")
		}
		q.mu.Lock()
		if !q.waiting() && len(q.kick) == 0 { // who leaves relies on one more look
			q.looking = false
			q.mu.Unlock()
			return
		}
		q.mu.Unlock()
		q.rest(lookShare * took)
		select {
		case <-q.kick:
		case <-tick.C:
		}
	}
}

// rest waits between two looks, at most until one is due anyway.
func (q *queue) rest(d time.Duration) {
	t := time.NewTimer(min(d, lookEvery))
	defer t.Stop()
	select {
	case <-t.C:
	case <-q.s.open.Done(): // those that wait are about to leave
	}
}

// waiting tells whether a job of this process waits; the caller holds the lock.
func (q *queue) waiting() bool {
	for _, t := range q.turns {
		if t.demand.Held == nil && t.failed == nil || t.asks() {
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
	pool, err := q.capacity(ctx)
	if err != nil {
		return err
	}
	for range mostWrites {
		err = q.try(ctx, h, pool)
		if disdel.KindOf(err) != disdel.Conflict {
			return err
		}
	}
	return err
}

// capacity is what the platform's pool has for all jobs.
func (q *queue) capacity(ctx context.Context) (scheduler.Capacity, error) {
	w, err := q.s.openWhisk(ctx)
	if err != nil {
		return scheduler.Capacity{}, err
	}
	limits, err := w.executor.Limits(ctx)
	limits.Pool = w.pool.memory
	return q.s.capacity(ctx, q.s.accelerated(ctx, limits)), err
}

// alone decides for the jobs of this process without the ledger: a history that is away costs a job nothing, and the
// platform makes those wait that other processes are faster than.
func (q *queue) alone(ctx context.Context) error {
	pool, err := q.capacity(ctx)
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	l := readLedger(history.Note{})
	books := q.open(&l, pool, map[string]bool{q.s.token: true})
	decided := l.decide(books, q.s.token, sinceEpoch(time.Now()), 0)
	answers := q.consider(&l, books)
	q.tell(books, decided)
	q.fulfil(books, answers)
	return nil
}

// try is one look at the ledger. It returns Conflict where another process was faster.
func (q *queue) try(ctx context.Context, h *history.Store, whole scheduler.Capacity) error {
	note, err := h.Note(ctx, history.NotePool, q.s.pool())
	if err != nil && disdel.KindOf(err) != disdel.NotFound {
		return err
	}
	l := readLedger(note)
	lives, err := q.living(ctx, h, &l)
	if err != nil {
		return err
	}
	busy := q.s.atWork(ctx)
	q.mu.Lock()
	defer q.mu.Unlock()
	entered := make([]disdel.JobID, 0, len(q.costs))
	for job := range q.costs {
		entered = append(entered, job)
	}
	books := q.open(&l, whole, lives)
	decided := l.decide(books, q.s.token, sinceEpoch(time.Now()), busy)
	answers := q.consider(&l, books)
	value, err := json.Marshal(l)
	if err != nil {
		return err
	}
	if string(value) != string(note.Value) {
		note.Value = value
		if _, err := h.WriteNote(ctx, note); err != nil {
			return err
		}
	}
	for _, job := range entered {
		delete(q.costs, job)
	}
	for _, t := range q.turns { // the ledger has been told
		t.gaveBack, t.gaveSome = false, false
	}
	q.tell(books, decided)
	q.fulfil(books, answers)
	return nil
}

// tell tells the jobs of this process where they stand; the caller holds the lock.
func (q *queue) tell(books *scheduler.Admission, decided map[disdel.JobID]scheduler.Grant) {
	for _, d := range books.Demands() {
		t := q.turns[d.Job]
		if t == nil {
			continue
		}
		if t.demand.Held == nil && books.Has(d.Job) {
			t.demand.Held, t.gaveBack = d.Held, false
			q.admitted(t, d.Held.Gang)
		}
	}
	for ahead, job := range books.Queue() {
		if t := q.turns[job]; t != nil {
			t.queued(Queued{Ahead: ahead, Why: decided[job].Why})
		}
	}
	for _, t := range q.turns {
		if t.failed != nil && t.demand.Held == nil {
			t.refused()
		}
	}
}

// queued tells a job that it waits. In a long line only what changes its place by a tenth is told.
func (t *turn) queued(now Queued) {
	by := now.Ahead - t.told.Ahead
	if !t.waits || max(by, -by) > t.told.Ahead/10 {
		t.waits, t.told = true, now
		t.run.journal.add(now)
	}
}

// admitted lets a job go.
func (q *queue) admitted(t *turn, gang scheduler.Gang) {
	defer close(t.granted)
	if t.began {
		return
	}
	cause := "the platform makes it wait, if it must"
	if q.by != nil {
		cause = "it has room for " + gang.String()
	}
	t.run.story.become(disdel.StatusAdmitted, cause)
	t.run.journal.add(Admitted{Room: gang.Room(), Waited: time.Since(t.since)})
}

// refused lets a job go that will never have its gang.
func (t *turn) refused() {
	select {
	case <-t.granted:
	default:
		close(t.granted)
	}
}
