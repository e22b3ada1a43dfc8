package infer

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/wait"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/service/queue"
)

// pooled is a Predictor with the queue of a pool with so much memory.
func pooled(t *testing.T, memory disdel.Bytes) *Predictor {
	t.Helper()
	s := predictor(records(t))
	var running sync.WaitGroup
	t.Cleanup(running.Wait)
	q, err := queue.New(queue.Config{
		Pool: "pool", Token: "mine", Log: logrus.New(), History: s.cfg.History, Open: t.Context(), Life: t.Context(),
		Running: &running,
		Capacity: func(context.Context) (scheduler.Capacity, error) {
			return scheduler.CapacityOf(disdel.PlatformLimits{Pool: memory}), nil
		},
		Busy: func(context.Context) disdel.Bytes { return 0 },
	})
	if err != nil {
		t.Fatal(err)
	}
	s.cfg.Queue = q
	return s
}

// gangOf is so many train actions of 128 MB.
func gangOf(workers int) scheduler.Gang {
	return scheduler.Gang{{Task: disdel.TaskTrain, Count: workers, Each: scheduler.Capacity{Memory: 128 * disdel.MB}}}
}

// listed is what the queue holds.
func listed(t *testing.T, s *Predictor) queue.Pool {
	t.Helper()
	p, err := s.cfg.Queue.List(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// An inference over a data set waits for room beside jobs, as a job does; it is seen in the pool, takes no more actions
// at once than the pool can hold, and gives back what it held. Who stops asking waits no longer.
func TestAnInferenceWaitsForRoom(t *testing.T) {
	s := pooled(t, 1024*disdel.MB)
	job := scheduler.Demand{Job: "job-a", Gang: gangOf(7)}
	if err := s.cfg.Queue.Enter(t.Context(), job, queue.Waiter{}); err != nil {
		t.Fatal(err)
	}
	q := &query{atOnce: inferAtOnce, platform: disdel.PlatformLimits{Processors: 1}} // no machine has too few for it
	q.plan.Limits = disdel.Limits{Memory: 300 * disdel.MB, Timeout: disdel.Millis(1e9)}
	asks := func(ctx context.Context, parts int) (func(), error) {
		d, err := s.demand(ctx, q, parts)
		if err != nil {
			return nil, err
		}
		return s.reserve(ctx, d)
	}
	stopped, stop := context.WithCancel(t.Context())
	waits := make(chan error, 1)
	go func() {
		_, err := asks(stopped, 9)
		waits <- err
	}()
	waiting := func() []queue.PoolJob { return listed(t, s).Waiting }
	wait.Until(t, "inference that waits", func() bool { return len(waiting()) == 1 })
	if w := waiting()[0]; !w.IsInference() || w.Room.Memory != 900*disdel.MB { // three: the pool never holds four
		t.Errorf("%+v waits", w)
	}
	stop()
	if err := <-waits; !errors.Is(err, disdel.Canceled) {
		t.Errorf("who stops asking: %v", err)
	}
	wait.Until(t, "empty line", func() bool { return len(waiting()) == 0 })
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
	wait.Until(t, "inference that waits", func() bool { return len(waiting()) == 1 })
	select {
	case <-room:
		t.Fatal("it did not wait")
	default:
	}
	s.cfg.Queue.Leave("job-a", 0)
	leave := <-room
	p := listed(t, s)
	if len(p.Holding) != 1 || !p.Holding[0].IsInference() || q.atOnce != 2 {
		t.Errorf("%+v, %d at once", p, q.atOnce)
	}
	leave()
	wait.Until(t, "empty pool", func() bool { return len(listed(t, s).Holding) == 0 }) // at the next look
	q.plan.Limits.Memory = 2048 * disdel.MB
	if _, err := s.demand(t.Context(), q, 2); !errors.Is(err, disdel.OverLimit) {
		t.Errorf("one action that the pool never holds: %v", err)
	}
}

// An inference is one of its tenant's jobs at once, and holds no more than the tenant's quota of memory.
func TestAnInferenceIsBoundByItsTenantsQuota(t *testing.T) {
	ann := pooled(t, 4096*disdel.MB)
	ann.cfg.Tenant = "ann"
	ann.cfg.Quota = func(context.Context) (scheduler.Quota, error) {
		return scheduler.Quota{Jobs: 1, Memory: 700 * disdel.MB}, nil
	}
	demand := func(parts, atOnce int) scheduler.Demand {
		q := &query{atOnce: inferAtOnce, platform: disdel.PlatformLimits{Processors: 1}}
		q.plan.Limits = disdel.Limits{Memory: 300 * disdel.MB, Timeout: disdel.Millis(1e9)}
		d, err := ann.demand(t.Context(), q, parts)
		if err != nil || q.atOnce != atOnce || d.Gang.Size() != atOnce || d.Tenant != "ann" {
			t.Fatalf("%+v, %d at once, %v", d, q.atOnce, err)
		}
		return d
	}
	demand(9, 2) // of which the pool could hold four
	leave, err := ann.reserve(t.Context(), demand(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	second := demand(1, 1) // there is memory for it, too
	granted := make(chan func(), 1)
	go func() {
		leave, err := ann.reserve(t.Context(), second)
		if err != nil {
			t.Error(err)
			leave = func() {}
		}
		granted <- leave
	}()
	wait.Until(t, "inference that waits", func() bool { return len(listed(t, ann).Waiting) == 1 })
	select {
	case <-granted:
		t.Error("two at once")
	default:
	}
	leave()
	(<-granted)()
}
