package queue

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/history/couchlite"
	"github.com/disdel/disdel/internal/test/wait"
	"github.com/disdel/disdel/scheduler"
)

// records opens a history of its own, through the transport unless it is nil.
func records(t *testing.T, transport http.RoundTripper) *history.Store {
	t.Helper()
	server, err := couchlite.Open(filepath.Join(t.TempDir(), "history.db"), couchlite.Config{})
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	h, err := history.Open(t.Context(), history.Config{URL: server.URL(), Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(h.Close(), server.Close()); err != nil {
			t.Error(err)
		}
	})
	return h
}

// pooled is the queue of a pool of 1 GB.
func pooled(t *testing.T) *Queue {
	t.Helper()
	h := records(t, nil)
	var running sync.WaitGroup
	t.Cleanup(running.Wait)
	q, err := New(Config{
		Pool: "pool", Token: "mine", Log: logrus.New(), Open: t.Context(), Life: t.Context(), Running: &running,
		History: func(context.Context) (*history.Store, error) { return h, nil },
		Capacity: func(context.Context) (scheduler.Capacity, error) {
			return scheduler.CapacityOf(disdel.PlatformLimits{Pool: 1024 * disdel.MB}), nil
		},
		Busy: func(context.Context) disdel.Bytes { return 0 },
	})
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// gangOf is so many train actions of 128 MB.
func gangOf(workers int) scheduler.Gang {
	return scheduler.Gang{{Task: disdel.TaskTrain, Count: workers, Each: scheduler.Capacity{Memory: 128 * disdel.MB}}}
}

// noted is the state in the note of a queue's pool.
func noted(t *testing.T, q *Queue) (poolState, history.Note) {
	t.Helper()
	h, err := q.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	note, err := h.Note(t.Context(), history.NotePool, q.Pool)
	if err != nil && disdel.KindOf(err) != disdel.NotFound {
		t.Fatal(err)
	}
	if note.Kind == "" {
		note.Kind, note.Name = history.NotePool, q.Pool
	}
	return readState(note), note
}

// heldIn is what a job holds by a state.
func heldIn(l poolState, job disdel.JobID) disdel.Bytes {
	i := slices.IndexFunc(l.Books.Jobs, func(d scheduler.Demand) bool { return d.Job == job })
	if i < 0 || l.Books.Jobs[i].Held == nil {
		return 0
	}
	return l.Books.Jobs[i].Held.Room.Memory
}

// Whatever becomes of an answer, a job holds what it knows of: what was written for it without its hearing of it goes
// back at the next look, a wish that is withdrawn grants nothing, and a process that is no more holds nothing.
func TestNothingIsGrantedUnheard(t *testing.T) {
	q := pooled(t)
	demand := scheduler.Demand{Job: "job-a", Gang: gangOf(2)}
	if err := q.Enter(t.Context(), demand, Waiter{}); err != nil {
		t.Fatal(err)
	}
	grown := demand
	grown.Gang = gangOf(4)
	l, note := noted(t, q) // as if a change had been written, and its answer lost
	for i := range l.Books.Jobs {
		l.Books.Jobs[i].Gang, l.Books.Jobs[i].Held.Gang = grown.Gang, grown.Gang
		l.Books.Jobs[i].Held.Room = grown.Gang.Room()
	}
	l.Owners["job-dead"] = "gone" // and a process had died that was granted a larger gang
	dead := scheduler.Demand{Job: "job-dead", Gang: gangOf(4)}
	dead.Held = &scheduler.Grant{Job: "job-dead", Gang: dead.Gang, Room: dead.Gang.Room()}
	l.Books.Jobs = append(l.Books.Jobs, dead)
	note.Value, _ = json.Marshal(l)
	h, _ := q.History(t.Context())
	if _, err := h.WriteNote(t.Context(), note); err != nil {
		t.Fatal(err)
	}
	if err := q.settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	l, _ = noted(t, q)
	if a, d := heldIn(l, "job-a"), heldIn(l, "job-dead"); a != 256*disdel.MB || d != 0 {
		t.Errorf("job-a holds %v, and the dead one %v", a, d)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	refused, err := q.Change(stopped, "job-a", grown, false)
	l, _ = noted(t, q)
	if a := heldIn(l, "job-a"); err != nil || (refused == "") != (a == 512*disdel.MB) {
		t.Errorf("refused: %q, %v; it holds %v", refused, err, a)
	}
	if refused, err = q.Change(t.Context(), "job-a", grown, false); refused != "" || err != nil {
		t.Fatalf("refused: %q, %v", refused, err)
	}
	l, _ = noted(t, q)
	if a := heldIn(l, "job-a"); a != 512*disdel.MB {
		t.Errorf("it holds %v", a)
	}
	grown.Gang = gangOf(9)
	if refused, err = q.Change(t.Context(), "job-a", grown, true); err == nil {
		t.Errorf("a gang that never fits: %q", refused)
	}
	q.Leave("job-a", 0)
	if err := q.settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if l, _ = noted(t, q); len(l.Books.Jobs) > 0 {
		t.Errorf("%+v once it has left", l.Books.Jobs)
	}
}

// asked has a job wait for another gang with nothing in hand, before anybody looks.
func asked(q *Queue, job disdel.JobID, gang scheduler.Gang) *entry {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.entries[job]
	e.began, e.gaveBack, e.granted = true, true, make(chan struct{})
	e.demand.Gang, e.demand.Held = gang, nil
	return e
}

// holding has two jobs hold so many containers each of a pool of eight.
func holding(t *testing.T, first, second int) *Queue {
	t.Helper()
	q := pooled(t)
	for job, workers := range map[disdel.JobID]int{"job-a": first, "job-b": second} {
		if err := q.Enter(t.Context(), scheduler.Demand{Job: job, Gang: gangOf(workers)}, Waiter{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { q.Leave(job, 0) })
	}
	return q
}

// A job that gave back its gang while the history was away, to wait for a larger one, is not let go with the old gang
// once the note is back, which still says that it has that.
func TestAGangThatWasGivenBackBlindlyIsNotGrantedAgain(t *testing.T) {
	q := holding(t, 2, 4)
	waits := asked(q, "job-a", gangOf(6))
	if err := q.alone(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := q.settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	l, _ := noted(t, q)
	if waits.demand.Held != nil || heldIn(l, "job-a") != 0 {
		t.Errorf("it holds %+v, and by the note %v", waits.demand.Held, heldIn(l, "job-a"))
	}
	q.Leave("job-b", 0)
	if err := q.settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if waits.demand.Held == nil || waits.demand.Held.Room.Memory != 768*disdel.MB {
		t.Errorf("with room for it: %+v", waits.demand.Held)
	}
}

// A gang that can never be is refused once, and its job does not stand in the note afterwards.
func TestAGangThatCanNeverBeLeavesTheQueue(t *testing.T) {
	q := holding(t, 2, 4)
	never := asked(q, "job-a", gangOf(9))
	for range 2 {
		if err := q.settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if l, _ := noted(t, q); never.failed == nil || len(l.Books.Jobs) != 1 {
			t.Errorf("%v, %+v", never.failed, l.Books.Jobs)
		}
	}
	<-never.granted
}

// firstLost is a way to the history on which the first three writes of a note get lost.
type firstLost struct {
	http.RoundTripper
	writes atomic.Int32
}

// RoundTrip implements http.RoundTripper.
func (l *firstLost) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/"+history.NotePool+"-") && l.writes.Add(1) <= 3 {
		return nil, errors.New("the line is cut")
	}
	return l.RoundTripper.RoundTrip(r)
}

// A job that can never have its gang is told so although the look that found it out could not write the note. It
// waited for ever, because no further look came (seed 510208 of the simulated pools).
func TestARefusalReachesItsJobAfterLostWrites(t *testing.T) {
	q, way := pooled(t), &firstLost{RoundTripper: http.DefaultTransport}
	h := records(t, way)
	q.History = func(context.Context) (*history.Store, error) { return h, nil }
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	err := q.Enter(ctx, scheduler.Demand{Job: "job-a", Gang: gangOf(9)}, Waiter{})
	if disdel.KindOf(err) != disdel.OverLimit || way.writes.Load() <= 3 {
		t.Errorf("%v after %d writes", err, way.writes.Load())
	}
}

// A job that fails while it waits for the gang of its next round waits no longer.
func TestARoundsTurnEndsWithItsRun(t *testing.T) {
	q := holding(t, 2, 4)
	g := q.Gang(t.Context(), "job-a", scheduler.KeepRound, nil, nil)
	if err := g.await(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	q.mu.Lock()
	q.entries["job-a"].demand.Gang = gangOf(6)
	q.mu.Unlock()
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

// What an ended job held is free for others although the history did not answer at its end: the process
// writes it later.
func TestALostEndGivesTheRoomBackLater(t *testing.T) {
	q := pooled(t)
	if err := q.Enter(t.Context(), scheduler.Demand{Job: "job-a", Gang: gangOf(2)}, Waiter{}); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "nobody waits any more", func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return !q.looking
	})
	answers, lost := q.History, atomic.Int32{}
	q.History = func(ctx context.Context) (*history.Store, error) {
		if lost.Add(1) <= 2 {
			return nil, &disdel.Error{Kind: disdel.Unavailable, Msg: "the history does not answer"}
		}
		return answers(ctx)
	}
	q.Leave("job-a", 1)
	h, err := answers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the room to come back", func() bool {
		note, err := h.Note(t.Context(), history.NotePool, q.Pool)
		l := readState(note)
		return err == nil && len(l.Books.Jobs) == 0 && l.Books.Spent[""] == 1
	})
}
