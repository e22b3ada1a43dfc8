package export_test

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/export"
)

// fixedList is a constant of float32, a list.
func fixedList(name string, v ...float32) []byte { return fixedArray(name, []byte{byte(len(v))}, v...) }

// fixedArray is one of any sides.
func fixedArray(name string, sides []byte, v ...float32) []byte {
	var data []byte
	for _, x := range v {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
	}
	shape := []byte{2 << 3, 1}
	for _, side := range sides {
		shape = append(shape, 1<<3, side)
	}
	return field(5, shape, field(8, []byte(name)), field(9, data))
}

// ints is a constant of int64, a list.
func ints(name string, v ...int64) []byte {
	var data []byte
	for _, x := range v {
		data = binary.LittleEndian.AppendUint64(data, uint64(x))
	}
	return field(5, []byte{1 << 3, byte(len(v)), 2 << 3, 7}, field(8, []byte(name)), field(9, data))
}

// Constants between layers become one layer that scales and shifts, which a note names. Bounds are exact.
func TestConstantsBetweenLayersAreRead(t *testing.T) {
	list := func(kind string, in ...string) []byte { return node(kind, in, []string{kind}) }
	constants := []([]byte){
		fixedList("mean", 1, -1), fixedList("std", 2, 0.5), fixedList("one", 1), fixedList("none", 0, 1),
		fixedList("half", 0.5), fixedList("long", 1, 2, 3), fixedList("low", -0.5),
	}
	for name, c := range map[string]struct {
		nodes [][]byte
		want  []float32 // of 2, 3; nil: refused
	}{
		"in front": {[][]byte{
			list("Sub", "x", "mean"), node("Div", []string{"Sub", "std"}, []string{"y"}),
		}, []float32{0.5, 8}},
		"turned around": {[][]byte{
			list("Mul", "half", "x"), node("Sub", []string{"one", "Mul"}, []string{"y"}),
		}, []float32{0, -0.5}},
		"read twice": {[][]byte{
			list("Mul", "half", "x"), list("Sub", "Mul", "mean"), node("Add", []string{"Sub", "Mul"}, []string{"y"}),
		}, []float32{1, 4}},
		"bounds": {[][]byte{
			list("Sub", "x", "mean"), node("Clip", []string{"Sub", "low", "half"}, []string{"y"}),
		}, []float32{0.5, 0.5}},
		"lowest": {[][]byte{list("Sub", "x", "mean"), node("Max", []string{"Sub", "std"}, []string{"y"})}, nil},
		"by 0":   {[][]byte{node("Div", []string{"x", "none"}, []string{"y"})}, nil},
		"others": {[][]byte{node("Add", []string{"x", "long"}, []string{"y"})}, nil},
	} {
		file := fileOfSides([]int{1, 2}, append(c.nodes, constants...)...)
		if c.want == nil {
			if _, err := export.ImportONNX(file, nil, export.ONNXOptions{}); !errors.Is(err, disdel.Invalid) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		g, in := imported(t, file, true)
		wantClose(t, name, answers(t, g, in.Weights, 1, []float32{2, 3}), c.want)
		if notes := strings.Join(in.Notes, "\n"); !strings.Contains(notes, "model.init.freeze names them: ") {
			t.Errorf("%s: %q", name, notes)
		}
	}
}

// An activation in steps is known by its values, also far from 0: a bound in front of a gelu is not lost.
func TestBoundsOfActivationsInStepsAreKept(t *testing.T) {
	steps := func(from string) [][]byte {
		return [][]byte{
			node("Div", []string{from, "root"}, []string{"d"}), node("Erf", []string{"d"}, []string{"e"}),
			node("Add", []string{"e", "one"}, []string{"a"}), node("Mul", []string{from, "a"}, []string{"m"}),
			node("Mul", []string{"m", "half"}, []string{"y"}),
			fixedList("root", math.Sqrt2), fixedList("one", 1), fixedList("half", 0.5),
			fixedList("low", -10), fixedList("high", 10),
		}
	}
	g, in := imported(t, fileOfSides([]int{1, 2}, steps("x")...), true)
	wantClose(t, "gelu", answers(t, g, in.Weights, 1, []float32{20, 1}), []float32{20, 0.8413447})
	bound := node("Clip", []string{"x", "low", "high"}, []string{"c"})
	g, in = imported(t, fileOfSides([]int{1, 2}, append([][]byte{bound}, steps("c")...)...), true)
	wantClose(t, "gelu within bounds", answers(t, g, in.Weights, 1, []float32{20, 1}), []float32{10, 0.8413447})
}

// What a file computes of weights is a weight here, and the import says so.
func TestComputedWeightsHaveANote(t *testing.T) {
	file := fileOfSides([]int{1, 2}, node("Exp", []string{"a"}, []string{"b"}), node("BatchNormalization",
		[]string{"x", "b", "a", "a", "b"}, []string{"y"}), fixedList("a", 0, 0))
	_, in := imported(t, file, true)
	if notes := strings.Join(in.Notes, "\n"); !strings.Contains(notes, "the file computes weights of node") {
		t.Errorf("%q", notes)
	}
}

// Files of TensorFlow have channels last: the input, and what a dense layer takes.
func TestChannelsLastAreRead(t *testing.T) {
	turn := func(in, out string, axes ...byte) []byte {
		var list []byte
		for _, a := range axes {
			list = append(list, 8<<3, a)
		}
		return with(node("Transpose", []string{in}, []string{out}), "perm", list...)
	}
	weight := fixedArray("w", []byte{8, 1}, 1, 2, 3, 4, 5, 6, 7, 8)
	file := fileOfSides([]int{1, 2, 2, 2}, turn("x", "a", 0, 3, 1, 2), node("Relu", []string{"a"}, []string{"b"}),
		turn("b", "c", 0, 2, 3, 1), node("Flatten", []string{"c"}, []string{"d"}),
		node("MatMul", []string{"d", "w"}, []string{"y"}), weight)
	g, in := imported(t, file, true)
	x := []float32{0, 1, 2, 3, 0, 10, 20, 30} // pixels have channels 1 and 10 times their number
	wantClose(t, "last", answers(t, g, in.Weights, 1, x), []float32{3 + 40 + 10 + 120 + 21 + 240})
	if notes := strings.Join(in.Notes, "\n"); !strings.Contains(notes, "channels first here") {
		t.Errorf("%q", notes)
	}
}

// PyTorch writes a group norm without weights with ones and zeros behind it. A note names the norm, also of one
// channel.
func TestANormOfOneChannelWithoutWeightsHasANote(t *testing.T) {
	for weight, noted := range map[float32]bool{1: true, 2: false} {
		file := fileOfSides([]int{1, 1, 2, 2},
			node("Reshape", []string{"x", "flat"}, []string{"a"}),
			node("InstanceNormalization", []string{"a", "one", "zero"}, []string{"b"}),
			node("Reshape", []string{"b", "back"}, []string{"c"}),
			node("Mul", []string{"c", "onnx::Mul_5"}, []string{"d"}),
			node("Add", []string{"d", "onnx::Add_6"}, []string{"e"}),
			node("Flatten", []string{"e"}, []string{"y"}),
			ints("flat", 0, 1, -1), ints("back", 1, 1, 2, 2), fixedList("one", 1), fixedList("zero", 0),
			fixedArray("onnx::Mul_5", []byte{1, 1, 1}, weight), fixedArray("onnx::Add_6", []byte{1, 1, 1}, 0))
		g, in := imported(t, file, true)
		want := []float32{-weight, weight, weight, -weight}
		wantClose(t, "norm", answers(t, g, in.Weights, 1, []float32{-1, 1, 1, -1}), want)
		if notes := strings.Join(in.Notes, "\n"); (notes != "") != noted {
			t.Errorf("weight %g: notes %q", weight, notes)
		}
	}
}

// Sequences may be rows of positions for a while, as in GPT-2, have several learned positions before the others, and be
// subtracted from each other. Other shapes are refused, as are tokens that differ by row.
func TestSequencesOfTransformersAreRead(t *testing.T) {
	cube := func(name string, rows, positions, channels byte, v ...float32) []byte {
		return fixedArray(name, []byte{rows, positions, channels}, v...)
	}
	mean := func(in string) []byte {
		return with(listed(node("ReduceMean", []string{in}, []string{"y"}), "axes", 1), "keepdims", 3<<3, 0)
	}
	reshape := func(in, to, out string) []byte { return node("Reshape", []string{in, to}, []string{out}) }
	join := func(in ...string) []byte { return with(node("Concat", in, []string{"j"}), "axis", 3<<3, 1) }
	dense := []([]byte){
		ints("rows", -1, 2), ints("again", -1, 3, 2), ints("other", -1, 2, 3), floats("w", 2, 2, 1, 3, 2, 4),
		fixedList("b", 0.5, -0.5), reshape("x", "rows", "r"), node("Gemm", []string{"r", "w", "b"}, []string{"g"}),
	}
	first := fixedArray("first", []byte{1, 1, 2}, 20, 40)
	for name, c := range map[string]struct {
		rows  int
		nodes [][]byte
		want  []float32 // of 1 to 6 in three positions, for each row; nil: refused
	}{
		"rows of positions": {1, append(dense, reshape("g", "again", "z"), mean("z")), []float32{11.5, 24.5}},
		"difference": {1, append(dense, reshape("g", "again", "z"), node("Sub", []string{"z", "x"}, []string{"d"}),
			mean("d")), []float32{8.5, 20.5}},
		"turned rows": {1, append(dense, reshape("g", "other", "z"), mean("z")), nil},
		"tokens": {1, [][]byte{
			cube("t", 1, 2, 2, 0, 1, 2, 3), first, join("first", "t", "x"), mean("j"),
		}, []float32{31. / 6, 56. / 6}},
		"of two rows": {2, [][]byte{
			cube("t", 2, 1, 2, 1, 2, 1, 2), join("t", "x"), mean("j"),
		}, []float32{2.5, 3.5, 2.5, 3.5}},
		"that differ": {2, [][]byte{cube("t", 2, 1, 2, 1, 2, 1, 3), join("t", "x"), mean("j")}, nil},
		"positions of two rows": {2, [][]byte{
			cube("t", 2, 3, 2, 1, 0, 0, 0, 2, 0, 1, 0, 0, 0, 2, 0), node("Add", []string{"x", "t"}, []string{"j"}),
			mean("j"),
		}, []float32{4, 4, 4, 4}},
	} {
		file := fileOfSides([]int{c.rows, 3, 2}, c.nodes...)
		if c.want == nil {
			if _, err := export.ImportONNX(file, nil, export.ONNXOptions{}); !errors.Is(err, disdel.Invalid) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		g, in := imported(t, file, true)
		x := slices.Repeat([]float32{1, 2, 3, 4, 5, 6}, c.rows)
		wantClose(t, name, answers(t, g, in.Weights, c.rows, x), c.want)
	}
}
