package history_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/test/historytest"
)

// leaseCall is one call about one lease. A lease is known by the token of its owner, of which each is written once.
type leaseCall struct {
	kind string // read, take or release
	from string // take and release: the state that the caller knows; "": none
	to   string // take: the state that it writes
}

// leaseAnswer is what a call returned.
type leaseAnswer struct {
	done  bool   // take and release: false is Conflict
	token string // read: the state; "": none
}

// leases is the promise of leases for porcupine: a lease changes only from the state that its writer knows.
var leases = porcupine.Model{
	Init: func() any { return "" },
	Step: func(state, input, output any) (bool, any) {
		c, a := input.(leaseCall), output.(leaseAnswer)
		switch c.kind {
		case "read":
			return a.token == state, state
		case "take":
			if a.done {
				return c.from == state, c.to
			}
			return c.from != state, state
		}
		if a.done { // releasing a missing lease succeeds
			return state == "" || c.from == state, ""
		}
		return state != "" && c.from != state, state
	},
}

// leaseHistory has clients take, read and release one lease at once, and returns what they saw.
func leaseHistory(t *testing.T, s *history.Store, seed uint64) []porcupine.Operation {
	t.Helper()
	job := historytest.Record(1).ID
	var mu sync.Mutex
	var out []porcupine.Operation
	var all sync.WaitGroup
	began := time.Now()
	for client := range 4 {
		rng := rand.New(rand.NewPCG(seed, uint64(client)))
		all.Go(func() {
			known := []history.Lease{{Job: job}}
			for i := range 30 {
				from := known[rng.IntN(len(known))]
				c := leaseCall{from: from.Owner.Token, to: fmt.Sprintf("%d-%d", client, i)}
				at := time.Since(began)
				answer, next, err := makeLeaseCall(s, rng, &c, from)
				if err != nil {
					t.Error(err)
					return
				}
				if known = append(known, next); len(known) > 3 {
					known = known[1:]
				}
				mu.Lock()
				out = append(out, porcupine.Operation{
					ClientId: client, Input: c, Call: int64(at), Output: answer, Return: int64(time.Since(began)),
				})
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return out
}

// makeLeaseCall draws a call and makes it. It returns the lease that the caller knows then.
func makeLeaseCall(s *history.Store, rng *rand.Rand, c *leaseCall, from history.Lease) (
	leaseAnswer, history.Lease, error,
) {
	ctx, none := context.Background(), history.Lease{Job: from.Job}
	draw := rng.IntN(5)
	if draw == 4 && from.Owner.Token == "" {
		draw = 0 // nobody releases what was never read or taken
	}
	switch draw {
	case 0, 1:
		c.kind = "read"
		got, err := s.Lease(ctx, from.Job)
		if errors.Is(err, disdel.NotFound) {
			return leaseAnswer{}, none, nil
		}
		return leaseAnswer{token: got.Owner.Token}, got, err
	case 2, 3:
		c.kind = "take"
		next := from
		next.Owner, next.Expires = history.Owner{Token: c.to}, time.Now().Add(time.Minute)
		taken, err := s.Take(ctx, next)
		if errors.Is(err, disdel.Conflict) {
			return leaseAnswer{}, from, nil
		}
		return leaseAnswer{done: true}, taken, err
	}
	c.kind = "release"
	err := s.Release(ctx, from)
	if errors.Is(err, disdel.Conflict) {
		return leaseAnswer{}, from, nil
	}
	return leaseAnswer{done: true}, none, err
}

// Of several who write one lease at once, one succeeds, and all see it, on the embedded server and on one of others.
func TestHistoriesOfLeasesAreLinearizable(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for name, start := range map[string]func(*testing.T) string{
		"couchlite":      func(t *testing.T) string { return lite(t, filepath.Join(t.TempDir(), "history.db")).URL() },
		"pouchdb-server": pouchdb,
	} {
		t.Run(name, func(t *testing.T) {
			calls := leaseHistory(t, opener(start(t))(t), seed)
			if result := porcupine.CheckOperationsTimeout(leases, calls, time.Minute); result != porcupine.Ok {
				t.Errorf("%d calls: %s", len(calls), result)
			}
		})
	}
}

// The checker finds a lease that two writers took from the same state, and one that a stranger released.
func TestTheCheckerFindsBrokenLeases(t *testing.T) {
	took := leaseAnswer{done: true}
	for what, calls := range map[string][]leaseCall{
		"taken twice":            {{"take", "", "a"}, {"take", "", "b"}},
		"released by a stranger": {{"take", "", "a"}, {"take", "a", "b"}, {"release", "a", ""}},
	} {
		var list []porcupine.Operation
		for i, c := range calls {
			list = append(list, porcupine.Operation{Input: c, Output: took, Call: int64(2 * i), Return: int64(2*i + 1)})
		}
		if porcupine.CheckOperations(leases, list) {
			t.Errorf("%s: looks right", what)
		}
	}
}
