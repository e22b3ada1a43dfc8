package aggregator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/disdel/disdel"
)

func commitDelta(t *testing.T, s *place, c Claim, step int, text string) {
	t.Helper()
	if err := s.CommitDelta(ctx, c, step, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

func never() error { return errors.New("nothing was there") }

// Deltas are there for all as they were sent, in the order of the members, whoever sent first.
func deltasGoAround(t *testing.T, s *place) {
	one, two := claim(t, s, update(0, 1).ID, "a", 1, Claimed), claim(t, s, update(1, 1).ID, "b", 1, Claimed)
	d := s.Deltas("job-1", one.ID.Round, 2)
	for step := range 3 {
		commitDelta(t, s, two, step+1, fmt.Sprint("two ", step))
		commitDelta(t, s, one, step+1, strings.Repeat("x", step))
	}
	for _, step := range []int{2, 1, 3} {
		if err := d.Wait(ctx, step, never); err != nil {
			t.Fatal(err)
		}
		got, err := d.Fetch(ctx, step)
		if err != nil || string(got[0]) != strings.Repeat("x", step-1) || string(got[1]) != fmt.Sprint("two ", step-1) {
			t.Errorf("step %d: %q, %v", step, got, err)
		}
	}
	_, err := d.Fetch(ctx, 4)
	want(t, disdel.Invalid, err)
}

// A delta that comes long after the one before has the round's keys live on from then, whichever step it is.
func deltasKeepTheirRound(t *testing.T, s *place) {
	one := claim(t, s, update(0, 1).ID, "a", 1, Claimed)
	job, round := one.ID.Job, one.ID.Round
	commitDelta(t, s, one, 1, "one")
	table := s.keys.deltas(job, round)
	keys := []string{table, s.keys.log(job, round), s.keys.news(job, round), s.keys.index(job)}
	for _, key := range keys { // as if it had been written long ago
		s.all()[key].Expire(ctx, key, time.Minute)
	}
	before := time.Now().Add(-20 * time.Minute).UnixMilli()
	s.all()[table].HSet(ctx, table, "tail", fmt.Sprintf("%d-0", before))
	commitDelta(t, s, one, 2, "more")
	for _, key := range keys {
		if ttl := s.all()[key].TTL(ctx, key).Val(); ttl <= keyLife/2 || ttl > keyLife {
			t.Errorf("%s is there for %v", key, ttl)
		}
	}
}

// Who waits is woken by the last delta of the step, and by no other.
func deltasWakeWhoWaits(t *testing.T, s *place) {
	one, two := claim(t, s, update(0, 1).ID, "a", 1, Claimed), claim(t, s, update(1, 1).ID, "b", 1, Claimed)
	commitDelta(t, s, one, 1, "one")
	idle := 0
	err := s.Deltas("job-1", one.ID.Round, 2).Wait(ctx, 1, func() error {
		if idle++; idle == 1 {
			return s.CommitDelta(ctx, two, 1, []byte("two"))
		}
		return nil
	})
	if err != nil || idle != 1 {
		t.Errorf("waited %d times: %v", idle, err)
	}
	soon, stop := context.WithTimeoutCause(ctx, 20*time.Millisecond, disdel.Timeout)
	defer stop()
	err = s.Deltas("job-1", one.ID.Round, 2).Wait(soon, 2, func() error { return nil })
	if !errors.Is(err, disdel.Timeout) {
		t.Errorf("a wait that was ended: %v", err)
	}
}

// A step's delta is what was sent first; a later attempt that comes to the same changes nothing, one whose claim is
// lost sends nothing.
func deltasAreSentOnce(t *testing.T, s *place) {
	first := claim(t, s, update(0, 1).ID, "a", 1, Claimed)
	commitDelta(t, s, first, 1, "delta")
	commitDelta(t, s, first, 1, "delta")
	want(t, disdel.Conflict, s.CommitDelta(ctx, first, 1, []byte("another")))
	second := claim(t, s, update(0, 1).ID, "b", 2, Claimed)
	commitDelta(t, s, second, 1, "delta") // replayed
	want(t, disdel.Conflict, s.CommitDelta(ctx, first, 2, []byte("of a zombie")))
	commitDelta(t, s, second, 2, "next")
	d := s.Deltas("job-1", first.ID.Round, 1)
	for step, text := range map[int]string{1: "delta", 2: "next"} {
		if err := d.Wait(ctx, step, never); err != nil {
			t.Fatal(err)
		}
		if got, err := d.Fetch(ctx, step); err != nil || string(got[0]) != text {
			t.Errorf("step %d: %q, %v", step, got, err)
		}
	}
	left := 0
	for key, admin := range s.all() {
		switch {
		case strings.Contains(key, ":delta:"):
			left++
		case strings.Contains(key, ":news:") && len(s.servers) == 1:
			left += int(admin.XLen(ctx, key).Val())
		}
	}
	if left != 2 {
		t.Errorf("%d deltas lie there, of 2 steps", left)
	}
	counted(t, s, Counts{Duplicates: 3, Stale: 1})
}

// A delta that is not what was sent is refused, however it comes, and so is one that is gone.
func deltasAreChecked(t *testing.T, s *place) {
	c := claim(t, s, update(0, 1).ID, "a", 1, Claimed)
	commitDelta(t, s, c, 1, "delta")
	commitDelta(t, s, c, 2, "delta")
	d := s.Deltas("job-1", c.ID.Round, 1)
	if err := d.ReadLog(ctx); err != nil {
		t.Fatal(err)
	}
	for key, admin := range s.all() {
		switch {
		case strings.Contains(key, fmt.Sprintf(":delta:%d:1:", c.ID.Round)):
			admin.Set(ctx, key, "other", 0)
		case strings.Contains(key, fmt.Sprintf(":delta:%d:2:", c.ID.Round)):
			admin.Del(ctx, key)
		case strings.Contains(key, ":news:"):
			first := admin.XRange(ctx, key, "-", "+").Val()[0]
			if _, along := first.Values["data"]; along {
				first.Values["data"] = "other"
			}
			admin.Del(ctx, key)
			admin.XAdd(ctx, &redis.XAddArgs{Stream: key, ID: first.ID, Values: first.Values})
		}
	}
	_, err := d.Fetch(ctx, 1)
	want(t, disdel.Corrupt, err)
	_, err = d.Fetch(ctx, 2)
	want(t, disdel.NotFound, err)
	late := s.Deltas("job-1", c.ID.Round, 1)
	if err := late.Wait(ctx, 1, never); err != nil {
		t.Fatal(err)
	}
	_, err = late.Fetch(ctx, 1)
	want(t, disdel.Corrupt, err)
	counted(t, s, Counts{Damaged: 2})
}

// A small delta comes along with the news of it, where there is one server; who looked for it reads it.
func deltasComeAlong(t *testing.T, s *place) {
	c := claim(t, s, update(0, 1).ID, "a", 1, Claimed)
	waited, looked := s.Deltas("job-1", c.ID.Round, 1), s.Deltas("job-1", c.ID.Round, 1)
	for step := range 70 { // more than are read at once
		commitDelta(t, s, c, step+1, strings.Repeat("x", step))
	}
	if err := looked.ReadLog(ctx); err != nil {
		t.Fatal(err)
	}
	for step := range 70 {
		if err := waited.Wait(ctx, step+1, never); err != nil {
			t.Fatal(err)
		}
		for _, d := range []*Deltas{waited, looked} {
			got, err := d.Fetch(ctx, step+1)
			if err != nil || string(got[0]) != strings.Repeat("x", step) {
				t.Fatalf("step %d: %q, %v", step+1, got, err)
			}
			if along := len(s.servers) == 1 && d == waited; d.sent[step+1][0].held != along {
				t.Fatalf("step %d came along: %v", step+1, !along)
			}
			d.Forget(step + 1)
		}
	}
	if waited.held != 0 {
		t.Errorf("%d bytes are kept of what was forgotten", waited.held)
	}
}

// Of members that are far ahead no more is kept than has room; the rest is read when it is needed, and is the same.
func deltasOfASlowReaderAreBounded(t *testing.T, s *place) {
	c := claim(t, s, update(0, 1).ID, "a", 1, Claimed)
	const steps, size = 50, 100 << 10
	text := func(step int) string { return strings.Repeat(fmt.Sprintf("%04d", step), size/4) }
	for step := range steps {
		commitDelta(t, s, c, step+1, text(step+1))
	}
	d := s.Deltas("job-1", c.ID.Round, 1)
	if err := d.Wait(ctx, steps, never); err != nil {
		t.Fatal(err)
	}
	if d.held > maxHeld+size || len(s.servers) == 1 && d.held < maxHeld {
		t.Errorf("%d bytes are kept", d.held)
	}
	for step := range steps {
		got, err := d.Fetch(ctx, step+1)
		if err != nil || string(got[0]) != text(step+1) {
			t.Fatalf("step %d: %d bytes, %v", step+1, len(got[0]), err)
		}
		d.Forget(step + 1)
	}
	if d.held != 0 {
		t.Errorf("%d bytes are kept of what was forgotten", d.held)
	}
}

// What is deleted of a round takes nobody in any more from its first moment on: who still runs under a claim of it
// leaves nothing to its next try, also where it sends its first step just then.
func deltasAreNotLeftToTheNextTry(t *testing.T, s *place) {
	for n := range 60 {
		c := claim(t, s, disdel.UpdateID{Job: "job-1", Round: 1}, "a", 1, Claimed)
		var sending sync.WaitGroup
		sent := make(chan struct{})
		over := make(chan struct{})
		sending.Go(func() {
			defer close(sent)
			for step, err := 1, error(nil); err == nil; step++ {
				select {
				case sent <- struct{}{}: // this many were tried before what follows begins
				case <-over:
				}
				if err = s.CommitDelta(ctx, c, step, []byte("of a zombie")); err != nil && !errors.Is(err, disdel.Conflict) {
					t.Error(err)
				}
			}
		})
		for range n % 7 {
			<-sent
		}
		close(over)
		var err error
		if n%2 == 0 {
			err = s.Forget(ctx, "job-1", 1)
		} else {
			_, err = s.Sweep(ctx, "job-1")
		}
		if err != nil {
			t.Error(err)
		}
		sending.Wait() // its claim is gone
		for key := range s.all() {
			if strings.Contains(key, ":log:") || strings.Contains(key, ":news:") || strings.Contains(key, ":deltas:") {
				t.Fatalf("left: %s", key)
			}
		}
	}
}

// A large delta lies on all servers, so that all of them serve it; a small one is whole.
func deltasLieOnAllServers(t *testing.T, s *place) {
	c := claim(t, s, update(0, 1).ID, "a", 1, Claimed)
	large := strings.Repeat("0123456789abcdef", 1+maxInNews/16)
	commitDelta(t, s, c, 1, large)
	commitDelta(t, s, c, 2, "small")
	on, small := map[*redis.Client]int{}, 0
	for key, admin := range s.all() {
		switch {
		case strings.Contains(key, fmt.Sprintf(":delta:%d:1:", c.ID.Round)):
			on[admin]++
		case strings.Contains(key, fmt.Sprintf(":delta:%d:2:", c.ID.Round)):
			small++
		}
	}
	parts := 1
	if len(s.servers) == 1 {
		parts = 0 // it comes along
	}
	if len(on) != len(s.servers) || small != parts {
		t.Errorf("of %d servers %d have a part of it, and a small one is in %d parts", len(s.servers), len(on), small)
	}
	d := s.Deltas("job-1", c.ID.Round, 1)
	for step, want := range map[int]string{1: large, 2: "small"} {
		if err := d.Wait(ctx, step, never); err != nil {
			t.Fatal(err)
		}
		if got, err := d.Fetch(ctx, step, 0); err != nil || string(got[0]) != want {
			t.Errorf("step %d: %d bytes, %v", step, len(got[0]), err)
		}
	}
}

// Who does not wait sees what has been sent so far, and of each member how far it is.
func deltasAreLookedFor(t *testing.T, s *place) {
	one, two := claim(t, s, update(0, 1).ID, "a", 1, Claimed), claim(t, s, update(1, 1).ID, "b", 1, Claimed)
	d := s.Deltas("job-1", one.ID.Round, 2)
	for step := range 3 {
		commitDelta(t, s, two, step+1, fmt.Sprint("two ", step+1))
	}
	commitDelta(t, s, one, 1, "one")
	if err := d.ReadLog(ctx); err != nil || d.Newest(0) != 1 || d.Newest(1) != 3 {
		t.Errorf("steps %d and %d, %v", d.Newest(0), d.Newest(1), err)
	}
	got, err := d.Fetch(ctx, 3, 1)
	if err != nil || got[0] != nil || string(got[1]) != "two 3" {
		t.Errorf("%q, %v", got, err)
	}
	_, err = d.Fetch(ctx, 3)
	want(t, disdel.Invalid, err)
	if err := d.ReadLog(ctx); err != nil {
		t.Error(err)
	}
}

// A round's deltas go with it, and with its being begun anew.
func deltasAreDropped(t *testing.T, s *place) {
	for _, drop := range []func(context.Context, disdel.JobID, int) error{s.DropRound, s.Forget, s.DropDeltas} {
		c := claim(t, s, update(0, 1).ID, "a", 1, Claimed)
		for step := range 3 {
			commitDelta(t, s, c, step+1, "delta")
		}
		if err := drop(ctx, "job-1", c.ID.Round); err != nil {
			t.Fatal(err)
		}
		for key := range s.all() {
			if strings.Contains(key, ":delta") || strings.Contains(key, ":log:") || strings.Contains(key, ":news:") {
				t.Errorf("left: %s", key)
			}
		}
		if err := s.Forget(ctx, "job-1", c.ID.Round); err != nil {
			t.Fatal(err)
		}
	}
	c := claim(t, s, update(0, 1).ID, "a", 1, Claimed)
	commitDelta(t, s, c, 1, "delta")
	if _, err := s.Sweep(ctx, "job-1"); err != nil {
		t.Fatal(err)
	}
	if left := s.all(); len(left) > 0 {
		t.Errorf("left of the job: %v", left)
	}
}
