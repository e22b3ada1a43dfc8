package export

import (
	"slices"
	"testing"
)

// However large weights are, a file may join, cut and wrap them along their first axis: that is not computing.
func TestMovedWeightsAreNotComputed(t *testing.T) {
	whole := func(list ...int64) value {
		return constant(&array{kind: int64s, sides: []int{len(list)}, ints: list})
	}
	r := &importer{folds: 0, room: 6, at: map[string]value{
		"a": constant(&array{kind: float32s, sides: []int{2, 2}, float: []float32{1, 2, 3, 4}}),
		"b": constant(&array{kind: float32s, sides: []int{1, 2}, float: []float32{5, 6}}),
		"0": whole(0), "1": whole(1), "3": whole(3),
	}}
	for _, n := range []*step{
		{kind: "Concat", in: []string{"a", "b"}, out: []string{"joined"}},
		{kind: "Slice", in: []string{"joined", "1", "3", "0"}, out: []string{"cut"}},
		{kind: "Unsqueeze", in: []string{"cut", "0"}, out: []string{"wrapped"}},
	} {
		if !r.fold(n) || len(r.faults) > 0 {
			t.Fatalf("%s was not read: %v", n.kind, r.faults)
		}
	}
	got := r.at["wrapped"].array
	if !slices.Equal(got.floats32(), []float32{3, 4, 5, 6}) || !slices.Equal(got.sides, []int{1, 2, 2}) {
		t.Errorf("%v of %v", got.floats32(), got.sides)
	}
}
