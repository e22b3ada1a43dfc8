package dataset

import (
	"fmt"
	"slices"
	"testing"
)

func ExampleDense() {
	b := Dense(2, []float32{1, 2, 3, 4, 5, 6}, []int32{0, 1})
	fmt.Println(b.Input.Columns, b.Input.Row(1), b.Target.Classes)
	// Output: 3 [4 5 6] [0 1]
}

// A shard fills a batch in the memory that it has, and allocates where that is too little.
func TestShardsFillBatches(t *testing.T) {
	s := &Shard{sample: 2, u8: []byte{1, 2, 3, 4, 5, 6}, labels: []int32{7, 8, 9}, levels: newLevels(0.5, 1)}
	b := NewBatch(2, 2)
	if n := testing.AllocsPerRun(5, func() { s.Fill(&b, []int32{2, 0}) }); n != 0 {
		t.Errorf("%v allocations where there is room", n)
	}
	if b.Input.Rows != 2 || b.Input.Columns != 2 ||
		!slices.Equal(b.Input.Values, []float32{3.5, 4, 1.5, 2}) || !slices.Equal(b.Target.Classes, []int32{9, 7}) {
		t.Errorf("%+v", b)
	}
	s.Fill(&b, []int32{1})
	if b.Input.Rows != 1 || !slices.Equal(b.Input.Row(0), []float32{2.5, 3}) || len(b.Target.Classes) != 1 {
		t.Errorf("a shorter one: %+v", b)
	}
	s.Fill(&b, []int32{0, 1, 2})
	if !slices.Equal(b.Target.Classes, []int32{7, 8, 9}) || len(b.Input.Values) != 6 {
		t.Errorf("a longer one: %+v", b)
	}
}
