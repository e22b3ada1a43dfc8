package export_test

import (
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/export"
)

// scikit is a node of scikit-learn's operators.
func scikit(kind, in string, out []string, options ...[]byte) []byte {
	n := node(kind, []string{in}, out)[2:]
	for _, o := range options {
		n = append(n, field(5, o)...)
	}
	return field(1, n, field(7, []byte("ai.onnx.ml")))
}

// numbers is an option with a list of floats, as Python writes it: one field for each.
func numbers(name string, v ...float32) []byte {
	out := field(1, []byte(name))
	for _, x := range v {
		out = binary.LittleEndian.AppendUint32(append(out, 7<<3|5), math.Float32bits(x))
	}
	return out
}

func word(name, value string) []byte {
	return append(field(1, []byte(name)), field(4, []byte(value))...)
}

// floats is a constant with so many rows and columns.
func floats(name string, rows, columns byte, v ...float32) []byte {
	var data []byte
	for _, x := range v {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
	}
	return field(5, []byte{1 << 3, rows, 1 << 3, columns, 2 << 3, 1}, field(8, []byte(name)), field(9, data))
}

// classes is the option of two classes.
func classes() []byte { return append(field(1, []byte("classlabels_ints")), 8<<3, 0, 8<<3, 1) }

// Models of scikit-learn come in as skl2onnx writes them: scaled columns, linear models, and probabilities by name.
func TestScikitLearnsOperatorsAreRead(t *testing.T) {
	scaler := func(in, out string) []byte {
		return scikit("Scaler", in, []string{out}, numbers("offset", 1, 2), numbers("scale", 0.5))
	}
	linear := func(kind, in string, out []string, options ...[]byte) []byte {
		return scikit(kind, in, out, append(options, numbers("coefficients", 1, 2, -1, -2),
			numbers("intercepts", 0.5, -0.5), classes())...)
	}
	both := []string{"label", "p"}
	for name, c := range map[string]struct {
		nodes [][]byte
		want  []float32 // of 3, 4, which are scaled to 1, 1; nil: refused
	}{
		"scaled": {[][]byte{scaler("x", "y")}, []float32{1, 1}},
		"regressor": {[][]byte{
			scaler("x", "a"),
			scikit("LinearRegressor", "a", []string{"y"}, numbers("coefficients", 3, -1), numbers("intercepts", 2)),
		}, []float32{4}},
		"softmax": {[][]byte{
			scaler("x", "a"), linear("LinearClassifier", "a", both, word("post_transform", "SOFTMAX")),
			scikit("Normalizer", "p", []string{"q"}, word("norm", "L1")), scikit("ZipMap", "q", []string{"y"}),
		}, []float32{float32(1 / (1 + math.Exp(-7))), float32(1 / (1 + math.Exp(7)))}},
		"logistic": {[][]byte{
			scikit("Scaler", "x", []string{"a"}, numbers("offset", 1, 2), numbers("scale", 1)),
			linear("LinearClassifier", "a", both, word("post_transform", "LOGISTIC")),
			scikit("ZipMap", "p", []string{"y"}), node("ArgMax", []string{"p"}, []string{"other"}),
		}, []float32{float32(1 / (1 + math.Exp(-6.5))), float32(1 / (1 + math.Exp(6.5)))}},
		"one sigmoid": {[][]byte{
			floats("w", 2, 1, 1, 2), floats("one", 1, 1, 1), node("Gemm", []string{"x", "w"}, []string{"z"}),
			node("Sigmoid", []string{"z"}, []string{"p"}), node("Sub", []string{"one", "p"}, []string{"rest"}),
			with(node("Concat", []string{"rest", "p"}, []string{"y"}), "axis", 3<<3, 1),
		}, []float32{float32(1 / (1 + math.Exp(11))), float32(1 / (1 + math.Exp(-11)))}},
		"two sigmoids": {[][]byte{
			floats("w", 2, 2, 1, 2, 0, 0.5), floats("one", 1, 1, 1), node("Gemm", []string{"x", "w"}, []string{"z"}),
			node("Sigmoid", []string{"z"}, []string{"p"}), node("Sub", []string{"one", "p"}, []string{"rest"}),
			with(node("Concat", []string{"rest", "p"}, []string{"y"}), "axis", 3<<3, 1),
		}, []float32{
			float32(1 / (1 + math.Exp(3))), float32(1 / (1 + math.Exp(8))),
			float32(1 / (1 + math.Exp(-3))), float32(1 / (1 + math.Exp(-8))),
		}},
		"scores": {[][]byte{
			scaler("x", "a"), linear("LinearClassifier", "a", both, word("post_transform", "NONE")),
			scikit("ZipMap", "p", []string{"y"}),
		}, []float32{3.5, -3.5}},
		"length": {[][]byte{scikit("Normalizer", "x", []string{"y"}, word("norm", "L2"))}, []float32{0.6, 0.8}},
		"length in steps": {[][]byte{
			fixedList("least", 1e-12), node("Shape", []string{"x"}, []string{"sides"}),
			listed(node("ReduceL2", []string{"x"}, []string{"l"}), "axes", 1),
			node("Clip", []string{"l", "least"}, []string{"c"}), node("Expand", []string{"c", "sides"}, []string{"e"}),
			node("Div", []string{"x", "e"}, []string{"y"}),
		}, []float32{0.6, 0.8}},
		"length of rows": {[][]byte{
			listed(node("ReduceL2", []string{"x"}, []string{"l"}), "axes", 0),
			node("Div", []string{"x", "l"}, []string{"y"}),
		}, nil},
		"another length": {[][]byte{
			fixedList("least", 3), listed(node("ReduceL2", []string{"x"}, []string{"l"}), "axes", 1),
			node("Clip", []string{"l", "least"}, []string{"c"}), node("Div", []string{"x", "c"}, []string{"y"}),
		}, nil},
		"one against the rest": {[][]byte{linear("LinearClassifier", "x", []string{"label", "y"})}, nil},
		"by the largest":       {[][]byte{scikit("Normalizer", "x", []string{"y"}, word("norm", "MAX"))}, nil},
		"other coefficients": {[][]byte{
			scikit("LinearRegressor", "x", []string{"y"}, numbers("coefficients", 3)),
		}, nil},
		"another domain": {[][]byte{node("Scaler", []string{"x"}, []string{"y"})}, nil},
	} {
		file := fileOfSides([]int{1, 2}, c.nodes...)
		if c.want == nil {
			if _, err := export.ImportONNX(file, nil, export.ONNXOptions{}); !errors.Is(err, disdel.Invalid) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		g, in := imported(t, file, true)
		wantClose(t, name, answers(t, g, in.Weights, 1, []float32{3, 4}), c.want)
	}
}
