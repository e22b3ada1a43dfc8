package platform

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/wait"
)

// 200 at once over a pool for 8, twice: each has its record, and the pool ends with what it began with.
func TestTwoHundredAtOnceLoseNothing(t *testing.T) {
	p := start(t, func(c *Config) {
		c.PoolMemory = 8 * 128 * disdel.MB
		c.Limits.ConcurrentInvocations = 1000
		c.PauseGrace = time.Millisecond // so that pausing races with reuse, too
	})
	newTestAction(t, p, "sleep", 60000, 128)
	for round := range 2 {
		ids := make([]string, 200)
		var all sync.WaitGroup
		for i := range ids {
			all.Go(func() {
				_, got := call(t, p, "POST", ns+"/actions/sleep", `{"ms":1}`)
				ids[i] = fmt.Sprint(got["activationId"])
			})
		}
		all.Wait()
		for _, id := range ids {
			if status, result := responseOf(await(t, p, id)); status != statusSuccess {
				t.Errorf("round %d: %s %v", round, status, result)
			}
		}
		wait.Until(t, "all idle", func() bool { s := p.Status(); return s.Running == 0 && s.Queued == 0 })
		if s := p.Status(); s.Ready+s.Paused > 8 || s.Used != disdel.Bytes(s.Ready+s.Paused)*128*disdel.MB {
			t.Errorf("round %d: %+v", round, s)
		}
	}
}

// testPool is a pool whose users start nothing.
func testPool(t *testing.T, total disdel.Bytes) *pool {
	cfg := DefaultConfig()
	cfg.PoolMemory = total
	p := newPool(&cfg, nil)
	t.Cleanup(func() { p.close(); p.drain() })
	return p
}

func sized(memory int) *action { return &action{Limits: limits{Memory: memory}} }

// Whoever came first goes first, and nobody small overtakes somebody large.
func TestTheQueueIsStrictlyInOrder(t *testing.T) {
	const waiters = 200
	p := testPool(t, 8*128*disdel.MB)
	for range 8 {
		if _, err := p.acquire(t.Context(), sized(128)); err != nil {
			t.Fatal(err)
		}
	}
	served := make(chan int, waiters)
	memory := func(i int) int { return 128 + 128*(i%2) }
	for i := range waiters {
		go func() {
			p.acquire(t.Context(), sized(memory(i)))
			served <- i
		}()
		wait.Until(t, "queued", func() bool { return p.status().Queued == i+1 })
	}
	free := 0
	for i := range waiters {
		for ; free < memory(i); free += 128 {
			select {
			case j := <-served:
				t.Fatalf("%d was served with %d MB free, before %d's turn", j, free, i)
			default:
			}
			p.discard(sized(128))
		}
		free -= memory(i)
		if got := <-served; got != i {
			t.Fatalf("%d was served when it was %d's turn", got, i)
		}
		for range memory(i)/128 - 1 { // what was taken as one is given back in parts
			p.mu.Lock()
			p.busy++
			p.mu.Unlock()
		}
	}
}

// A prewarmed container is not started with memory that somebody waits for.
func TestWaitersComeBeforePrewarming(t *testing.T) {
	cfg := DefaultConfig()
	cfg.PoolMemory, cfg.Prewarm = 384*disdel.MB, []Prewarm{{"k", 128 * disdel.MB, 1}}
	p := newPool(&cfg, func(size) (*container, error) { return nil, errors.New("none here") })
	defer func() { p.close(); p.drain() }()
	first := sized(256)
	p.acquire(t.Context(), first)
	served := make(chan error, 1)
	go func() {
		_, err := p.acquire(t.Context(), sized(256))
		served <- err
	}()
	wait.Until(t, "queued", func() bool { return p.status().Queued == 1 })
	p.mu.Lock()
	p.prewarmFailed = false
	p.refill()
	used := p.used
	p.mu.Unlock()
	if used != 256*disdel.MB {
		t.Errorf("%v are used while somebody waits, want 256 MB", used)
	}
	p.discard(first)
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// Any order of coming, going and giving up leaves the count right.
func TestThePoolNeverPromisesMoreThanItHas(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	p := testPool(t, disdel.GB)
	var all sync.WaitGroup
	for n := range 50 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(n)))
			for range 40 {
				a := sized(128 * (1 + random.IntN(4)))
				ctx, stop := context.WithTimeout(t.Context(), time.Duration(random.IntN(3000))*time.Microsecond)
				_, err := p.acquire(ctx, a)
				stop()
				if s := p.status(); s.Used > s.Memory || s.Used < 0 {
					t.Errorf("%+v", s)
				}
				if err == nil {
					p.discard(a)
				}
			}
		})
	}
	all.Wait()
	if s := p.status(); s.Used != 0 || s.Running != 0 || s.Queued != 0 {
		t.Errorf("after all: %+v", s)
	}
}

func TestWarmContainersGoToTheirOwnActionAndNamespaceOnly(t *testing.T) {
	mine := &action{header: header{Namespace: "guest", Name: "a"}, Limits: limits{Memory: 128}}
	same, other := *mine, *mine
	other.Namespace = "other"
	if !sameAction(mine, &same) || sameAction(mine, &other) {
		t.Error("an action is the same by its structure, namespace included")
	}
}
