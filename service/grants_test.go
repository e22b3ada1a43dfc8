package service

import (
	"errors"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/wait"
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
// the other's job, which the record says, and it continues with two. Once the other has ended, it is granted more.
func TestAPolicyIsGrantedWhatIsFree(t *testing.T) {
	t.Parallel()
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
	wait.Until(t, "pool that is free again", func() bool { return pooledMemory(t, first) == 0 }) // at the next look
}

// A job whose policy lets workers go gives their room to one that waits.
func TestWhatAStageGivesBackIsGranted(t *testing.T) {
	t.Parallel()
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
