package modelstore

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/blobs"
	"github.com/disdel/disdel/internal/safetensors"
)

// fileOf is a file of weights, beside which PyTorch counts batches, and its checksum.
func fileOf(t *testing.T, w disdel.Weights) (data []byte, sum string) {
	t.Helper()
	f := safetensors.FromWeights(w, nil)
	f.Tensors = append(f.Tensors, safetensors.Tensor{
		Name: "norm.num_batches_tracked", DType: safetensors.I64, Shape: []int{}, Data: make([]byte, 8),
	})
	var out bytes.Buffer
	if err := safetensors.Write(&out, f); err != nil {
		t.Fatal(err)
	}
	sum, err := Checksum(bytes.NewReader(out.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), sum
}

// What was put is found by its checksum, and copied as far as it is wanted; once it is removed it is not found.
func TestWeightsArePutAndBegunWith(t *testing.T) {
	s, _ := open(t)
	ctx := t.Context()
	w := disdel.Weights{
		{Name: "a.weight", Shape: []int{2, 2}, Data: []float32{1, 2, 3, 4}},
		{Name: "b.weight", Shape: []int{1}, Data: []float32{5}},
		{Name: "c.bias", Shape: []int{2}, Data: []float32{6, 7}},
	}
	data, sum := fileOf(t, w)
	for range 2 { // the second time nothing is read
		if g, err := s.PutWeights(ctx, sum, int64(len(data)), bytes.NewReader(data)); err != nil || len(g.Arrays) != 3 ||
			g.Ref != sum || int(g.Size) != len(data) {
			t.Fatalf("%+v, %v", g, err)
		}
	}
	g, err := s.FindWeights(ctx, sum)
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.CopyToCheckpoint(ctx, g, "checkpoints/job-1", func(array string) bool { return array != "b.weight" })
	if err != nil {
		t.Fatal(err)
	}
	newest, passed, err := s.NewestCheckpoint(ctx, "checkpoints/job-1")
	if err != nil || len(passed) > 0 || newest != c || c.Round != 0 {
		t.Errorf("%+v, %v, %v instead of %+v", newest, passed, err, c)
	}
	if _, got, err := s.ReadCheckpoint(ctx, c.Path); err != nil || cmp.Diff(disdel.Weights{w[0], w[2]}, got) != "" {
		t.Errorf("%v, %v", got, err)
	}
	if kept, err := s.KeptWeights(ctx); err != nil || len(kept) != 1 || kept[0].Ref != sum ||
		int(kept[0].Size) != len(data) || kept[0].Written.IsZero() {
		t.Errorf("kept are %+v, %v", kept, err)
	}
	if err := s.RemoveWeights(ctx, sum); err != nil {
		t.Error(err)
	}
	_, err = s.FindWeights(ctx, sum)
	if again := s.RemoveWeights(ctx, sum); !errors.Is(err, disdel.NotFound) || !errors.Is(again, disdel.NotFound) {
		t.Errorf("%v, %v", err, again)
	}
}

// A file that is none, that is another one, or that has other numbers is refused, and nothing is kept of it.
func TestFilesThatAreNoWeightsAreRefused(t *testing.T) {
	s, _ := open(t)
	ctx := t.Context()
	data, sum := fileOf(t, disdel.Weights{{Name: "a", Shape: []int{1}, Data: []float32{1}}})
	long := append(bytes.Clone(data), 0)
	longSum, _ := Checksum(bytes.NewReader(long))
	for name, put := range map[string]struct {
		sum  string
		data []byte
		size int
	}{
		"another":    {"sha256:" + strings.Repeat("0", 64), data, len(data)},
		"cut":        {sum, data[:len(data)-1], len(data)},
		"too long":   {longSum, long, len(long)},
		"no file":    {sum, []byte("hello, world"), 12},
		"empty":      {sum, nil, 0},
		"no sum":     {"sha256:../../x", data, len(data)},
		"upper case": {"sha256:" + strings.Repeat("A", 64), data, len(data)},
	} {
		_, err := s.PutWeights(ctx, put.sum, int64(put.size), bytes.NewReader(put.data))
		if !errors.Is(err, disdel.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for o := range s.bucket.List(ctx, "") {
		t.Errorf("%s is kept", o.Key)
	}
	wide := safetensors.File{Tensors: []safetensors.Tensor{
		{Name: "a", DType: safetensors.I64, Shape: []int{1}, Data: make([]byte, 8)},
	}}
	var out bytes.Buffer
	if err := safetensors.Write(&out, wide); err != nil {
		t.Fatal(err)
	}
	wideSum, _ := Checksum(bytes.NewReader(out.Bytes()))
	if _, err := s.PutWeights(ctx, wideSum, int64(out.Len()), &out); !errors.Is(err, disdel.Invalid) ||
		!strings.Contains(err.Error(), "I64") {
		t.Errorf("whole numbers: %v", err)
	}
}

// A file that was changed after it was put is noticed, and nothing begins with it.
func TestGivenWeightsThatWereChangedAreRefused(t *testing.T) {
	s, _ := open(t)
	ctx := t.Context()
	data, sum := fileOf(t, disdel.Weights{{Name: "a", Shape: []int{1}, Data: []float32{1}}})
	g, err := s.PutWeights(ctx, sum, int64(len(data)), bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	other, _ := fileOf(t, disdel.Weights{{Name: "a", Shape: []int{1}, Data: []float32{2}}})
	if err := blobs.WriteAll(ctx, s.bucket, g.Key, other); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CopyToCheckpoint(ctx, g, "checkpoints/job-1", func(string) bool { return true }); !errors.Is(err,
		disdel.Corrupt) {
		t.Errorf("%v", err)
	}
	if _, _, err := s.NewestCheckpoint(ctx, "checkpoints/job-1"); !errors.Is(err, disdel.NotFound) {
		t.Errorf("there is a checkpoint: %v", err)
	}
}
