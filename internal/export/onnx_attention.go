package export

import (
	"math"

	"github.com/disdel/disdel/model"
)

// attention writes softmax(Q K / sqrt(width)) V by head; values are [rows, heads of keys, their queries, width,
// positions].
func (t *translator) attention(n *model.Node, o operator) {
	c, positions, width := n.Out[0], n.Out[1], n.Out[0]/n.Heads
	part := func(name string, from, shared int) string {
		sides := []int{0, n.KVHeads, shared, width, positions}
		return t.reshaped(n, name, t.cut(n, name+".channels", o.in[0], 1, from, from+n.KVHeads*shared*width), sides...)
	}
	turned := integers("perm", 0, 1, 2, 4, 3)
	queries, keys := part("queries", 0, n.Heads/n.KVHeads), part("keys", c, 1)
	values := part("values", c+n.KVHeads*width, 1)
	if n.Theta > 0 {
		queries, keys = t.rotated(n, "queries", queries), t.rotated(n, "keys", keys)
	}
	last := t.step(n, "Transpose", "queries.turned", []string{queries}, turned)
	last = t.step(n, "MatMul", "scores", []string{last, keys})
	factor := float32(1 / math.Sqrt(float64(width)))
	last = t.step(n, "Mul", "scaled", []string{last, t.constant(n, "factor", nil, factor)})
	if n.Causal {
		behind := make([]float32, positions*positions)
		for i := range behind {
			if i%positions > i/positions {
				behind[i] = -1e30
			}
		}
		mask := t.constant(n, "behind", []int{positions, positions}, behind...)
		last = t.step(n, "Add", "masked", []string{last, mask})
	}
	last = t.step(n, "Softmax", "shares", []string{last}, integer("axis", -1))
	last = t.step(n, "Transpose", "shares.turned", []string{last}, turned)
	last = t.step(n, "MatMul", "means", []string{values, last})
	t.out.numbers(n.Name+".sides", 0, c, positions)
	o.in = []string{last, n.Name + ".sides"}
	t.as("Reshape", o)
}

// rotated turns channel c of each head with channel c + width/2, by an angle of the position (Su 2021).
func (t *translator) rotated(n *model.Node, name, x string) string {
	positions, width := n.Out[1], n.Out[0]/n.Heads
	half, cos, sin := width/2, make([]float32, width*positions), make([]float32, width*positions)
	for i := range cos {
		s, c := math.Sincos(float64(i%positions) / math.Pow(n.Theta, float64(i/positions%half)/float64(half)))
		cos[i], sin[i] = float32(c), float32(s)
	}
	other := t.step(n, "Neg", name+".negative", []string{t.cut(n, name+".high", x, 3, half, width)})
	low := t.cut(n, name+".low", x, 3, 0, half)
	other = t.step(n, "Concat", name+".other", []string{other, low}, integer("axis", 3))
	sides := []int{width, positions}
	return t.step(n, "Add", name+".rotated", []string{
		t.step(n, "Mul", name+".by.cos", []string{x, t.constant(n, name+".cos", sides, cos...)}),
		t.step(n, "Mul", name+".by.sin", []string{other, t.constant(n, name+".sin", sides, sin...)}),
	})
}

// windowAttention writes an attention within windows: a Gather brings the pixels into the order of the windows, and
// another one brings the outputs back.
func (t *translator) windowAttention(n *model.Node, o operator) {
	in := t.source.Nodes[n.Inputs[0]].Out
	s := model.WindowsOf(n, in[1], in[2])
	c, width, count, places := n.Out[0], n.Out[0]/n.Heads, s.Count(), s.Len()
	t.out.numbers(n.Name+".pixels", pixelsOf(&s)...)
	last := t.reshaped(n, "flat", o.in[0], 0, 3*c, in[1]*in[2])
	last = t.step(n, "Gather", "windows", []string{last, n.Name + ".pixels"}, integer("axis", 2))
	part := func(name string, from int) string { // [rows windows heads places width]
		part := t.reshaped(n, name, t.cut(n, name+".channels", last, 1, from, from+c), 0, n.Heads, width, count, places)
		return t.step(n, "Transpose", name+".turned", []string{part}, integers("perm", 0, 3, 1, 4, 2))
	}
	queries, keys, values := part("queries", 0), part("keys", c), part("values", 2*c)
	if n.Cosine {
		queries, keys = t.unit(n, "queries", queries), t.unit(n, "keys", keys)
	}
	keys = t.step(n, "Transpose", "keys.last", []string{keys}, integers("perm", 0, 1, 2, 4, 3))
	last = t.step(n, "MatMul", "scores", []string{queries, keys})
	last = t.step(n, "Mul", "scaled", []string{last, t.headScale(n, width)})
	distances := make([]int, 0, places*places)
	for i := range places * places {
		distances = append(distances, s.Distance(i/places, i%places))
	}
	t.out.numbers(n.Name+".distances", distances...)
	bias := t.step(n, "Gather", "biases", []string{n.Name + ".weight", n.Name + ".distances"}, integer("axis", 0))
	bias = t.step(n, "Transpose", "biases.turned", []string{bias}, integers("perm", 1, 0))
	last = t.step(n, "Add", "biased", []string{last, t.reshaped(n, "biases.square", bias, n.Heads, places, places)})
	if n.Shift != (model.Sides{}) {
		mask := t.constant(n, "mask", []int{count, 1, places, places}, partsOf(&s)...)
		last = t.step(n, "Add", "masked", []string{last, mask})
	}
	last = t.step(n, "Softmax", "shares", []string{last}, integer("axis", -1))
	last = t.step(n, "MatMul", "means", []string{last, values})
	last = t.step(n, "Transpose", "means.turned", []string{last}, integers("perm", 0, 2, 4, 1, 3))
	last = t.reshaped(n, "joined", last, 0, c, count*places)
	t.out.numbers(n.Name+".back", backOf(&s, n.Out)...)
	last = t.step(n, "Gather", "map", []string{last, n.Name + ".back"}, integer("axis", 2))
	t.out.numbers(n.Name+".sides", 0, c, n.Out[1], n.Out[2])
	o.in = []string{last, n.Name + ".sides"}
	t.as("Reshape", o)
}

// pixelsOf are the pixels of the map in the order of the windows.
func pixelsOf(s *model.Windows) []int {
	list := make([]int, 0, s.MapH*s.MapW)
	for i := range s.MapH * s.MapW {
		row, column := s.Pixel(i/s.Len(), i%s.Len())
		list = append(list, row*s.MapW+column)
	}
	return list
}

// backOf says where each pixel of the output is among those of the windows.
func backOf(s *model.Windows, out model.Shape) []int {
	list := make([]int, out[1]*out[2])
	for i, pixel := range pixelsOf(s) {
		if row, column := pixel/s.MapW, pixel%s.MapW; row < out[1] && column < out[2] {
			list[row*out[2]+column] = i
		}
	}
	return list
}

// partsOf is -100 for scores of pixels that do not attend to each other, as PyTorch has it: [windows places places].
func partsOf(s *model.Windows) []float32 {
	square := s.Len() * s.Len()
	mask := make([]float32, s.Count()*square)
	for i := range mask {
		if w := i / square; s.Part(w, i%square/s.Len()) != s.Part(w, i%s.Len()) {
			mask[i] = -model.ApartScore
		}
	}
	return mask
}

// unit writes vectors of length 1.
func (t *translator) unit(n *model.Node, name, x string) string {
	norm := t.step(n, "ReduceL2", name+".norm", []string{x}, integers("axes", -1), integer("keepdims", 1))
	return t.step(n, "Div", name+".unit", []string{
		x, t.step(n, "Max", name+".least", []string{norm, t.constant(n, name+".eps", nil, 1e-12)}),
	})
}

// headScale writes what scores are multiplied with.
func (t *translator) headScale(n *model.Node, width int) string {
	if !n.Cosine {
		return t.constant(n, "factor", nil, float32(1/math.Sqrt(float64(width))))
	}
	last := t.reshaped(n, "scales", n.Name+".scale", n.Heads, 1, 1)
	largest := t.constant(n, "largest", nil, float32(math.Log(model.LargestScale)))
	return t.step(n, "Exp", "factor", []string{t.step(n, "Min", "logarithm", []string{last, largest})})
}

// spaceToDepth writes what ONNX has for square blocks.
func (t *translator) spaceToDepth(n *model.Node, o operator) error {
	if n.Kernel.H != n.Kernel.W {
		return t.refused(n)
	}
	t.as("SpaceToDepth", o, integer("blocksize", int64(n.Kernel.H)))
	return nil
}
