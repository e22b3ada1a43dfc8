package slab_test

import (
	"fmt"
	"testing"

	"github.com/disdel/disdel/runtime/engine/slab"
)

func TestMemoryIsZeroAndReadBothWays(t *testing.T) {
	for _, n := range []int{1, 1000, 5 << 20} { // the last in huge pages
		s, err := slab.New(n)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Values()) != n {
			t.Errorf("%d values, want %d", len(s.Values()), n)
		}
		for i, v := range s.Values() {
			if v != 0 {
				t.Fatalf("value %d is %v", i, v)
			}
		}
		half := s.Int32s(n/2, n-n/2)
		half[len(half)-1] = 7
		if s.Values()[n-1] == 0 || len(half) != n-n/2 {
			t.Error("integers are not in the same memory")
		}
		if len(s.Int32s(n, 0)) != 0 {
			t.Error("no integers are some")
		}
		if err := s.Free(); err != nil {
			t.Error(err)
		}
		if err := s.Free(); err != nil {
			t.Errorf("freed again: %v", err)
		}
	}
}

func ExampleNew() {
	s, err := slab.New(4)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Free() //nolint:errcheck // the program ends
	weights, places := s.Values()[:2], s.Int32s(2, 2)
	weights[0], places[1] = 0.5, 3
	fmt.Println(weights, places)
	// Output: [0.5 0] [0 3]
}
