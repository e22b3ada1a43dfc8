package export_test

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/disdel/disdel/internal/export"
)

// listed is a node with one more option, a list of integers.
func listed(n []byte, name string, list ...byte) []byte {
	var v []byte
	for _, x := range list {
		v = append(v, 8<<3, x)
	}
	return with(n, name, v...)
}

// Casts and Identities between layers compute nothing. A bias behind the Transpose that puts channels last is the
// convolution's, so that no layer only shifts.
func TestNodesThatComputeNothingAreNoLayers(t *testing.T) {
	cast := func(from, to string) []byte { return with(node("Cast", []string{from}, []string{to}), "to", 3<<3, 1) }
	weight := field(5, []byte{1 << 3, 2, 1 << 3, 1, 1 << 3, 1, 1 << 3, 1, 2 << 3, 1}, field(8, []byte("w")),
		field(9, []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0x40})) // 1 and 2
	file := fileOfSides([]int{1, 1, 2, 2}, weight, floats("b", 1, 2, 3, 4),
		cast("x", "a"), node("Identity", []string{"a"}, []string{"c"}), node("Conv", []string{"c", "w"}, []string{"d"}),
		listed(node("Transpose", []string{"d"}, []string{"e"}), "perm", 0, 2, 3, 1), cast("e", "f"),
		node("Add", []string{"f", "b"}, []string{"g"}), cast("g", "i"),
		node("LeakyRelu", []string{"i"}, []string{"h"}),
		with(listed(node("ReduceMax", []string{"h"}, []string{"y"}), "axes", 1, 2), "keepdims", 3<<3, 0))
	g, in := imported(t, file, true)
	wantClose(t, "largest", answers(t, g, in.Weights, 1, []float32{1, 5, -2, 3}), []float32{8, 14})
	if n := len(in.Network.Layers); n != 5 || len(in.Notes) != 0 {
		t.Errorf("%d layers, and the notes %q", n, in.Notes)
	}
}

// A token is 0 or more: where a file counts those below 0 from the end, as Keras does, tokens stay as they are. A bound
// that is not 0 is refused.
func TestTokensThatMayCountFromTheEndAreTokens(t *testing.T) {
	for bound, ok := range map[int64]bool{0: true, 1: false} {
		file := fileOfSides([]int{1, 2}, floats("table", 3, 1, 5, 6, 7), ints("least", bound), ints("count", 3),
			node("Less", []string{"x", "least"}, []string{"below"}),
			node("Add", []string{"x", "count"}, []string{"more"}),
			node("Where", []string{"below", "more", "x"}, []string{"tokens"}),
			node("Gather", []string{"table", "tokens"}, []string{"rows"}),
			with(listed(node("ReduceMean", []string{"rows"}, []string{"y"}), "axes", 1), "keepdims", 3<<3, 0))
		kind := []byte{1 << 3, 1, 2<<3 | 2} // of the input, the first one of a tensor with a shape
		file[bytes.Index(file, kind)+1] = 7
		if _, err := export.ImportONNX(file, nil, export.ONNXOptions{}); (err == nil) != ok {
			t.Errorf("bound %d: %v", bound, err)
		} else if ok {
			g, in := imported(t, file, true)
			wantClose(t, "mean", answers(t, g, in.Weights, 1, []float32{2, 1}), []float32{6.5})
		}
	}
}

// SELU, and ELU of any alpha, are sums of an ELU and a ReLU.
func TestELUOfAnyAlphaIsExact(t *testing.T) {
	float := func(n []byte, name string, v float32) []byte {
		b := math.Float32bits(v)
		return with(n, name, 2<<3|5, byte(b), byte(b>>8), byte(b>>16), byte(b>>24))
	}
	x := []float32{-2, -0.5, 0.25, 3}
	elu := func(alpha, gamma float64) (out []float32) {
		for _, v := range x {
			y := float64(v)
			if y < 0 {
				y = alpha * (math.Exp(y) - 1)
			}
			out = append(out, float32(gamma*y))
		}
		return out
	}
	plain := func(kind string) []byte { return node(kind, []string{"x"}, []string{"y"}) }
	for name, c := range map[string]struct {
		node         []byte
		alpha, gamma float64
	}{
		"elu": {plain("Elu"), 1, 1}, "alpha": {float(plain("Elu"), "alpha", 0.5), 0.5, 1},
		"selu":  {plain("Selu"), 1.6732632423543772, 1.0507009873554805},
		"gamma": {float(float(plain("Selu"), "alpha", 1), "gamma", 3), 1, 3},
	} {
		g, in := imported(t, fileOfSides([]int{1, 4}, c.node), true)
		wantClose(t, name, answers(t, g, in.Weights, 1, x), elu(c.alpha, c.gamma))
	}
}

// beside is an input of int64 for two tokens.
func beside(name string) []byte {
	return field(11, field(1, []byte(name)), field(2, field(1, []byte{1 << 3, 7},
		field(2, field(1, []byte{1 << 3, 1}), field(1, []byte{1 << 3, 2})))))
}

// ofTokens makes tokens of a file's input x.
func ofTokens(file []byte) []byte {
	kind := []byte{1 << 3, 1, 2<<3 | 2}
	file[bytes.LastIndex(file[:bytes.LastIndex(file, kind)], kind)+1] = 7
	return file
}

// Transformers' BERT adds a vector for the type of a token, of an input token_type_ids or of constants. All types are
// 0. An attention mask is refused by its name.
func TestTypesOfTokensAreZero(t *testing.T) {
	file := func(types string, more ...[]byte) []byte {
		out := fileOfSides([]int{1, 2}, append(more, floats("table", 3, 1, 5, 6, 7), floats("types", 2, 1, 10, 20),
			ints("zeros", 0, 0), ints("places", 1, 0),
			node("GatherElements", []string{"zeros", "places"}, []string{"chosen"}),
			node("Unsqueeze", []string{"chosen", "first"}, []string{"constants"}), ints("first", 0),
			node("Gather", []string{"table", "x"}, []string{"words"}),
			node("Gather", []string{"types", types}, []string{"t"}),
			node("Add", []string{"words", "t"}, []string{"rows"}),
			with(listed(node("ReduceMean", []string{"rows"}, []string{"y"}), "axes", 1), "keepdims", 3<<3, 0))...)
		return ofTokens(out)
	}
	for types, more := range map[string][]byte{"token_type_ids": beside("token_type_ids"), "constants": nil} {
		g, in := imported(t, file(types, more), true)
		wantClose(t, types, answers(t, g, in.Weights, 1, []float32{2, 1}), []float32{16.5})
	}
	_, err := export.ImportONNX(file("attention_mask", beside("attention_mask")), nil, export.ONNXOptions{})
	if err == nil || !strings.Contains(err.Error(), "it computes with attention_mask") {
		t.Errorf("a mask: %v", err)
	}
}

// TensorFlow's files add the length of the table to tokens below 0, of which there are none, and take the last position
// by a Slice and a Squeeze.
func TestTokensOfTensorFlowAreRead(t *testing.T) {
	cast := func(in, out string, to byte) []byte {
		return with(node("Cast", []string{in}, []string{out}), "to", 3<<3, to)
	}
	file := ofTokens(fileOfSides([]int{1, 2}, floats("table", 3, 1, 5, 6, 7), ints("length", 3), ints("axis", 1),
		fixedArray("zero", nil, 0), ints("last", -1), ints("end", 1<<31-1),
		cast("x", "number", 1), node("Less", []string{"number", "zero"}, []string{"below"}), cast("below", "is", 7),
		node("Not", []string{"below"}, []string{"other"}), cast("other", "isNot", 7),
		node("Add", []string{"x", "length"}, []string{"longer"}),
		node("Mul", []string{"is", "longer"}, []string{"a"}), node("Mul", []string{"x", "isNot"}, []string{"b"}),
		node("Add", []string{"a", "b"}, []string{"tokens"}),
		node("Gather", []string{"table", "tokens"}, []string{"rows"}),
		node("Slice", []string{"rows", "last", "end", "axis"}, []string{"one"}),
		node("Squeeze", []string{"one", "axis"}, []string{"y"})))
	g, in := imported(t, file, true)
	wantClose(t, "last", answers(t, g, in.Weights, 1, []float32{2, 1}), []float32{6})
}
