package aggregator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
)

func claim(t *testing.T, s *place, id disdel.UpdateID, owner string, attempt int, want ClaimState) Claim {
	t.Helper()
	c, state, err := s.Claim(ctx, id, owner, attempt)
	if err != nil || state != want {
		t.Fatalf("claim of %s, attempt %d: %v, %v; want %v", owner, attempt, state, err, want)
	}
	return c
}

// under is an update made under a claim.
func under(c Claim, seed uint64) disdel.Update {
	return disdel.Update{ID: c.ID, Attempt: c.Attempt, Fence: c.Fence, Samples: 1, Weights: someWeights(seed)}
}

func counted(t *testing.T, s *place, want Counts) {
	t.Helper()
	if got, err := s.Counts(ctx, "job-1"); err != nil || got != want {
		t.Errorf("counted %+v, %v; want %+v", got, err, want)
	}
}

func claimsKeepOut(t *testing.T, s *place) {
	id := update(1, 1).ID
	first := claim(t, s, id, "a", 1, Claimed)
	if again := claim(t, s, id, "a", 1, Claimed); again.Fence != first.Fence {
		t.Errorf("the same owner was given fence %d after %d", again.Fence, first.Fence)
	}
	if busy := claim(t, s, id, "b", 1, ClaimBusy); busy.Left <= 0 || busy.Left > s.lease {
		t.Errorf("the lease still runs for %v", busy.Left)
	}
	claim(t, s, update(2, 1).ID, "b", 1, Claimed)
	if err := s.Release(ctx, first); err != nil {
		t.Fatal(err)
	}
	if next := claim(t, s, id, "b", 1, Claimed); next.Fence <= first.Fence {
		t.Errorf("fence %d follows %d", next.Fence, first.Fence)
	}
	_, err := s.Renew(ctx, first)
	want(t, disdel.Conflict, err)
}

func attemptsTakeOver(t *testing.T, s *place) {
	id := update(1, 1).ID
	old := claim(t, s, id, "a", 1, Claimed)
	young := claim(t, s, id, "b", 2, Claimed)
	if young.Fence <= old.Fence {
		t.Fatalf("fence %d follows %d", young.Fence, old.Fence)
	}
	claim(t, s, id, "a", 1, ClaimBusy)
	want(t, disdel.Conflict, s.PushUpdate(ctx, under(old, 1))) // a zombie
	_, err := s.FetchUpdate(ctx, id, someWeights(1))
	want(t, disdel.NotFound, err)
	push(t, s, under(young, 2))
	want(t, disdel.Conflict, s.PushUpdate(ctx, under(old, 1)))
	got, err := s.FetchUpdate(ctx, id, someWeights(1))
	if err != nil || got.Fence != young.Fence {
		t.Errorf("fence %d, %v", got.Fence, err)
	}
	claim(t, s, id, "c", 3, ClaimCommitted)
	counted(t, s, Counts{Stale: 1, Duplicates: 2})
	for key := range s.all() {
		if strings.Contains(key, ":update:") && strings.Count(key, ":") > 6 {
			t.Errorf("left of the zombie: %s", key)
		}
	}
}

// leasesEnd shortens the lease instead of waiting for it: only that it ends and is renewed is looked at, not when.
func leasesEnd(t *testing.T, s *place) {
	s.lease = 100 * time.Millisecond
	id := update(1, 1).ID
	first := claim(t, s, id, "a", 2, Claimed)
	var second Claim
	for state := ClaimBusy; state != Claimed; time.Sleep(5 * time.Millisecond) {
		var err error
		if second, state, err = s.Claim(ctx, id, "b", 1); err != nil {
			t.Fatal(err)
		}
	}
	if second.Fence <= first.Fence {
		t.Errorf("fence %d follows %d", second.Fence, first.Fence)
	}
	s.lease = time.Hour
	if _, err := s.Renew(ctx, second); err != nil {
		t.Fatal(err)
	}
	if busy := claim(t, s, id, "c", 1, ClaimBusy); busy.Left < time.Minute {
		t.Errorf("a renewed lease runs for %v", busy.Left)
	}
}

func committedOnce(t *testing.T, s *place) {
	for _, column := range []int{columnValues, 4} {
		s.column = column
		id := update(min(column, 5), 1).ID
		old := claim(t, s, id, "a", 1, Claimed)
		young := claim(t, s, id, "b", 2, Claimed)
		push(t, s, under(young, 1))
		before := len(s.all())
		push(t, s, under(young, 1))
		if err := s.PushUpdate(ctx, under(old, 1)); err != nil {
			t.Errorf("the same content of another attempt: %v", err)
		}
		other := under(young, 77)
		want(t, disdel.Conflict, s.PushUpdate(ctx, other))
		other = under(young, 1)
		other.Samples = 2
		want(t, disdel.Conflict, s.PushUpdate(ctx, other))
		unclaimed := under(young, 3)
		unclaimed.Fence = 0
		want(t, disdel.Conflict, s.PushUpdate(ctx, unclaimed))
		got, err := s.FetchUpdate(ctx, id, someWeights(1))
		if err != nil || got.Attempt != 2 || got.Samples != 1 {
			t.Errorf("attempt %d, %g samples, %v", got.Attempt, got.Samples, err)
		}
		near(t, someWeights(1), got.Weights, 0)
		if after := len(s.all()); column == 4 && after > before+1 {
			t.Errorf("%d keys, %d before the refusals", after, before)
		}
	}
	counted(t, s, Counts{Duplicates: 10})
}

// unclaimedReplaced: where nobody asks for exactly once, the last update stands and nothing is left of the one before.
func unclaimedReplaced(t *testing.T, s *place) {
	s.column = 4
	u := update(1, 1)
	push(t, s, u)
	before := len(s.all())
	u.Weights = someWeights(5)
	push(t, s, u)
	got, err := s.FetchUpdate(ctx, u.ID, someWeights(1))
	if err != nil {
		t.Fatal(err)
	}
	near(t, u.Weights, got.Weights, 0)
	if after := len(s.all()); after != before {
		t.Errorf("%d keys, %d before", after, before)
	}
}

// lostReplies: the script runs twice, as it does when go-redis tries again, and the value stays whole.
func lostReplies(t *testing.T, s *place) {
	s.column = 4
	c := claim(t, s, update(1, 1).ID, "a", 1, Claimed)
	state := disdel.UpdateID{Job: "job-1", Round: 2, Member: 1}
	for _, k := range []kind{kindUpdate, kindReference, kindState} {
		id := map[kind]disdel.UpdateID{kindUpdate: c.ID, kindReference: referenceID("job-1", 3), kindState: state}[k]
		h, err := s.headOf(k, id, someWeights(1))
		if err != nil {
			t.Fatal(err)
		}
		h.fence = c.Fence
		staged, err := s.stage(ctx, h, fromWeights(h, someWeights(1)))
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := s.commit(ctx, staged, c.ID, c.Fence); err != nil {
				t.Errorf("%v: %v", k, err)
			}
		}
		got, inline, err := s.open(ctx, k, id, someWeights(1))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.load(ctx, got, inline); err != nil {
			t.Errorf("%v: %v", k, err)
		}
	}
	counted(t, s, Counts{})
}

// foreignFences: the fence in the header is the claim's, whatever the caller says.
func foreignFences(t *testing.T, s *place) {
	c := claim(t, s, update(1, 1).ID, "a", 1, Claimed)
	for _, fence := range []uint64{0, c.Fence - 1, c.Fence + 1} {
		u := under(c, 1)
		u.Fence = fence
		want(t, disdel.Conflict, s.PushUpdate(ctx, u))
	}
	h, err := s.headOf(kindUpdate, c.ID, someWeights(1))
	if err != nil {
		t.Fatal(err)
	}
	h.fence = c.Fence - 1
	staged, err := s.stage(ctx, h, fromWeights(h, someWeights(1)))
	if err != nil {
		t.Fatal(err)
	}
	h.fence = c.Fence // what is stored still says otherwise
	want(t, disdel.Conflict, s.commit(ctx, staged, c.ID, c.Fence))
	u := update(2, 1)
	u.Fence = 5
	want(t, disdel.Conflict, s.PushUpdate(ctx, u)) // a claim that nobody has
	push(t, s, under(c, 1))
}

func holdsEnd(t *testing.T, s *place) {
	s.lease = 60 * time.Millisecond
	for name, end := range map[string]func(Claim) disdel.Kind{
		"taken over": func(c Claim) disdel.Kind {
			claim(t, s, c.ID, "b", 2, Claimed)
			return disdel.Conflict
		},
		"job stopped": func(c Claim) disdel.Kind {
			if err := s.Cancel(ctx, c.ID.Job); err != nil {
				t.Error(err)
			}
			return disdel.Canceled
		},
	} {
		id := update(1, 1).ID
		id.Job = disdel.JobID(strings.ReplaceAll(name, " ", "-"))
		c := claim(t, s, id, "a", 1, Claimed)
		held, stop := s.Hold(ctx, c)
		kind := end(c)
		<-held.Done()
		if err := context.Cause(held); !errors.Is(err, kind) {
			t.Errorf("%s: %v, want %v", name, err, kind)
		}
		stop()
	}
	c := claim(t, s, update(5, 1).ID, "a", 1, Claimed)
	held, stop := s.Hold(ctx, c)
	for range 20 {
		time.Sleep(s.lease / 10)
		if held.Err() != nil {
			t.Fatal(context.Cause(held))
		}
	}
	stop()
	stop()
}

func referencesPerRound(t *testing.T, s *place) {
	for r := range 2 {
		if err := s.PutReference(ctx, "job-1", r, someWeights(uint64(r))); err != nil {
			t.Fatal(err)
		}
	}
	for r := range 2 {
		got, err := s.Reference(ctx, "job-1", r, someWeights(0))
		if err != nil {
			t.Fatal(err)
		}
		near(t, someWeights(uint64(r)), got, 0)
	}
	_, err := s.Reference(ctx, "job-1", 0, someWeights(0)[:1])
	want(t, disdel.Corrupt, err)
}

// Compare and set: round r+1 follows r, once.
func referencesOnce(t *testing.T, s *place) {
	put := func(round int, seed uint64) error { return s.PutReference(ctx, "job-1", round, someWeights(seed)) }
	for _, c := range []struct {
		round int
		seed  uint64
		want  error
	}{
		{4, 1, nil},
		{4, 1, nil},
		{4, 2, disdel.Conflict},
		{6, 1, disdel.Conflict},
		{3, 1, disdel.Conflict},
		{5, 2, nil},
		{4, 1, nil},
		{5, 1, disdel.Conflict},
	} {
		if err := put(c.round, c.seed); !errors.Is(err, c.want) {
			t.Errorf("round %d, seed %d: %v, want %v", c.round, c.seed, err, c.want)
		}
	}
	counted(t, s, Counts{Duplicates: 4, Stale: 2})
	top := disdel.UpdateID{Job: "job-1", Round: 5, Level: 1}
	old := claim(t, s, top, "a", 1, Claimed)
	young := claim(t, s, top, "b", 2, Claimed)
	want(t, disdel.Conflict, s.CommitReference(ctx, old, 6, someWeights(1)))
	if err := s.CommitReference(ctx, young, 6, someWeights(1)); err != nil {
		t.Fatal(err)
	}
	claim(t, s, top, "c", 3, ClaimCommitted)
	got, err := s.Reference(ctx, "job-1", 6, someWeights(0))
	if err != nil {
		t.Fatal(err)
	}
	near(t, someWeights(1), got, 0)
}

// roundsEnd: once the next reference stands, whoever comes late or again is told so and changes nothing.
func roundsEnd(t *testing.T, s *place) {
	late := claim(t, s, update(1, 1).ID, "a", 1, Claimed)
	for _, round := range []int{2, 3} {
		if err := s.PutReference(ctx, "job-1", round, someWeights(1)); err != nil {
			t.Fatal(err)
		}
	}
	want(t, disdel.Conflict, s.PushUpdate(ctx, under(late, 1)))
	claim(t, s, update(2, 1).ID, "b", 1, ClaimCommitted)
	next := update(2, 1).ID
	next.Round = 3
	claim(t, s, next, "b", 1, Claimed)
	counted(t, s, Counts{Stale: 1, Duplicates: 1})
}

// slackLetsIn: an update goes in as long as the newest reference is at most slack ahead of the one that it starts from.
// With 0 that is the barrier.
func slackLetsIn(t *testing.T, s *place) {
	for slack := range 3 {
		for behind := range 4 {
			job := disdel.JobID(fmt.Sprintf("job-%d-%d", slack, behind))
			lax := &place{Store: s.WithSlack(slack)}
			id := disdel.UpdateID{Job: job, Round: 5 - behind, Member: 1}
			early := claim(t, lax, id, "a", 1, Claimed) // nothing is published yet
			if err := lax.PutReference(ctx, job, 5, someWeights(1)); err != nil {
				t.Fatal(err)
			}
			pushed, fresh := error(nil), Claimed
			if behind > slack {
				pushed, fresh = disdel.Conflict, ClaimCommitted
			}
			other := id
			other.Member = 2
			claim(t, lax, other, "b", 1, fresh)
			err := lax.PushUpdate(ctx, under(early, 1))
			if !errors.Is(err, pushed) {
				t.Errorf("slack %d, %d behind: %v, want %v", slack, behind, err, pushed)
			}
			if err != nil && !strings.Contains(err.Error(), "its round is not open") {
				t.Error(err)
			}
			want := Counts{}
			if behind > slack {
				want = Counts{Stale: 1, Duplicates: 1}
			}
			if got, err := s.Counts(ctx, job); err != nil || got != want {
				t.Errorf("slack %d, %d behind: counted %+v, %v", slack, behind, got, err)
			}
			claim(t, lax, id, "c", 2, ClaimCommitted) // it is there, or will not be
		}
	}
	if s.WithSlack(-1).slack != 0 {
		t.Error("a slack below 0 is one")
	}
}

// slackSkipsNothing: a reference that was not made from the newest would undo it, whatever the slack.
func slackSkipsNothing(t *testing.T, s *place) {
	lax := &place{Store: s.WithSlack(1)}
	for _, c := range []struct {
		version int
		seed    uint64
		want    error
	}{
		{4, 1, nil},
		{5, 2, nil},
		{4, 3, disdel.Conflict},
		{5, 3, disdel.Conflict},
		{7, 3, disdel.Conflict},
		{6, 3, nil},
	} {
		if err := lax.PutReference(ctx, "job-1", c.version, someWeights(c.seed)); !errors.Is(err, c.want) {
			t.Errorf("version %d, seed %d: %v, want %v", c.version, c.seed, err, c.want)
		}
	}
	// one behind: it may still read
	top := claim(t, lax, disdel.UpdateID{Job: "job-1", Round: 5, Level: 1}, "a", 1, Claimed)
	want(t, disdel.Conflict, lax.CommitReference(ctx, top, 6, someWeights(4))) // but not publish
}

func heartbeats(t *testing.T, s *place) {
	p := disdel.Progress{Task: disdel.TaskTrain, Member: 1, Epoch: 2, Batch: 3, Batches: 9, Loss: 0.5, Peak: 7}
	c := claim(t, s, update(1, 1).ID, "a", 1, Claimed)
	if cancel, err := s.Heartbeat(ctx, "job-1", p); err != nil || cancel {
		t.Fatalf("cancel %v, %v", cancel, err)
	}
	got, err := s.Progress(ctx, "job-1")
	if err != nil || len(got) != 1 || got[0] != p {
		t.Fatalf("%+v, %v", got, err)
	}
	if cancel, err := s.Renew(ctx, c); err != nil || cancel {
		t.Errorf("cancel %v, %v", cancel, err)
	}
	if err := s.Cancel(ctx, "job-1"); err != nil {
		t.Fatal(err)
	}
	if cancel, err := s.Heartbeat(ctx, "job-1", p); err != nil || !cancel {
		t.Errorf("after cancel: cancel %v, %v", cancel, err)
	}
	if cancel, err := s.Renew(ctx, c); err != nil || !cancel {
		t.Errorf("after cancel: cancel %v, %v", cancel, err)
	}
	if cancel, _ := s.Heartbeat(ctx, "job-2", p); cancel {
		t.Error("another job was cancelled")
	}
}

// Places in the store are of one action in one round: neither a level above nor a zombie of the round before hides
// anybody.
func heartbeatsKeepApart(t *testing.T, s *place) {
	beat := func(task disdel.Task, round, level, member int) {
		t.Helper()
		if _, err := s.Heartbeat(ctx, "job-1",
			disdel.Progress{Task: task, Round: round, Level: level, Member: member}); err != nil {
			t.Fatal(err)
		}
	}
	seen := func() (out []string) {
		t.Helper()
		all, err := s.Progress(ctx, "job-1")
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range all {
			out = append(out, fmt.Sprintf("%s %d.%d", p.Task, p.Level, p.Member))
		}
		return out
	}
	beat(disdel.TaskAggregate, 3, 2, 0)
	beat(disdel.TaskAggregate, 3, 1, 1)
	beat(disdel.TaskAggregate, 3, 1, 0)
	beat(disdel.TaskTrain, 3, 0, 1)
	beat(disdel.TaskTrain, 2, 0, 1) // a zombie
	if diff := cmp.Diff([]string{"train 0.1", "aggregate 1.0", "aggregate 1.1", "aggregate 2.0"}, seen()); diff != "" {
		t.Error(diff)
	}
	for round := 3; round < 20; round++ {
		beat(disdel.TaskTrain, round, 0, 1)
		if err := s.DropRound(ctx, "job-1", round); err != nil {
			t.Fatal(err)
		}
		if n := s.client.HLen(ctx, s.keys.progress("job-1")).Val(); n > 0 {
			t.Fatalf("after round %d there are %d heartbeats", round, n)
		}
	}
	beat(disdel.TaskTrain, 20, 0, 1)
	if diff := cmp.Diff([]string{"train 0.1"}, seen()); diff != "" {
		t.Error(diff)
	}
}
