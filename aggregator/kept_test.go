package aggregator

import (
	"testing"

	"github.com/disdel/disdel"
)

// What was kept of a job is taken up once, by whoever knows its mark, and nobody is asked to stop any more. A sweep
// takes the mark too.
func whatIsKeptIsTakenUpOnce(t *testing.T, s *place) {
	const job = disdel.JobID("job-1")
	takeUp := func(what, mark string, want bool) {
		t.Helper()
		if got, err := s.TakeUp(ctx, job, mark); got != want || err != nil {
			t.Errorf("%s: %t, %v", what, got, err)
		}
	}
	takeUp("nothing was kept", "mark", false)
	if err := s.Cancel(ctx, job); err != nil {
		t.Fatal(err)
	}
	if err := s.Keep(ctx, job, "mark"); err != nil {
		t.Fatal(err)
	}
	takeUp("another mark", "another", false)
	takeUp("its mark", "mark", true)
	if n := s.client.Exists(ctx, s.keys.cancel(job)).Val(); n != 0 {
		t.Error("its actions are still asked to stop")
	}
	takeUp("a second time", "mark", false)
	if err := s.Keep(ctx, job, "mark"); err != nil {
		t.Fatal(err)
	}
	key := s.keys.kept(job)
	if ttl := s.all()[key].TTL(ctx, key).Val(); ttl <= 0 || ttl > keyLife {
		t.Errorf("the mark is there for %v", ttl)
	}
	if _, err := s.Sweep(ctx, job); err != nil {
		t.Fatal(err)
	}
	takeUp("after a sweep", "mark", false)
}
