package export_test

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/export"
)

// Values of a list, and channels of sequences, are taken in the order that a file says: columns of scikit-learn, slices
// also backwards, and parts.
func TestSomeValuesOfARowAreTaken(t *testing.T) {
	row := []float32{1, 2, 3, 4}
	slice := node("Slice", []string{"x", "from", "to", "axes", "by"}, []string{"y"})
	sliced := func(from, to, by int64) [][]byte {
		return [][]byte{slice, ints("from", from), ints("to", to), ints("axes", 1), ints("by", by)}
	}
	gather := with(node("Gather", []string{"x", "at"}, []string{"y"}), "axis", 3<<3, 1)
	halves := with(node("Split", []string{"x"}, []string{"a", "b"}), "axis", 3<<3, 1)
	unequal := with(node("Split", []string{"x", "of"}, []string{"a", "b"}), "axis", 3<<3, 1)
	joined := with(node("Concat", []string{"b", "a"}, []string{"y"}), "axis", 3<<3, 1)
	columns := field(1, node("ArrayFeatureExtractor", []string{"x", "at"}, []string{"y"})[2:],
		field(7, []byte("ai.onnx.ml")))
	for name, c := range map[string]struct {
		nodes [][]byte
		want  []float32
	}{
		"columns":    {[][]byte{columns, ints("at", 3, 0, 0)}, []float32{4, 1, 1}},
		"gathered":   {[][]byte{gather, ints("at", -1, 1)}, []float32{4, 2}},
		"slice":      {sliced(1, 1<<40, 1), []float32{2, 3, 4}},
		"every 2nd":  {sliced(0, 4, 2), []float32{1, 3}},
		"backwards":  {sliced(-1, -1<<40, -1), []float32{4, 3, 2, 1}},
		"two halves": {[][]byte{halves, joined}, []float32{3, 4, 1, 2}},
	} {
		g, in := imported(t, fileOf(c.nodes...), true)
		wantClose(t, name, answers(t, g, in.Weights, 1, row), c.want)
	}
	for name, nodes := range map[string][][]byte{
		"no value":    sliced(2, 1, 1),
		"step 0":      sliced(0, 4, 0),
		"beyond":      {columns, ints("at", 4)},
		"column -1":   {columns, ints("at", -1)},
		"other parts": {unequal, joined, ints("of", 1, 2)},
	} {
		if _, err := export.ImportONNX(fileOf(nodes...), nil, export.ONNXOptions{}); !errors.Is(err, disdel.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A file that makes a list of an image or a sequence whose channels come last answers in its own order, whether a dense
// layer follows or not.
func TestListsKeepTheOrderOfTheirFile(t *testing.T) {
	image := []float32{1, 2, 3, 4, 5, 6, 7, 8}
	turned := with(node("Transpose", []string{"x"}, []string{"t"}), "perm", 8<<3, 0, 8<<3, 2, 8<<3, 3, 8<<3, 1)
	flat := func(to string) []byte { return node("Flatten", []string{"t"}, []string{to}) }
	ordered := []float32{1, 5, 2, 6, 3, 7, 4, 8}
	for name, c := range map[string]struct {
		nodes [][]byte
		want  []float32
	}{
		"output":     {[][]byte{turned, flat("y")}, ordered},
		"activation": {[][]byte{turned, flat("f"), node("Relu", []string{"f"}, []string{"y"})}, ordered},
		"dense": {[][]byte{
			turned, flat("f"), node("MatMul", []string{"f", "w"}, []string{"y"}),
			floats("w", 8, 1, 1, 0, 0, 0, 10, 0, 0, 100),
		}, []float32{1 + 30 + 800}},
	} {
		g, in := imported(t, fileOfSides([]int{1, 2, 2, 2}, c.nodes...), true)
		wantClose(t, name, answers(t, g, in.Weights, 1, image), c.want)
	}
}

// ONNX's GroupNormalization has weights of groups before opset 21.
func TestGroupNormalizationIsRead(t *testing.T) {
	normed := with(node("GroupNormalization", []string{"x", "w", "b"}, []string{"n"}), "num_groups", 3<<3, 2)
	flat := node("Flatten", []string{"n"}, []string{"y"})
	vector := func(name string, v ...float32) []byte { return fixedArray(name, []byte{byte(len(v))}, v...) }
	row := []float32{-1, 1, -1, 1, 3, 5, 3, 5}
	for name, c := range map[string]struct{ weight, bias, want []float32 }{
		"of channels": {[]float32{1, 2, 3, 4}, []float32{0, 0, 0, 10}, []float32{-1, 1, -2, 2, -3, 3, 6, 14}},
		"of groups":   {[]float32{1, 2}, []float32{0, 10}, []float32{-1, 1, -1, 1, 8, 12, 8, 12}},
		"refused":     {[]float32{1, 2, 3}, []float32{0, 1, 2}, nil},
	} {
		file := fileOfSides([]int{1, 4, 2, 1}, normed, flat, vector("w", c.weight...), vector("b", c.bias...))
		if c.want == nil {
			_, err := export.ImportONNX(file, nil, export.ONNXOptions{})
			if err == nil || !strings.Contains(err.Error(), "3 values for 4 channels") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		g, in := imported(t, file, true)
		got := answers(t, g, in.Weights, 1, row)
		for i := range got {
			if d := got[i] - c.want[i]; !(d < 1e-3 && d > -1e-3) { // epsilon is 1e-5
				t.Errorf("%s: %v, not %v", name, got, c.want)
				break
			}
		}
	}
}

// Integers come from a file of weights, too, as PyTorch writes large ones.
func TestIntegersAreReadFromOtherFiles(t *testing.T) {
	folder := t.TempDir()
	var data []byte
	for _, n := range []int64{3, 1} {
		data = binary.LittleEndian.AppendUint64(data, uint64(n))
	}
	if err := os.WriteFile(filepath.Join(folder, "w"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	at := field(5, []byte{1 << 3, 2, 2 << 3, 7}, field(8, []byte("at")),
		field(13, field(1, []byte("location")), field(2, []byte("w"))), []byte{14 << 3, 1})
	file := fileOf(with(node("Gather", []string{"x", "at"}, []string{"y"}), "axis", 3<<3, 1), at)
	in, err := export.ImportONNX(file, root, export.ONNXOptions{KeepOutput: true})
	if err != nil || !slices.Equal(in.Weights[0].Data, []float32{0, 0, 0, 1, 0, 1, 0, 0}) {
		t.Errorf("%v: %v", in.Weights, err)
	}
}
