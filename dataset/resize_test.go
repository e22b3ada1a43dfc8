package dataset

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/disdel/disdel"
)

// By hand: two pixels become four whose centres lie at -0.25, 0.25, 0.75 and 1.25 of the old ones', the first and the
// last beyond the edge, which they take (PyTorch 2's interpolate and TensorFlow 2's tf.image.resize give the same).
// Four become two: each lies half-way between two.
func TestImagesAreResizedBetweenTheCentresOfPixels(t *testing.T) {
	for _, c := range []struct {
		shape     []int
		side      int
		row, want []float32
	}{
		{[]int{1, 1, 2}, 4, []float32{0, 4}, []float32{0, 1, 3, 4, 0, 1, 3, 4, 0, 1, 3, 4, 0, 1, 3, 4}},
		{[]int{1, 4, 4}, 2, []float32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, []float32{2.5, 4.5, 10.5, 12.5}},
		{[]int{2, 1, 1}, 2, []float32{5, 7}, []float32{5, 5, 5, 5, 7, 7, 7, 7}},
		{[]int{1, 2, 2}, 3, []float32{0, 2, 4, 6}, []float32{0, 1, 2, 2, 3, 4, 4, 5, 6}},
	} {
		z := newResizing(c.shape, c.side)
		copy(z.row, c.row)
		got := make([]float32, z.len())
		z.resize(got)
		for i, v := range c.want {
			if math.Abs(float64(got[i]-v)) > 1e-6 {
				t.Errorf("%v to %d: %v, want %v", c.shape, c.side, got, c.want)
				break
			}
		}
	}
}

// A resized image has no value that the old one has not between its least and its greatest, and its own size changes
// nothing.
func TestResizingStaysWithinTheImage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		side, to := rapid.IntRange(1, 12).Draw(t, "from"), rapid.IntRange(1, 20).Draw(t, "to")
		z := newResizing([]int{2, side, side}, to)
		low, high := float32(math.Inf(1)), float32(math.Inf(-1))
		for i := range z.row {
			z.row[i] = rapid.Float32Range(-2, 2).Draw(t, "pixel")
			low, high = min(low, z.row[i]), max(high, z.row[i])
		}
		got := make([]float32, z.len())
		z.resize(got)
		for i, v := range got {
			if v < low-1e-5 || v > high+1e-5 {
				t.Fatalf("%v is outside of %v to %v", v, low, high)
			}
			if to == side && v != z.row[i] {
				t.Fatalf("at its own size pixel %d became %v, and was %v", i, v, z.row[i])
			}
		}
	})
}

// A shard that is read resized has batches of that size, of the same rows and labels; its memory is the stored rows'
// and
// one image's.
func TestAShardIsReadResized(t *testing.T) {
	ctx := context.Background()
	s, err := OpenStore(ctx, "file://"+t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	in := Input{Name: "two", Train: Samples{
		Shape: []int{1, 2, 2}, U8: []byte{0, 2, 4, 6, 10, 10, 10, 10},
		Labels: []int32{0, 1},
	}}
	m, err := s.Add(ctx, in, false)
	if err != nil {
		t.Fatal(err)
	}
	ref := disdel.DataRef{Name: "two", Checksum: m.Checksum(), Resize: 3}
	shard, err := s.ReadTrain(ctx, ref, disdel.RowRange{End: 2})
	if err != nil {
		t.Fatal(err)
	}
	if shard.SampleLen() != 9 || shard.Len() != 2 {
		t.Fatalf("%d rows of %d values", shard.Len(), shard.SampleLen())
	}
	if got, want := shard.Size(), disdel.Bytes(8+2*4+4*4); got != want {
		t.Errorf("it takes %v, want %v", got, want)
	}
	b := NewBatch(2, shard.SampleLen())
	shard.Fill(&b, []int32{0, 1})
	if b.Input.Columns != 9 || len(b.Input.Values) != 18 {
		t.Fatalf("a batch of %d columns and %d values", b.Input.Columns, len(b.Input.Values))
	}
	for r := range 2 {
		if same := b.Input.Row(r)[8] == b.Input.Row(r)[0]; same != (b.Target.Classes[r] == 1) {
			t.Errorf("row %d of class %d is %v", r, b.Target.Classes[r], b.Input.Row(r))
		}
	}
	ref.Resize = -1
	if _, err := s.ReadTrain(ctx, ref, disdel.RowRange{End: 2}); disdel.KindOf(err) != disdel.Invalid {
		t.Errorf("a side of -1: %v", err)
	}
}

// One image is resized as those of a shard are.
func TestAnImageIsResizedAlone(t *testing.T) {
	got, err := Resize([]float32{0, 4, 8, 12}, []int{1, 2, 2}, 3)
	if want := []float32{0, 2, 4, 4, 6, 8, 8, 10, 12}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	for _, shape := range [][]int{{2, 2}, {1, 2, 3}, {-1, -2, 2}, {0, 2, 2}} {
		if _, err := Resize([]float32{0, 4, 8, 12}, shape, 3); !errors.Is(err, disdel.Invalid) {
			t.Errorf("shape %v: %v, want Invalid", shape, err)
		}
	}
	if _, err := Resize([]float32{0, 4, 8, 12}, []int{1, 2, 2}, 1<<20); !errors.Is(err, disdel.Invalid) {
		t.Errorf("a huge side: %v, want Invalid", err)
	}
}
