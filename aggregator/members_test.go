package aggregator

import (
	"testing"

	"github.com/disdel/disdel"
)

// Nobody waits for a member that has left, and all know after which step it did.
func membersLeave(t *testing.T, s *place) {
	one, two := claim(t, s, update(0, 1).ID, "a", 1, Claimed), claim(t, s, update(1, 1).ID, "b", 1, Claimed)
	d, by := s.Deltas("job-1", one.ID.Round, 2), s.Deltas("job-1", one.ID.Round, 2)
	if err := by.Commit(ctx, one, 1, []byte("last of one"), true); err != nil {
		t.Fatal(err)
	}
	for step := range 2 {
		commitDelta(t, s, two, step+1, "two")
	}
	for step := range 2 {
		if err := d.Wait(ctx, step+1, never); err != nil {
			t.Fatal(err)
		}
	}
	if d.LastStep(0) != 1 || d.LastStep(1) != 0 {
		t.Errorf("they have left after steps %d and %d", d.LastStep(0), d.LastStep(1))
	}
	got, err := d.Fetch(ctx, 2)
	if err != nil || got[0] != nil || string(got[1]) != "two" {
		t.Errorf("%q, %v", got, err)
	}
	if err := by.Commit(ctx, two, 3, []byte("last of two"), true); err != nil {
		t.Fatal(err)
	}
	if last, err := d.WaitEnd(ctx, never); err != nil || last != 3 {
		t.Errorf("the last step is %d, %v", last, err)
	}
	if len(s.servers) == 1 && by.Newest(1) != 3 { // by the same message
		t.Errorf("who sent step 3 has seen those up to %d", by.Newest(1))
	}
}

// A member that is ended has one step more, without a delta, and nothing that it sends or delivers is taken any more.
// To end it again, or to end one that has left, changes nothing.
func membersAreEnded(t *testing.T, s *place) {
	one, two := claim(t, s, update(0, 1).ID, "a", 1, Claimed), claim(t, s, update(1, 1).ID, "b", 1, Claimed)
	d := s.Deltas("job-1", one.ID.Round, 2)
	commitDelta(t, s, one, 1, "one")
	drawn, ok, err := s.DrawBatch(ctx, one, 2, 5)
	if err != nil || !ok || drawn != 0 {
		t.Fatalf("batch %d, %v, %v", drawn, ok, err)
	}
	for range 2 {
		if err := s.EndMember(ctx, "job-1", one.ID.Round, 0); err != nil {
			t.Fatal(err)
		}
	}
	want(t, disdel.Conflict, s.CommitDelta(ctx, one, 2, []byte("of a zombie")))
	want(t, disdel.Conflict, s.PushUpdate(ctx, under(one, 1)))
	claim(t, s, update(0, 1).ID, "c", 2, ClaimCommitted)
	if err := d.Commit(ctx, two, 1, []byte("two"), true); err != nil {
		t.Fatal(err)
	}
	if err := s.EndMember(ctx, "job-1", one.ID.Round, 1); err != nil {
		t.Fatal(err)
	}
	if last, err := d.WaitEnd(ctx, never); err != nil || last != 2 || d.LastStep(0) != 2 || d.LastStep(1) != 1 {
		t.Errorf("the last step is %d, and they have left after %d and %d: %v", last, d.LastStep(0), d.LastStep(1), err)
	}
	got, err := d.Fetch(ctx, 2)
	if err != nil || got[0] != nil || got[1] != nil {
		t.Errorf("%q, %v", got, err)
	}
	if again, ok, err := s.DrawBatch(ctx, two, 2, 5); err != nil || !ok || again != drawn {
		t.Errorf("the batch that it had: %d, %v, %v", again, ok, err)
	}
}

// Every batch of a queue is drawn once, whoever is faster; a step that is made again has the batch that it had; an
// attempt that has lost its claim draws none.
func batchesAreDrawnOnce(t *testing.T, s *place) {
	one, two := claim(t, s, update(0, 1).ID, "a", 1, Claimed), claim(t, s, update(1, 1).ID, "b", 1, Claimed)
	draw := func(c Claim, step int) int {
		t.Helper()
		batch, ok, err := s.DrawBatch(ctx, c, step, 4)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return -1
		}
		return batch
	}
	for i, c := range []struct {
		by         Claim
		step, want int
	}{{one, 1, 0}, {two, 1, 1}, {two, 2, 2}, {two, 1, 1}, {two, 3, 3}, {one, 2, -1}, {one, 1, 0}, {one, 2, -1}} {
		if got := draw(c.by, c.step); got != c.want {
			t.Errorf("draw %d is batch %d, want %d", i, got, c.want)
		}
	}
	later := claim(t, s, update(0, 1).ID, "c", 2, Claimed)
	if got := draw(later, 1); got != 0 {
		t.Errorf("a later attempt has batch %d", got)
	}
	_, _, err := s.DrawBatch(ctx, one, 2, 4)
	want(t, disdel.Conflict, err)
	if err := s.DropDeltas(ctx, "job-1", one.ID.Round); err != nil {
		t.Fatal(err)
	}
	if got := draw(later, 1); got != 0 {
		t.Errorf("the first batch of a round that is begun anew is %d", got)
	}
}

// A member that is let go draws no new batch and has those that it had; nobody else is, and a round that is begun anew
// knows nothing of it.
func membersAreLetGo(t *testing.T, s *place) {
	one, two := claim(t, s, update(0, 1).ID, "a", 1, Claimed), claim(t, s, update(1, 1).ID, "b", 1, Claimed)
	draws := func(c Claim, step, want int) {
		t.Helper()
		if batch, ok, err := s.DrawBatch(ctx, c, step, 4); err != nil || ok != (want >= 0) || ok && batch != want {
			t.Errorf("member %d draws %d, %v, %v for step %d, want %d", c.ID.Member, batch, ok, err, step, want)
		}
	}
	gone := func(want ...bool) {
		t.Helper()
		for member, should := range want {
			if is, err := s.IsLetGo(ctx, "job-1", one.ID.Round, member); err != nil || is != should {
				t.Errorf("member %d is let go: %v, %v", member, is, err)
			}
		}
	}
	gone(false, false)
	draws(two, 1, 0)
	for range 2 {
		if err := s.LetGo(ctx, "job-1", two.ID.Round, 1); err != nil {
			t.Fatal(err)
		}
	}
	gone(false, true)
	draws(two, 1, 0)
	draws(two, 2, -1)
	draws(one, 1, 1)
	draws(one, 2, 2)
	if err := s.DropDeltas(ctx, "job-1", one.ID.Round); err != nil {
		t.Fatal(err)
	}
	gone(false, false)
	draws(two, 1, 0)
}
