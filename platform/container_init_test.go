package platform

import (
	"context"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/wait"
)

// sharingPool is a pool without processes, and an action of which two may share a container.
func sharingPool(t *testing.T) (*pool, *action) {
	cfg := DefaultConfig()
	cfg.Kinds = map[string]Kind{"k": {Env: []string{allowConcurrent + "=true"}}}
	p := newPool(&cfg, nil)
	t.Cleanup(func() { p.close(); p.drain() })
	a := sized(128)
	a.Exec.Kind, a.Limits.Concurrency = "k", 3
	return p, a
}

// Those that wait for a container's /init get its end where it fails, and another container where it asks for that.
func TestAFailedInitIsThatOfAllWhoWaitForIt(t *testing.T) {
	p, a := sharingPool(t)
	first, err := p.acquire(t.Context(), a)
	if err != nil || first.container != nil {
		t.Fatal(first, err)
	}
	got := make(chan *containerSlot, 2)
	for i := range 2 {
		go func() {
			s, _ := p.acquire(t.Context(), a)
			got <- s
		}()
		wait.Until(t, "it waits", func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			return len(first.init.waiting) == i+1
		})
	}
	if s := p.status(); s.Running != 1 || s.Used != 128*disdel.MB {
		t.Errorf("%+v", s)
	}
	p.initFailed(first, &activationEnd{status: statusDeveloper, text: "why"})
	for range 2 {
		if s := <-got; s.failed == nil || s.failed.text != "why" || s.failed.cold {
			t.Errorf("%+v", s.failed)
		}
	}
	p.discard(a)

	first, _ = p.acquire(t.Context(), a)
	go func() {
		s, _ := p.acquire(t.Context(), a)
		got <- s
	}()
	wait.Until(t, "it waits", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(first.init.waiting) == 1
	})
	p.initFailed(first, &activationEnd{status: statusDeveloper, text: "busy", reschedule: true})
	p.discard(a)
	if s := <-got; s.failed != nil || s.container != nil {
		t.Errorf("%+v", s)
	}
	p.discard(a)
	if s := p.status(); s.Running != 0 || s.Used != 0 || s.Queued != 0 {
		t.Errorf("after all: %+v", s)
	}
}

// Who gives up while he waits for a container's /init leaves nothing behind.
func TestGivingUpBeforeAnInitLeavesThePlace(t *testing.T) {
	p, a := sharingPool(t)
	first, _ := p.acquire(t.Context(), a)
	ctx, stop := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := p.acquire(ctx, a)
		gone <- err
	}()
	waiting := func() int {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(first.init.waiting)
	}
	wait.Until(t, "it waits", func() bool { return waiting() == 1 })
	stop()
	if err := <-gone; err == nil || waiting() != 0 {
		t.Errorf("%v, %d wait", err, waiting())
	}
	p.initFailed(first, &activationEnd{status: statusDeveloper})
	p.discard(a)
}
