package service

import (
	"context"
	"errors"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// An inference over a data set waits for room beside jobs, as a job does; it is seen in the pool, takes no more actions
// at once than the pool can hold, and gives back what it held. Who stops asking waits no longer.
func TestAnInferenceWaitsForRoom(t *testing.T) {
	s := pooled(t, t.TempDir(), 1024*disdel.MB, false)
	run := &Run{id: "job-a", story: &story{}, journal: newJournal("job-a", nil)}
	if err := s.queue.enter(t.Context(), run, scheduler.Demand{Job: "job-a", Gang: gangOf(7)}); err != nil {
		t.Fatal(err)
	}
	q := &question{atOnce: inferAtOnce}
	q.plan.Limits = disdel.Limits{Memory: 300 * disdel.MB, Timeout: disdel.Millis(1e9)}
	stopped, stop := context.WithCancel(t.Context())
	waits := make(chan error, 1)
	go func() {
		_, err := s.room(stopped, q, 9)
		waits <- err
	}()
	waiting := func() []PoolJob {
		p, err := s.Pool(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return p.Waiting
	}
	until(t, "inference that waits", func() bool { return len(waiting()) == 1 })
	if w := waiting()[0]; !w.IsInference() || w.Room.Memory != 900*disdel.MB { // three: the pool never holds four
		t.Errorf("%+v waits", w)
	}
	stop()
	if err := <-waits; !errors.Is(err, disdel.Canceled) {
		t.Errorf("who stops asking: %v", err)
	}
	until(t, "empty line", func() bool { return len(waiting()) == 0 })
	q.atOnce = inferAtOnce
	room := make(chan func(), 1)
	go func() {
		leave, err := s.room(t.Context(), q, 2)
		if err != nil {
			t.Error(err)
			leave = func() {}
		}
		room <- leave
	}()
	until(t, "inference that waits", func() bool { return len(waiting()) == 1 })
	select {
	case <-room:
		t.Fatal("it did not wait")
	default:
	}
	s.queue.leave("job-a", 0)
	leave := <-room
	p, err := s.Pool(t.Context())
	if err != nil || len(p.Holding) != 1 || !p.Holding[0].IsInference() || q.atOnce != 2 {
		t.Errorf("%+v, %d at once, %v", p, q.atOnce, err)
	}
	leave()
	until(t, "empty pool", func() bool { // whoever still looks for those that wait writes it down
		p, err := s.Pool(t.Context())
		return err == nil && len(p.Holding) == 0
	})
	q.plan.Limits.Memory = 2048 * disdel.MB
	if _, err := s.room(t.Context(), q, 2); !errors.Is(err, disdel.OverLimit) {
		t.Errorf("one action that the pool never holds: %v", err)
	}
}
