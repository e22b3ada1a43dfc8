package export_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/export"
)

// masks is an attention of two tokens, embedded as the rows of a table, whose scores s3 become s4. It gives the first
// position.
func masks(masked, last []byte) []byte {
	nodes := append([][]byte{}, beside("attention_mask"), floats("table", 3, 4, 0, 2, 4, 6, 8, 10, 12, 14, 1, 1, 1, 1),
		ints("axes", 1, 2), field(5, []byte{2 << 3, 7}, field(8, []byte("first")), field(9, make([]byte, 8))),
		fixedList("low", -10000), fixedList("little", -50), fixedList("one", 1),
		node("Gather", []string{"table", "x"}, []string{"e"}),
		node("Unsqueeze", []string{"attention_mask", "axes"}, []string{"m"}),
		with(node("Cast", []string{"m"}, []string{"f"}), "to", 3<<3, 1),
		node("Sub", []string{"one", "f"}, []string{"padding"}),
		node("Mul", []string{"padding", "low"}, []string{"hidden"}),
		node("Mul", []string{"padding", "little"}, []string{"some"}),
		listed(node("Transpose", []string{"hidden"}, []string{"turned"}), "perm", 0, 1, 3, 2),
		node("Equal", []string{"m", "first"}, []string{"no"}))
	nodes = append(nodes, attentionOf("e", float32(1/math.Sqrt(2)), "Identity", masked)...)
	return ofTokens(fileOfSides([]int{1, 2}, append(nodes, last)...))
}

// An attention_mask is read where it hides padding from each attention, by a sum or a choice. Token 0 is padding then.
func TestAMaskOfPaddingIsPadded(t *testing.T) {
	first := with(node("Gather", []string{"z", "first"}, []string{"y"}), "axis", 3<<3, 1)
	add := func(mask string) []byte { return node("Add", []string{"s3", mask}, []string{"s4"}) }
	for name, masked := range map[string][]byte{
		"sum": add("hidden"), "choice": node("Where", []string{"no", "low", "s3"}, []string{"s4"}),
	} {
		g, in := imported(t, masks(masked, first), true)
		if l := in.Network.Layers[1]; l.Padded == nil || !*l.Padded || len(in.Notes) != 1 {
			t.Errorf("%s: %+v with the notes %q", name, l, in.Notes)
		}
		got := answers(t, g, in.Weights, 2, []float32{1, 2, 1, 0})
		wantClose(t, name, got, []float32{4.5, 5.5, 6.5, 7.5, 8, 10, 12, 14})
	}
	if _, err := export.ImportONNX(fileOfSides([]int{1, 2}, beside("attention_mask"), node("Relu", []string{"x"},
		[]string{"z"}), node("Where", []string{"attention_mask", "z", "x"}, []string{"y"})), nil,
		export.ONNXOptions{}); err == nil || !strings.Contains(err.Error(), "goes with rows of tokens") {
		t.Errorf("rows of numbers: %v", err)
	}
	mean := with(listed(node("ReduceMean", []string{"z"}, []string{"y"}), "axes", 1), "keepdims", 3<<3, 0)
	choice := func(of ...string) []byte { return node("Where", of, []string{"s4"}) }
	for name, c := range map[string]struct {
		masked, last []byte
		says         string
	}{
		"tokens are hidden": {choice("f", "low", "s3"), first, "part of an attention"},
		"a small number":    {add("some"), first, "part of an attention"},
		"a product":         {node("Mul", []string{"s3", "f"}, []string{"s4"}), first, "with attention_mask"},
		"mean of padding":   {add("hidden"), mean, "reads all positions"},
		"queries":           {add("turned"), first, "part of an attention"},
	} {
		_, err := export.ImportONNX(masks(c.masked, c.last), nil, export.ONNXOptions{})
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The mean of the tokens that are no padding is read, in the steps of Sentence Transformers. Other sums are refused.
func TestAMeanOfTokensLeavesPaddingOut(t *testing.T) {
	sum := func(in, out string) []byte {
		return with(listed(node("ReduceSum", []string{in}, []string{out}), "axes", 1), "keepdims", 3<<3, 0)
	}
	mul := func(mask string) []byte { return node("Mul", []string{"e", mask}, []string{"p"}) }
	div := func(count string) []byte { return node("Div", []string{"s", count}, []string{"y"}) }
	file := func(placed, divided []byte) []byte {
		return ofTokens(fileOfSides([]int{1, 2}, beside("attention_mask"), floats("table", 3, 4, 0, 2, 4, 6, 8, 10, 12,
			14, 1, 1, 1, 1), ints("last", 2), ints("middle", 1), fixedList("zero", 0), fixedList("one", 1),
			fixedList("two", 2), fixedList("least", 1e-9), node("Gather", []string{"table", "x"}, []string{"e"}),
			node("Unsqueeze", []string{"attention_mask", "last"}, []string{"m"}),
			node("Unsqueeze", []string{"attention_mask", "middle"}, []string{"turned"}),
			with(node("Cast", []string{"m"}, []string{"f"}), "to", 3<<3, 1),
			with(node("Cast", []string{"turned"}, []string{"t"}), "to", 3<<3, 1),
			node("Sub", []string{"one", "f"}, []string{"padding"}),
			with(node("Cast", []string{"m"}, []string{"is"}), "to", 3<<3, 9),
			node("Not", []string{"is"}, []string{"no"}),
			sum("f", "n"), node("Clip", []string{"n", "least"}, []string{"count"}), placed, sum("p", "s"), divided))
	}
	for name, placed := range map[string][]byte{
		"product": mul("f"), "choice": node("Where", []string{"is", "e", "zero"}, []string{"p"}),
		"other choice": node("Where", []string{"no", "zero", "e"}, []string{"p"}),
	} {
		g, in := imported(t, file(placed, div("count")), true)
		got := answers(t, g, in.Weights, 2, []float32{1, 2, 1, 0})
		wantClose(t, name, got, []float32{4.5, 5.5, 6.5, 7.5, 8, 10, 12, 14})
	}
	for name, data := range map[string][]byte{
		"of padding": file(mul("padding"), div("count")), "another axis": file(mul("t"), div("count")),
		"all positions": file(mul("f"), div("two")), "no product": file(mul("one"), div("n")),
		"a sum":          file(mul("f"), node("Relu", []string{"s"}, []string{"y"})),
		"turned":         file(mul("f"), node("Div", []string{"count", "s"}, []string{"y"})),
		"a wrong choice": file(node("Where", []string{"no", "e", "zero"}, []string{"p"}), div("count")),
	} {
		if _, err := export.ImportONNX(data, nil, export.ONNXOptions{}); !errors.Is(err, disdel.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A pool over the positions of a sequence whose channels come last is refused by its name.
func TestAPoolOfPositionsIsRefusedPlainly(t *testing.T) {
	turn := func(in, out string) []byte {
		return listed(node("Transpose", []string{in}, []string{out}), "perm", 0, 2, 1)
	}
	file := fileOfSides([]int{1, 4, 2}, turn("x", "a"),
		listed(node("MaxPool", []string{"a"}, []string{"p"}), "kernel_shape", 2),
		node("Flatten", []string{"p"}, []string{"y"}))
	_, err := export.ImportONNX(file, nil, export.ONNXOptions{})
	if err == nil || !strings.Contains(err.Error(), `node "p" (MaxPool)`) ||
		!strings.Contains(err.Error(), "4 positions of 2 ch") {
		t.Error(err)
	}
}
