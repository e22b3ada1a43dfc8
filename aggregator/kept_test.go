package aggregator

import (
	"testing"
	"time"

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
	id := disdel.UpdateID{Job: job, Round: 1}
	if _, _, err := s.Claim(ctx, id, "owner", 1); err != nil {
		t.Fatal(err)
	}
	kept := []string{s.keys.kept(job), s.keys.work(id), s.keys.index(job)}
	for _, key := range kept[1:] { // as if it had been written long ago
		s.all()[key].Expire(ctx, key, time.Minute)
	}
	if err := s.Keep(ctx, job, "mark"); err != nil {
		t.Fatal(err)
	}
	for _, key := range kept {
		if ttl := s.all()[key].TTL(ctx, key).Val(); ttl <= keyLife/2 || ttl > keyLife {
			t.Errorf("%s is there for %v", key, ttl)
		}
	}
	if _, err := s.Sweep(ctx, job); err != nil {
		t.Fatal(err)
	}
	takeUp("after a sweep", "mark", false)
}
