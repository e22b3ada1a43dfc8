package aggregator

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/disdel/disdel"
)

// Shard is a part of the columns of a model that one aggregation averages: as many columns as the others, or one more.
// The zero value is all of them.
type Shard struct {
	Index int `json:"index"` // from 0
	Count int `json:"count"` // shards of the model; 0 or 1: one
}

// check refuses shards that have no column.
func (s Shard) check(l layout) error {
	if s == (Shard{}) {
		return nil
	}
	if s.Count < 1 || s.Index < 0 || s.Index >= s.Count {
		return fmt.Errorf("there is no shard %d of %d", s.Index, s.Count)
	}
	if n := l.columns(); s.Count > n {
		return fmt.Errorf("the model has %d columns of %d values, too few for %d shards", n, l.column, s.Count)
	}
	return nil
}

// columns is the range of columns of a shard.
func (s Shard) columns(l layout) (from, to int) {
	n, count := l.columns(), max(1, s.Count)
	return s.Index * n / count, (s.Index + 1) * n / count
}

// division says which columns a value has, if it does not have all of them under its own key.
type division struct {
	Shard  Shard         `json:"shard,omitzero"`   // the value has only these columns
	Pieces []shardOrigin `json:"pieces,omitempty"` // of a joined reference: its columns have the keys of shards
}

// shardOrigin is one shard of a joined reference.
type shardOrigin struct {
	Level  int    `json:"level"`
	Member int    `json:"member"`
	Fence  uint64 `json:"fence"`
	Token  uint64 `json:"token"`
	First  int    `json:"first"` // its first column
}

// divisionKey is the key in a head's meta of its division. The digest of a value excludes it, so that a joined
// reference equals the same weights from a checkpoint.
const divisionKey = "columns"

// addTo returns meta with the division.
func (d division) addTo(meta map[string]string) map[string]string {
	if d.Shard == (Shard{}) && d.Pieces == nil {
		return meta
	}
	text, _ := json.Marshal(d) // of numbers: does not fail
	out := map[string]string{divisionKey: string(text)}
	maps.Copy(out, meta)
	return out
}

// takeFrom reads the division and removes it from meta.
func (d *division) takeFrom(meta map[string]string) error {
	text, ok := meta[divisionKey]
	if !ok {
		return nil
	}
	delete(meta, divisionKey)
	return json.Unmarshal([]byte(text), d)
}

// columns is the prefix of the key of column k of a value.
func (k keys) columns(h *head, column int) string {
	owner := *h
	for _, p := range h.division.Pieces {
		if p.First <= column {
			owner.kind, owner.fence, owner.token = kindShard, p.Fence, p.Token
			owner.id.Level, owner.id.Member = p.Level, p.Member
		}
	}
	return k.staged(&owner)
}

// JoinShards makes the next reference from its shards, which Reduce made with Reference and a Shard. They are in the
// order of their index. JoinShards reads only their heads, because the reference has the columns of the shards.
// CommitMean publishes the reference. A shard lives as long as its reference: DropRound of the next round deletes both.
//
// JoinShards returns NotFound for a shard that is not committed, and Corrupt for one that is damaged or another one.
func (s *Store) JoinShards(ctx context.Context, c Claim, shards []disdel.UpdateID, like disdel.Weights) (Mean, error) {
	defer s.connections.interruptAfter(ctx)()
	l := newLayout(like, s.column)
	if err := (Shard{Count: len(shards)}).check(l); err != nil {
		return Mean{}, &disdel.Error{Kind: disdel.Invalid, Op: "join shards", Job: c.ID.Job, Msg: err.Error()}
	}
	m, sums := Mean{work: c}, make([]uint32, l.columns())
	reference := &head{
		kind: kindReference, id: referenceID(c.ID.Job, c.ID.Round+1), fence: c.Fence, samples: 1,
		wire: disdel.WireFloat32, codec: float32s{}, layout: l,
	}
	for i, id := range shards {
		h, err := s.openShard(ctx, id, Shard{i, len(shards)}, l, like)
		if err == nil && i > 0 && h.samples != m.Samples {
			err = corruptError(kindShard, h.id, "it is of %g samples, others are of %g", h.samples, m.Samples)
		}
		if err != nil {
			return Mean{}, s.countDamage(ctx, c.ID.Job, err)
		}
		from, to := h.division.Shard.columns(l)
		copy(sums[from:to], h.sums[from:to])
		reference.division.Pieces = append(reference.division.Pieces,
			shardOrigin{id.Level, id.Member, h.fence, h.token, from})
		m.Samples = h.samples
	}
	var err error
	if m.staged, err = s.begin(ctx, reference); err != nil {
		return Mean{}, wrap(err, "join shards", c.ID.String())
	}
	reference.sums = sums
	return m, nil
}

// openShard reads the head of a shard that was claimed as update id.
func (s *Store) openShard(ctx context.Context, id disdel.UpdateID, want Shard, l layout, like disdel.Weights) (*head,
	error,
) {
	id.Round++
	h, _, err := s.open(ctx, kindShard, id, like)
	switch {
	case err != nil:
		return nil, err
	case h.division.Shard != want || h.layout.column != l.column:
		return nil, corruptError(kindShard, id, "it is shard %d of %d with columns of %d values", h.division.Shard.Index,
			h.division.Shard.Count, h.layout.column)
	}
	return h, nil
}
