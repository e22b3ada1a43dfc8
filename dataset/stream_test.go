package dataset

import (
	"errors"
	"testing"

	"github.com/disdel/disdel"
)

// A new data set whose rows come to an early end after its first chunks were written leaves none of them.
func TestAStreamThatBreaksOffLeavesNothing(t *testing.T) {
	s := memory(t)
	broken := errors.New("the file is gone")
	sparse := someSparse("sparse", 14000, 160, false, true)
	all := sparse.Each
	sparse.Each = func(yield func(SparseRow) error) error { return errors.Join(all(yield), broken) }
	if _, err := s.AddSparse(ctx, sparse, false); !errors.Is(err, broken) {
		t.Errorf("sparse rows: %v", err)
	}
	written := 0
	dense := DenseInput{Name: "dense", Shape: []int{1, 1000, 1000}, Classes: 2, Bytes: true}
	dense.Each = func(yield func(DenseRow) error) error {
		row := DenseRow{Bytes: make([]byte, 1000*1000)}
		for written = 0; written < 1+2*chunkBytes/len(row.Bytes); written++ {
			if err := yield(row); err != nil {
				return err
			}
		}
		return broken
	}
	if _, err := s.AddDense(ctx, dense, false); !errors.Is(err, broken) || written < 2 {
		t.Errorf("%d dense rows: %v", written, err)
	}
	for _, name := range []string{"sparse", "dense"} {
		if keys, err := s.keys(ctx, name); err != nil || len(keys) > 0 {
			t.Errorf("%v is left of %s, %v", keys, name, err)
		}
		if _, err := s.Manifest(ctx, name); disdel.KindOf(err) != disdel.NotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
}
