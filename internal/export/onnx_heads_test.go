package export_test

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/export"
)

// Networks of PyTorch's newer exporter answer as in PyTorch: attention with any number of rows or one, with one
// projection or three, causal or not, behind a class token; a recurrence of any number of rows; and BERT with a mask.
// Attention is in steps, or one node of opset 23, and queries may share keys.
// testdata/torch_new.py writes them.
func TestNewerExportersAreRead(t *testing.T) {
	text, err := os.ReadFile("testdata/new/new.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]struct{ Row, Answers []float32 }
	if err := json.Unmarshal(text, &all); err != nil || len(all) < 6 {
		t.Fatalf("%d networks: %v", len(all), err)
	}
	for name, c := range all {
		file, err := os.ReadFile(filepath.Join("testdata/new", name+".onnx"))
		if err != nil {
			t.Fatal(err)
		}
		g, in := imported(t, file, true)
		wantClose(t, name, answers(t, g, in.Weights, 1, c.Row), c.Answers)
	}
}

// attends is an attention of two heads over two positions of four channels, whose queries and keys are zeros and whose
// other weights are the identity, and the mean of the positions. The mask is added to the scores, in these sides.
func attends(scale float32, sides []byte, mask [4]float32, between string) []byte {
	mean := with(node("ReduceMean", []string{"z"}, []string{"y"}), "axes", 8<<3, 1)
	nodes := attentionOf("x", scale, between, node("Add", []string{"s3", "mask"}, []string{"s4"}))
	return fileOfSides([]int{1, 2, 4}, append(nodes, fixedArray("mask", sides, mask[:]...),
		with(mean, "keepdims", 3<<3, 0))...)
}

// attentionOf is the attention of x, z. A node makes the scores s4 of s3.
func attentionOf(x string, scale float32, between string, masked []byte) [][]byte {
	var three, out []float32
	for i := range 4 {
		for k := range 12 {
			three = append(three, map[bool]float32{true: 1}[k == 8+i])
		}
		for k := range 4 {
			out = append(out, map[bool]float32{true: 1}[k == i])
		}
	}
	turned := func(in, out string, axes ...byte) []byte {
		var list []byte
		for _, a := range axes {
			list = append(list, 8<<3, a)
		}
		return with(node("Transpose", []string{in}, []string{out}), "perm", list...)
	}
	nodes := [][]byte{
		fixedArray("w", []byte{4, 12}, three...), fixedArray("o", []byte{4, 4}, out...), fixedList("scale", scale),
		ints("heads", 1, 2, 2, 2), ints("back", 1, 2, 4), ints("axis", 2),
		ints("0", 0), ints("4", 4), ints("8", 8), ints("12", 12), node("MatMul", []string{x, "w"}, []string{"p"}),
	}
	for name, ends := range map[string][2]string{"q": {"0", "4"}, "k": {"4", "8"}, "v": {"8", "12"}} {
		nodes = append(nodes, node("Slice", []string{"p", ends[0], ends[1], "axis"}, []string{name + "1"}),
			node("Reshape", []string{name + "1", "heads"}, []string{name + "2"}))
	}
	return append(nodes, turned("q2", "q", 0, 2, 1, 3), turned("k2", "k", 0, 2, 3, 1),
		turned("v2", "v", 0, 2, 1, 3), node("MatMul", []string{"q", "k"}, []string{"s1"}),
		with(node(between, []string{"s1"}, []string{"s2"}), "to", 3<<3, 6),
		node("Mul", []string{"s2", "scale"}, []string{"s3"}), masked,
		node("Softmax", []string{"s4"}, []string{"s5"}), node("MatMul", []string{"s5", "v"}, []string{"m1"}),
		turned("m1", "m2", 0, 2, 1, 3), node("Reshape", []string{"m2", "back"}, []string{"m3"}),
		node("MatMul", []string{"m3", "o"}, []string{"z"}))
}

// A mask is read where it is the same for all heads and lets positions attend to those before them. What else stands in
// its place, or is not finite, is refused: no layer has it.
func TestOnlyCausalMasksAreRead(t *testing.T) {
	low := float32(math.Inf(-1))
	root, causal := float32(1/math.Sqrt(2)), [4]float32{0, low, 0, 0}
	x := []float32{0, 2, 4, 6, 8, 10, 12, 14}
	g, in := imported(t, attends(root, []byte{1, 1, 2, 2}, causal, "Identity"), true)
	wantClose(t, "causal", answers(t, g, in.Weights, 1, x), []float32{2, 4, 6, 8}) // of x0 and the mean of both
	for name, file := range map[string][]byte{
		"of heads":         attends(root, []byte{2, 1, 2}, causal, "Identity"),
		"to later ones":    attends(root, []byte{2, 2}, [4]float32{0, 0, low, 0}, "Identity"),
		"a bias":           attends(root, []byte{2, 2}, [4]float32{0, low, 1, 0}, "Identity"),
		"not a number":     attends(float32(math.NaN()), []byte{2, 2}, causal, "Identity"),
		"another scale":    attends(1, []byte{2, 2}, causal, "Identity"),
		"integers between": attends(root, []byte{2, 2}, causal, "Cast"),
	} {
		if _, err := export.ImportONNX(file, nil, export.ONNXOptions{}); !errors.Is(err, disdel.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// From opset 15 on a Shape may give some sides only.
func TestAShapeMayGiveSomeSides(t *testing.T) {
	shape := with(with(node("Shape", []string{"c"}, []string{"some"}), "start", 3<<3, 1), "end", 3<<3, 2)
	file := fileOf(fixedArray("c", []byte{1, 4, 1}, 1, 2, 3, 4), ints("rows", 1), shape,
		with(node("Concat", []string{"rows", "some"}, []string{"sides"}), "axis", 3<<3, 0),
		node("Reshape", []string{"x", "sides"}, []string{"a"}), node("Relu", []string{"a"}, []string{"y"}))
	g, in := imported(t, file, true)
	wantClose(t, "sides", answers(t, g, in.Weights, 1, []float32{1, -2, 3, -4}), []float32{1, 0, 3, 0})
}
