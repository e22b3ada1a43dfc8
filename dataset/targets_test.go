package dataset

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/disdel/disdel"
)

// numbersOf is a data set of rows with two numbers to predict; its last row is held out.
func numbersOf(odd float32) DenseInput {
	in := DenseInput{
		Name: "homes", Title: "Homes", Shape: []int{1, 1, 2}, Classes: 2,
		Targets: []disdel.Target{{Name: "price", Mean: 10, Deviation: 2}, {Name: "rent", Mean: 1, Deviation: 0.5}},
	}
	in.Each = func(yield func(DenseRow) error) error {
		for i := range 5 {
			v := float32(i)
			row := DenseRow{Values: []float32{v, -v}, Targets: []float32{v, v / 2}, HeldOut: i == 4}
			if i == 2 {
				row.Targets[1] += odd
			}
			if err := yield(row); err != nil {
				return err
			}
		}
		return nil
	}
	return in
}

// Targets come back from the store as they were added, in batches of any number of goroutines, and from rows that were
// sent. A target that is not finite is refused with its name and row.
func TestTargetsAreStored(t *testing.T) {
	ctx, in := context.Background(), numbersOf(0)
	var sent bytes.Buffer
	if err := WriteDenseRows(&sent, in); err != nil {
		t.Fatal(err)
	}
	received, _, err := ReadRows("homes", bytes.NewReader(sent.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	s, err := OpenStore(ctx, "file://"+t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.AddDense(ctx, *received, false)
	if err != nil {
		t.Fatal(err)
	}
	if info := m.Info(disdel.Split{}); !info.Numbers() || info.Targets[1].Name != "rent" || m.NumericTarget() != "" {
		t.Errorf("the data set is %+v", info)
	}
	ref := disdel.DataRef{Name: "homes", Checksum: m.Checksum()}
	shard, err := s.ReadTrain(ctx, ref, disdel.RowRange{Start: 1, End: 4})
	if err != nil {
		t.Fatal(err)
	}
	b := shard.NewBatch(2)
	shard.Filler(2).Fill(&b, []int32{2, 0})
	if shard.Len() != 3 || b.Target.Classes != nil || !slices.Equal(b.Target.Values, []float32{3, 1.5, 1, 0.5}) ||
		!slices.Equal(b.Input.Values, []float32{3, -3, 1, -1}) {
		t.Errorf("%d rows, batch %+v", shard.Len(), b)
	}
	doc, err := s.Sample(ctx, "homes", []int{0}, 1)
	if err != nil || doc.Labels != nil || len(doc.Numbers) != 1 || !slices.Equal(doc.Numbers[0], []float64{18, 2}) {
		t.Errorf("sample %+v, %v", doc, err)
	}
	for _, odd := range []float64{math.NaN(), math.Inf(1)} {
		_, err := s.AddDense(ctx, numbersOf(float32(odd)), true)
		if !errors.Is(err, disdel.Invalid) || !bytes.Contains([]byte(err.Error()), []byte("the target rent of row 2")) {
			t.Errorf("a target of %g: %v", odd, err)
		}
	}
}
