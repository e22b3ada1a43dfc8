package queue

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/scheduler"
)

// Config is what a Queue needs.
type Config struct {
	Admission string // gang, fifo or greedy; "": gang
	Pool      string // name of the pool's note in the history
	Token     string // of the session of this process
	Log       logrus.FieldLogger

	History  func(ctx context.Context) (*history.Store, error) // of all tenants
	Capacity func(ctx context.Context) (scheduler.Capacity, error)
	Busy     func(ctx context.Context) disdel.Bytes // memory that is in use on the platform, by anybody; 0: unknown

	Open    context.Context // ends when the waiting jobs are about to leave
	Life    context.Context // ends when all jobs have ended
	Running *sync.WaitGroup // counts the goroutine of the Queue
}

// Queue is the queue of a pool, as one process sees it. It is safe for concurrent use.
type Queue struct {
	Config
	by   scheduler.Allocator // nil: no job waits
	kick chan struct{}

	mu      sync.Mutex
	entries map[disdel.JobID]*entry  // guarded by mu: jobs of this process that wait or have room
	costs   map[disdel.JobID]float64 // guarded by mu: GB-s of ended jobs, which the note has not yet
	looking bool                     // guarded by mu: a goroutine looks at the note while jobs wait
}

// Waiter is told how a job gets on in the queue. Its functions must not block, and not call the Queue. nil functions
// are not called.
type Waiter struct {
	Queued   func(ahead int, why string) // jobs that go first, and what is lacking
	Admitted func(cause string, capacity scheduler.Capacity, waited time.Duration)
}

// entry is a job of this process in the queue.
type entry struct {
	demand   scheduler.Demand
	since    time.Time
	waiter   Waiter
	began    bool          // it had room before, and waits for the next round
	gaveBack bool          // it gave all its room back, which the note does not say yet
	gaveSome bool          // it holds less than the note says
	edits    int           // changes that its job asked for
	granted  chan struct{} // closed once it has its room, or never will
	failed   error         // why it never will
	change   *change

	waits bool // Queued was called,
	ahead int  // with so many jobs ahead
}

// Times and bounds of the queue.
const (
	LookEvery  = 250 * time.Millisecond // between looks at the note while a job waits
	mostWrites = 50                     // tries of a change that other processes were faster than
	blindFor   = 3 * time.Second        // without history after which a process decides for its own jobs only
	lookShare  = 4                      // looks take at most 1 part in lookShare+1 of the time: a long queue takes long
	leaveIn    = 5 * time.Second        // for the write at a job's end
	lookIn     = 10 * time.Second       // for one look: a history that hangs must not keep jobs waiting
)

// New returns the queue of a pool. It returns Invalid for an unknown admission.
func New(cfg Config) (*Queue, error) {
	q := &Queue{
		Config: cfg, kick: make(chan struct{}, 1), entries: map[disdel.JobID]*entry{}, costs: map[disdel.JobID]float64{},
	}
	switch cfg.Admission {
	case scheduler.AdmissionGreedy:
		return q, nil
	case "", scheduler.AdmissionGang, scheduler.AdmissionFIFO:
		by, err := scheduler.AllocatorOf(cfg.Admission)
		q.by = scheduler.Sharing{By: by}
		return q, err
	}
	return nil, &disdel.Error{
		Kind: disdel.Invalid, Op: "open service", Msg: "there is no admission \"" + cfg.Admission + "\"",
		Hint: "admission is gang, fifo or greedy",
	}
}

// Waits reports whether jobs wait at all. With greedy admission none does.
func (q *Queue) Waits() bool { return q.by != nil }

// SinceEpoch is a time on the clock of the queue, which all processes share.
func SinceEpoch(t time.Time) disdel.Millis {
	return disdel.Millis(t.UnixMilli()) * disdel.Millis(time.Millisecond)
}

// Enter waits for the room that a job demands, until ctx ends. It returns OverLimit if the job can never have it.
func (q *Queue) Enter(ctx context.Context, d scheduler.Demand, w Waiter) error {
	e := &entry{demand: d, since: time.Now(), waiter: w, granted: make(chan struct{})}
	if q.by == nil {
		q.admit(e, d.Gang)
		return nil
	}
	q.mu.Lock()
	q.entries[d.Job] = e
	q.mu.Unlock()
	err := q.await(ctx, e, e.granted)
	if err != nil {
		q.Leave(d.Job, 0)
	}
	return err
}

// again gives a job's room back and waits for it anew, in the place that the job's arrival gives it.
func (q *Queue) again(ctx context.Context, job disdel.JobID) error {
	q.mu.Lock()
	e := q.entries[job]
	if e == nil { // greedy admission
		q.mu.Unlock()
		return nil
	}
	granted := make(chan struct{})
	e.edits++
	e.began, e.gaveBack, e.waits, e.granted, e.since = true, true, false, granted, time.Now()
	e.demand.Held, e.demand.Began, e.demand.Quota.Cost = nil, true, 0 // what it comes to was looked at when it began
	q.mu.Unlock()
	return q.await(ctx, e, granted)
}

// await waits until a job has its room.
func (q *Queue) await(ctx context.Context, e *entry, granted <-chan struct{}) error {
	q.startLooking()
	select {
	case <-granted:
		q.mu.Lock()
		defer q.mu.Unlock()
		return e.failed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// startLooking has a goroutine look at the note until no job waits.
func (q *Queue) startLooking() {
	q.mu.Lock()
	begin := !q.looking
	q.looking = true
	q.mu.Unlock()
	if begin {
		q.Running.Go(q.look)
	}
	q.wake()
}

// Leave gives a job's room back, or its place in the queue, and notes what the job has cost, in GB-s.
func (q *Queue) Leave(id disdel.JobID, cost float64) {
	q.mu.Lock()
	_, there := q.entries[id]
	delete(q.entries, id)
	if there {
		q.costs[id] = cost
	}
	looking := q.looking
	if looking {
		q.wake() // the goroutine that looks writes it
	}
	q.mu.Unlock()
	if !there || looking {
		return
	}
	if err := q.settleWithin(context.WithoutCancel(q.Life), leaveIn); err != nil {
		q.Log.WithError(err).WithField("job", id).Debug("what the job held is given back later")
		q.startLooking()
	}
}

func (q *Queue) wake() {
	select {
	case q.kick <- struct{}{}:
	default:
	}
}

// look settles the queue while jobs of this process wait.
func (q *Queue) look() {
	tick := time.NewTicker(LookEvery)
	defer tick.Stop()
	seen := time.Now()
	for {
		began := time.Now()
		err := q.settleWithin(q.Life, lookIn)
		took := time.Since(began)
		if err == nil {
			seen = time.Now()
		} else if time.Since(seen) > blindFor {
			err = errors.Join(err, q.alone(q.Life))
		}
		if err != nil && q.Life.Err() == nil {
			q.Log.WithError(err).Debug("the queue could not be looked at")
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

// rest waits between two looks, at most until the next one is due.
func (q *Queue) rest(d time.Duration) {
	t := time.NewTimer(min(d, LookEvery))
	defer t.Stop()
	select {
	case <-t.C:
	case <-q.Open.Done(): // the waiting jobs are about to leave
	}
}

// waiting reports whether a job of this process waits, or has ended and the note still has it. When the process is
// about to end, its session tells others that. The caller holds the lock.
func (q *Queue) waiting() bool {
	if len(q.costs) > 0 && q.Open.Err() == nil {
		return true
	}
	for _, e := range q.entries {
		if e.demand.Held == nil && !e.answered() || e.asks() {
			return true
		}
	}
	return false
}

// answered reports whether the job was told that it has its room, or never will.
func (e *entry) answered() bool {
	select {
	case <-e.granted:
		return true
	default:
		return false
	}
}

// settleWithin is settle with a time limit.
func (q *Queue) settleWithin(ctx context.Context, limit time.Duration) error {
	ctx, stop := context.WithTimeout(ctx, limit)
	defer stop()
	return q.settle(ctx)
}

// settle brings the note up to date, decides, and tells the jobs of this process.
func (q *Queue) settle(ctx context.Context) error {
	h, err := q.History(ctx)
	if err != nil {
		return err
	}
	pool, err := q.Capacity(ctx)
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

// alone decides for the jobs of this process without the note, so that a job need not wait for a history that does not
// answer. If other processes have the room, the platform makes actions wait.
func (q *Queue) alone(ctx context.Context) error {
	pool, err := q.Capacity(ctx)
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	s := readState(history.Note{})
	admission := q.open(&s, pool, map[string]bool{q.Token: true})
	decided := s.decide(admission, q.Token, SinceEpoch(time.Now()), 0)
	q.tell(q.seen(), admission, decided, q.consider(&s, admission))
	return nil
}

// try changes the note once. It returns Conflict if another process was faster. It does not hold the lock while it
// writes, since a slow history would then block all jobs of this process.
func (q *Queue) try(ctx context.Context, h *history.Store, pool scheduler.Capacity) error {
	note, err := h.Note(ctx, history.NotePool, q.Pool)
	if err != nil && disdel.KindOf(err) != disdel.NotFound {
		return err
	}
	s := readState(note)
	lives, err := q.living(ctx, h, &s)
	if err != nil {
		return err
	}
	busy := q.Busy(ctx)
	q.mu.Lock()
	entered, seen := maps.Clone(q.costs), q.seen()
	admission := q.open(&s, pool, lives)
	decided := s.decide(admission, q.Token, SinceEpoch(time.Now()), busy)
	answers := q.consider(&s, admission)
	q.mu.Unlock()
	value, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if string(value) != string(note.Value) {
		note.Value = value
		if _, err := h.WriteNote(ctx, note); err != nil {
			return err
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for job, cost := range entered {
		if q.costs[job] == cost {
			delete(q.costs, job)
		}
	}
	for _, e := range q.entries { // the note says it now
		if seen.has(e) {
			e.gaveBack, e.gaveSome = false, false
		}
	}
	q.tell(seen, admission, decided, answers)
	return nil
}

// snapshot has the entries that a decision was made for, with their edits at that time. An entry that its job has
// changed since is not told of the decision: the next look corrects the note.
type snapshot map[*entry]int

// seen is a snapshot of all entries; the caller holds the lock.
func (q *Queue) seen() snapshot {
	out := make(snapshot, len(q.entries))
	for _, e := range q.entries {
		out[e] = e.edits
	}
	return out
}

// has tells whether a decision still holds for an entry.
func (s snapshot) has(e *entry) bool {
	edits, ok := s[e]
	return ok && e.edits == edits
}

// tell tells the jobs of this process how they stand, and answers their changes; the caller holds the lock.
func (q *Queue) tell(seen snapshot, admission *scheduler.Admission, decided map[disdel.JobID]scheduler.Grant,
	answers map[disdel.JobID]string,
) {
	for _, d := range admission.Demands() {
		e := q.entries[d.Job]
		if !seen.has(e) {
			continue
		}
		if e.demand.Held == nil && admission.Has(d.Job) {
			e.demand.Held, e.gaveBack = d.Held, false
			q.admit(e, d.Held.Gang)
		}
		if refused, asked := answers[d.Job]; asked {
			e.fulfil(&d, refused)
		}
	}
	for ahead, job := range admission.Queue() {
		if e := q.entries[job]; seen.has(e) {
			e.queued(ahead, decided[job].Why)
		}
	}
	for _, e := range q.entries {
		if e.failed != nil && e.demand.Held == nil && seen.has(e) {
			e.refuse()
		}
	}
}

// queued tells a job that it waits. In a long queue it tells only changes of the place by a tenth.
func (e *entry) queued(ahead int, why string) {
	by := ahead - e.ahead
	if !e.waits || max(by, -by) > e.ahead/10 {
		e.waits, e.ahead = true, ahead
		if e.waiter.Queued != nil {
			e.waiter.Queued(ahead, why)
		}
	}
}

// admit lets a job begin.
func (q *Queue) admit(e *entry, gang scheduler.Gang) {
	defer close(e.granted)
	if e.began || e.waiter.Admitted == nil {
		return
	}
	cause := "the platform makes it wait, if it must"
	if q.by != nil {
		cause = "it has room for " + gang.String()
	}
	e.waiter.Admitted(cause, gang.Room(), time.Since(e.since))
}

// refuse ends the wait of a job that will never have its room.
func (e *entry) refuse() {
	if !e.answered() {
		close(e.granted)
	}
}
