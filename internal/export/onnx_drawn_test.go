package export_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/export"
	"github.com/disdel/disdel/internal/test/faults"
)

// Networks that nobody chose answer as PyTorch does, or are refused.
//
// DISDEL_TEST_DRAWN is how many are drawn, from DISDEL_TEST_SEED.
func TestDrawnNetworksAnswerAsInPyTorch(t *testing.T) {
	drawn, seed := faults.Drawn()
	folder, said := ofPyTorch(t, "torch_drawn.py", strconv.Itoa(drawn), strconv.FormatUint(seed, 10))
	read, names := 0, strings.Fields(said)
	for _, name := range names {
		file, values := exported(t, folder, name)
		if _, err := export.ImportONNX(file, nil, export.ONNXOptions{KeepOutput: true}); err != nil {
			if !errors.Is(err, disdel.Invalid) {
				t.Errorf("seed %d, network %s: %v", seed, name, err)
			}
			t.Logf("network %s: %v", name, err)
			continue
		}
		g, in := imported(t, file, true)
		n := 2 * g.Input().Len()
		wantClose(t, "network "+name, answers(t, g, in.Weights, 2, values[:n]), values[n:])
		read++
	}
	if read < len(names)/2 || len(names) < drawn/2 {
		t.Errorf("seed %d: of %d networks, %d were written and %d read", seed, drawn, len(names), read)
	}
}

// with is a node with one more option.
func with(n []byte, name string, value ...byte) []byte {
	return field(1, n[2:], field(5, field(1, []byte(name)), value))
}

// Windows of auto_pad SAME_LOWER begin before the image, and so end at their own pixel.
func TestSameLowerPadsBeforeTheImage(t *testing.T) {
	for auto, want := range map[string][]float32{"SAME_LOWER": {1, 2, 3, 4}, "SAME_UPPER": {4, 4, 4, 4}} {
		pool := with(node("MaxPool", []string{"x"}, []string{"p"}), "auto_pad", field(4, []byte(auto))...)
		pool = with(pool, "kernel_shape", 8<<3, 2, 8<<3, 2)
		file := fileOfSides([]int{1, 1, 2, 2}, pool, node("Flatten", []string{"p"}, []string{"y"}))
		g, in := imported(t, file, true)
		wantClose(t, auto, answers(t, g, in.Weights, 1, []float32{1, 2, 3, 4}), want)
	}
}

// What a Pad adds, and where, stands in an option or an input, by the file's opset. Only zeros around images are read.
func TestPadsOfEveryOpsetAreRead(t *testing.T) {
	list := func(name string, v ...byte) []byte { // a constant of int64
		var data []byte
		for _, n := range v {
			data = append(data, n, 0, 0, 0, 0, 0, 0, 0)
		}
		return field(5, []byte{1 << 3, byte(len(v)), 2 << 3, 7}, field(8, []byte(name)), field(9, data))
	}
	flat := node("Flatten", []string{"p"}, []string{"y"})
	named := [][]byte{
		node("Pad", []string{"x", "by", "", "axes"}, []string{"p"}), flat, list("by", 1, 0, 0, 2), list("axes", 3, 2),
	}
	var pads []byte
	for _, v := range []byte{0, 0, 1, 1, 0, 0, 0, 0} {
		pads = append(pads, 8<<3, v)
	}
	old := func(value ...byte) [][]byte {
		n := with(node("Pad", []string{"x"}, []string{"p"}), "pads", pads...)
		return [][]byte{with(n, "value", append([]byte{2<<3 | 5}, value...)...), flat}
	}
	for _, c := range []struct {
		name  string
		nodes [][]byte
		want  []float32
	}{
		{"axes", named, []float32{0, 1, 2, 0, 3, 4, 0, 0, 0, 0, 0, 0}},
		{"value 0", old(0, 0, 0, 0), []float32{0, 0, 0, 0, 1, 2, 0, 3, 4}},
		{"value 1", old(0, 0, 0x80, 0x3f), nil},
	} {
		file := fileOfSides([]int{1, 1, 2, 2}, c.nodes...)
		if c.want == nil {
			_, err := export.ImportONNX(file, nil, export.ONNXOptions{KeepOutput: true})
			if err == nil || !strings.Contains(err.Error(), "values than 0") {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		g, in := imported(t, file, true)
		wantClose(t, c.name, answers(t, g, in.Weights, 1, []float32{1, 2, 3, 4}), c.want)
	}
}
