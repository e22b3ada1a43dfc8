package dataset

import (
	"encoding/binary"
	"math"
	"testing"
)

// Held-out rows that equal a training row are counted in any order of rows; a row with another label is no duplicate.
func TestDuplicatesAreCounted(t *testing.T) {
	d := newDuplicates()
	d.add(true, []byte("later"), []byte{0})
	d.add(false, []byte("later"), []byte{0})
	d.add(false, []byte("once"), []byte{0})
	d.add(false, []byte("twice"), []byte{0})
	for range 2 {
		d.add(true, []byte("twice"), []byte{0})
	}
	d.add(true, []byte("once"), []byte{1})
	d.add(true, []byte("new"), []byte{0})
	if got := d.rows(); got != 3 {
		t.Errorf("%d duplicates, want 3", got)
	}
}

// The memory is bounded for many rows. The count is then within 3 percent.
func TestDuplicatesOfManyRowsAreEstimated(t *testing.T) {
	d := newDuplicates()
	const rows, shared = 600_000, 150_000
	for i := range uint64(rows) {
		d.add(false, binary.LittleEndian.AppendUint64(nil, i), nil)
		if len(d.train)+len(d.heldOut) > mostHashes {
			t.Fatalf("%d hashes are kept", len(d.train)+len(d.heldOut))
		}
	}
	for i := range uint64(2 * shared) {
		d.add(true, binary.LittleEndian.AppendUint64(nil, rows-shared+i), nil)
	}
	if got := d.rows(); math.Abs(float64(got-shared)) > 0.03*shared {
		t.Errorf("%d duplicates, want about %d", got, shared)
	}
}
