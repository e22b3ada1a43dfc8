package aggregator

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/race"
)

// shardedMean averages updates in so many shards by a tree of two levels, and publishes the next reference.
func shardedMean(s *place, job disdel.JobID, clusters [][]disdel.UpdateID, like disdel.Weights, shards int) error {
	var top []disdel.UpdateID
	part := func(k int) (none Shard) {
		if shards == 1 {
			return none
		}
		return Shard{k, shards}
	}
	step := func(id disdel.UpdateID, made func(Claim) (Mean, error)) error {
		c, _, err := s.Claim(ctx, id, "owner", 1)
		if err != nil {
			return err
		}
		m, err := made(c)
		if err != nil {
			return err
		}
		return s.CommitMean(ctx, m)
	}
	for k := range shards {
		var means []disdel.UpdateID
		for i, members := range clusters {
			id := disdel.UpdateID{Job: job, Level: 1, Member: k*len(clusters) + i}
			err := step(id, func(c Claim) (Mean, error) {
				return s.Store.Reduce(ctx, c, Reduction{Members: members, Like: like, Shard: part(k)})
			})
			if err != nil {
				return err
			}
			means = append(means, id)
		}
		id := disdel.UpdateID{Job: job, Level: 2, Member: k}
		err := step(id, func(c Claim) (Mean, error) {
			return s.Store.Reduce(ctx, c, Reduction{Members: means, Like: like, Shard: part(k), Reference: true})
		})
		if err != nil {
			return err
		}
		top = append(top, id)
	}
	if shards == 1 {
		return nil
	}
	return step(disdel.UpdateID{Job: job, Level: 3}, func(c Claim) (Mean, error) {
		return s.JoinShards(ctx, c, top, like)
	})
}

// bitsOfShards compares the references of 2 to 5 shards with that of one, through trees of two levels.
func bitsOfShards(s *place, rng *rand.Rand, shapes [][]int, workers, fanIn int, wire disdel.Wire) error {
	like, reference := drawnWeights(rng, shapes), drawnWeights(rng, shapes)
	var want disdel.Weights
	var updates []disdel.Weights
	for range workers {
		updates = append(updates, drawnWeights(rng, shapes))
	}
	for shards := 1; shards <= min(5, newLayout(like, s.column).columns()); shards++ {
		job := disdel.JobID(fmt.Sprintf("job-%d", shards))
		if _, err := s.Sweep(ctx, job); err != nil {
			return err
		}
		if err := s.PutReference(ctx, job, 0, reference); err != nil {
			return err
		}
		var clusters [][]disdel.UpdateID
		for w, update := range updates {
			u := disdel.Update{ID: disdel.UpdateID{Job: job, Member: w}, Samples: float64(w + 1), Weights: update}
			var err error
			if wire == disdel.WireFloat32 {
				err = s.PushUpdate(ctx, u)
			} else {
				var f *Feedback
				var e *Encoded
				if f, err = NewFeedback(Format{Wire: wire}, nil); err == nil {
					f.column = s.column
					if e, err = f.Encode(update, reference); err == nil {
						err = s.PushEncoded(ctx, u, e)
					}
				}
			}
			if err != nil {
				return err
			}
			if w%fanIn == 0 {
				clusters = append(clusters, nil)
			}
			last := &clusters[len(clusters)-1]
			*last = append(*last, u.ID)
		}
		if err := shardedMean(s, job, clusters, like, shards); err != nil {
			return fmt.Errorf("%d shards: %w", shards, err)
		}
		if err := s.DropRound(ctx, job, 0); err != nil {
			return err
		}
		got, err := s.Reference(ctx, job, 1, like)
		if err != nil {
			return fmt.Errorf("%d shards: %w", shards, err)
		}
		if shards == 1 {
			want = got
		} else if d := cmp.Diff(want, got); d != "" {
			return fmt.Errorf("%d shards of %d columns have other bits than one:\n%s", shards,
				newLayout(like, s.column).columns(), d)
		}
		if err := s.DropRound(ctx, job, 1); err != nil {
			return err
		}
		left, err := s.client.SMembers(ctx, s.keys.index(job)).Result()
		if err != nil || len(left) > 0 {
			return fmt.Errorf("%d shards leave %v, %v", shards, left, err)
		}
	}
	return nil
}

// On every kind of server, shards have the bits of one mean, outlive their round, and end with their reference.
func shardsHaveTheBitsOfAWholeMean(t *testing.T, s *place) {
	s.column = 4
	for _, wire := range disdel.Wires() {
		err := bitsOfShards(s, rand.New(rand.NewPCG(1, 35)), [][]int{{3, 5}, {7}, {2, 2}}, 5, 2, wire)
		if err != nil {
			t.Errorf("%s: %v", wire, err)
		}
	}
}

// For any shapes, length of columns, workers, fan-in and format.
func TestDrawnShardsHaveTheBitsOfAWholeMean(outer *testing.T) {
	race.SkipSequential(outer)
	s := enter(outer, embedded(outer), "drawn-shards")
	rapid.Check(outer, func(t *rapid.T) {
		s.column = rapid.SampledFrom([]int{1, 3, 4, 17, 256}).Draw(t, "column")
		shapes := rapid.SliceOfN(rapid.SliceOfN(rapid.SampledFrom([]int{1, 2, 3, 5}), 1, 3), 1, 4).Draw(t, "shapes")
		workers := rapid.IntRange(1, 6).Draw(t, "workers")
		err := bitsOfShards(s, rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)), shapes, workers,
			rapid.IntRange(2, 4).Draw(t, "fanIn"), rapid.SampledFrom(disdel.Wires()).Draw(t, "wire"))
		if err != nil {
			t.Fatal(err)
		}
	})
}

// Two owners of a shard: the second one has a newer claim, so that only its mean counts. A join without all of its
// shards, or with a shard of another division, publishes nothing.
func shardsCommitOnce(t *testing.T, s *place) {
	s.column = 4
	like := someWeights(1)
	u := update(0, 10)
	push(t, s, u)
	what := Reduction{Members: []disdel.UpdateID{u.ID}, Like: like, Reference: true, Shard: Shard{0, 2}}
	first, second := u.ID, u.ID
	first.Level, second.Level, second.Member = 1, 1, 1
	old := claim(t, s, first, "slow", 1, Claimed)
	late, err := s.Store.Reduce(ctx, old, what)
	if err != nil {
		t.Fatal(err)
	}
	c := claim(t, s, first, "fast", 2, Claimed)
	m, err := s.Store.Reduce(ctx, c, what)
	if err != nil {
		t.Fatal(err)
	}
	want(t, disdel.Conflict, s.CommitMean(ctx, late))
	if err := s.CommitMean(ctx, m); err != nil {
		t.Fatal(err)
	}
	claim(t, s, first, "third", 3, ClaimCommitted)
	top := u.ID
	top.Level = 2
	j := claim(t, s, top, "join", 1, Claimed)
	_, err = s.JoinShards(ctx, j, []disdel.UpdateID{first, second}, like)
	want(t, disdel.NotFound, err)
	_, err = s.JoinShards(ctx, j, []disdel.UpdateID{first}, like)
	want(t, disdel.Corrupt, err)
	_, err = s.Reference(ctx, u.ID.Job, u.ID.Round+1, like)
	want(t, disdel.NotFound, err)
	for _, bad := range []Shard{{2, 2}, {-1, 2}, {0, 1000}} {
		what.Shard = bad
		_, err = s.Store.Reduce(ctx, c, what)
		want(t, disdel.Invalid, err)
	}
}
