package service

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/scheduler"
)

// pooledMemory is what jobs hold of a pool by its books.
func pooledMemory(t *testing.T, s *Service) (all disdel.Bytes) {
	t.Helper()
	p, err := s.Pool(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range p.Holding {
		all += j.Room.Memory
	}
	return all
}

// untilRound waits for what meets is true of, of the rounds that end from now on.
func untilRound(t *testing.T, s *Service, r *Run, meets func(disdel.Record) bool) disdel.Record {
	t.Helper()
	h, err := s.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for e := range r.Events() {
		if _, ok := e.What.(RoundEnded); !ok {
			continue
		}
		if rec, err := h.Get(t.Context(), r.ID()); err == nil && meets(rec) {
			return rec
		}
	}
	rec, _ := h.Get(t.Context(), r.ID())
	t.Fatalf("it ended before: %+v, stages %d", rec.Decisions, len(rec.Stages))
	return rec
}

// Two processes share a pool. The policy of one job wants a worker more after the first epoch: there is no room beside
// the other's job, which the record says, and it goes on with two. Once the other has ended, it is granted more.
func TestAPolicyIsGrantedWhatIsFree(t *testing.T) {
	home := t.TempDir()
	const pool = 1100 * disdel.MB // the gang of one has 512: two train actions, an aggregation and an evaluation
	first, second := pooled(t, home, pool, false), pooled(t, home, pool, false)
	other := submit(t, second, small(t, "training.epochs=5000"))
	if !after[RoundEnded](other) {
		t.Fatal("no round of the other job")
	}
	grows := submit(t, first, small(t, "training.epochs=5000", "distribution.workers=2", "distribution.minWorkers=2",
		"distribution.policy=kubeml"))
	rec := untilRound(t, first, grows, func(r disdel.Record) bool { return len(r.Decisions) > 0 })
	if d := rec.Decisions[0]; d.Changed || d.Next.Workers != 2 || len(d.NotGranted) != 1 || d.NotGranted[0].Workers != 3 ||
		!strings.Contains(d.NotGranted[0].Why, "another 128 MB of memory, and there are 76.0 MB") {
		t.Fatalf("decided %+v", d)
	}
	if all := pooledMemory(t, first); all != 1024*disdel.MB {
		t.Errorf("%v are held", all)
	}
	other.Cancel(errors.New("enough"))
	rec = untilRound(t, first, grows, func(r disdel.Record) bool { return len(r.Stages) > 1 })
	if n := rec.Stages[1].Workers; n != 3 {
		t.Errorf("a stage of %d workers", n)
	}
	grows.Cancel(errors.New("enough"))
	rec, err := grows.Wait(t.Context())
	if err != nil || rec.Status != disdel.StatusCanceled {
		t.Errorf("%v, %v", rec.Status, err)
	}
	if _, err = other.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	until(t, "pool that is free again", func() bool { return pooledMemory(t, first) == 0 }) // at the next look
}

// A job whose policy lets workers go gives their room to one that waits.
func TestWhatAStageGivesBackIsGranted(t *testing.T) {
	s := pooled(t, t.TempDir(), 1100*disdel.MB, false)
	shrinks := submit(t, s, small(t, "training.epochs=5000", "distribution.workers=4", "distribution.policy=plateau",
		"training.optimizer={sgd: {learningRate: 1e-12}}"))
	if !after[RoundEnded](shrinks) {
		t.Fatal("no round")
	}
	waits := submit(t, s, small(t))
	if rec, err := waits.Wait(t.Context()); err != nil || rec.Status != disdel.StatusSucceeded {
		t.Errorf("%v, %v: %v", rec.Status, err, rec.Failure)
	}
	select {
	case <-shrinks.Done():
		t.Error("the first ended before")
	default:
	}
	shrinks.Cancel(errors.New("enough"))
	if rec, err := shrinks.Wait(t.Context()); err != nil || len(rec.Stages) < 2 || rec.Stages[1].Workers != 2 {
		t.Errorf("%d stages, %v", len(rec.Stages), err)
	}
}

// gangOf is so many train actions of 128 MB.
func gangOf(workers int) scheduler.Gang {
	return scheduler.Gang{{Task: disdel.TaskTrain, Count: workers, Each: scheduler.Capacity{Memory: 128 * disdel.MB}}}
}

// noted is the ledger of a Service's pool.
func noted(t *testing.T, s *Service) (ledger, history.Note) {
	t.Helper()
	h, err := s.everything(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	note, err := h.Note(t.Context(), history.NotePool, s.pool())
	if err != nil && disdel.KindOf(err) != disdel.NotFound {
		t.Fatal(err)
	}
	if note.Kind == "" {
		note.Kind, note.Name = history.NotePool, s.pool()
	}
	return readLedger(note), note
}

// heldIn is what a job holds by a ledger.
func heldIn(l ledger, job disdel.JobID) disdel.Bytes {
	i := slices.IndexFunc(l.Books.Jobs, func(d scheduler.Demand) bool { return d.Job == job })
	if i < 0 || l.Books.Jobs[i].Held == nil {
		return 0
	}
	return l.Books.Jobs[i].Held.Room.Memory
}

// Whatever becomes of an answer, a job holds what it knows of: what was written for it without its hearing of it goes
// back at the next look, a wish that is withdrawn grants nothing, and a process that is no more holds nothing.
func TestNothingIsGrantedUnheard(t *testing.T) {
	home := t.TempDir()
	s := pooled(t, home, 1024*disdel.MB, false)
	run := &Run{id: "job-a", story: &story{}, journal: newJournal("job-a", nil)}
	demand := scheduler.Demand{Job: "job-a", Gang: gangOf(2)}
	if err := s.queue.enter(t.Context(), run, demand); err != nil {
		t.Fatal(err)
	}
	grown := demand
	grown.Gang = gangOf(4)
	l, note := noted(t, s) // as if a change had been written, and its answer lost
	for i := range l.Books.Jobs {
		l.Books.Jobs[i].Gang, l.Books.Jobs[i].Held.Gang = grown.Gang, grown.Gang
		l.Books.Jobs[i].Held.Room = grown.Gang.Room()
	}
	l.Owners["job-dead"] = "gone" // and a process had died that was granted a larger gang
	dead := scheduler.Demand{Job: "job-dead", Gang: gangOf(4)}
	dead.Held = &scheduler.Grant{Job: "job-dead", Gang: dead.Gang, Room: dead.Gang.Room()}
	l.Books.Jobs = append(l.Books.Jobs, dead)
	note.Value, _ = json.Marshal(l)
	h, _ := s.everything(t.Context())
	if _, err := h.WriteNote(t.Context(), note); err != nil {
		t.Fatal(err)
	}
	if err := s.queue.settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	l, _ = noted(t, s)
	if a, d := heldIn(l, "job-a"), heldIn(l, "job-dead"); a != 256*disdel.MB || d != 0 {
		t.Errorf("job-a holds %v, and the dead one %v", a, d)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	refused, err := s.queue.change(stopped, "job-a", grown, false)
	l, _ = noted(t, s)
	if a := heldIn(l, "job-a"); err != nil || (refused == "") != (a == 512*disdel.MB) {
		t.Errorf("refused: %q, %v; it holds %v", refused, err, a)
	}
	if refused, err = s.queue.change(t.Context(), "job-a", grown, false); refused != "" || err != nil {
		t.Fatalf("refused: %q, %v", refused, err)
	}
	l, _ = noted(t, s)
	if a := heldIn(l, "job-a"); a != 512*disdel.MB {
		t.Errorf("it holds %v", a)
	}
	grown.Gang = gangOf(9)
	if refused, err = s.queue.change(t.Context(), "job-a", grown, true); err == nil {
		t.Errorf("a gang that never fits: %q", refused)
	}
	s.queue.leave("job-a", 0)
	if err := s.queue.settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if l, _ = noted(t, s); len(l.Books.Jobs) > 0 {
		t.Errorf("%+v once it has left", l.Books.Jobs)
	}
}

// asked has a job wait for another gang with nothing in hand, before anybody looks.
func asked(q *queue, job disdel.JobID, gang scheduler.Gang) *turn {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.turns[job]
	t.began, t.gaveBack, t.granted = true, true, make(chan struct{})
	t.demand.Gang, t.demand.Held = gang, nil
	return t
}

// holding has two jobs hold so many containers each of a pool of eight.
func holding(t *testing.T, first, second int) *Service {
	t.Helper()
	s := pooled(t, t.TempDir(), 1024*disdel.MB, false)
	for job, workers := range map[disdel.JobID]int{"job-a": first, "job-b": second} {
		run := &Run{id: job, story: &story{}, journal: newJournal(job, nil)}
		if err := s.queue.enter(t.Context(), run, scheduler.Demand{Job: job, Gang: gangOf(workers)}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.queue.leave(job, 0) })
	}
	return s
}

// A job that gave back its gang while the history was away, to wait for a larger one, is not let go with the old gang
// once the ledger is back, which still says that it has that.
func TestAGangThatWasGivenBackBlindlyIsNotGrantedAgain(t *testing.T) {
	s := holding(t, 2, 4)
	waits := asked(s.queue, "job-a", gangOf(6))
	if err := s.queue.alone(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.queue.settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	l, _ := noted(t, s)
	if waits.demand.Held != nil || heldIn(l, "job-a") != 0 {
		t.Errorf("it holds %+v, and by the ledger %v", waits.demand.Held, heldIn(l, "job-a"))
	}
	s.queue.leave("job-b", 0)
	if err := s.queue.settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if waits.demand.Held == nil || waits.demand.Held.Room.Memory != 768*disdel.MB {
		t.Errorf("with room for it: %+v", waits.demand.Held)
	}
}

// A gang that can never be is refused once, and its job does not stand in the ledger afterwards.
func TestAGangThatCanNeverBeLeavesTheQueue(t *testing.T) {
	s := holding(t, 2, 4)
	never := asked(s.queue, "job-a", gangOf(9))
	for range 2 {
		if err := s.queue.settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if l, _ := noted(t, s); never.failed == nil || len(l.Books.Jobs) != 1 {
			t.Errorf("%v, %+v", never.failed, l.Books.Jobs)
		}
	}
	<-never.granted
}

// A job that fails while it waits for the gang of its next round waits no longer.
func TestARoundsTurnEndsWithItsRun(t *testing.T) {
	s := holding(t, 2, 4)
	g := &gangKeeper{queue: s.queue, job: "job-a", life: t.Context(), keep: scheduler.KeepRound}
	if err := g.await(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	s.queue.mu.Lock()
	s.queue.turns["job-a"].demand.Gang = gangOf(6)
	s.queue.mu.Unlock()
	work, stop := context.WithCancelCause(t.Context())
	over := make(chan error, 1)
	go func() { over <- g.await(work, 1) }()
	failed := errors.New("the deadline has passed")
	stop(failed)
	select {
	case err := <-over:
		if !errors.Is(err, failed) {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("it still waits")
	}
}
