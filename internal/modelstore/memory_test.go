package modelstore

import (
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
)

// allocated is what f allocates, garbage and all.
func allocated(f func()) disdel.Bytes {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return disdel.Bytes(after.TotalAlloc - before.TotalAlloc)
}

const (
	values = 4 << 20
	file   = disdel.Bytes(4 * values)
)

func valuesOf(w disdel.Weights) Values {
	return ArrayValues(len(w), func(i int) []float32 { return w[i].Data })
}

// Weights are the largest thing that an action holds: reading them takes their file and little more, writing them
// nothing of their size, however short the header and however much of them is the first array.
func TestWeightsAreHeldOnce(t *testing.T) {
	s, _ := open(t)
	w := disdel.Weights{{Name: "fc.weight", Shape: []int{values}, Data: make([]float32, values)}}
	w[0].Data[values-1] = 3
	var sum string
	var err error
	if n := allocated(func() { sum, _, err = s.WriteWeights(ctx, "weights/a", w, nil, valuesOf(w)) }); err != nil || n > file/10 {
		t.Errorf("writing %v allocated %v, %v", file, n, err)
	}
	var back disdel.Weights
	if n := allocated(func() { back, err = s.ReadWeights(ctx, "weights/a", sum) }); err != nil || n > file*11/10 {
		t.Errorf("reading %v allocated %v, %v", file, n, err)
	}
	if len(back) != 1 || back[0].Name != w[0].Name || !slices.Equal(back[0].Data, w[0].Data) {
		t.Error("other weights came back")
	}
}

// A worker's own state, several times its weights, goes into a checkpoint and comes back array by array.
func TestCheckpointsGoArrayByArray(t *testing.T) {
	s, dir := open(t)
	shapes, buffer := disdel.Weights{{Name: "a", Shape: []int{values / 2}}, {Name: "b", Shape: []int{2, values / 4}}},
		make([]float32, values/2)
	read := func(i int) []float32 {
		for k := range buffer {
			buffer[k] = float32(i + 1)
		}
		return buffer
	}
	var err error
	if n := allocated(func() { _, _, err = s.WriteCheckpoint(ctx, "c/worker", "a note", shapes, ArrayValues(2, read)) }); err != nil ||
		n > file/10 {
		t.Errorf("writing %v allocated %v, %v", file, n, err)
	}
	var got []float32
	begin := func(note string) (func(disdel.Tensor) error, error) {
		return func(v disdel.Tensor) error {
			got = append(got, v.Data[0], v.Data[values/2-1], float32(len(v.Shape)), float32(len(note)))
			return nil
		}, nil
	}
	if n := allocated(func() { err = s.ReadCheckpointTo(ctx, "c/worker", begin) }); err != nil || n > file*6/10 {
		t.Errorf("reading %v of two arrays allocated %v, %v", file, n, err)
	}
	if diff := cmp.Diff([]float32{1, 1, 1, 6, 2, 2, 2, 6}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, w, err := s.ReadCheckpoint(ctx, "c/worker"); err != nil || len(w) != 2 || w[1].Data[5] != 2 {
		t.Errorf("the same as a whole: %v", err)
	}
	flip(t, dir+"/c/worker")
	if err := s.ReadCheckpointTo(ctx, "c/worker", begin); disdel.KindOf(err) != disdel.Corrupt {
		t.Errorf("a damaged one: %v", err)
	}
	if err := s.ReadCheckpointTo(ctx, "c/none", begin); disdel.KindOf(err) != disdel.NotFound {
		t.Errorf("none: %v", err)
	}
}
