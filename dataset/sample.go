package dataset

import (
	"context"
	"fmt"
	"slices"

	"github.com/disdel/disdel"
)

// Sampled is rows as `infer --input` reads them, with the labels for who wants to compare.
type Sampled struct {
	Shape  []int       `json:"shape"`
	Inputs [][]float32 `json:"inputs,omitempty"`
	Labels []int32     `json:"labels,omitempty"`

	Rows    []disdel.SparseRow `json:"rows,omitempty"` // sparse ones, and their targets
	Targets []float32          `json:"targets,omitempty"`
}

// Sample reads held-out rows of a data set, by their numbers; of one that has none of its own, those of a split into
// four fifths and one by a seed. It returns NotFound, and Invalid for rows that are not there.
func (s *Store) Sample(ctx context.Context, name string, rows []int, seed int64) (doc Sampled, err error) {
	m, err := s.Manifest(ctx, name)
	if err != nil {
		return doc, err
	}
	split := disdel.Split{Train: 0.8, Validation: 0.2, Seed: seed}
	info := m.Info(split)
	if info.HeldOut == 0 {
		return doc, &disdel.Error{
			Kind: disdel.Invalid, Op: "sample " + name, Msg: "no row of it is held out",
			Hint: "a data set without held-out rows of its own needs at least 3 rows",
		}
	}
	if slices.Min(rows) < 0 || slices.Max(rows) >= info.HeldOut {
		return doc, &disdel.Error{
			Kind: disdel.Invalid, Op: "sample " + name,
			Msg: fmt.Sprintf("rows go from 0 to %d", info.HeldOut-1),
		}
	}
	shard, err := s.ReadHeldOut(ctx, disdel.DataRef{Name: name, Checksum: info.Checksum, Split: split},
		disdel.RowRange{End: info.HeldOut})
	if err != nil {
		return doc, err
	}
	if shard.sparse != nil {
		return shard.sparse.sample(m.Sample, rows), nil
	}
	doc = Sampled{Shape: m.Sample, Labels: make([]int32, len(rows))}
	x := make([]float32, len(rows)*shard.SampleLen())
	places := make([]int32, len(rows))
	for i, r := range rows {
		places[i] = int32(r)
	}
	shard.Batch(places, x, doc.Labels)
	for i := range rows {
		doc.Inputs = append(doc.Inputs, x[i*shard.SampleLen():(i+1)*shard.SampleLen()])
	}
	return doc, nil
}
