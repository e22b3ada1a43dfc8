package dataset

import (
	"context"

	"github.com/disdel/disdel"
)

// Range is from the least to the greatest input among the first rows of the training part, those of its first chunk:
// enough to tell values of 0 to 255 from values of 0 to 1.
func (s *Store) Range(ctx context.Context, m Manifest) (low, high float32, err error) {
	if m.Sparse != nil {
		return 0, 0, &disdel.Error{Kind: disdel.Invalid, Op: "read data set " + m.Name, Msg: "its rows are sparse"}
	}
	if len(m.Train.Chunks) == 0 {
		return 0, 0, &disdel.Error{Kind: disdel.Invalid, Op: "read data set " + m.Name, Msg: "it has no training rows"}
	}
	rows := min(m.Train.Chunks[0].Rows, rangeRows)
	shard, err := s.contiguous(ctx, m, m.Train, disdel.RowRange{End: rows})
	if err != nil {
		return 0, 0, err
	}
	x, labels := make([]float32, shard.SampleLen()), make([]int32, 1)
	for i := range rows {
		shard.Batch([]int32{int32(i)}, x, labels)
		for k, v := range x {
			if i == 0 && k == 0 {
				low, high = v, v
			}
			low, high = min(low, v), max(high, v)
		}
	}
	return low, high, nil
}

// rangeRows is how many rows Range looks at.
const rangeRows = 1000
