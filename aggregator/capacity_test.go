package aggregator

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	own "github.com/disdel/disdel/aggregator/embedded"
)

func TestNeedIsTheSumOfWhatIsHeld(t *testing.T) {
	for _, c := range []struct {
		need Need
		want disdel.Bytes
	}{
		{Need{Workers: 8, Update: 100, Reference: 100}, 1100},                                     // (800 + 200) x 1.1
		{Need{Workers: 8, Update: 26, Reference: 100}, 448},                                       // (208 + 200) x 1.1
		{Need{Workers: 8, Update: 100, Reference: 100, Outputs: 2}, 1320},                         // and 200
		{Need{Workers: 2, Update: 100, Reference: 100, State: 300}, (200 + 200 + 1200) * 11 / 10}, // two states of each
		{Need{Workers: 2, Update: 100, Reference: 200, Passed: 900}, 1430},                        // (900 + 400) x 1.1
		{Need{Workers: 2, Update: 100, Reference: 200, Passed: 90}, 660},                          // (200 + 400) x 1.1
		// and 40 deltas
		{
			Need{Workers: 2, Update: 100, Reference: 100, Deltas: 40, Delta: 500, Last: 900},
			(200 + 200 + 40*(500+deltaKeys) + 2*(900+deltaKeys)) * 11 / 10,
		},
	} {
		if got := c.need.Bytes() - disdel.Bytes(c.need.Workers+2)*perProcess; got != c.want {
			t.Errorf("%+v holds %d, want %d", c.need, got, c.want)
		}
	}
}

func TestAJobThatDoesNotFitIsRefusedWithTheArithmetic(t *testing.T) {
	n := Need{Workers: 8, Update: 100 * disdel.MB, Reference: 100 * disdel.MB}
	room := func(limit disdel.Bytes) Capacity {
		return Capacity{Server: "r:1", Known: true, Used: 10 * disdel.MB, Limit: limit}
	}
	err := n.Fits([]Capacity{room(1100 * disdel.MB)})
	var e *disdel.Error
	if !errors.As(err, &e) || e.Kind != disdel.OverLimit {
		t.Fatalf("got %v, want OverLimit", err)
	}
	for _, text := range []string{"8 updates of ", "2 references of ", "Redis at r:1 has "} {
		if !strings.Contains(e.Msg, text) {
			t.Errorf("%q does not say %q", e.Msg, text)
		}
	}
	if !strings.Contains(e.Hint, "maxmemory") || !strings.Contains(e.Hint, "int8") {
		t.Errorf("hint %q", e.Hint)
	}
	for name, servers := range map[string][]Capacity{
		"enough": {room(1120 * disdel.MB)}, "half of it each": {room(570 * disdel.MB), room(570 * disdel.MB)},
		"unknown": {{Server: "r:1"}}, "no limit": {{Server: "r:1", Known: true, Used: 1 << 40}},
	} {
		if err := n.Fits(servers); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := n.Fits([]Capacity{room(1120 * disdel.MB), room(540 * disdel.MB)}); !errors.Is(err, disdel.OverLimit) {
		t.Errorf("the second server is too small: %v", err)
	}
}

// What the store says it has is what it refuses to go beyond, embedded as on Redis.
func TestAFullStoreRefusesByName(t *testing.T) {
	const limit = 16 << 20
	e, err := own.StartWithin(limit)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	redis := plainRedis(t, "--maxmemory", "16mb")
	for name, at := range map[string]serverUnderTest{
		"embedded": {disdel.Store{URLs: []string{e.URL()}}, nil}, "redis-server": {disdel.Store{URLs: []string{redis}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := enter(t, at, "full")
			c, err := s.Capacity(ctx)
			if err != nil || !c[0].Known || c[0].Limit != limit || c[0].Policy != "noeviction" {
				t.Fatalf("%+v, %v", c, err)
			}
			big := disdel.Weights{{Name: "w", Shape: []int{1 << 20}, Data: make([]float32, 1<<20)}}
			need := Need{Workers: 2, Update: 4 << 20, Reference: 4 << 20}
			want(t, disdel.OverLimit, checkRoom(ctx, s.Store, need))
			if err := checkRoom(ctx, s.Store, Need{Workers: 1, Update: 1 << 20, Reference: 1 << 20}); err != nil {
				t.Error(err)
			}
			u := update(0, 1)
			u.Weights = big
			if err := s.PushUpdate(ctx, u); err != nil {
				t.Fatal(err)
			}
			for u.ID.Member = 1; err == nil && u.ID.Member < 5; u.ID.Member++ {
				err = s.PushUpdate(ctx, u)
			}
			want(t, disdel.OverLimit, err)
			if _, err := s.FetchUpdate(ctx, update(0, 1).ID, big); err != nil {
				t.Errorf("what was stored before: %v", err)
			}
			if _, err := s.Sweep(ctx, "job-1"); err != nil {
				t.Fatal(err)
			}
			if u.ID.Member = 9; s.PushUpdate(ctx, u) != nil {
				t.Error("the sweep made no room")
			}
		})
	}
}

// checkRoom asks and compares, as a job does before it starts.
func checkRoom(ctx context.Context, s *Store, n Need) error {
	servers, err := s.Capacity(ctx)
	if err != nil {
		return err
	}
	return n.Fits(servers)
}
