package aggregator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

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
	if err := s.Deltas("job-1", one.ID.Round, 2).Wait(soon, 2, func() error { return nil }); !errors.Is(err, disdel.Timeout) {
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
	for key := range s.all() {
		if strings.Contains(key, ":delta:") {
			left++
		}
	}
	if left != 2 {
		t.Errorf("%d deltas lie there, of 2 steps", left)
	}
	counted(t, s, Counts{Duplicates: 3, Stale: 1})
}

// A delta that is not what was sent is refused, and so is one that is gone.
func deltasAreChecked(t *testing.T, s *place) {
	c := claim(t, s, update(0, 1).ID, "a", 1, Claimed)
	commitDelta(t, s, c, 1, "delta")
	commitDelta(t, s, c, 2, "delta")
	d := s.Deltas("job-1", c.ID.Round, 1)
	for _, step := range []int{1, 2} {
		if err := d.Wait(ctx, step, never); err != nil {
			t.Fatal(err)
		}
	}
	for key, admin := range s.all() {
		switch {
		case strings.Contains(key, fmt.Sprintf(":delta:%d:1:", c.ID.Round)):
			admin.Set(ctx, key, "other", 0)
		case strings.Contains(key, fmt.Sprintf(":delta:%d:2:", c.ID.Round)):
			admin.Del(ctx, key)
		}
	}
	_, err := d.Fetch(ctx, 1)
	want(t, disdel.Corrupt, err)
	_, err = d.Fetch(ctx, 2)
	want(t, disdel.NotFound, err)
	counted(t, s, Counts{Damaged: 1})
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
			if strings.Contains(key, ":delta") || strings.Contains(key, ":log:") {
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
