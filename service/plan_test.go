package service

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/disdel/disdel"
)

// Records are kept for a while, each kind's apart. Then they are read again beside the submissions, one kind at a time.
// A submission waits only for records that are much too old. A search that failed is repeated, and old kinds are
// dropped.
func TestAPastIsKeptForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var kept recordCache
		turn := make(chan struct{}, 1)
		reads := 0
		read := func(context.Context) ([]disdel.Record, error) {
			reads++
			return nil, nil
		}
		var later []func(context.Context)
		beside := func(f func(context.Context)) { later = append(later, f) }
		get := func(key string, want int) {
			t.Helper()
			if _, err := kept.get(t.Context(), lookUp{key, turn, true, read}, beside); err != nil || reads != want {
				t.Fatalf("%s: read %d times, want %d; %v", key, reads, want, err)
			}
		}
		get("a", 1)
		get("a", 1)
		get("b", 2)
		time.Sleep(pastFor)
		for range 3 {
			get("a", 2)
			get("b", 2)
		}
		if len(later) != 1 {
			t.Fatalf("%d are read again at once, want one", len(later))
		}
		later[0](t.Context())
		get("a", 3)
		get("b", 3)
		if len(later) != 2 {
			t.Fatalf("of two that are no longer new %d were read again", len(later))
		}
		time.Sleep(pastMost)
		get("a", 4)
		if len(kept.kept) != 1 {
			t.Errorf("%d are kept, want only the new one", len(kept.kept))
		}
		later[1](t.Context())
		reads = 3
		bad := errors.New("away")
		away := func(context.Context) ([]disdel.Record, error) { return nil, bad }
		if _, err := kept.get(t.Context(), lookUp{"c", turn, true, away}, beside); !errors.Is(err, bad) {
			t.Errorf("%v", err)
		}
		get("c", 4)
		for i := range 3 * mostKept {
			get(fmt.Sprint("kind ", i), 5+i)
		}
		if len(kept.kept) > mostKept {
			t.Errorf("%d are kept", len(kept.kept))
		}
	})
}

// A service that plans nothing for a while keeps no records: its memory is what it was before the jobs.
func TestAnIdleServiceKeepsNoPast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var kept recordCache
		read := func(context.Context) ([]disdel.Record, error) { return make([]disdel.Record, 1), nil }
		for _, key := range []string{"a", "b"} {
			for range 2 {
				if _, err := kept.get(t.Context(), lookUp{key, make(chan struct{}, 1), false, read}, nil); err != nil {
					t.Fatal(err)
				}
				time.Sleep(pastMost / 4)
			}
		}
		held := func() int {
			kept.mu.Lock()
			defer kept.mu.Unlock()
			return len(kept.kept)
		}
		if n := held(); n != 2 {
			t.Errorf("%d kinds of records are kept between submissions, not 2", n)
		}
		time.Sleep(pastMost)
		synctest.Wait()
		if n := held(); n != 0 {
			t.Errorf("%d kinds of records are kept a minute after the last submission", n)
		}
	})
}

// Many submissions of one tenant that come together read the history twice at most: once for the first, and once for
// all that came while that was under way. A later submission reads it again, and sees what ended in between.
func TestSubmissionsOfATenantShareThePast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var kept recordCache
		turn := make(chan struct{}, 1)
		var reads, atOnce atomic.Int32
		look := lookUp{"a", turn, false, func(context.Context) ([]disdel.Record, error) {
			if atOnce.Add(1) > 1 {
				t.Error("two searches at once")
			}
			time.Sleep(time.Second)
			atOnce.Add(-1)
			return []disdel.Record{{ID: disdel.JobID(fmt.Sprint(reads.Add(1)))}}, nil
		}}
		var done sync.WaitGroup
		submit := func(n int, want disdel.JobID) {
			for range n {
				done.Go(func() {
					if list, err := kept.get(t.Context(), look, nil); err != nil || list[0].ID != want {
						t.Errorf("%v, %v, want search %s", list, err, want)
					}
				})
			}
		}
		submit(1, "1")
		time.Sleep(time.Millisecond)
		submit(50, "2")
		done.Wait()
		submit(1, "3")
		done.Wait()
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := kept.get(canceled, look, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}

// Earlier jobs of the same network have the very layers of the job, and the records that others share stay as they are.
func TestThePastOfANetworkSharesItsLayers(t *testing.T) {
	layers := func(units int) []disdel.Layer { return []disdel.Layer{{Kind: "dense", Units: units}} }
	of := func(layers []disdel.Layer) (r disdel.Record) {
		r.Job.Model.Layers = layers
		return r
	}
	own, equal, other := layers(1), layers(1), layers(2)
	records := []disdel.Record{of(equal), of(other), of(nil)}
	shareLayers(own, records)
	got := func(i int) []disdel.Layer { return records[i].Job.Model.Layers }
	if &got(0)[0] != &own[0] || &got(1)[0] != &other[0] || got(2) != nil {
		t.Errorf("%+v", records)
	}
	shareLayers(nil, records)
	if &got(0)[0] != &own[0] || got(2) != nil {
		t.Errorf("of a named network: %+v", records)
	}
}
