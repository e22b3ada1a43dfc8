package modelstore

import (
	"errors"
	"os"
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

// The values of a checkpoint may come and go in blocks of any length: the file is the same, and neither side holds more
// than a block. What is damaged, or of another network, is refused.
func TestCheckpointsGoInBlocks(t *testing.T) {
	s, dir := open(t)
	w := disdel.Weights{
		{Name: "fc.weight", Shape: []int{values - 3}, Data: make([]float32, values-3)},
		{Name: "none", Shape: []int{0, 4}},
		{Name: "fc.bias", Shape: []int{3}, Data: []float32{7, 8, 9}},
	}
	w[0].Data[values/2] = 5
	if _, _, err := s.WriteCheckpoint(ctx, "c/whole", "", w, valuesOf(w)); err != nil {
		t.Fatal(err)
	}
	all := slices.Concat(w[0].Data, w[2].Data)
	blocks := func(take func([]float32) error) error {
		for block := range slices.Chunk(all, 300_001) {
			if err := take(block); err != nil {
				return err
			}
		}
		return nil
	}
	var err error
	if n := allocated(func() { _, _, err = s.WriteCheckpoint(ctx, "c/blocks", "", w, blocks) }); err != nil || n > file/10 {
		t.Errorf("writing %v allocated %v, %v", file, n, err)
	}
	whole, err1 := os.ReadFile(dir + "/c/whole")
	other, err2 := os.ReadFile(dir + "/c/blocks")
	if err := errors.Join(err1, err2); err != nil || !slices.Equal(whole, other) {
		t.Errorf("the files differ, or %v", err)
	}
	at, odd := 0, false
	read := func(like disdel.Weights) error {
		at = 0
		return s.ReadCheckpointValues(ctx, "c/blocks", like, func(block []float32) error {
			odd = odd || !slices.Equal(block, all[at:at+len(block)])
			at += len(block)
			return nil
		})
	}
	if n := allocated(func() { err = read(w) }); err != nil || at != values || odd || n > file/10 {
		t.Errorf("reading %d of %d values allocated %v, %v; others: %v", at, values, n, err, odd)
	}
	named := slices.Clone(w)
	named[2].Name = "fc.other"
	for name, like := range map[string]disdel.Weights{"fewer": w[:1], "more": append(w, w[2]), "a name": named} {
		if err := read(like); disdel.KindOf(err) != disdel.Corrupt || at > 0 {
			t.Errorf("%s: %v, %d values", name, err, at)
		}
	}
	flip(t, dir+"/c/blocks")
	if err := read(w); disdel.KindOf(err) != disdel.Corrupt {
		t.Errorf("a damaged one: %v", err)
	}
}

// Values that fail, are too few or too many write nothing, and their own error is returned.
func TestValuesThatFailWriteNothing(t *testing.T) {
	s, _ := open(t)
	shapes := disdel.Weights{{Name: "w", Shape: []int{8}}}
	failed := &disdel.Error{Kind: disdel.NotFound, Code: disdel.CodeLostReference, Op: "fetch reference"}
	for name, c := range map[string]struct {
		blocks []int
		then   error
		want   disdel.Kind
	}{
		"too few": {[]int{3, 4}, nil, disdel.Invalid}, "too many": {[]int{3, 4, 2}, nil, disdel.Invalid},
		"none": {nil, nil, disdel.Invalid}, "fails": {[]int{3}, failed, disdel.NotFound},
		"fails at its end": {[]int{8}, failed, disdel.NotFound},
	} {
		_, _, err := s.WriteWeights(ctx, "weights/a", shapes, nil, func(take func([]float32) error) error {
			for _, n := range c.blocks {
				if err := take(make([]float32, n)); err != nil {
					return err
				}
			}
			return c.then
		})
		if disdel.KindOf(err) != c.want || c.then != nil && disdel.AsError(err).Code != failed.Code {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := s.bucket.Size(ctx, "weights/a"); err == nil {
			t.Errorf("%s: the file is there", name)
		}
	}
}
