package dataset

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/disdel/disdel"
)

// By hand: a 2 x 3 image is moved over zeros and mirrored.
func TestImagesAreMovedAndMirrored(t *testing.T) {
	for _, c := range []struct {
		change drawnChange
		want   []float32
	}{
		{drawnChange{}, []float32{1, 2, 3, 4, 5, 6}},
		{drawnChange{flip: true}, []float32{3, 2, 1, 6, 5, 4}},
		{drawnChange{up: 1}, []float32{4, 5, 6, 0, 0, 0}},
		{drawnChange{up: -1, left: 1}, []float32{0, 0, 0, 2, 3, 0}},
		{drawnChange{left: -2, flip: true}, []float32{1, 0, 0, 4, 0, 0}},
	} {
		a := augmenting{channels: 1, height: 2, width: 3}
		image, got := []float32{1, 2, 3, 4, 5, 6}, []float32{9, 9, 9, 9, 9, 9}
		if a.show(got, pixels{image: image}, c.change); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v, not %v", c.change, got, c.want)
		}
	}
}

// An image keeps the values that stay on it, whatever is drawn, and all its channels move together.
func TestNothingIsInvented(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		height, width := rapid.IntRange(1, 7).Draw(t, "height"), rapid.IntRange(1, 7).Draw(t, "width")
		crop := rapid.IntRange(0, min(height, width)-1).Draw(t, "crop")
		a := augmenting{
			how: disdel.Augment{Crop: crop, Flip: true}, channels: 2, height: height, width: width,
		}
		image, seen := make([]float32, 2*height*width), make([]float32, 2*height*width)
		for i := range image {
			image[i] = float32(1 + i)
		}
		some := rapid.IntRange(0, 99)
		d := a.draw(rapid.Int64().Draw(t, "seed"), some.Draw(t, "epoch"), some.Draw(t, "row"))
		if a.show(seen, pixels{image: image}, d); max(d.up, -d.up) > crop || max(d.left, -d.left) > crop {
			t.Fatalf("%+v with a crop of %d", d, crop)
		}
		size := height * width
		for i, v := range seen[:size] {
			y, x := i/width, i%width
			if d.flip {
				x = width - 1 - x
			}
			y, x = y+d.up, x+d.left
			want := float32(0)
			if y >= 0 && y < height && x >= 0 && x < width {
				want = float32(1 + y*width + x)
			}
			other := seen[size+i]
			if v != want || want == 0 && other != 0 || want != 0 && other != want+float32(size) {
				t.Fatalf("%+v: pixel %d is %v and %v, not %v", d, i, v, other, want)
			}
		}
	})
}

// All changes come about as often as each other.
func TestDrawsAreEven(t *testing.T) {
	a := augmenting{how: disdel.Augment{Crop: 1, Flip: true}}
	const rows = 18 * 400
	seen := map[drawnChange]int{}
	for row := range rows {
		seen[a.draw(7, 3, row)]++
	}
	chi := 0.0
	for _, n := range seen {
		chi += math.Pow(float64(n)-rows/18, 2) / (rows / 18)
	}
	if len(seen) != 18 || chi > 40.8 { // which 17 degrees of freedom pass in one of a thousand; the seed is fixed
		t.Errorf("%d changes, chi square %v: %v", len(seen), chi, seen)
	}
}

// augmentedStore has ten images of 3 x 3 bytes, all different.
func augmentedStore(t *testing.T) (*Store, disdel.DataRef) {
	t.Helper()
	s, err := OpenStore(context.Background(), "file://"+t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	in := Input{Name: "ten", Train: Samples{Shape: []int{1, 3, 3}}}
	for i := range 10 {
		for k := range 9 {
			in.Train.U8 = append(in.Train.U8, byte(1+20*i+k))
		}
		in.Train.Labels = append(in.Train.Labels, int32(i%2))
	}
	m, err := s.Add(context.Background(), in, false)
	if err != nil {
		t.Fatal(err)
	}
	return s, disdel.DataRef{
		Name: m.Name, Checksum: m.Checksum(), Split: disdel.Split{Train: 0.8, Validation: 0.2, Seed: 1},
		Augment: disdel.Augment{Crop: 1, Flip: true},
	}
}

// A row is shown in the same way whichever shard it is of and in whatever order it comes; in another epoch in another
// way, and held-out rows as they are.
func TestRowsAreShownTheSameWayEverywhere(t *testing.T) {
	ctx := context.Background()
	s, ref := augmentedStore(t)
	shown := func(rows disdel.RowRange, order []int32, epoch int) map[string]bool {
		t.Helper()
		shard, err := s.ReadTrain(ctx, ref, rows)
		if err != nil {
			t.Fatal(err)
		}
		b, out := shard.NewBatch(len(order)), map[string]bool{}
		shard.FillAugmented(&b, order, 5, epoch)
		for i := range order {
			out[fmt.Sprint(b.Input.Row(i))] = true
		}
		return out
	}
	whole := shown(disdel.RowRange{End: 8}, []int32{0, 1, 2, 3, 4, 5, 6, 7}, 2)
	if part := shown(disdel.RowRange{Start: 3, End: 8}, []int32{4, 1, 0, 2, 3}, 2); len(part) != 5 {
		t.Errorf("%v", part)
	} else {
		for row := range part {
			if !whole[row] {
				t.Errorf("%s is shown otherwise in another shard", row)
			}
		}
	}
	same := 0
	for row := range shown(disdel.RowRange{End: 8}, []int32{0, 1, 2, 3, 4, 5, 6, 7}, 3) {
		if whole[row] {
			same++
		}
	}
	if same > 4 {
		t.Errorf("%d of 8 rows are the same in the next epoch", same)
	}
	plain := ref
	plain.Augment = disdel.Augment{}
	held, err := s.ReadHeldOut(ctx, ref, disdel.RowRange{End: 2})
	if err != nil {
		t.Fatal(err)
	}
	want, err := s.ReadHeldOut(ctx, plain, disdel.RowRange{End: 2})
	if err != nil {
		t.Fatal(err)
	}
	a, b := held.NewBatch(2), want.NewBatch(2)
	held.FillAugmented(&a, []int32{0, 1}, 5, 2)
	want.Fill(&b, []int32{0, 1})
	if !slices.Equal(a.Input.Values, b.Input.Values) {
		t.Error("held-out rows are changed")
	}
	shard, err := s.ReadTrain(ctx, ref, disdel.RowRange{End: 8})
	if err != nil || shard.Size() != 8*(9+4) {
		t.Errorf("the shard takes %v: %v", shard.Size(), err)
	}
}

// What cannot be done to the rows is refused.
func TestAugmentationsThatCannotBe(t *testing.T) {
	s, ref := augmentedStore(t)
	for _, how := range []disdel.Augment{{Crop: 3}, {Crop: -1}} {
		ref.Augment = how
		if _, err := s.ReadTrain(context.Background(), ref, disdel.RowRange{End: 1}); !errors.Is(err, disdel.Invalid) {
			t.Errorf("%+v: %v", how, err)
		}
	}
	if CheckAugment(disdel.Augment{Flip: true}, []int{1, 1, 20}) == "" {
		t.Error("a table is no image")
	}
}
