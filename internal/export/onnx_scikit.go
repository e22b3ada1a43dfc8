package export

import (
	"math"
	"slices"

	"github.com/disdel/disdel/model"
)

// scikitDomain has the operators that skl2onnx writes for the models of scikit-learn (onnx.ai/onnx/operators).
const scikitDomain = "ai.onnx.ml"

// isScikit tells whether an operator is of that domain.
func isScikit(kind string) bool {
	return slices.Contains([]string{
		"Scaler", "LinearRegressor", "LinearClassifier", "Normalizer", "ZipMap", "ArrayFeatureExtractor",
	}, kind)
}

// scaler is (x - offset) scale, each a number or a list.
func (r *importer) scaler(n *step) {
	x, ok := r.from(n, 0)
	if !ok {
		return
	}
	inputs := r.b.Out(x)[0]
	offset, scale := n.options["offset"].numbers, n.options["scale"].numbers
	fits := func(list []float32) bool { return len(list) == 1 || len(list) == inputs }
	if len(r.b.Out(x)) != 1 || !fits(offset) || !fits(scale) {
		r.fault(n, "it has %d offsets and %d scales for %v", len(offset), len(scale), []int(r.b.Out(x)))
		return
	}
	weight, bias := make([]float64, inputs), make([]float64, inputs)
	for i := range inputs {
		weight[i] = float64(scale[min(i, len(scale)-1)])
		bias[i] = -float64(offset[min(i, len(offset)-1)]) * weight[i]
	}
	if node, ok := r.scale(n, n.in[0], x, weight, bias); ok {
		r.layer(n, node)
	}
}

// linear is a dense layer of a list of coefficients, [units inputs]. factor multiplies them.
func (r *importer) linear(n *step, units int, factor float32) (node int, ok bool) {
	x, ok := r.from(n, 0)
	if !ok {
		return 0, false
	}
	coefficients, intercepts := n.options["coefficients"].numbers, n.options["intercepts"].numbers
	in := r.b.Out(x)
	if len(in) != 1 || units < 1 || len(coefficients) != units*in[0] ||
		len(intercepts) != units && len(intercepts) != 0 {
		r.fault(n, "it has %d coefficients and %d intercepts for %v to %d values", len(coefficients), len(intercepts),
			[]int(in), units)
		return 0, false
	}
	weight, bias := slices.Clone(coefficients), make([]float32, units)
	copy(bias, intercepts)
	for _, list := range [][]float32{weight, bias} {
		for i := range list {
			list[i] *= factor
		}
	}
	name := r.name(n, "")
	r.keep(name, weight, bias)
	return r.b.Dense(name, x, units), true
}

func (r *importer) linearRegressor(n *step) {
	if text := n.options["post_transform"].text; text != "" && text != "NONE" {
		r.fault(n, "its post_transform is %.20q; disdel has NONE", text)
		return
	}
	if node, ok := r.linear(n, int(min(n.whole("targets", 1), 1<<20)), 1); ok {
		r.layer(n, node)
	}
}

// linearClassifier gives labels, which disdel leaves out, and scores. Two classes may have the sigmoids of z and -z,
// which are the softmax of their halves.
func (r *importer) linearClassifier(n *step) {
	classes := max(len(n.options["classlabels_ints"].list), len(n.options["classlabels_strings"].texts))
	half, text := float32(1), n.options["post_transform"].text
	switch {
	case text == "LOGISTIC" && r.opposite(n, classes):
		half = 0.5
	case text != "SOFTMAX" && text != "NONE":
		r.fault(n, "its post_transform is %.20q; disdel has SOFTMAX, NONE, and LOGISTIC of two classes", text)
		return
	}
	if len(n.out) < 2 || r.beforeOutput(n.out[1]) {
		r.fault(n, "disdel has softmax only as the last layer")
		return
	}
	node, ok := r.linear(n, classes, half)
	if !ok {
		return
	}
	if text != "NONE" { // scores of support vectors
		node = r.b.Same(r.name(n, ""), node, model.OpSoftmax)
	}
	r.at[n.out[1]] = value{isNode: true, node: node}
}

// opposite tells whether the second one of two classes has the coefficients of the first one with the other sign.
func (r *importer) opposite(n *step, classes int) bool {
	for _, name := range []string{"coefficients", "intercepts"} {
		list := n.options[name].numbers
		half := len(list) / 2
		if classes != 2 || len(list) != 2*half {
			return false
		}
		for i, v := range list[:half] {
			if v != -list[half+i] {
				return false
			}
		}
	}
	return true
}

// normalizer divides by the length, or by the sum, which probabilities have already.
func (r *importer) normalizer(n *step) {
	if n.options["norm"].text == "L2" {
		r.unitLength(n, n)
		return
	}
	g, err := r.b.Graph()
	if v, _ := r.in(n, 0); err != nil || !v.isNode || g.Nodes[v.node].Op != model.OpSoftmax ||
		n.options["norm"].text != "L1" {
		r.fault(n, "disdel has no layer for it; it has the norm L2, and passes probabilities of a softmax with L1")
		return
	}
	r.pass(n)
}

// reduceL2 reads the division of a vector by its length, which may be bounded: PyTorch's normalize.
func (r *importer) reduceL2(n *step) {
	bounded := func(s *step) bool {
		low, high, ok := r.bounds(s)
		return s.kind == "Clip" && ok && low <= 1e-6 && high >= math.MaxFloat32
	}
	divides := func(s *step) bool { return s.kind == "Div" && s.in[0] == n.in[0] }
	expands := func(s *step) bool { return s.kind == "Expand" }
	v, _ := r.in(n, 0)
	axes := r.list(n, 1, "axes")
	for _, tests := range [][]func(*step) bool{{divides}, {bounded, divides}, {bounded, expands, divides}} {
		steps := r.chain(n, tests...)
		if steps == nil || !v.isNode || len(r.b.Out(v.node)) != 1 || n.whole("keepdims", 1) != 1 ||
			!slices.Equal(axes, []int64{1}) && !slices.Equal(axes, []int64{-1}) {
			continue
		}
		for _, s := range steps {
			s.done = true
		}
		r.unitLength(n, steps[len(steps)-1])
		return
	}
	loose(windows+", and of a vector's length")(r, n)
}

// unitLength divides a vector by its length, as an RMS norm.
func (r *importer) unitLength(n, last *step) {
	x, ok := r.from(n, 0)
	if !ok {
		return
	}
	if len(r.b.Out(x)) != 1 {
		r.fault(n, "its input is %v; disdel brings lists of numbers to a length of 1", []int(r.b.Out(x)))
		return
	}
	width, name := r.b.Out(x)[0], r.name(n, "")
	r.noteNorm(name, "")
	r.keep(name, slices.Repeat([]float32{float32(1 / math.Sqrt(float64(width)))}, width), nil)
	r.layer(last, r.b.LayerNorm(name, x, model.OpRMSNorm, 1e-12))
}

// twoClasses finds the Concat of 1 - p and p behind a node, where p is the sigmoid of what the node gives.
func (r *importer) twoClasses(n *step) (join *step) {
	p := r.only(n.out[0])
	if p == nil || p.kind != "Sigmoid" || len(r.users[p.out[0]]) != 2 || p.out[0] == r.outputs[0].name {
		return nil
	}
	for _, rest := range r.users[p.out[0]] {
		if rest.kind != "Sub" || len(rest.out) != 1 || len(rest.in) != 2 || rest.in[1] != p.out[0] ||
			!r.scalar(rest, 1) {
			continue
		}
		join = r.users[p.out[0]][0]
		if join == rest {
			join = r.users[p.out[0]][1]
		}
		if axis := join.whole("axis", 0); join.kind == "Concat" && (axis == 1 || axis == -1) && len(join.out) == 1 &&
			slices.Equal(join.in, []string{rest.out[0], p.out[0]}) && r.only(rest.out[0]) == join &&
			!r.beforeOutput(join.out[0]) {
			p.done, rest.done, join.done = true, true, true
			return join
		}
	}
	return nil
}

// bothClasses adds a dense layer of two units, whose weights are 0 and those that r.weights has of one unit, and their
// softmax: 1 - p and p of a sigmoid p.
func (r *importer) bothClasses(join *step, name string, x int) {
	inputs := r.b.Out(x)[0]
	weight, bias := r.values(join, 2*inputs), make([]float32, 2)
	if weight == nil {
		return
	}
	copy(weight[inputs:], r.weights[name+".weight"])
	copy(bias[1:], r.weights[name+".bias"])
	r.keep(name, weight, bias)
	r.notes = append(r.notes, "layer "+name+" has two outputs and a softmax, where the file has one and its sigmoid")
	r.set(join, value{isNode: true, node: r.b.Same(r.name(join, ""), r.b.Dense(name, x, 2), model.OpSoftmax)})
}
