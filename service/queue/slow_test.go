package queue

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/test/wait"
	"github.com/disdel/disdel/scheduler"
)

// slowNote is a way to a history whose next write of a pool's note waits until it is released.
type slowNote struct {
	writes  chan struct{} // has one element once the write has begun
	release chan struct{}
	once    sync.Once
}

func (s *slowNote) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "pool") {
		s.once.Do(func() {
			s.writes <- struct{}{}
			<-s.release
		})
	}
	return http.DefaultTransport.RoundTrip(r)
}

// A note that is written slowly holds up only the jobs that wait for it. A job that gives up meanwhile gets no room by
// what was decided before, and the pool is free for the next one.
func TestASlowNoteBlocksNoOtherJob(t *testing.T) {
	slow := &slowNote{writes: make(chan struct{}, 1), release: make(chan struct{})}
	h := records(t, slow)
	q := pooled(t)
	q.History = func(context.Context) (*history.Store, error) { return h, nil }
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	entered := make(chan error, 1)
	go func() { entered <- q.Enter(ctx, scheduler.Demand{Job: "job-a", Gang: gangOf(8)}, Waiter{}) }()
	<-slow.writes
	giveUp()
	select {
	case err := <-entered:
		if err == nil {
			t.Error("it has room that it gave up")
		}
	case <-time.After(time.Minute):
		t.Error("a job cannot give up while the note is written")
	}
	close(slow.release)
	if err := q.Enter(t.Context(), scheduler.Demand{Job: "job-b", Gang: gangOf(8)}, Waiter{}); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the note to lack the job that gave up", func() bool {
		s, _ := noted(t, q)
		return heldIn(s, "job-a") == 0 && heldIn(s, "job-b") == 1024*disdel.MB
	})
	q.Leave("job-b", 0)
}

// A history that never answers keeps no job waiting: after lookIn the process decides alone.
func TestAHistoryThatHangsKeepsNoJobWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		life, end := context.WithCancel(t.Context())
		var running sync.WaitGroup
		q, err := New(Config{
			Pool: "pool", Token: "mine", Log: logrus.New(), Open: life, Life: life, Running: &running,
			History: func(ctx context.Context) (*history.Store, error) { <-ctx.Done(); return nil, context.Cause(ctx) },
			Capacity: func(context.Context) (scheduler.Capacity, error) {
				return scheduler.CapacityOf(disdel.PlatformLimits{Pool: 1024 * disdel.MB}), nil
			},
			Busy: func(context.Context) disdel.Bytes { return 0 },
		})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		within, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if err := q.Enter(within, scheduler.Demand{Job: "job-a", Gang: gangOf(2)}, Waiter{}); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > lookIn+blindFor {
			t.Errorf("it waited %v", took)
		}
		end()
		running.Wait()
	})
}
