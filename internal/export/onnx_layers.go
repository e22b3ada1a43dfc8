package export

import (
	"slices"
	"strings"

	"github.com/disdel/disdel/model"
)

// window reads the options of a convolution or pool. It adds padding for ceil_mode where that is the same.
func (r *importer) window(n *step, in model.Shape, kernel []int64) (w model.Window, ok bool) {
	if len(in) != 3 {
		r.noImage(n, in)
		return w, false
	}
	two := func(name string) (s model.Sides, ok bool) {
		list := n.options[name].list
		if r.flatWindows(in) && len(list) == 1 {
			list = []int64{list[0], 1}
		}
		if name == "kernel_shape" && len(list) == 0 {
			list = kernel
		}
		if len(list) == 0 {
			return model.Sides{H: 1, W: 1}, true
		}
		if len(list) != 2 || min(list[0], list[1]) < 1 || max(list[0], list[1]) > 1<<20 {
			r.fault(n, "%s is %v; disdel has windows with two sides", name, list[:min(len(list), 4)])
			return s, false
		}
		return model.Sides{H: int(list[0]), W: int(list[1])}, true
	}
	var good [3]bool
	w.Kernel, good[0] = two("kernel_shape")
	w.Stride, good[1] = two("strides")
	w.Dilation, good[2] = two("dilations")
	if slices.Contains(good[:], false) {
		return w, false
	}
	pads := n.options["pads"].list
	if r.flatWindows(in) && len(pads) == 2 {
		pads = []int64{pads[0], 0, pads[1], 0}
	}
	switch auto := n.options["auto_pad"].text; {
	case auto == "SAME_UPPER":
		return w.SamePad(in[1], in[2]), true
	case auto == "SAME_LOWER": // the odd row or column is before the image
		w = w.SamePad(in[1], in[2])
		w.Pad = model.Padding{Top: w.Pad.Bottom, Bottom: w.Pad.Top, Left: w.Pad.Right, Right: w.Pad.Left}
		return w, true
	case auto != "" && auto != "NOTSET" && auto != "VALID":
		r.fault(n, "auto_pad is %.20q; disdel has SAME_UPPER and SAME_LOWER", auto)
		return w, false
	case len(pads) == 0 || auto == "VALID":
	case len(pads) != 4 || slices.Min(pads) < 0 || slices.Max(pads) > 1<<20:
		r.fault(n, "pads is %v; disdel needs four numbers of at least 0", pads[:min(len(pads), 8)])
		return w, false
	default:
		w.Pad = model.Padding{Top: int(pads[0]), Left: int(pads[1]), Bottom: int(pads[2]), Right: int(pads[3])}
	}
	return w, true
}

// flatWindows tells whether the windows over an image have one side in the file: it is a sequence there.
func (r *importer) flatWindows(in model.Shape) bool { return r.oneWide || in[len(in)-1] == 1 }

// imageOf is the shape of a layer's output as an image: sequences are one pixel wide.
func (r *importer) imageOf(x int) model.Shape {
	if out := r.b.Out(x); len(out) != 2 {
		return out
	}
	return append(slices.Clone(r.b.Out(x)), 1)
}

func (r *importer) conv(n *step) {
	x, weight, sides, ok := r.weighted(n)
	if !ok {
		return
	}
	in := r.imageOf(x)
	if len(sides) == 3 && len(in) == 3 && (r.oneWide || len(r.b.Out(x)) == 2) {
		sides = append(slices.Clone(sides), 1)
	}
	if len(sides) != 4 {
		r.fault(n, "its weight has the shape %v; disdel has convolutions of images and of sequences", sides)
		return
	}
	w, ok := r.window(n, in, []int64{int64(sides[2]), int64(sides[3])})
	groups := n.whole("group", 1)
	switch {
	case !ok:
		return
	case groups < 1 || groups > int64(in[0]) || sides[1]*int(groups) != in[0] ||
		w.Kernel != (model.Sides{H: sides[2], W: sides[3]}):
		r.fault(n, "its weight %v does not fit %d channels in %d groups and a window of %dx%d", sides, in[0], groups,
			w.Kernel.H, w.Kernel.W)
		return
	}
	bias, last, ok := r.bias(n, sides[0])
	if !ok {
		return
	}
	name := r.name(n, n.in[1])
	r.keep(name, weight, bias)
	if len(r.b.Out(x)) == 2 {
		r.layer(last, r.b.Conv1D(name, x, sides[0], w, int(groups), bias != nil))
		return
	}
	r.layer(last, r.b.Conv(name, x, sides[0], w, int(groups), bias != nil))
}

// convTranspose turns the weight, [channels filters/groups height width], into that of a convolution.
func (r *importer) convTranspose(n *step) {
	x, weight, sides, ok := r.weighted(n)
	if !ok {
		return
	}
	in := r.b.Out(x)
	more := n.options["output_padding"].list
	if r.oneWide && len(sides) == 3 {
		sides = append(slices.Clone(sides), 1)
		if len(more) == 1 {
			more = []int64{more[0], 0}
		}
	}
	auto, size, groups := n.options["auto_pad"].text, n.options["output_shape"].list, n.whole("group", 1)
	if auto != "" && auto != "NOTSET" || len(size) > 0 || len(sides) != 4 || len(more) != 0 && len(more) != 2 {
		r.fault(n, "disdel reads this of images, with pads in numbers and without output_shape")
		return
	}
	w, ok := r.window(n, in, []int64{int64(sides[2]), int64(sides[3])})
	if !ok {
		return
	}
	if len(more) == 2 {
		w.Pad.Bottom, w.Pad.Right = w.Pad.Bottom-int(more[0]), w.Pad.Right-int(more[1])
	}
	switch {
	case groups < 1 || groups > int64(in[0]) || in[0]%int(groups) != 0 || sides[0] != in[0] ||
		w.Kernel != (model.Sides{H: sides[2], W: sides[3]}):
		r.fault(n, "its weight %v does not fit %d channels in %d groups and a window of %dx%d", sides, in[0], groups,
			w.Kernel.H, w.Kernel.W)
		return
	case min(w.Pad.Bottom, w.Pad.Right) < 0:
		r.fault(n, "output_padding %v is larger than pads; disdel has no such layer", more)
		return
	}
	filters := sides[1] * int(groups)
	bias, last, ok := r.bias(n, filters)
	turned := r.values(n, len(weight))
	if !ok || turned == nil {
		return
	}
	turnAround(turned, weight, sides, int(groups))
	name := r.name(n, n.in[1])
	r.keep(name, turned, bias)
	r.layer(last, r.b.ConvTranspose(name, x, filters, w, int(groups), bias != nil))
}

// turnAround exchanges the first two sides of each group of a weight, and turns its windows by half a circle.
func turnAround(out, v []float32, sides []int, groups int) {
	channels, filters, size := sides[0]/groups, sides[1], sides[2]*sides[3]
	for g := range groups {
		for c := range channels {
			for f := range filters {
				from, to := v[((g*channels+c)*filters+f)*size:][:size], out[((g*filters+f)*channels+c)*size:][:size]
				for i := range from {
					to[size-1-i] = from[i]
				}
			}
		}
	}
}

// weighted is the layer that a node takes, and the weight that it has as its second input.
func (r *importer) weighted(n *step) (x int, weight []float32, sides []int, ok bool) {
	if x, ok = r.from(n, 0); ok {
		weight, sides, ok = r.floats(n, 1)
	}
	return x, weight, sides, ok
}

// keep notes the weights of a layer. bias may be nil.
func (r *importer) keep(name string, weight, bias []float32) {
	r.weights[name+".weight"] = weight
	if bias != nil {
		r.weights[name+".bias"] = bias
	}
}

// bias is a node's third input or, where it has none, the constant that the next node adds. last is the node whose
// output the layer gives.
func (r *importer) bias(n *step, units int) (bias []float32, last *step, ok bool) {
	if len(n.in) > 2 && n.in[2] != "" {
		bias, _, ok = r.floats(n, 2)
		if ok && len(bias) != units {
			r.fault(n, "its bias has %d values, and it has %d outputs", len(bias), units)
			ok = false
		}
		return bias, n, ok
	}
	behind := 0
	if n.kind == "Conv" || n.kind == "ConvTranspose" {
		x, _ := r.in(n, 0)
		behind = len(r.sides(x.node)) - 1
	} else if n.kind == "MatMul" && r.isConstant(n, 0) { // positions
		behind = 1
	}
	next, bias, _ := r.applied(n, "Add", units, behind)
	if next == nil {
		return r.biasBehindTurn(n, units, behind), n, true
	}
	next.done = true
	return bias, next, true
}

// biasBehindTurn is the constant that a file adds behind the Transpose that puts channels last: Keras with PyTorch. The
// Transpose then gives what that Add gave. It is nil where there is none.
func (r *importer) biasBehindTurn(n *step, units, behind int) []float32 {
	turn := r.only(n.out[0])
	if turn == nil || turn.kind != "Transpose" || len(turn.out) != 1 || behind < 1 {
		return nil
	}
	perm := turn.options["perm"].list
	next := r.only(turn.out[0])
	if len(perm) != behind+2 || perm[behind+1] != 1 || next == nil || next.kind != "Add" || len(next.in) != 2 {
		return nil
	}
	for i, name := range next.in {
		a := r.at[name].array
		list := a.floats32()
		if next.in[1-i] == turn.out[0] && len(list) == units && len(a.sides) > 0 && len(a.sides) <= len(perm) &&
			a.sides[len(a.sides)-1] == units {
			r.noteComputed(next, a)
			turn.out[0], next.done = next.out[0], true
			return list
		}
	}
	return nil
}

// applied finds the node of a kind that alone uses what n gives, and its constant with a value for each channel. named
// is the constant's name. Channels have so many axes behind them. next is nil if there is no such node.
func (r *importer) applied(n *step, kind string, channels, behind int) (next *step, list []float32, named string) {
	next = r.only(n.out[0])
	if next == nil || next.kind != kind || len(next.in) != 2 {
		return nil, nil, ""
	}
	if named = next.in[0]; named == n.out[0] {
		named = next.in[1]
	}
	a := r.at[named].array
	if list = a.floats32(); len(list) != channels || !alongChannels(a.sides, channels, behind) {
		return nil, nil, ""
	}
	r.noteComputed(next, a)
	return next, list, named
}

// alongChannels tells whether a constant has one value for each channel, where channels have so many axes behind them.
func alongChannels(sides []int, units, behind int) bool {
	want := slices.Concat([]int{1, units}, slices.Repeat([]int{1}, behind))
	return slices.Equal(sides, want) || slices.Equal(sides, want[1:])
}

// plain tells whether a Gemm multiplies and adds, and does nothing else but turn its weight.
func (n *step) plain() bool {
	return near(n.number("alpha", 1), 1) && near(n.number("beta", 1), 1) && n.whole("transA", 0) == 0
}

func (r *importer) gemm(n *step) {
	if !n.plain() {
		r.fault(n, "alpha, beta and transA must be 1, 1 and 0")
		return
	}
	r.dense(n, 0, n.whole("transB", 0) != 0)
}

// dense adds a dense layer of a node's input i; the other one is its weight, which is turned where the file has [inputs
// units]. Behind its weight, a sequence has its channels before its positions.
func (r *importer) dense(n *step, i int, turned bool) {
	v, _ := r.in(n, i)
	x, view, ok := v.node, asLayer, v.view == flattenedLast
	if !ok {
		x, view, ok = r.seen(n, i)
	}
	if !ok {
		return
	}
	weight, sides, ok := r.floats(n, 1-i)
	if !ok {
		return
	}
	in := r.b.Out(x)
	if len(sides) != 2 || len(in) != 1 && view == asLayer && i == 0 {
		r.fault(n, "it multiplies %v with %v; disdel multiplies a list of numbers with a matrix", []int(in), sides)
		return
	}
	units, inputs := sides[0], sides[1]
	if !turned {
		units, inputs = inputs, units
	}
	if inputs != in[0] || units == 0 {
		r.fault(n, "its weight %v does not fit %d inputs", sides, in[0])
		return
	}
	if !turned {
		from := weight
		if weight = r.values(n, len(from)); weight == nil {
			return
		}
		turn(weight, from, inputs, units)
	}
	if v.view == flattenedLast {
		if weight = r.channelsBefore(n, weight, x, units); weight == nil {
			return
		}
	}
	bias, last, ok := r.bias(n, units)
	if !ok {
		return
	}
	name := r.name(n, n.in[1-i])
	r.keep(name, weight, bias)
	if len(in) == 3 { // of each pixel
		node := r.b.Conv(name, x, units, model.Square(1, 1, 0), 1, bias != nil)
		r.set(last, value{isNode: true, node: node, view: view})
		return
	}
	if units == 1 && len(in) == 1 {
		if join := r.twoClasses(last); join != nil {
			r.bothClasses(join, name, x)
			return
		}
	}
	add := r.b.Dense
	if bias == nil {
		add = r.b.DenseWithoutBias
	}
	node := add(name, x, units)
	r.set(last, value{isNode: true, node: node, view: view})
}

// turn turns a matrix of rows x columns.
func turn(out, v []float32, rows, columns int) {
	for i := range rows {
		for k := range columns {
			out[k*rows+i] = v[i*columns+k]
		}
	}
}

// means tells whether a matrix takes the means of an adaptive pool, from columns (turned) or from rows.
func (a *array) means(pixels, means int, turned bool) bool {
	v := a.floats32()
	if means < 1 || pixels < 1 || len(v) != pixels*means {
		return false
	}
	want := shares(pixels, means)
	if turned {
		out := make([]float32, len(v))
		turn(out, v, pixels, means)
		v = out
	}
	return slices.Equal(v, want)
}

// matMul is a dense layer, or half of an adaptive pool as disdel writes it.
func (r *importer) matMul(n *step) {
	a, _ := r.in(n, 0)
	b, _ := r.in(n, 1)
	matrix := func(v value) bool { return v.array.floats32() != nil && len(v.array.sides) == 2 }
	switch {
	case a.isNode && a.means == 0 && a.view == asLayer && len(r.b.Out(a.node)) == 3 && matrix(b):
		width, means := b.array.sides[0], b.array.sides[1]
		if width == r.b.Out(a.node)[2] && b.array.means(width, means, true) {
			r.set(n, value{isNode: true, node: a.node, means: means})
			return
		}
	case b.isNode && b.means > 0 && matrix(a):
		means, height := a.array.sides[0], a.array.sides[1]
		if height == r.b.Out(b.node)[1] && means == b.means && a.array.means(height, means, false) {
			r.layer(n, r.b.AdaptivePool(r.name(n, ""), b.node, means))
			return
		}
	case matrix(a) && b.isSequence(r) && b.view == asLayer:
		r.dense(n, 1, true)
		return
	}
	r.dense(n, 0, false)
}

func (r *importer) batchNorm(n *step) {
	x, ok := r.from(n, 0)
	if !ok {
		return
	}
	if n.whole("training_mode", 0) != 0 {
		r.fault(n, "it is in training mode; export the model in evaluation mode")
		return
	}
	var lists [4][]float32
	for i := range lists {
		if lists[i], _, ok = r.floats(n, i+1); !ok {
			return
		}
		if len(lists[i]) != r.b.Out(x)[0] {
			r.fault(n, "its input %d has %d values, and there are %d channels", i+1, len(lists[i]), r.b.Out(x)[0])
			return
		}
	}
	eps, momentum := decimal(n.number("epsilon", 1e-5)), decimal(1-n.number("momentum", 0.9))
	if !(eps > 0) || !(momentum > 0 && momentum <= 1) {
		r.fault(n, "epsilon is %g and momentum %g; epsilon must be above 0, momentum at least 0 and below 1", eps, 1-momentum)
		return
	}
	name := r.name(n, n.in[1])
	r.keep(name, lists[0], lists[1])
	r.weights[name+".running_mean"], r.weights[name+".running_var"] = lists[2], lists[3]
	r.layer(n, r.b.Norm(name, x, model.Norm{Eps: eps, Momentum: momentum}))
}

func (r *importer) layerNorm(n *step) {
	x, view, ok := r.seen(n, 0)
	if !ok {
		return
	}
	if in, axis := r.b.Out(x), n.whole("axis", -1); len(in) != 1 && view == asLayer ||
		axis != -1 && axis != int64(len(in)) {
		r.fault(n, "its input is %v and axis is %d; disdel normalises channels that come last", []int(in), axis)
		return
	}
	weight, _, ok := r.floats(n, 1)
	if !ok {
		return
	}
	bias, named := r.values(n, len(weight)), n.in[1]
	if len(n.in) > 2 && n.in[2] != "" {
		bias, _, ok = r.floats(n, 2)
	}
	if ok && bias != nil {
		if r.isFilled(named, 1) && !slices.ContainsFunc(bias, func(v float32) bool { return v != 0 }) {
			named = ""
		}
		r.addLayerNorm(n, n, named, x, n.number("epsilon", 1e-5), weight, bias)
	}
}

// addLayerNorm adds the layer that the nodes from n to last compute.
func (r *importer) addLayerNorm(n, last *step, named string, x int, eps float64, weight, bias []float32) {
	switch width := r.b.Out(x)[0]; {
	case len(weight) != width || len(bias) != width:
		r.fault(n, "it has %d weights and a bias of %d for %d values", len(weight), len(bias), width)
	case !(eps > 0):
		r.fault(n, "epsilon is %g; it must be above 0", eps)
	default:
		name := r.name(n, named)
		r.noteNorm(name, named)
		r.keep(name, r.byLayer(weight), r.byLayer(bias))
		in, _ := r.in(n, 0)
		node := r.b.LayerNorm(name, x, model.OpLayerNorm, decimal(eps))
		r.set(last, value{isNode: true, node: node, view: in.view})
	}
}

// noteNorm says that a layer has a weight and a bias where the file's norm, without the name of a weight, has none.
func (r *importer) noteNorm(name, named string) {
	if named == "" {
		r.notes = append(r.notes, "layer "+name+" has no weight in the file; training changes its own, "+
			"unless model.init.freeze names it")
	}
}

// isFilled tells whether a value is a constant of equal numbers that is no parameter: PyTorch writes it for norms that
// have none.
func (r *importer) isFilled(name string, with float32) bool {
	list := r.at[name].array.floats32()
	return (r.arrays[name] == nil || strings.Contains(name, "::")) && list != nil &&
		!slices.ContainsFunc(list, func(v float32) bool { return v != with })
}

// stepsOfLayerNorm reads the nodes that PyTorch writes for LayerNorm below opset 17, of which n is the first mean.
func (r *importer) stepsOfLayerNorm(n *step, x int) bool {
	done, eps, ok := r.normalised(n)
	if !ok {
		return false
	}
	width, last, named, behind := r.b.Out(x)[0], done[len(done)-1], "", r.behindChannels(n)
	weight, bias := r.values(n, width), r.values(n, width)
	for i := range weight {
		weight[i] = 1
	}
	if next, list, name := r.applied(last, "Mul", width, behind); next != nil {
		last, weight, named = next, list, name
		done = append(done, next)
	}
	if next, list, _ := r.applied(last, "Add", width, behind); next != nil {
		last, bias = next, list
		done = append(done, next)
	}
	for _, step := range done {
		step.done = true
	}
	r.addLayerNorm(n, last, named, x, eps, weight, bias)
	return true
}

// behindChannels is how many axes the file has behind the channels of a node's first input.
func (r *importer) behindChannels(n *step) int {
	if v, _ := r.in(n, 0); v.view == asLayer {
		return len(r.sides(v.node)) - 1
	}
	return 0
}

// normalised finds the nodes that compute d / sqrt(mean(d^2) + eps) behind n, the mean of x over its channels; d is x
// without the mean.
func (r *importer) normalised(n *step) (steps []*step, eps float64, ok bool) {
	sub := r.only(n.out[0])
	if sub == nil || sub.kind != "Sub" || !slices.Equal(sub.in, []string{n.in[0], n.out[0]}) || !r.overChannels(n, n) {
		return nil, 0, false
	}
	for _, u := range r.users[sub.out[0]] {
		if !r.isSquare(u) {
			continue
		}
		steps, eps, ok = r.byRoot(n, u)
		known := func(u *step) bool { return slices.Contains(steps, u) }
		others := slices.DeleteFunc(slices.Clone(r.users[sub.out[0]]), known)
		return append([]*step{sub}, steps...), eps, ok && len(others) == 0
	}
	return nil, 0, false
}

// isSquare tells whether a node multiplies a value with itself.
func (r *importer) isSquare(n *step) bool {
	if len(n.in) != 2 || len(n.out) != 1 {
		return false
	}
	return n.kind == "Pow" && r.scalar(n, 2) && !r.isConstant(n, 0) || n.kind == "Mul" && n.in[0] == n.in[1]
}

// byRoot finds the nodes that compute d / sqrt(mean(d^2) + eps), of which square is d^2. The mean is over the channels
// of the first input of n.
func (r *importer) byRoot(n, square *step) (steps []*step, eps float64, ok bool) {
	d := square.in[0]
	next := r.chain(square,
		func(s *step) bool { return s.kind == "ReduceMean" && r.overChannels(n, s) },
		func(s *step) bool { return s.kind == "Add" && len(r.fixedInput(s)) == 1 },
		func(s *step) bool { return s.kind == "Sqrt" })
	if next == nil {
		return nil, 0, false
	}
	eps, root := float64(r.fixedInput(next[1])[0]), next[2]
	divided := r.chain(root, func(s *step) bool {
		return s.kind == "Div" && slices.Equal(s.in, []string{d, root.out[0]})
	})
	if divided == nil { // as PyTorch writes rsqrt
		divided = r.chain(root,
			func(s *step) bool {
				return s.kind == "Reciprocal" || s.kind == "Div" && s.in[1] == root.out[0] && r.scalar(s, 1)
			},
			func(s *step) bool { return s.kind == "Mul" && len(s.in) == 2 && slices.Contains(s.in, d) })
	}
	return slices.Concat([]*step{square}, next, divided), eps, divided != nil
}

// rmsNorm reads x / sqrt(mean(x^2) + eps), of which n is x^2, and the product behind it.
func (r *importer) rmsNorm(n *step) bool {
	if !r.isSquare(n) {
		return false
	}
	done, eps, ok := r.byRoot(n, n)
	x, view, known := 0, asLayer, false
	if ok {
		x, view, known = r.seen(n, 0)
	}
	if !known || !(eps > 0) {
		return false
	}
	width, last, named := r.b.Out(x)[0], done[len(done)-1], ""
	weight := slices.Repeat([]float32{1}, width)
	if next, list, name := r.applied(last, "Mul", width, r.behindChannels(n)); next != nil {
		last, weight, named = next, list, name
	}
	for _, s := range append(done, last) {
		s.done = true
	}
	r.addRMSNorm(n, last, named, value{node: x, view: view}, eps, weight)
	return true
}

// overChannels tells whether a node takes a mean over the channels of the first input of n.
func (r *importer) overChannels(n, mean *step) bool {
	v, _ := r.in(n, 0)
	axes, rank, channels := r.list(mean, 1, "axes"), int64(len(r.sides(v.node)))+1, int64(1)
	if v.view != asLayer {
		channels = rank - 1
	}
	return len(axes) == 1 && (axes[0] == channels || axes[0] == channels-rank) && mean.whole("keepdims", 1) == 1
}

// fixedInput is the constant that a node adds, nil if it has none.
func (r *importer) fixedInput(n *step) []float32 {
	for _, name := range n.in {
		if a := r.at[name].array; a != nil {
			return a.floats32()
		}
	}
	return nil
}

func (r *importer) maxPool(n *step)     { r.pool(n, model.OpMaxPool) }
func (r *importer) averagePool(n *step) { r.pool(n, model.OpAvgPool) }

func (r *importer) pool(n *step, op model.Op) {
	x, ok := r.from(n, 0)
	if !ok {
		return
	}
	in := r.b.Out(x)
	w, ok := r.window(n, in, nil)
	if !ok {
		return
	}
	if w.Dilation != (model.Sides{H: 1, W: 1}) {
		r.fault(n, "disdel has no dilated pools")
		return
	}
	if n.whole("ceil_mode", 0) != 0 && !roundUp(&w, in, op) {
		r.fault(n, "ceil_mode makes windows that end outside of the image; disdel has them of max pools only")
		return
	}
	if op == model.OpAvgPool {
		p := w
		if w.CountPad = n.whole("count_include_pad", 0) != 0 || w.Pad == (model.Padding{}); !w.CountPad &&
			p.SamePad(in[1], in[2]).Pad != w.Pad {
			r.fault(n, "its means leave out padding; disdel does that for the padding SAME_UPPER only. "+
				"Train with count_include_pad=True, or with a padding of 0, and export again")
			return
		}
	}
	w.Dilation = model.Sides{}
	r.layer(n, r.b.Pool(r.name(n, ""), x, op, w))
}

// roundUp pads the bottom and right of a window as ceil_mode does. It is false where that changes what a pool computes.
func roundUp(w *model.Window, in model.Shape, op model.Op) bool {
	more := func(size, before, after, kernel, stride int) int {
		span := size + before + after - kernel
		if span < 0 || span%stride == 0 {
			return 0
		}
		count := span/stride + 2
		if (count-1)*stride >= size+before { // such a window would see padding only
			return 0
		}
		return (count-1)*stride - span
	}
	bottom := more(in[1], w.Pad.Top, w.Pad.Bottom, w.Kernel.H, w.Stride.H)
	right := more(in[2], w.Pad.Left, w.Pad.Right, w.Kernel.W, w.Stride.W)
	w.Pad.Bottom, w.Pad.Right = w.Pad.Bottom+bottom, w.Pad.Right+right
	return op == model.OpMaxPool || bottom == 0 && right == 0
}

// noImage refuses a node that takes something else than images.
func (r *importer) noImage(n *step, in model.Shape) {
	if len(in) == 2 {
		r.fault(n, "disdel has this layer of images, and of sequences whose rows have channels before positions; "+
			"these have %d positions of %d channels", in[1], in[0])
		return
	}
	r.fault(n, "its input %v is no image", []int(in))
}

func globalPool(add func(b *model.Builder, name string, in int) int) nodeReader {
	return func(r *importer, n *step) {
		x, ok := r.from(n, 0)
		switch {
		case !ok:
		case len(r.b.Out(x)) == 2 && n.kind == "GlobalAveragePool":
			r.layer(n, r.b.TakePosition(r.name(n, ""), x, model.TakeMean))
		case len(r.b.Out(x)) != 3:
			r.noImage(n, r.b.Out(x))
		default:
			r.layer(n, add(r.b, r.name(n, ""), x))
		}
	}
}
