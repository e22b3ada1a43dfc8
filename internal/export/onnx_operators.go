package export

import (
	"math"
	"slices"

	"github.com/disdel/disdel/model"
)

// translators has the operators of ONNX that disdel reads. Each adds layers for a node or computes a constant.
var translators map[string]func(r *importer, n *step)

func init() { // the table's functions read it
	translators = map[string]func(r *importer, n *step){
		"Conv": (*importer).conv, "Gemm": (*importer).gemm, "MatMul": (*importer).matMul,
		"BatchNormalization": (*importer).batchNorm, "Relu": same(model.OpReLU), "Tanh": same(model.OpTanh),
		"Sigmoid": gated(model.OpSigmoid, model.OpSiLU), "HardSwish": same(model.OpHardSwish),
		"HardSigmoid": (*importer).hardSigmoid, "Softplus": same(model.OpSoftplus), "Elu": (*importer).elu,
		"LeakyRelu": (*importer).leakyRelu, "Gelu": (*importer).gelu, "Clip": (*importer).clip, "Div": (*importer).div,
		"MaxPool": (*importer).maxPool, "AveragePool": (*importer).averagePool,
		"GlobalAveragePool": globalPool((*model.Builder).GlobalPool),
		"GlobalMaxPool":     globalPool((*model.Builder).GlobalMaxPool), "ReduceMean": (*importer).reduceMean,
		"Flatten": (*importer).flatten, "Reshape": (*importer).reshape, "Squeeze": (*importer).squeeze,
		"Softmax": (*importer).softmax, "LogSoftmax": (*importer).softmax, "Add": (*importer).add, "Sum": (*importer).add,
		"Concat": (*importer).concat, "Dropout": (*importer).pass, "Identity": (*importer).pass, "Cast": (*importer).cast,
		"Constant": (*importer).constant, "Shape": (*importer).shape, "Gather": (*importer).gather,
		"Mul": loose("silu, hardSwish and gelu"), "Erf": loose("gelu"),
		"Unsqueeze": (*importer).unsqueeze, "Slice": (*importer).slice, "Pad": (*importer).pad,
	}
}

// same translates an activation.
func same(op model.Op) func(r *importer, n *step) {
	return func(r *importer, n *step) {
		if x, ok := r.from(n, 0); ok {
			r.layer(n, r.b.Same(r.name(n, ""), x, op))
		}
	}
}

// gated translates an activation that, multiplied with its input, is another activation.
func gated(alone, product model.Op) func(r *importer, n *step) {
	return func(r *importer, n *step) {
		x, ok := r.from(n, 0)
		if !ok {
			return
		}
		next := r.only(n.out[0])
		if next != nil && next.kind == "Mul" && len(next.in) == 2 && slices.Contains(next.in, n.in[0]) {
			next.done = true
			r.layer(next, r.b.Same(r.name(n, ""), x, product))
			return
		}
		r.layer(n, r.b.Same(r.name(n, ""), x, alone))
	}
}

// loose refuses a node that is read only as a part of an activation.
func loose(whole string) func(r *importer, n *step) {
	return func(r *importer, n *step) { r.fault(n, "disdel reads this operator only as a part of %s", whole) }
}

// near compares options, which files have as float32.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6*max(1, math.Abs(b)) }

// number is a number that a node may leave out.
func (n *step) number(name string, usual float64) float64 {
	o, ok := n.options[name]
	if !ok {
		return usual
	}
	return float64(o.number)
}

// whole is a whole number that a node may leave out.
func (n *step) whole(name string, usual int64) int64 {
	o, ok := n.options[name]
	if !ok {
		return usual
	}
	return o.whole
}

func (r *importer) hardSigmoid(n *step) {
	if !near(n.number("alpha", 0.2), 1.0/6) || !near(n.number("beta", 0.5), 0.5) {
		r.fault(n, "alpha is %g and beta %g; disdel has 1/6 and 0.5", n.number("alpha", 0.2), n.number("beta", 0.5))
		return
	}
	gated(model.OpHardSigmoid, model.OpHardSwish)(r, n)
}

func (r *importer) elu(n *step) {
	if !near(n.number("alpha", 1), 1) {
		r.fault(n, "alpha is %g; disdel has 1", n.number("alpha", 1))
		return
	}
	same(model.OpELU)(r, n)
}

func (r *importer) leakyRelu(n *step) {
	x, ok := r.from(n, 0)
	slope := decimal(n.number("alpha", 0.01))
	switch {
	case !ok:
	case !(slope > 0 && slope <= 1):
		r.fault(n, "alpha is %g; it must be above 0 and at most 1", slope)
	default:
		r.layer(n, r.b.LeakyReLU(r.name(n, ""), x, slope))
	}
}

// decimal rounds what was a short decimal number before it became a float32.
func decimal(v float64) float64 {
	if v == 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return v
	}
	scale := math.Pow(10, 7-math.Ceil(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}

func (r *importer) gelu(n *step) {
	op := model.OpGELU
	if n.options["approximate"].text == "tanh" {
		op = model.OpGELUTanh
	}
	same(op)(r, n)
}

// clip reads bounds from options or, from opset 11 on, from inputs.
func (r *importer) clip(n *step) {
	low, high := n.number("min", math.Inf(-1)), n.number("max", math.Inf(1))
	for i, to := range []*float64{&low, &high} {
		v, ok := r.in(n, i+1)
		if !ok {
			continue
		}
		list := v.array.floats32()
		if len(list) != 1 {
			r.fault(n, "its bounds are no constants")
			return
		}
		*to = float64(list[0])
	}
	switch {
	case low == 0 && high == 6:
		same(model.OpReLU6)(r, n)
	case low == 0 && high >= math.MaxFloat32:
		same(model.OpReLU)(r, n)
	case math.IsInf(low, -1) && high == 6 && r.follows(n, model.OpReLU): // PyTorch's relu6 of opset 9
		same(model.OpReLU6)(r, n)
	default:
		r.fault(n, "its bounds are %g and %g; disdel has 0 and 6 (relu6)", low, high)
	}
}

// follows tells whether the input of a node is a layer of this kind.
func (r *importer) follows(n *step, op model.Op) bool {
	v, _ := r.in(n, 0)
	g, err := r.b.Graph()
	return err == nil && v.isNode && g.Nodes[v.node].Op == op
}

// div reads the steps of gelu, as PyTorch writes it: x / sqrt(2), erf, + 1, * x, * 0.5.
func (r *importer) div(n *step) {
	x, ok := r.from(n, 0)
	if !ok {
		return
	}
	at, holds := n, r.scalar(n, math.Sqrt2)
	for _, kind := range []string{"Erf", "Add", "Mul", "Mul"} {
		next := r.only(at.out[0])
		if holds = holds && next != nil && next.kind == kind && len(next.out) == 1; !holds {
			break
		}
		switch {
		case kind == "Add":
			holds = r.scalar(next, 1)
		case kind == "Mul" && at.kind == "Add":
			holds = slices.Contains(next.in, n.in[0])
		case kind == "Mul":
			holds = r.scalar(next, 0.5)
		}
		at = next
	}
	if !holds {
		loose("gelu")(r, n)
		return
	}
	for step := r.only(n.out[0]); ; step = r.only(step.out[0]) {
		if step.done = true; step == at {
			break
		}
	}
	r.layer(at, r.b.Same(r.name(n, ""), x, model.OpGELU))
}

// scalar tells whether one input of a node is this constant. The constant may stand behind the node in the file.
func (r *importer) scalar(n *step, want float64) bool {
	for i := range n.in {
		v, _ := r.in(n, i)
		if v.array == nil {
			v.array = r.later[n.in[i]]
		}
		if list := v.array.floats32(); len(list) == 1 && near(float64(list[0]), want) {
			return true
		}
	}
	return false
}

// window reads the options of a convolution or pool. It adds padding for ceil_mode where that is the same.
func (r *importer) window(n *step, in model.Shape, kernel []int64) (w model.Window, ok bool) {
	two := func(name string) (s model.Sides, ok bool) {
		list := n.options[name].list
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
	if len(in) != 3 {
		r.fault(n, "its input %v is no image", []int(in))
		return w, false
	}
	pads := n.options["pads"].list
	switch auto := n.options["auto_pad"].text; {
	case auto == "SAME_UPPER":
		return w.SamePad(in[1], in[2]), true
	case auto != "" && auto != "NOTSET" && auto != "VALID":
		r.fault(n, "auto_pad is %.20q; disdel has SAME_UPPER", auto)
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

func (r *importer) conv(n *step) {
	x, ok := r.from(n, 0)
	if !ok {
		return
	}
	weight, sides, ok := r.floats(n, 1)
	if !ok {
		return
	}
	if len(sides) != 4 {
		r.fault(n, "its weight has the shape %v; disdel has convolutions of images", sides)
		return
	}
	in := r.b.Out(x)
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
	r.layer(last, r.b.Conv(name, x, sides[0], w, int(groups), bias != nil))
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
	next := r.only(n.out[0])
	if next == nil || next.kind != "Add" || len(next.in) != 2 {
		return nil, n, true
	}
	other := next.in[0]
	if other == n.out[0] {
		other = next.in[1]
	}
	a := r.at[other].array
	if a == nil {
		a = r.later[other]
	}
	if bias = a.floats32(); len(bias) != units || !alongChannels(a.sides, units, n.kind == "Conv") {
		return nil, n, true
	}
	next.done = true
	return bias, next, true
}

// alongChannels tells whether a constant that is added has one value for each channel.
func alongChannels(sides []int, units int, image bool) bool {
	if image {
		return slices.Equal(sides, []int{units, 1, 1}) || slices.Equal(sides, []int{1, units, 1, 1})
	}
	return slices.Equal(sides, []int{units}) || slices.Equal(sides, []int{1, units})
}

func (r *importer) gemm(n *step) {
	if !near(n.number("alpha", 1), 1) || !near(n.number("beta", 1), 1) || n.whole("transA", 0) != 0 {
		r.fault(n, "alpha, beta and transA must be 1, 1 and 0")
		return
	}
	r.dense(n, n.whole("transB", 0) != 0)
}

// dense adds a dense layer. Its weight is turned where the file has [inputs units].
func (r *importer) dense(n *step, turned bool) {
	x, ok := r.from(n, 0)
	if !ok {
		return
	}
	weight, sides, ok := r.floats(n, 1)
	if !ok {
		return
	}
	in := r.b.Out(x)
	if len(sides) != 2 || len(in) != 1 {
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
		transpose(weight, from, inputs, units)
	}
	bias, last, ok := r.bias(n, units)
	if !ok {
		return
	}
	name := r.name(n, n.in[1])
	r.keep(name, weight, bias)
	node := r.b.Dense(name, x, units)
	if bias == nil { // a Builder's dense layer has one
		r.weights[name+".bias"] = r.values(n, units)
		r.notes = append(r.notes, "layer "+name+" got a bias of zeros")
	}
	r.layer(last, node)
}

// transpose turns a matrix of rows x columns.
func transpose(out, v []float32, rows, columns int) {
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
		transpose(out, v, pixels, means)
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
	case a.isNode && a.means == 0 && len(r.b.Out(a.node)) == 3 && matrix(b):
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
	}
	r.dense(n, false)
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
			r.fault(n, "its means leave out padding; disdel does that for the padding SAME_UPPER only")
			return
		}
	}
	w.Dilation = model.Sides{}
	r.layer(n, r.b.Pool(r.name(n, ""), x, op, w))
}

// roundUp pads the bottom and right of a window as ceil_mode does. It is false where that changes what a pool computes.
func roundUp(w *model.Window, in model.Shape, op model.Op) bool {
	more := func(size, before, after, kernel, stride int) int {
		room := size + before + after - kernel
		if room < 0 || room%stride == 0 {
			return 0
		}
		count := room/stride + 2
		if (count-1)*stride >= size+before { // such a window would see padding only
			return 0
		}
		return (count-1)*stride - room
	}
	bottom := more(in[1], w.Pad.Top, w.Pad.Bottom, w.Kernel.H, w.Stride.H)
	right := more(in[2], w.Pad.Left, w.Pad.Right, w.Kernel.W, w.Stride.W)
	w.Pad.Bottom, w.Pad.Right = w.Pad.Bottom+bottom, w.Pad.Right+right
	return op == model.OpMaxPool || bottom == 0 && right == 0
}

func globalPool(add func(b *model.Builder, name string, in int) int) func(r *importer, n *step) {
	return func(r *importer, n *step) {
		x, ok := r.from(n, 0)
		switch {
		case !ok:
		case len(r.b.Out(x)) != 3:
			r.fault(n, "its input %v is no image", []int(r.b.Out(x)))
		default:
			r.layer(n, add(r.b, r.name(n, ""), x))
		}
	}
}

// list is a node's input i or, of older opsets, its option.
func (r *importer) list(n *step, i int, option string) []int64 {
	if v, ok := r.in(n, i); ok && v.isList {
		return v.whole
	}
	return n.options[option].list
}

// reduceMean is a global pool where it takes the mean of an image's pixels.
func (r *importer) reduceMean(n *step) {
	x, ok := r.from(n, 0)
	if !ok {
		return
	}
	axes := slices.Clone(r.list(n, 1, "axes"))
	for i, axis := range axes {
		if axis < 0 {
			axes[i] = axis + 4
		}
	}
	slices.Sort(axes)
	if len(r.b.Out(x)) != 3 || !slices.Equal(axes, []int64{2, 3}) {
		r.fault(n, "disdel reads means over height and width only")
		return
	}
	name := r.name(n, "")
	node := r.b.GlobalPool(name, x)
	if n.whole("keepdims", 1) == 0 {
		node = r.b.Flatten(r.name(&step{name: name + ".flatten"}, ""), node)
	}
	r.layer(n, node)
}

func (r *importer) flatten(n *step) {
	x, ok := r.from(n, 0)
	if !ok {
		return
	}
	if axis := n.whole("axis", 1); axis != 1 && axis != -int64(len(r.b.Out(x))) {
		r.fault(n, "axis is %d; disdel flattens from axis 1 on", axis)
		return
	}
	r.flat(n, x)
}

// flat makes a list of numbers of a layer's output.
func (r *importer) flat(n *step, x int) {
	if len(r.b.Out(x)) > 1 {
		x = r.b.Flatten(r.name(n, ""), x)
	}
	r.layer(n, x)
}

// reshape makes a list of numbers of an image, or computes the shape of a list of integers.
func (r *importer) reshape(n *step) {
	v, _ := r.in(n, 0)
	to, _ := r.in(n, 1)
	if !to.isList || len(to.whole) == 0 {
		r.fault(n, "its shape is not known before the network runs")
		return
	}
	if v.isList {
		r.set(n, v)
		return
	}
	x, ok := r.from(n, 0)
	if !ok {
		return
	}
	have := r.b.Out(x)
	sides := slices.Clone(to.whole)
	rows := sides[0] == rowCount || sides[0] == -1 || sides[0] == 0 || r.rows > 0 && sides[0] == r.rows
	for i := 1; i < len(sides); i++ {
		if sides[i] == 0 && i <= len(have) {
			sides[i] = int64(have[i-1])
		}
	}
	if rows && len(sides) == 2 && (sides[1] == int64(have.Len()) || sides[1] == -1 && sides[0] != -1) {
		r.flat(n, x)
		return
	}
	if rows && len(sides) == len(have)+1 {
		same := true
		for i, side := range have {
			same = same && sides[i+1] == int64(side)
		}
		if same {
			r.layer(n, x)
			return
		}
	}
	r.fault(n, "it makes the shape %v of %v; disdel makes only lists of all values of a row", to.whole[1:], []int(have))
}

// squeeze drops sides of 1: of an image of one pixel, which becomes a list, and of lists of integers.
func (r *importer) squeeze(n *step) {
	if v, _ := r.in(n, 0); v.isList {
		r.set(n, v)
		return
	}
	x, ok := r.from(n, 0)
	if !ok {
		return
	}
	axes := slices.Clone(r.list(n, 1, "axes"))
	for i, axis := range axes {
		if axis < 0 {
			axes[i] = axis + 4
		}
	}
	slices.Sort(axes)
	if have := r.b.Out(x); len(have) != 3 || have[1] != 1 || have[2] != 1 || !slices.Equal(axes, []int64{2, 3}) {
		r.fault(n, "it drops the sides %v of %v; disdel drops height and width of 1", axes, []int(have))
		return
	}
	r.flat(n, x)
}

// softmax comes last. Its logarithm is replaced by itself, as the order of the classes is the same.
func (r *importer) softmax(n *step) {
	x, ok := r.from(n, 0)
	if !ok {
		return
	}
	usual := int64(-1)
	if r.opset < 13 {
		usual = 1
	}
	axis := n.whole("axis", usual)
	switch {
	case len(r.b.Out(x)) != 1 || axis != 1 && axis != -1:
		r.fault(n, "it is over axis %d of %v; disdel has softmax over a list of numbers", axis, []int(r.b.Out(x)))
		return
	case n.out[0] != r.outputs[0].name && r.beforeOutput(n.out[0]):
		r.fault(n, "disdel has softmax only as the last layer")
		return
	case n.kind == "LogSoftmax":
		r.notes = append(r.notes, "the last layer is softmax: answers are probabilities, "+
			"where the file gives their logarithms")
	}
	r.layer(n, r.b.Same(r.name(n, ""), x, model.OpSoftmax))
}

// beforeOutput tells whether a node computes with a value before it is the output.
func (r *importer) beforeOutput(name string) bool {
	return slices.ContainsFunc(r.users[name], func(n *step) bool { return n.kind != "Identity" && n.kind != "Dropout" })
}

// add sums layers of one shape.
func (r *importer) add(n *step) {
	if len(n.in) == 1 {
		r.pass(n)
		return
	}
	var list []int
	for i := range n.in {
		x, ok := r.from(n, i)
		if !ok {
			return
		}
		if slices.Contains(list, x) || len(list) > 0 && !slices.Equal(r.b.Out(x), r.b.Out(list[0])) {
			r.fault(n, "it adds %v and %v; disdel adds different layers of one shape", []int(r.b.Out(list[0])),
				[]int(r.b.Out(x)))
			return
		}
		list = append(list, x)
	}
	r.layer(n, r.b.Add(r.name(n, ""), list...))
}

// concat joins the channels of images, or lists of integers.
func (r *importer) concat(n *step) {
	var list []int
	var whole []int64
	for i := range n.in {
		if v, _ := r.in(n, i); v.isList {
			whole = append(whole, v.whole...)
			continue
		}
		x, ok := r.from(n, i)
		if !ok {
			return
		}
		if len(r.b.Out(x)) != 3 {
			r.fault(n, "its input %v is no image", []int(r.b.Out(x)))
			return
		}
		list = append(list, x)
	}
	switch axis := n.whole("axis", 0); {
	case len(list) == 0 && len(whole) <= mostFolded:
		r.set(n, value{whole: whole, isList: true})
	case len(list) == 1 && len(whole) == 0:
		r.layer(n, list[0])
	case len(whole) > 0 || axis != 1 && axis != -3:
		r.fault(n, "axis is %d; disdel joins the channels of images, axis 1", axis)
	default:
		r.layer(n, r.b.Concat(r.name(n, ""), list...))
	}
}

// pass gives what a node takes.
func (r *importer) pass(n *step) {
	v, _ := r.in(n, 0)
	r.set(n, v)
}

func (r *importer) cast(n *step) {
	if v, _ := r.in(n, 0); !v.isList {
		r.fault(n, "disdel computes with float32 only")
		return
	}
	r.pass(n)
}

func (r *importer) constant(n *step) {
	switch o, list := n.options["value"], n.options["value_ints"].list; {
	case o.array != nil:
		r.set(n, constant(o.array))
	case len(list) > 0:
		r.set(n, value{whole: list, isList: true})
	default:
		r.fault(n, "disdel reads constants of the option value")
	}
}

// shape is known, except for the number of rows.
func (r *importer) shape(n *step) {
	x, ok := r.from(n, 0)
	if !ok {
		return
	}
	list := []int64{rowCount}
	for _, side := range r.b.Out(x) {
		list = append(list, int64(side))
	}
	r.set(n, value{whole: list, isList: true})
}

// folded is a list of integers that a node takes.
func (r *importer) folded(n *step, i int) ([]int64, bool) {
	v, _ := r.in(n, i)
	if !v.isList {
		r.fault(n, "disdel computes this only of shapes")
	}
	return v.whole, v.isList
}

func (r *importer) gather(n *step) {
	from, ok := r.folded(n, 0)
	if !ok {
		return
	}
	places, ok := r.folded(n, 1)
	if !ok {
		return
	}
	var out []int64
	for _, at := range places {
		if at < 0 {
			at += int64(len(from))
		}
		if at < 0 || at >= int64(len(from)) {
			r.fault(n, "it takes number %d of %d", at, len(from))
			return
		}
		out = append(out, from[at])
	}
	r.set(n, value{whole: out, isList: true})
}

func (r *importer) unsqueeze(n *step) {
	if _, ok := r.folded(n, 0); ok {
		r.pass(n)
	}
}

// slice takes every so-manieth pixel of an image, as a convolution of single pixels, or part of a list of integers.
func (r *importer) slice(n *step) {
	starts, ends := r.list(n, 1, "starts"), r.list(n, 2, "ends")
	axes, steps := r.list(n, 3, "axes"), r.list(n, 4, "")
	if v, _ := r.in(n, 0); v.isList {
		r.cut(n, v.whole, starts, ends, steps)
		return
	}
	x, ok := r.from(n, 0)
	if !ok {
		return
	}
	in := r.b.Out(x)
	whole := len(in) == 3 && slices.Equal(axes, []int64{2, 3}) && slices.Equal(starts, []int64{0, 0}) && len(steps) == 2 &&
		len(ends) == 2 && min(steps[0], steps[1]) >= 1 && max(steps[0], steps[1]) < 1<<20 &&
		ends[0] >= int64(in[1]) && ends[1] >= int64(in[2])
	if !whole {
		r.fault(n, "disdel reads slices of whole images with a step in height and width only")
		return
	}
	name := r.name(n, "")
	ones := r.values(n, in[0])
	for i := range ones {
		ones[i] = 1
	}
	r.keep(name, ones, nil)
	w := model.Window{Kernel: model.Sides{H: 1, W: 1}, Stride: model.Sides{H: int(steps[0]), W: int(steps[1])}}
	r.notes = append(r.notes, "layer "+name+" is a convolution that takes single pixels; training changes its weights")
	r.layer(n, r.b.Conv(name, x, in[0], w, in[0], false))
}

// cut takes part of a list of integers.
func (r *importer) cut(n *step, list, starts, ends, steps []int64) {
	if len(starts) != 1 || len(ends) != 1 || len(steps) > 0 && steps[0] != 1 {
		r.fault(n, "disdel reads slices of lists with one start, one end and step 1")
		return
	}
	place := func(v int64) int64 {
		if v < 0 {
			v += int64(len(list))
		}
		return max(0, min(v, int64(len(list))))
	}
	from, to := place(starts[0]), place(ends[0])
	r.set(n, value{whole: list[from:max(from, to)], isList: true})
}

// pad adds channels of zeros, as a convolution of single pixels.
func (r *importer) pad(n *step) {
	x, ok := r.from(n, 0)
	if !ok {
		return
	}
	in, pads := r.b.Out(x), r.list(n, 1, "pads")
	if mode := n.options["mode"].text; mode != "" && mode != "constant" || len(in) != 3 || len(pads) != 8 {
		r.fault(n, "disdel reads only zeros around images")
		return
	}
	before, after := pads[1], pads[5]
	if before < 0 || after < 0 || max(before, after) > 1<<12 || in[0] > 1<<12 ||
		slices.ContainsFunc(slices.Concat(pads[:1], pads[2:5], pads[6:]), func(v int64) bool { return v != 0 }) {
		r.fault(n, "it pads %v; disdel reads new channels here; write other padding into the convolution or pool", pads)
		return
	}
	if v, ok := r.in(n, 2); ok && (len(v.array.floats32()) != 1 || v.array.floats32()[0] != 0) {
		r.fault(n, "it pads with other values than 0")
		return
	}
	filters := in[0] + int(before+after)
	weight := r.values(n, filters*in[0])
	if weight == nil {
		return
	}
	for i := range in[0] {
		weight[(i+int(before))*in[0]+i] = 1
	}
	name := r.name(n, "")
	r.keep(name, weight, nil)
	r.notes = append(r.notes, "layer "+name+" is a convolution that adds channels of zeros; training changes its weights")
	r.layer(n, r.b.Conv(name, x, filters, model.Square(1, 1, 0), 1, false))
}
