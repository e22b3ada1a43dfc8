package dataset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/disdel/disdel"
)

// The channels of images are described as a network gets them, from training rows only.
func ExampleStore_Statistics() {
	ctx := context.Background()
	s, err := OpenStore(ctx, "mem://")
	if err != nil {
		panic(err)
	}
	defer s.Close() //nolint:errcheck // it is in memory
	images := Samples{Shape: []int{2, 1, 2}, U8: []byte{0, 255, 51, 51, 0, 255, 51, 153}, Labels: []int32{0, 1}}
	in := Input{Name: "pets", Scale: 1.0 / 255, ClassNames: []string{"cat", "dog"}, Train: images}
	if _, err := s.Add(ctx, in, false); err != nil {
		panic(err)
	}
	pets, err := s.Statistics(ctx, "pets")
	if err != nil {
		panic(err)
	}
	for _, c := range pets.Channels {
		fmt.Printf("%s: %.1f to %.1f, mean %.2f, deviation %.3f, %v\n", c.Name, c.Low, c.High, c.Mean, c.Deviation,
			c.Histogram)
	}
	fmt.Println(pets.Classes)
	// Output:
	// channel 0: 0.0 to 1.0, mean 0.50, deviation 0.500, [2 0 0 0 0 0 0 0 0 2]
	// channel 1: 0.2 to 0.6, mean 0.30, deviation 0.173, [0 0 3 0 0 0 1 0 0 0]
	// [{cat 1} {dog 1}]
}

// Targets are described in their units, arrays of floats by the range of all their values. Sparse rows are refused.
func TestStatisticsOfNumbers(t *testing.T) {
	s, err := OpenStore(ctx, "mem://")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.AddDense(ctx, numbersOf(0), false); err != nil {
		t.Fatal(err)
	}
	got, err := s.Statistics(ctx, "homes")
	if err != nil || len(got.Targets) != 2 || got.Classes != nil || got.Rows != 4 || got.HeldOut != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	// the values are 0 to 3 and 0 to -3
	if c := got.Channels[0]; c.Low != -3 || c.High != 3 || c.Mean != 0 ||
		!slices.Equal(c.Histogram, []int{1, 1, 0, 1, 0, 2, 1, 0, 1, 1}) {
		t.Errorf("the channel is %+v", c)
	}
	if _, err := s.AddSparse(ctx, SparseInput{
		Name: "films", Columns: 2, Classes: 1, Each: func(yield func(SparseRow) error) error {
			return yield(SparseRow{Index: []int32{0}, Value: []float32{1}, Target: 2})
		},
	}, false); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Statistics(ctx, "films"); !errors.Is(err, disdel.Invalid) {
		t.Errorf("sparse rows: %v", err)
	}
}
