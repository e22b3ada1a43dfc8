package service

import (
	"context"
	"errors"
	"strings"
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
	q := &question{atOnce: inferAtOnce, platform: disdel.PlatformLimits{Processors: 1}} // no machine has too few for it
	q.plan.Limits = disdel.Limits{Memory: 300 * disdel.MB, Timeout: disdel.Millis(1e9)}
	asks := func(ctx context.Context, parts int) (func(), error) {
		d, err := s.demand(ctx, q, parts)
		if err != nil {
			return nil, err
		}
		return s.room(ctx, d)
	}
	stopped, stop := context.WithCancel(t.Context())
	waits := make(chan error, 1)
	go func() {
		_, err := asks(stopped, 9)
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
		leave, err := asks(t.Context(), 2)
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
	if _, err := s.demand(t.Context(), q, 2); !errors.Is(err, disdel.OverLimit) {
		t.Errorf("one action that the pool never holds: %v", err)
	}
}

// An inference that its tenant's quota never has room for is refused before its first line, so that whoever asked a
// server is told by the status of its answer.
func TestAnInferenceThatNeverFitsHasNoFirstLine(t *testing.T) {
	all := pooled(t, t.TempDir(), 1024*disdel.MB, false)
	s := all.Tenant("ann")
	with := func(quota scheduler.Quota) {
		if _, err := all.CreateTenant(t.Context(), "ann", RoleSubmit, &quota); err != nil {
			t.Fatal(err)
		}
	}
	with(scheduler.Quota{})
	if err := s.AddDigits(t.Context()); err != nil {
		t.Fatal(err)
	}
	passed(t, submit(t, s, small(t)))
	with(scheduler.Quota{Memory: 64 * disdel.MB})
	m, err := s.Trained(t.Context(), "small")
	if err != nil {
		t.Fatal(err)
	}
	var to gathered
	_, err = s.InferData(t.Context(), m, DataQuestion{Dataset: "digits"}, &to)
	if !errors.Is(err, disdel.OverLimit) || to.head.Model != "" {
		t.Errorf("%v, after the line of %q", err, to.head.Model)
	}
	if text := err.Error(); strings.Contains(text, "job") || strings.Contains(disdel.AsError(err).Hint, "training.") {
		t.Errorf("%v speaks of a job: %s", err, disdel.AsError(err).Hint)
	}
}

// An inference is one of its tenant's jobs at once, and holds no more than the tenant's quota of memory.
func TestAnInferenceIsBoundByItsTenantsQuota(t *testing.T) {
	s := pooled(t, t.TempDir(), 4096*disdel.MB, false)
	quota := &scheduler.Quota{Jobs: 1, Memory: 700 * disdel.MB}
	if _, err := s.CreateTenant(t.Context(), "ann", RoleSubmit, quota); err != nil {
		t.Fatal(err)
	}
	ann := s.Tenant("ann")
	demand := func(parts, atOnce int) scheduler.Demand {
		q := &question{atOnce: inferAtOnce, platform: disdel.PlatformLimits{Processors: 1}}
		q.plan.Limits = disdel.Limits{Memory: 300 * disdel.MB, Timeout: disdel.Millis(1e9)}
		d, err := ann.demand(t.Context(), q, parts)
		if err != nil || q.atOnce != atOnce || d.Gang.Size() != atOnce || d.Tenant != "ann" {
			t.Fatalf("%+v, %d at once, %v", d, q.atOnce, err)
		}
		return d
	}
	demand(9, 2) // of which the pool could hold four
	leave, err := ann.room(t.Context(), demand(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	second := demand(1, 1) // there is memory for it, too
	granted := make(chan func(), 1)
	go func() {
		leave, err := ann.room(t.Context(), second)
		if err != nil {
			t.Error(err)
			leave = func() {}
		}
		granted <- leave
	}()
	until(t, "inference that waits", func() bool {
		p, err := s.Pool(t.Context())
		return err == nil && len(p.Waiting) == 1
	})
	select {
	case <-granted:
		t.Error("two at once")
	default:
	}
	leave()
	(<-granted)()
}
