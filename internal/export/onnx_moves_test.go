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
	r := &importer{source: &source{}, folds: 0, room: 6, at: map[string]value{
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

// A list may hold the number of rows: nodes move it, and compare it with -1. They do not compute with it.
func TestTheNumberOfRowsIsMovedAndNotComputedWith(t *testing.T) {
	list := func(v ...int64) value {
		return constant(&array{kind: int64s, sides: []int{len(v)}, ints: v})
	}
	for _, c := range []struct {
		n    step
		want []int64 // nil: refused
	}{
		{step{kind: "Concat", in: []string{"shape", "one"}}, []int64{rowCount, 3, 1, 1}},
		{step{kind: "Gather", in: []string{"shape", "zero"}}, []int64{rowCount}},
		{step{kind: "Slice", in: []string{"shape", "zero", "one"}}, []int64{rowCount}},
		{step{kind: "Squeeze", in: []string{"zero"}}, []int64{0}},
		{step{kind: "Cast", in: []string{"shape"}}, []int64{rowCount, 3, 1}},
		{step{kind: "Equal", in: []string{"shape", "minus"}}, []int64{0, 0, 0}},
		{step{kind: "Equal", in: []string{"shape", "one"}}, []int64{rowCount, 0, 1}},
		{step{kind: "Where", in: []string{"mixed", "shape", "one"}}, []int64{rowCount, 1, 1}},
		{step{kind: "Gather", in: []string{"one", "shape"}}, nil},
		{step{kind: "Mul", in: []string{"shape", "two"}}, []int64{manyRows(2), 6, 2}},
		{step{kind: "Mul", in: []string{"shape", "shape"}}, nil},
		{step{kind: "Add", in: []string{"shape", "one"}}, nil},
		{step{kind: "Range", in: []string{"zero", "shape", "one"}}, nil},
	} {
		r := &importer{source: &source{}, folds: 100, at: map[string]value{
			"shape": list(rowCount, 3, 1), "one": list(1), "zero": list(0), "two": list(2), "minus": list(-1),
			"mixed": list(1, 0, 0),
		}}
		c.n.out, c.n.options = []string{"y"}, map[string]option{}
		ok := r.fold(&c.n) && len(r.faults) == 0
		if got := r.at["y"].whole; ok != (c.want != nil) || !slices.Equal(got, c.want) {
			t.Errorf("%s of %v: %v, %v", c.n.kind, c.n.in, got, ok)
		}
	}
}

// A Reshape of an attention may name the rows, and leave another side open.
func TestAnAttentionsReshapeMayNameTheRowsAndLeaveHeadsOpen(t *testing.T) {
	for _, c := range []struct {
		to []int64
		ok bool
	}{
		{[]int64{rowCount, 5, -1, 4}, true},
		{[]int64{-1, 5, 3, 4}, true},
		{[]int64{rowCount, 5, 3, 4}, true},
		{[]int64{rowCount, -1, 3, 4}, true},
		{[]int64{-1, 5, -1, 4}, false},
		{[]int64{rowCount, rowCount, 3, 4}, false},
		{[]int64{rowCount, 5, -1, 5}, false},
		{[]int64{manyRows(5), 3, 4}, true},
		{[]int64{manyRows(2), 5, 3, 2}, false},
	} {
		h := &headed{channels: 12, span: 5, axes: [][]part{{rowsPart}, {positionsPart}, {channelsPart}}}
		if ok := h.reshape(c.to, true); ok != c.ok || ok && h.heads != 3 {
			t.Errorf("%d: %v with %d heads", c.to, ok, h.heads)
		}
	}
}
