package export_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/export"
)

// pooled is a file that pools images of three channels, of any sides, whose second output "half" is in front of "y".
// A third output, "sum", needs a second input.
func pooled(sides ...int) []byte {
	input := field(11, field(1, []byte("second")), field(2, field(1, []byte{1 << 3, 1},
		field(2, field(1, []byte{1 << 3, 1}), field(1, []byte{1 << 3, 3})))))
	output := func(name string) []byte { return field(12, field(1, []byte(name))) }
	return fileOfSides(sides, node("GlobalAveragePool", []string{"x"}, []string{"half"}),
		node("Flatten", []string{"half"}, []string{"y"}), node("Add", []string{"y", "second"}, []string{"sum"}),
		input, output("half"), output("sum"))
}

// Sides that a file leaves open come from who imports it, and so does the output where there are several. Sides below
// zero, which some exporters write for open ones, are open.
func TestWhatAnONNXFileLeavesOpenIsGiven(t *testing.T) {
	open, row := pooled(0, 3, 0, 0), []int{3, 5, 7}
	fixed := map[string][]byte{"open": open, "fixed": pooled(1, 3, 5, 7)}
	for name, file := range fixed {
		in, err := export.ImportONNX(file, nil, export.ONNXOptions{Row: row, Output: "y"})
		if err != nil || !slices.Equal(in.Network.Input, []int{3, 5, 7}) || in.Network.Classes != 3 {
			t.Errorf("%s: %v, %v: %v", name, in.Network.Input, in.Network.Classes, err)
		}
	}
	for name, c := range map[string]struct {
		file []byte
		opt  export.ONNXOptions
		want string
	}{
		"no sides":       {open, export.ONNXOptions{Output: "y"}, "--input"},
		"too few sides":  {open, export.ONNXOptions{Output: "y", Row: []int{5, 7}}, "has 3 besides the rows"},
		"another side":   {open, export.ONNXOptions{Output: "y", Row: []int{1, 5, 7}}, "fixes it at 3"},
		"no output":      {open, export.ONNXOptions{Row: row}, `--output chooses one of them: "half", "sum", "y"`},
		"unknown output": {open, export.ONNXOptions{Output: "z", Row: row}, `no node of the graph gives "z"`},
		"no list":        {open, export.ONNXOptions{Output: "half", Row: row}, "a list of numbers"},
		"a second input": {open, export.ONNXOptions{Output: "sum", Row: row}, "needs 2 inputs"},
		"below zero":     {pooled(-1, 3, -1, 0), export.ONNXOptions{Output: "y"}, "[0 3 0 0]"},
	} {
		_, err := export.ImportONNX(c.file, nil, c.opt)
		if !errors.Is(err, disdel.Invalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Of several outputs, labels of int64 and states of three sides are no answer. The only other one is, and a note says
// so.
func TestTheOnlyOutputThatMayBeTheAnswerIsChosen(t *testing.T) {
	output := func(name string, kind byte, sides ...byte) []byte {
		var list []byte
		for _, side := range sides {
			list = append(list, field(1, []byte{1 << 3, side})...)
		}
		return field(12, field(1, []byte(name)), field(2, field(1, []byte{1 << 3, kind}, field(2, list))))
	}
	read := func(more ...[]byte) (export.Imported, error) {
		nodes := [][]byte{
			node("GlobalAveragePool", []string{"x"}, []string{"half"}),
			node("Flatten", []string{"half"}, []string{"p"}),
			node("ArgMax", []string{"p"}, []string{"label"}), output("label", 7, 1), output("half", 1, 1, 3, 1, 1),
			output("p", 1, 1, 3),
		}
		return export.ImportONNX(fileOfSides([]int{1, 3, 5, 7}, append(nodes, more...)...), nil, export.ONNXOptions{})
	}
	in, err := read()
	if err != nil || in.Network.Classes != 3 || !strings.Contains(in.Notes[0], `only "p" may be`) {
		t.Errorf("%v: %v", in.Notes, err)
	}
	if _, err = read(output("q", 1, 1, 3)); err == nil || !strings.Contains(err.Error(), "the graph has 5 outputs") {
		t.Errorf("with another list: %v", err)
	}
}
