package embedded

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What expires takes no room any more.
func TestWhatExpiredIsForgotten(t *testing.T) {
	e, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	s, err := aggregator.Open(t.Context(), disdel.Store{URLs: []string{e.URL()}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	weights := disdel.Weights{{Name: "w", Shape: []int{4}, Data: []float32{1, 2, 3, 4}}}
	if err := s.PutReference(t.Context(), "job-1", 0, weights); err != nil {
		t.Fatal(err)
	}
	e.budget.mu.Lock()
	used := e.budget.used
	e.budget.mu.Unlock()
	if used == 0 {
		t.Fatal("nothing was counted")
	}
	e.server.FastForward(7 * 24 * time.Hour)
	e.budget.forget(e.server.Exists)
	e.budget.mu.Lock()
	defer e.budget.mu.Unlock()
	if e.budget.used != 0 || len(e.budget.sizes) != 0 {
		t.Errorf("%d bytes of %v", e.budget.used, e.budget.sizes)
	}
}

// A store in this process, for a job whose actions are in it too.
func ExampleStart() {
	redis, err := Start()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer redis.Close()
	u, _ := url.Parse(redis.URL())
	_, password := u.User.Password()
	fmt.Println(u.Scheme, u.Hostname(), password)
	// Output: redis 127.0.0.1 true
}
