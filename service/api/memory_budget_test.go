package api

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/service"
	"github.com/disdel/disdel/service/tenant"
)

// TestNoTenantPassesItsShare has drawn tenants send drawn requests. The requests of one tenant never hold more than its
// share, and those of all never more than the whole. The operator always gets in. At the end nothing is held.
func TestNoTenantPassesItsShare(t *testing.T) {
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) { drawnRequests(t, seed) })
	}
}

func drawnRequests(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 31))
	operator := &service.Service{}
	b := newBudget(1+rng.Int64N(100<<20), operator)
	tenants := []*service.Service{operator, {}, {}, {}, {}, {}}
	kinds := []cost{costLook, costList, costSubmit, costWork, costInfer, costStream, costSend, costUpload}
	var mu sync.Mutex
	held, most, refused := map[*service.Service]int64{}, int64(0), 0
	computing := map[*service.Service]int{}
	var done sync.WaitGroup
	for range 400 {
		who, kind := tenants[rng.IntN(len(tenants))], kinds[rng.IntN(len(kinds))]
		body := rng.Int64N(min(8<<20, b.longest(kind)) + 1)
		done.Go(func() {
			free, err := b.take(t.Context(), who, kind, body)
			var none *full
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				if refused++; !errors.As(err, &none) || disdel.KindOf(err) != disdel.Unavailable {
					t.Errorf("seed %d: %v", seed, err)
				}
				return
			}
			held[who] += b.bytes(kind, body)
			if computing[who] += counted(kind); who != operator && computing[who] > mostComputing {
				t.Errorf("seed %d: %d requests of a tenant compute at once", seed, computing[who])
			}
			all := int64(0)
			for one, n := range held {
				if one != operator {
					all += n
				}
			}
			if most = max(most, all); held[who] > b.share || all > b.all {
				t.Errorf("seed %d: a tenant holds %d of %d, all %d of %d", seed, held[who], b.share, all, b.all)
			}
			done.Go(func() {
				mu.Lock()
				held[who] -= b.bytes(kind, body)
				computing[who] -= counted(kind)
				mu.Unlock()
				free()
				free() // a second time changes nothing
			})
		})
	}
	done.Wait()
	for _, kind := range kinds { // nothing that could never have room waits for it
		if longest := b.longest(kind); kind.factor > 0 {
			_, err := b.take(t.Context(), operator, kind, longest+1)
			if disdel.KindOf(err) != disdel.OverLimit {
				t.Errorf("seed %d: a body of more than %d bytes of %s: %v", seed, longest, kind.name, err)
			}
		}
	}
	if b.held != 0 || len(b.tenants) != 0 || most == 0 {
		t.Errorf("seed %d: %d bytes are held at the end, by %d; the most was %d", seed, b.held, len(b.tenants), most)
	}
}

// TestAFullServerHasRoomForItsOperator fills the whole budget with tenants: another tenant is told that the server is
// full, a tenant that its own share is, and the operator gets in.
func TestAFullServerHasRoomForItsOperator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		operator := &service.Service{}
		c := cost{name: "lists", base: 1 << 20, maximum: 8}
		b := newBudget(4*c.base, operator)
		take := func(who *service.Service) (func(), error) { return b.take(t.Context(), who, c, 0) }
		var first func()
		for range tenantsAtOnce {
			who := &service.Service{}
			for range 4 {
				free, err := take(who)
				if err != nil {
					t.Fatal(err)
				}
				first = free
			}
			_, err := take(who)
			var none *full
			if !errors.As(err, &none) || none.status != http.StatusTooManyRequests {
				t.Errorf("its share is used up: %v", err)
			}
		}
		_, err := take(&service.Service{})
		var none *full
		if !errors.As(err, &none) || none.status != http.StatusServiceUnavailable {
			t.Errorf("all is used up: %v", err)
		}
		if _, err := take(operator); err != nil {
			t.Errorf("the operator has no room: %v", err)
		}
		waits := make(chan error)
		go func() {
			_, err := take(&service.Service{})
			waits <- err
		}()
		synctest.Wait()
		first() // what comes back goes to whoever waits
		if err := <-waits; err != nil {
			t.Error(err)
		}
	})
}

// TestWhoWaitsForRoomMayGo ends a request while it waits: it holds nothing afterwards.
func TestWhoWaitsForRoomMayGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, who := newBudget(1, nil), &service.Service{}
		free, err := b.take(t.Context(), who, costList, 0)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := b.take(ctx, who, costList, 0)
			done <- err
		}()
		synctest.Wait()
		stop()
		if err := <-done; err == nil {
			t.Error("there was room")
		}
		free()
		if len(b.tenants) != 0 || b.held != 0 {
			t.Errorf("%d bytes of %d tenants are held", b.held, len(b.tenants))
		}
	})
}

// TestAStreamEndsWithItsToken takes a token away. The streams of that token end at the next look; those of other tokens
// go on. A history that does not answer ends none.
func TestAStreamEndsWithItsToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		gone := map[string]error{}
		tokens := newTokens(func(_ context.Context, token string) (string, tenant.Role, error) {
			mu.Lock()
			defer mu.Unlock()
			return "", "", gone[token]
		})
		ended := map[string]int{}
		var leave []func()
		for _, token := range []string{"a", "a", "b"} {
			leave = append(leave, tokens.join(token, func() { ended[token]++ }))
		}
		mu.Lock()
		gone["a"] = &disdel.Error{Kind: disdel.Denied}
		gone["b"] = &disdel.Error{Kind: disdel.Unavailable}
		mu.Unlock()
		time.Sleep(2 * lookAtTokens) // of the bubble: it takes no time
		tokens.mu.Lock()
		if ended["a"] < 2 || ended["b"] != 0 {
			t.Errorf("%v ended", ended)
		}
		tokens.mu.Unlock()
		for _, l := range leave {
			l()
		}
		if len(tokens.open) != 0 {
			t.Error("tokens are looked up that nobody has open")
		}
	})
}

// What a tenant holds is not forgotten when a request that took nothing gives that back.
func TestARequestThatTakesNothingGivesNothingElseBack(t *testing.T) {
	b, who := newBudget(100, &service.Service{}), &service.Service{}
	b.patience = 0
	nothing, err := b.hold(t.Context(), who, 0)
	if err != nil {
		t.Fatal(err)
	}
	free, err := b.hold(t.Context(), who, 60)
	if err != nil {
		t.Fatal(err)
	}
	nothing()
	var none *full
	if _, err := b.hold(t.Context(), who, 60); !errors.As(err, &none) {
		t.Errorf("a tenant passes its share: %v", err)
	}
	free()
	if len(b.tenants) != 0 {
		t.Errorf("%d tenants hold something", len(b.tenants))
	}
}

// A request that needs more than the whole share is refused with words that fit it.
func TestARequestThatIsTooLargeIsToldWhatToDo(t *testing.T) {
	h := newHouse(t, Config{})
	rec := h.submitted()
	if status, data := h.ask("ann read", "GET", "/api/v1/jobs/"+string(rec.ID)+"/wait?timeout=5m", nil); status != 200 {
		t.Fatalf("%d %s", status, data)
	}
	s := newServer(t.Context(), Config{Service: h.s, Share: disdel.KB})
	_, _, err := s.watch(t.Context(), h.s.Tenant("ann"), string(rec.ID))
	if e := disdel.AsError(err); disdel.KindOf(err) != disdel.OverLimit || !strings.Contains(e.Hint, string(rec.ID)) {
		t.Errorf("a look at a large record: %v", err)
	}
	c := &call{server: s, Service: h.s.Tenant("ann")}
	if err := c.hold(2048); disdel.KindOf(err) != disdel.OverLimit || disdel.AsError(err).Hint != "send less at once" {
		t.Errorf("a large upload: %v", err)
	}
}

// A tenant computes a few answers at once. The others wait for their turn, longer than requests wait for memory, and do
// not delay another tenant.
func TestSubmissionsOfATenantComputeInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, ann, bob := newBudget(100, &service.Service{}), &service.Service{}, &service.Service{}
		var running, most atomic.Int64
		var done sync.WaitGroup
		for range 4 * mostComputing {
			done.Go(func() {
				free, err := b.take(t.Context(), ann, costCompute, 0)
				if err != nil {
					t.Error(err)
					return
				}
				defer free()
				n := running.Add(1)
				for seen := most.Load(); n > seen && !most.CompareAndSwap(seen, n); seen = most.Load() {
				}
				time.Sleep(waitsForRoom)
				running.Add(-1)
			})
		}
		synctest.Wait()
		began := time.Now()
		free, err := b.take(t.Context(), bob, costCompute, 0)
		if err != nil || !time.Now().Equal(began) {
			t.Errorf("another tenant waits for %v: %v", time.Since(began), err)
		}
		free()
		done.Wait()
		if int(most.Load()) != mostComputing || len(b.tenants) != 0 {
			t.Errorf("%d computed at once, and %d tenants hold something at the end", most.Load(), len(b.tenants))
		}
	})
}
