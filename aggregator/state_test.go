package aggregator

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
)

func moments(seed uint64) disdel.Weights {
	w := someWeights(seed)
	w[0].Name, w[1].Name = "optimizer.m.a.weight", "residual.a.bias"
	return append(w, disdel.Tensor{Name: "empty", Shape: []int{0}, Data: []float32{}})
}

func statesAreReplaced(t *testing.T, s *place) {
	for _, column := range []int{columnValues, 4} {
		s.column = column
		c := claim(t, s, update(column%5, 1).ID, "a", 1, Claimed)
		next := c.ID
		next.Round++
		for leg := range uint64(3) {
			meta := map[string]string{"batch": string(rune('0' + leg)), "epoch": "2"}
			for _, id := range []disdel.UpdateID{c.ID, next} {
				if err := s.PutState(ctx, id, c, meta, moments(leg)); err != nil {
					t.Fatal(err)
				}
			}
			got, w, err := s.State(ctx, c.ID, moments(9))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(meta, got); diff != "" {
				t.Errorf("meta (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(moments(leg), w); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
		if _, w, err := s.State(ctx, next, nil); err != nil || len(w) != 3 {
			t.Errorf("the next round's, of any shapes: %v", err)
		}
		parts := 0
		for key := range s.all() {
			if strings.HasPrefix(key, s.keys.value(kindState, c.ID)+":") {
				parts++
			}
		}
		if wanted := map[int]int{columnValues: 0, 4: 4}[column]; parts != wanted {
			t.Errorf("%d parts of states, want %d: those that were replaced are still there", parts, wanted)
		}
		_, _, err := s.State(ctx, c.ID, moments(1)[:2])
		want(t, disdel.Corrupt, err)
	}
}

func statesNeedClaims(t *testing.T, s *place) {
	id := update(1, 1).ID
	old := claim(t, s, id, "a", 1, Claimed)
	if err := s.PutState(ctx, id, old, nil, moments(1)); err != nil {
		t.Fatal(err)
	}
	young := claim(t, s, id, "b", 2, Claimed)
	want(t, disdel.Conflict, s.PutState(ctx, id, old, nil, moments(2)))
	_, w, err := s.State(ctx, id, moments(0))
	if err != nil {
		t.Fatal(err)
	}
	near(t, moments(1), w, 0) // the zombie's changed nothing
	push(t, s, under(young, 1))
	id.Round++
	if err := s.PutState(ctx, id, young, nil, moments(3)); err != nil {
		t.Errorf("kept for the next round after the commit: %v", err)
	}
}

// updatesInBlocksAreThoseOfACopy tests PushInBlocks. For every size of column, it stores the same update as PushUpdate.
// It refuses values that are not finite, and stores nothing then.
func updatesInBlocksAreThoseOfACopy(t *testing.T, s *place) {
	for i, column := range []int{columnValues, 4, 3} {
		s.column = column
		sent := moments(3)
		read := func(dst []float32, tensor, from int) { copy(dst, sent[tensor].Data[from:]) }
		u := disdel.Update{ID: update(2*i, 1).ID, Samples: 7, Weights: bare(sent), Meta: map[string]string{"loss": "0.5"}}
		if err := s.PushInBlocks(ctx, u, read); err != nil {
			t.Fatal(err)
		}
		got, err := s.FetchUpdate(ctx, u.ID, sent)
		if err != nil || got.Samples != 7 || got.Meta["loss"] != "0.5" {
			t.Fatalf("%+v, %v", got, err)
		}
		near(t, sent, got.Weights, 0)
		sent[1].Data[0] = float32(math.NaN())
		u.ID = update(2*i+1, 1).ID
		want(t, disdel.Diverged, s.PushInBlocks(ctx, u, read))
		_, err = s.FetchUpdate(ctx, u.ID, sent)
		want(t, disdel.NotFound, err)
	}
}

// statesGoTensorByTensor: a state that is written and read without a copy of all of it is the same state, whatever
// columns it is cut into.
func statesGoTensorByTensor(t *testing.T, s *place) {
	for _, column := range []int{columnValues, 4, 3} {
		s.column = column
		c := claim(t, s, update(column%7, 1).ID, "a", 1, Claimed)
		sent, buffer := moments(3), make([]float32, 100)
		read := func(i int) []float32 { return append(buffer[:0], sent[i].Data...) } // the one before is gone
		meta := map[string]string{"batch": "2"}
		if err := s.WriteState(ctx, c.ID, c, meta, StateSource{bare(sent), read}); err != nil {
			t.Fatal(err)
		}
		_, whole, err := s.State(ctx, c.ID, sent)
		if err != nil {
			t.Fatal(err)
		}
		near(t, sent, whole, 0)
		var got disdel.Weights
		take := func(v disdel.Tensor) error {
			v.Data = append([]float32{}, v.Data...)
			got = append(got, v)
			return nil
		}
		begin := func(m map[string]string) (func(disdel.Tensor) error, error) {
			if diff := cmp.Diff(meta, m); diff != "" {
				t.Errorf("meta (-want +got):\n%s", diff)
			}
			return take, nil
		}
		if err := s.ReadState(ctx, c.ID, begin); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(sent, got); diff != "" {
			t.Errorf("columns of %d (-want +got):\n%s", column, diff)
		}
		bad := func(i int) []float32 {
			return append([]float32{float32(math.NaN())}, sent[i].Data...)[:len(sent[i].Data)]
		}
		want(t, disdel.Diverged, s.WriteState(ctx, c.ID, c, meta, StateSource{bare(sent), bad}))
		short := func(i int) []float32 { return sent[i].Data[:len(sent[i].Data)/2] }
		want(t, disdel.Invalid, s.WriteState(ctx, c.ID, c, meta, StateSource{bare(sent), short}))
	}
	want(t, disdel.NotFound, s.ReadState(ctx, update(99, 1).ID, nil))
}

// bare is names and shapes.
func bare(w disdel.Weights) disdel.Weights {
	out := make(disdel.Weights, len(w))
	for i, v := range w {
		out[i] = disdel.Tensor{Name: v.Name, Shape: v.Shape}
	}
	return out
}

// wholeJob makes every call of a job, leaves a zombie's parts and a half-made update, and stops in the middle of a
// round.
func wholeJob(t *testing.T, s *place) {
	t.Helper()
	s.column = 4
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(s.PutReference(ctx, "job-1", 0, someWeights(0)))
	for round := range 3 {
		var ids []disdel.UpdateID
		for m := range 2 {
			id := disdel.UpdateID{Job: "job-1", Round: round, Member: m}
			c := claim(t, s, id, "w", 1, Claimed)
			_, err := s.Heartbeat(ctx, "job-1", disdel.Progress{Task: disdel.TaskTrain, Round: round, Member: m})
			must(err)
			_, err = s.Renew(ctx, c)
			must(err)
			must(s.PutState(ctx, id, c, nil, moments(uint64(round))))
			if round == 2 {
				break // killed
			}
			next := id
			next.Round++
			must(s.PutState(ctx, next, c, nil, moments(uint64(round))))
			must(s.PushUpdate(ctx, under(c, uint64(m))))
			want(t, disdel.Conflict, s.PushUpdate(ctx, under(c, 9)))
			ids = append(ids, id)
		}
		if round == 2 {
			break
		}
		c := claim(t, s, disdel.UpdateID{Job: "job-1", Round: round, Level: 1}, "g", 1, Claimed)
		mean := Reduction{Members: ids, Like: someWeights(0), Reference: true}
		_, err := s.Store.Reduce(ctx, c, mean) // killed before the commit
		must(err)
		m, err := s.Store.Reduce(ctx, c, mean)
		must(err)
		must(s.CommitMean(ctx, m))
		if round > 0 {
			must(s.DropRound(ctx, "job-1", round-1))
		}
	}
	h, err := s.headOf(kindUpdate, disdel.UpdateID{Job: "job-1", Round: 2}, someWeights(1))
	must(err)
	_, err = s.stage(ctx, h, fromWeights(h, someWeights(1)))
	must(err)
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	want(t, disdel.Canceled, s.PushUpdate(canceled, update(3, 1)))
	must(s.Cancel(ctx, "job-1"))
}

func sweepLeavesNothing(t *testing.T, s *place) {
	wholeJob(t, s)
	there := len(s.all())
	if there < 20 {
		t.Fatalf("only %d keys before the sweep", there)
	}
	if n, err := s.Sweep(ctx, "job-1"); err != nil || n != there {
		t.Errorf("swept %d of %d, %v", n, there, err)
	}
	if left := s.all(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if n, err := s.Sweep(ctx, "job-1"); err != nil || n != 0 {
		t.Errorf("swept %d once more, %v", n, err)
	}
}

func keysExpire(t *testing.T, s *place) {
	wholeJob(t, s)
	again := update(1, 1)
	again.ID.Job = "job-2"
	push(t, s, again)
	claim(t, s, again.ID, "b", 2, ClaimCommitted) // nothing but a claim has counted in this job
	keys := s.all()
	if len(keys) < 20 {
		t.Fatalf("only %v", keys)
	}
	for key, admin := range keys {
		if ttl := admin.TTL(ctx, key).Val(); ttl <= 0 || ttl > keyLife {
			t.Errorf("%s lives for %v", key, ttl)
		}
	}
	const job = disdel.JobID("job-2")
	if _, err := s.Sweep(ctx, job); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Heartbeat(ctx, job, disdel.Progress{Task: disdel.TaskTrain}); err != nil { // of an action that is late
		t.Fatal(err)
	}
	progress := s.keys.progress(job)
	if ttl := s.all()[progress].TTL(ctx, progress).Val(); ttl <= 0 || ttl > time.Hour {
		t.Errorf("a late heartbeat stays for %v", ttl)
	}
}

func dropLeavesNewer(t *testing.T, s *place) {
	s.column = 4
	for r := 1; r <= 10; r++ {
		u := update(0, 1)
		u.ID.Round = r
		c := claim(t, s, u.ID, "a", 1, Claimed)
		u.Fence = c.Fence
		push(t, s, u)
		if err := s.PutReference(ctx, "job-1", r, someWeights(1)); err != nil {
			t.Fatal(err)
		}
		if err := s.PutState(ctx, u.ID, c, nil, moments(1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.DropRound(ctx, "job-1", 1); err != nil {
		t.Fatal(err)
	}
	for r := 1; r <= 10; r++ {
		id := update(0, 1).ID
		id.Round = r
		_, err := s.FetchUpdate(ctx, id, someWeights(1))
		_, err2 := s.Reference(ctx, "job-1", r, someWeights(1))
		_, _, err3 := s.State(ctx, id, nil)
		for _, err := range []error{err, err2, err3} {
			if gone := strings.Contains(disdelKind(err), "notFound"); gone != (r == 1) {
				t.Errorf("round %d: %v", r, err)
			}
		}
	}
	for key := range s.all() {
		if strings.Contains(key, ":1:0:0") {
			t.Errorf("left of round 1: %s", key)
		}
	}
}

func disdelKind(err error) string {
	if e, ok := err.(*disdel.Error); ok {
		return e.Kind.String()
	}
	return ""
}

// roundsRunAnew: with other shards the same worker's update is another one, and what the old shards still bring is
// refused.
func roundsRunAnew(t *testing.T, s *place) {
	s.column = 4
	id := update(1, 1).ID
	old := claim(t, s, id, "a", 1, Claimed)
	push(t, s, under(old, 1))
	if err := s.PutReference(ctx, "job-1", 2, someWeights(1)); err != nil {
		t.Fatal(err)
	}
	if err := s.Forget(ctx, "job-1", 2); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Reference(ctx, "job-1", 2, someWeights(1)); err != nil {
		t.Errorf("the round's reference: %v", err)
	}
	young := claim(t, s, id, "b", 1, Claimed)
	want(t, disdel.Conflict, s.PushUpdate(ctx, under(old, 1)))
	push(t, s, under(young, 2))
}
