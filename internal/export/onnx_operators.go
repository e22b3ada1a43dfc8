package export

import (
	"math"
	"slices"

	"github.com/disdel/disdel/model"
)

// nodeReader adds layers for a node, or computes a constant.
type nodeReader func(r *importer, n *step)

// nodeReaders lists what disdel reads of ONNX, by the name there.
func nodeReaders() map[string]nodeReader {
	return map[string]nodeReader{
		"Conv": (*importer).conv, "ConvTranspose": (*importer).convTranspose, "LSTM": recurrent(model.OpLSTM),
		"GRU": recurrent(model.OpGRU), "Attention": loose("attention of one sequence"),
		"RMSNormalization": (*importer).rmsNormalization, "GroupNormalization": (*importer).groupNormalization,
		"ArrayFeatureExtractor": (*importer).features, "Gemm": (*importer).gemm, "MatMul": (*importer).matMul,
		"BatchNormalization": (*importer).batchNorm, "InstanceNormalization": (*importer).instanceNorm,
		"Relu": same(model.OpReLU), "Tanh": same(model.OpTanh),
		"Sigmoid": gated(model.OpSigmoid, model.OpSiLU), "HardSwish": same(model.OpHardSwish),
		"HardSigmoid": (*importer).hardSigmoid, "Softplus": same(model.OpSoftplus), "Elu": (*importer).elu,
		"Selu":      (*importer).selu,
		"LeakyRelu": (*importer).leakyRelu, "Gelu": (*importer).gelu, "Clip": (*importer).clip, "Div": (*importer).div,
		"MaxPool": (*importer).maxPool, "AveragePool": (*importer).averagePool,
		"GlobalAveragePool": globalPool((*model.Builder).GlobalPool),
		"GlobalMaxPool":     globalPool((*model.Builder).GlobalMaxPool), "ReduceMean": (*importer).reduceMean,
		"ReduceMax": (*importer).reduceMax,
		"Flatten":   (*importer).flatten, "Reshape": (*importer).reshape, "Squeeze": (*importer).squeeze,
		"Softmax": (*importer).softmax, "LogSoftmax": (*importer).softmax,
		"Add": (*importer).add, "Sum": (*importer).add,
		"Concat": (*importer).concat, "Dropout": (*importer).pass, "Identity": (*importer).pass,
		"Cast":   (*importer).cast,
		"ZipMap": (*importer).pass, "Scaler": (*importer).scaler, "Normalizer": (*importer).normalizer,
		"LinearRegressor": (*importer).linearRegressor, "LinearClassifier": (*importer).linearClassifier,
		"Constant": (*importer).constant, "Shape": (*importer).shape, "Gather": (*importer).gather,
		"Mul": (*importer).mul, "Transpose": (*importer).transpose, "Split": (*importer).split,
		"ConstantOfShape": (*importer).filled, "Equal": loose(constants), "Where": loose(constants),
		"Trilu":  loose(constants),
		"Expand": (*importer).expand,
		"Erf":    loose("an activation"), "Sub": (*importer).sub,
		"Pow": (*importer).pow, "Sqrt": loose("layerNorm"), "Reciprocal": loose("rmsNorm"),
		"CumSum": func(r *importer, n *step) {
			r.fault(n, "it counts tokens, as RoBERTa does, whose padding is token 1; disdel takes token 0 for padding")
		},
		"Less": loose(constants), "LessOrEqual": loose(constants), "Greater": loose(constants),
		"Sin": loose(constants), "Cos": loose(constants), "LayerNormalization": (*importer).layerNorm,
		"Unsqueeze": (*importer).unsqueeze, "Slice": (*importer).slice, "Pad": (*importer).pad,
		"SpaceToDepth": (*importer).spaceToDepth, "Einsum": loose(windows),
		"ReduceL2": (*importer).reduceL2, "ReduceSum": (*importer).reduceSum,
		"Mod": loose(constants), "Not": loose(constants), "Range": loose(constants), "ScatterND": loose(constants),
		"GatherElements": loose(constants), "GatherND": loose(constants), "And": loose(constants),
		"GreaterOrEqual": loose(constants),
		"Neg":            loose(constants), "Exp": loose(constants),
		"Min": (*importer).least, "Max": (*importer).largest,
		"PRelu": (*importer).prelu, "Resize": (*importer).resize, "Upsample": (*importer).resize,
	}
}

// What loose nodes are parts of.
const (
	windows   = "attention within windows"
	constants = "what is computed of constants"
)

// same translates an activation.
func same(op model.Op) nodeReader {
	return func(r *importer, n *step) {
		if x, view, ok := r.seen(n, 0); ok {
			r.set(n, value{isNode: true, node: r.b.Same(r.name(n, ""), x, op), view: view})
		}
	}
}

// gated translates an activation that, multiplied with its input, is another activation.
func gated(alone, product model.Op) nodeReader {
	return func(r *importer, n *step) {
		x, view, ok := r.seen(n, 0)
		if !ok {
			return
		}
		next, op := r.only(n.out[0]), product
		if next != nil && next.kind == "Mul" && len(next.in) == 2 && slices.Contains(next.in, n.in[0]) {
			next.done = true
		} else {
			next, op = n, alone
		}
		r.set(next, value{isNode: true, node: r.b.Same(r.name(n, ""), x, op), view: view})
	}
}

// loose refuses a node that is read only as a part of an activation.
func loose(whole string) nodeReader {
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

func (r *importer) elu(n *step) { r.elus(n, n.number("alpha", 1), 1) }

func (r *importer) selu(n *step) {
	r.elus(n, n.number("alpha", 1.67326319217681884765625), n.number("gamma", 1.05070102214813232421875))
}

// elus adds gamma times an ELU with an alpha. An alpha that is not 1 needs a ReLU, too: gamma alpha elu(x) +
// gamma (1 - alpha) relu(x).
func (r *importer) elus(n *step, alpha, gamma float64) {
	x, view, ok := r.seen(n, 0)
	if !ok {
		return
	}
	node := r.b.Same(r.name(n, ""), x, model.OpELU)
	if !near(alpha, 1) || !near(gamma, 1) {
		zeros := make([]float64, r.b.Out(x)[0])
		times := func(op int, by float64) int {
			list := slices.Repeat([]float64{by}, len(zeros))
			op, ok = r.scale(n, "", op, list, zeros)
			return op
		}
		if node = times(node, gamma*alpha); ok && !near(alpha, 1) {
			positive := times(r.b.Same(r.name(n, ""), x, model.OpReLU), gamma*(1-alpha))
			node = r.b.Add(r.name(n, ""), node, positive)
		}
	}
	if ok {
		r.set(n, value{isNode: true, node: node, view: view})
	}
}

func (r *importer) leakyRelu(n *step) {
	x, view, ok := r.seen(n, 0)
	slope := decimal(n.number("alpha", 0.01))
	switch {
	case !ok:
	case !(slope > 0 && slope <= 1):
		r.fault(n, "alpha is %g; it must be above 0 and at most 1", slope)
	default:
		r.set(n, value{isNode: true, node: r.b.LeakyReLU(r.name(n, ""), x, slope), view: view})
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

// sub reads x - c, c - x and x - y; steps of layerNorm were read with its mean.
func (r *importer) sub(n *step) {
	if r.scaled(n) {
		return
	}
	x, order, ok := r.seen(n, 0)
	y, other, known := 0, order, false
	if ok {
		y, other, known = r.seen(n, 1)
	}
	switch {
	case !known:
	case order != other || x == y || !slices.Equal(r.b.Out(x), r.b.Out(y)):
		r.fault(n, "it subtracts %v from %v; disdel subtracts different layers of one shape", []int(r.b.Out(y)),
			[]int(r.b.Out(x)))
	default:
		channels := r.b.Out(y)[0]
		y, ok = r.scale(n, n.in[1], y, slices.Repeat([]float64{-1}, channels), make([]float64, channels))
		if ok {
			r.set(n, value{isNode: true, node: r.b.Add(r.name(n, ""), x, y), view: order})
		}
	}
}

// pow reads squares; those of layerNorm were read with its mean.
func (r *importer) pow(n *step) {
	if !r.rmsNorm(n) {
		loose("layerNorm and rmsNorm")(r, n)
	}
}

// clip reads bounds from options or, from opset 11 on, from inputs.
func (r *importer) clip(n *step) {
	low, high, ok := r.bounds(n)
	if !ok {
		r.fault(n, "its bounds are no constants")
		return
	}
	switch {
	case low == 0 && high == 6:
		same(model.OpReLU6)(r, n)
	case low == 0 && high >= math.MaxFloat32:
		same(model.OpReLU)(r, n)
	case low <= -math.MaxFloat32 && high >= math.MaxFloat32:
		r.pass(n)
	case low <= -math.MaxFloat32 && high == 6 && r.follows(n, model.OpReLU): // PyTorch's relu6 of opset 9
		same(model.OpReLU6)(r, n)
	default:
		r.clamp(n, low, high)
	}
}

// least reads min(x, 6) behind a ReLU, which is relu6.
func (r *importer) least(n *step) { r.bounded(n, 6, model.OpReLU6) }

// largest reads max(x, 0).
func (r *importer) largest(n *step) { r.bounded(n, 0, model.OpReLU) }

func (r *importer) bounded(n *step, bound float64, op model.Op) {
	if v, _ := r.in(n, 0); len(n.in) == 2 && !v.isNode { // the constant comes first
		n.in[0], n.in[1] = n.in[1], n.in[0]
	}
	list, i, ok := r.constantOf(n)
	switch {
	case !ok || i != 0 || len(list) != 1:
		r.fault(n, "disdel has the larger or smaller one of a layer's values and a number")
	case float64(list[0]) == bound && (op == model.OpReLU || r.follows(n, model.OpReLU)):
		same(op)(r, n)
	case n.kind == "Min":
		r.clamp(n, math.Inf(-1), float64(list[0]))
	default:
		r.clamp(n, float64(list[0]), math.Inf(1))
	}
}

// bounds are the least and the largest value that a Clip gives. ok is false if they are no constants.
func (r *importer) bounds(n *step) (low, high float64, ok bool) {
	low, high = n.number("min", math.Inf(-1)), n.number("max", math.Inf(1))
	for i, to := range []*float64{&low, &high} {
		v, ok := r.in(n, i+1)
		if !ok {
			continue
		}
		list := v.array.floats32()
		if len(list) != 1 {
			return 0, 0, false
		}
		*to = float64(list[0])
	}
	return low, high, true
}

// follows tells whether the input of a node is a layer of this kind.
func (r *importer) follows(n *step, op model.Op) bool {
	v, _ := r.in(n, 0)
	g, err := r.b.Graph()
	return err == nil && v.isNode && g.Nodes[v.node].Op == op
}

// div reads x / c; what computes an activation in steps was read before.
func (r *importer) div(n *step) {
	if !r.scaled(n) {
		loose("an activation")(r, n)
	}
}

// scalar tells whether one input of a node is this constant.
func (r *importer) scalar(n *step, want float64) bool {
	for i := range n.in {
		v, _ := r.in(n, i)
		if list := v.array.floats32(); len(list) == 1 && near(float64(list[0]), want) {
			return true
		}
	}
	return false
}
