package dataset

import (
	"context"
	"fmt"
	"slices"

	"github.com/disdel/disdel"
)

// ReadPart reads rows of a part: of PartTrain what ReadTrain reads, of PartTest what ReadHeldOut reads, and of PartAll
// rows as they are stored, whatever the split, so that a row's number says where in the data set it is. Its errors are
// those of ReadTrain, and Invalid for another part.
func (s *Store) ReadPart(ctx context.Context, ref disdel.DataRef, part disdel.DataPart, rows disdel.RowRange) (*Shard,
	error,
) {
	switch part {
	case disdel.PartTrain:
		return s.ReadTrain(ctx, ref, rows)
	case disdel.PartTest:
		return s.ReadHeldOut(ctx, ref, rows)
	case disdel.PartAll:
		return s.readStored(ctx, ref, rows)
	default:
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "read data set " + ref.Name, Msg: fmt.Sprintf("it has no part %.40q", part),
			Hint: "the parts are all, train and test",
		}
	}
}

// readStored reads rows of both parts, one after the other.
func (s *Store) readStored(ctx context.Context, ref disdel.DataRef, rows disdel.RowRange) (*Shard, error) {
	m, _, err := s.open(ctx, ref)
	if err != nil {
		return nil, err
	}
	all := Part{Rows: m.Train.Rows + m.Test.Rows, Chunks: slices.Concat(m.Train.Chunks, m.Test.Chunks)}
	if rows.Start < 0 || rows.End > all.Rows || rows.Start > rows.End {
		return nil, outside(ref.Name, rows, all.Rows)
	}
	if m.Sparse != nil {
		return s.readSparse(ctx, m, all, nil, rows)
	}
	return resized(ref)(s.contiguous(ctx, m, all, rows))
}

// Labels are the classes of dense rows, in their order; nil of sparse ones. They are no copy.
func (s *Shard) Labels() []int32 { return s.labels }

// Targets are what sparse rows are to come to, in their order; nil of dense ones. They are no copy.
func (s *Shard) Targets() []float32 {
	if s.sparse == nil {
		return nil
	}
	return s.sparse.target
}
