package dataset_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// stream is a data set in memory as one that comes row by row.
func stream(in dataset.Input, classes int) dataset.DenseInput {
	out := dataset.DenseInput{
		Name: in.Name, Title: in.Title, Shape: in.Train.Shape, Classes: classes, ClassNames: in.ClassNames,
		Bytes: in.Train.U8 != nil,
	}
	part := func(x *dataset.Samples, heldOut bool, yield func(dataset.DenseRow) error) error {
		n := len(x.U8)/x.Len() + len(x.F32)/x.Len()
		for i, y := range x.Labels {
			row := dataset.DenseRow{Label: y, HeldOut: heldOut}
			if x.U8 != nil {
				row.Bytes = x.U8[i*n : (i+1)*n]
			} else {
				row.Values = x.F32[i*n : (i+1)*n]
			}
			if err := yield(row); err != nil {
				return err
			}
		}
		return nil
	}
	out.Each = func(yield func(dataset.DenseRow) error) error {
		if err := part(&in.Train, false, yield); err != nil || in.Test == nil {
			return err
		}
		return part(in.Test, true, yield)
	}
	return out
}

func openStore(t *testing.T) *dataset.Store {
	t.Helper()
	store, err := dataset.OpenStore(t.Context(), "file://"+t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// Rows that come as a stream are stored as those in memory are, to the last byte, whatever their number.
func TestAStreamIsStoredAsMemoryIs(t *testing.T) {
	for name, in := range map[string]dataset.Input{
		"bytes of several chunks": {
			Train: samples(70, []int{3, 200, 200}, true),
			Test:  new(samples(40, []int{3, 200, 200}, true)),
		},
		"floats": {Train: samples(9, []int{1, 1, 5}, false)},
	} {
		in.Name, in.Scale = "a", 1
		if in.Train.U8 != nil {
			in.Scale = 1.0 / 255
		}
		want, err := openStore(t).Add(t.Context(), in, false)
		if err != nil {
			t.Fatal(err)
		}
		got, err := openStore(t).AddDense(t.Context(), stream(in, 3), false)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// samples are rows of three classes, each value another.
func samples(rows int, shape []int, bytes bool) dataset.Samples {
	s := dataset.Samples{Shape: shape}
	n := shape[0] * shape[1] * shape[2]
	for i := range rows * n {
		if bytes {
			s.U8 = append(s.U8, byte(i*7))
		} else {
			s.F32 = append(s.F32, float32(i)/3)
		}
	}
	for i := range rows {
		s.Labels = append(s.Labels, int32(i%3))
	}
	return s
}

// Adding the same once more changes nothing, and other rows under the name are a Conflict; rows that turn out to be
// wrong leave what there was, or nothing.
func TestAStreamIsAddedWhollyOrNotAtAll(t *testing.T) {
	store := openStore(t)
	in := stream(dataset.Input{Name: "a", Train: samples(9, []int{1, 1, 5}, false)}, 3)
	first, err := store.AddDense(t.Context(), in, false)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := store.AddDense(t.Context(), in, false); err != nil || again.Checksum() != first.Checksum() {
		t.Errorf("%v", err)
	}
	other := stream(dataset.Input{Name: "a", Train: samples(8, []int{1, 1, 5}, false)}, 3)
	if _, err := store.AddDense(t.Context(), other, false); disdel.KindOf(err) != disdel.Conflict {
		t.Errorf("%v", err)
	}
	wrong := errors.New("it has changed meanwhile")
	other.Each = func(yield func(dataset.DenseRow) error) error {
		return errors.Join(yield(dataset.DenseRow{Values: make([]float32, 5)}), wrong)
	}
	if _, err := store.AddDense(t.Context(), other, true); !errors.Is(err, wrong) {
		t.Errorf("%v", err)
	}
	if kept, err := store.Manifest(t.Context(), "a"); err != nil || kept.Checksum() != first.Checksum() {
		t.Errorf("%v", err)
	}
	other.Name = "b"
	if _, err := store.AddDense(t.Context(), other, false); !errors.Is(err, wrong) {
		t.Errorf("%v", err)
	}
	if _, err := store.Remove(t.Context(), "b"); disdel.KindOf(err) != disdel.NotFound {
		t.Errorf("something of it was left: %v", err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	other.Each = in.Each
	if _, err := store.AddDense(stopped, other, false); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// Rows that fit nothing are refused before they are there.
func TestRowsThatFitNothing(t *testing.T) {
	for name, row := range map[string]dataset.DenseRow{
		"too few values": {Values: make([]float32, 4)}, "bytes": {Bytes: make([]byte, 5)},
		"no such class": {Values: make([]float32, 5), Label: 3}, "less than a class": {Values: make([]float32, 5), Label: -1},
	} {
		in := dataset.DenseInput{
			Name: "a", Shape: []int{1, 1, 5}, Classes: 3,
			Each: func(yield func(dataset.DenseRow) error) error { return yield(row) },
		}
		if _, err := openStore(t).AddDense(t.Context(), in, false); disdel.KindOf(err) != disdel.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, in := range []dataset.DenseInput{
		{Name: "a", Shape: []int{5}, Classes: 3},
		{Name: "A", Shape: []int{1, 1, 5}, Classes: 3},
		{Name: "a", Shape: []int{1, 1, 5}},
		{Name: "a", Shape: []int{1, 1, 5}, Classes: 2, Each: func(func(dataset.DenseRow) error) error { return nil }},
	} {
		if _, err := openStore(t).AddDense(t.Context(), in, false); disdel.KindOf(err) != disdel.Invalid {
			t.Errorf("%+v: %v", in, err)
		}
	}
}

func ExampleStore_AddDense() {
	ctx := context.Background()
	store, err := dataset.OpenStore(ctx, "mem://")
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := store.AddDense(ctx, dataset.DenseInput{
		Name: "steps", Shape: []int{1, 1, 2}, Classes: 2,
		Each: func(yield func(dataset.DenseRow) error) error {
			for i := range 10 {
				if err := yield(dataset.DenseRow{Values: []float32{float32(i), 1}, Label: int32(i % 2)}); err != nil {
					return err
				}
			}
			return nil
		},
	}, false)
	fmt.Println(m.Train.Rows, m.DType, slices.Equal(m.Sample, []int{1, 1, 2}), err)
	// Output: 10 F32 true <nil>
}
