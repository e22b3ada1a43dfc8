package export

import (
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/safetensors"
	"github.com/disdel/disdel/model"
)

// The names of a graph's ends.
const (
	InputName  = "input"  // [rows channels height width], or [rows units]
	OutputName = "output" // [rows classes]: probabilities where the network ends in softmax
)

const (
	irVersion = 8
	opset     = 13
	largest   = math.MaxInt32 // bytes of a message of protobuf
)

// ConvertONNX writes a network with the weights of a safetensors file. Notes go into the file's metadata, where the
// network itself is, too: ImportONNX reads it. It returns Invalid for a network that ONNX has no operators for, Corrupt
// for weights that are not its own, and OverLimit above 2 GB.
func ConvertONNX(w io.Writer, network disdel.Network, weights []byte, notes map[string]string) error {
	g, err := model.Build(network)
	if err != nil {
		return err
	}
	f, err := safetensors.Parse(weights)
	if err != nil {
		return err
	}
	list, err := safetensors.ToWeights(f)
	if err != nil {
		return err
	}
	file, err := onnxFile(g, list)
	if err != nil {
		return err
	}
	own, err := ownNotes(network, file)
	if err != nil {
		return err
	}
	maps.Copy(own, notes)
	return file.finish(w, own)
}

// WriteONNX writes a network with its weights, in the order and layout of g.Params(); they are not copied. Errors are
// those of ConvertONNX.
func WriteONNX(w io.Writer, g *model.Graph, weights disdel.Weights, notes map[string]string) error {
	file, err := onnxFile(g, weights)
	if err != nil {
		return err
	}
	return file.finish(w, notes)
}

// onnxFile is a network with its weights as a model of ONNX, without notes.
func onnxFile(g *model.Graph, weights disdel.Weights) (*message, error) {
	if err := fits(g, weights); err != nil {
		return nil, err
	}
	t := &translator{source: g, at: make([]string, len(g.Nodes))}
	t.out.end(graphInput, InputName, g.Input())
	for i := range g.Nodes {
		if err := t.node(i); err != nil {
			return nil, err
		}
	}
	t.out.end(graphOutput, OutputName, g.Output())
	for i, p := range g.Params() {
		t.out.values(p.Name, sidesOf(g, p), weights[i].Data)
	}
	t.out.text(graphName, g.Name)
	return wrapped(&t.out.message), nil
}

// sidesOf is the shape of an array of weights as ONNX takes it.
func sidesOf(g *model.Graph, p model.Param) []int {
	n := &g.Nodes[p.Node]
	norm, bias := n.Op == model.OpLayerNorm || n.Op == model.OpRMSNorm, n.Op == model.OpDense && len(p.Shape) == 1
	switch {
	case bias && beforeRecurrence(g, p.Node):
		return p.Shape
	case isOfPositions(g, n) && len(p.Shape) > 1:
		return p.Shape[:3]
	case len(n.Out) == 3 && (n.Op == model.OpPReLU || n.Op == model.OpRMSNorm || n.Op == model.OpGroupNorm):
		return []int{p.Len(), 1, 1}
	case len(n.Out) == 2 && (norm || bias || n.Op == model.OpClassToken):
		return []int{p.Len(), 1}
	default:
		return p.Shape
	}
}

// fits returns Corrupt unless weights are those of a network.
func fits(g *model.Graph, weights disdel.Weights) error {
	params := g.Params()
	bad := func(format string, args ...any) error {
		return &disdel.Error{Kind: disdel.Corrupt, Op: "write ONNX", Msg: fmt.Sprintf(format, args...)}
	}
	if len(weights) != len(params) {
		return bad("%d arrays of weights, and %s has %d", len(weights), g.Name, len(params))
	}
	for i, p := range params {
		if v := weights[i]; v.Name != p.Name || !slices.Equal(v.Shape, p.Shape) || len(v.Data) != p.Len() {
			return bad("array %q %v, where %s has %q %v", v.Name, v.Shape, g.Name, p.Name, p.Shape)
		}
	}
	return nil
}

// translator makes operators of a network's nodes.
type translator struct {
	source *model.Graph
	out    graph
	at     []string // the value that a node gives
}

// simple are the nodes that an operator of ONNX is, without options.
var simple = map[model.Op]string{
	model.OpReLU: "Relu", model.OpSigmoid: "Sigmoid", model.OpTanh: "Tanh", model.OpGlobalAvgPool: "GlobalAveragePool",
	model.OpAdd: "Sum", model.OpMultiply: "Mul", model.OpELU: "Elu", model.OpSoftplus: "Softplus",
}

// node writes what a node computes.
func (t *translator) node(i int) error {
	n := &t.source.Nodes[i]
	if t.at[i] != "" { // written with the other direction
		return nil
	}
	if beforeRecurrence(t.source, i) { // written with it
		t.at[i] = t.at[n.Inputs[0]]
		return nil
	}
	o := operator{name: n.Name, out: n.Name + ".out"}
	recurrent := n.Op == model.OpLSTM || n.Op == model.OpGRU
	if recurrent && t.hasReverse(i) { // the last of its nodes joins the directions
		for range 5 {
			t.at[i], i = "-", i+1
		}
		o.out = t.source.Nodes[i].Name + ".out"
	}
	if i == len(t.at)-1 {
		o.out = OutputName
	}
	for _, from := range n.Inputs {
		o.in = append(o.in, t.at[from])
	}
	t.at[i] = o.out
	if recurrent {
		t.recurrent(n, o, i)
		return nil
	}
	drops := false
	switch n.Op {
	case model.OpDropout, model.OpDropout2D, model.OpDropPath: // they do nothing but while a network learns
		drops = true
	case model.OpSequence: // views before and behind a convolution over positions
		drops = len(n.Out) == 3 || isOfPositions(t.source, &t.source.Nodes[n.Inputs[0]])
	}
	switch kind, plain := simple[n.Op]; {
	case n.Op == model.OpInput:
		t.at[i] = InputName
	case drops && o.out != OutputName:
		t.at[i] = o.in[0]
	case drops:
		t.as("Identity", o)
	case plain:
		t.as(kind, o)
	default:
		return t.special(n, o)
	}
	return nil
}

func (t *translator) as(kind string, o operator, options ...attribute) {
	o.kind, o.attributes = kind, options
	t.out.operator(o)
}

// special writes what takes options or arrays.
func (t *translator) special(n *model.Node, o operator) error {
	switch n.Op {
	case model.OpConv:
		o.in = append(o.in, n.Name+".weight")
		axes, pads := 2, pads(n)
		if isOfPositions(t.source, n) {
			axes, pads = 1, integers("pads", n.Pad.Top, n.Pad.Bottom)
		}
		sides := func(name string, s model.Sides) attribute { return integers(name, []int{s.H, s.W}[:axes]...) }
		t.as("Conv", biased(n, o), sides("kernel_shape", n.Kernel), sides("strides", n.Stride), pads,
			sides("dilations", n.Dilation), integer("group", int64(n.Groups)))
	case model.OpDense:
		if len(n.Out) == 2 {
			return t.sequence(n, o)
		}
		o.in = append(o.in, n.Name+".weight")
		t.as("Gemm", biased(n, o), integer("transB", 1))
	case model.OpBatchNorm:
		t.norm(n, o)
	case model.OpReLU6:
		t.out.values(n.Name+".low", nil, []float32{0})
		t.out.values(n.Name+".high", nil, []float32{6})
		o.in = append(o.in, n.Name+".low", n.Name+".high")
		t.as("Clip", o)
	case model.OpLeakyReLU:
		t.as("LeakyRelu", o, number("alpha", n.Slope))
	case model.OpHardSigmoid:
		t.as("HardSigmoid", o, number("alpha", 1.0/6), number("beta", 0.5))
	case model.OpHardSwish: // has an operator from opset 14 on
		gate := operator{name: n.Name + ".gate", in: o.in, out: n.Name + ".gated"}
		t.as("HardSigmoid", gate, number("alpha", 1.0/6), number("beta", 0.5))
		o.in = append(o.in, gate.out)
		t.as("Mul", o)
	case model.OpSoftmax:
		t.as("Softmax", o, integer("axis", 1))
	case model.OpMaxPool:
		t.as("MaxPool", o, integers("kernel_shape", n.Kernel.H, n.Kernel.W), integers("strides", n.Stride.H, n.Stride.W),
			pads(n))
	case model.OpAvgPool:
		counted := int64(0)
		if n.CountPad {
			counted = 1
		}
		t.as("AveragePool", o, integers("kernel_shape", n.Kernel.H, n.Kernel.W),
			integers("strides", n.Stride.H, n.Stride.W), pads(n), integer("count_include_pad", counted))
	case model.OpAdaptiveAvgPool:
		t.adaptive(n, o)
	case model.OpFlatten:
		t.as("Flatten", o, integer("axis", 1))
	case model.OpConcat:
		t.as("Concat", o, integer("axis", 1))
	case model.OpPad:
		if n.Stride != (model.Sides{}) {
			o.in = []string{t.apart(n, o.in[0])}
		}
		t.out.numbers(n.Name+".zeros", 0, 0, n.Pad.Top, n.Pad.Left, 0, 0, n.Pad.Bottom, n.Pad.Right)
		o.in = append(o.in, n.Name+".zeros")
		t.as("Pad", o)
	case model.OpUpsample:
		t.out.values(n.Name+".times", []int{4}, []float32{1, 1, float32(n.Kernel.H), float32(n.Kernel.W)})
		o.in = append(o.in, "", n.Name+".times")
		t.as("Resize", o)
	case model.OpPReLU:
		o.in = append(o.in, n.Name+".weight")
		t.as("PRelu", o)
	case model.OpChannels:
		t.channels(n, o)
	case model.OpDownsample:
		t.downsample(n, o)
	case model.OpSiLU:
		gate := operator{name: n.Name + ".gate", in: o.in, out: n.Name + ".gated"}
		t.as("Sigmoid", gate)
		o.in = append(o.in, gate.out)
		t.as("Mul", o)
	case model.OpGELU:
		t.gelu(n, o)
	case model.OpGELUTanh:
		t.geluTanh(n, o)
	case model.OpScale:
		o.in = append(o.in, t.constant(n, "factor", nil, float32(n.Factor)))
		t.as("Mul", o)
	case model.OpLayerNorm, model.OpRMSNorm:
		if n.Op == model.OpRMSNorm || len(n.Out) == 2 {
			t.norms(n, o)
		} else {
			t.layerNorm(n, o)
		}
	case model.OpGroupNorm:
		t.groupNorm(n, o)
	case model.OpEmbedding, model.OpPositions, model.OpAttention, model.OpSequence, model.OpClassToken,
		model.OpTakePosition:
		return t.sequence(n, o)
	case model.OpWindowAttention:
		t.windowAttention(n, o)
	case model.OpSpaceToDepth:
		return t.spaceToDepth(n, o)
	case model.OpCustom:
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "write ONNX",
			Msg:  t.source.Name + " is a program, which only its own Python writes as ONNX",
			Hint: "disdel model export NAME --to onnx",
		}
	default:
		return t.refused(n)
	}
	return nil
}

// refused is the error of a node that is written as no operator.
func (t *translator) refused(n *model.Node) error {
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "write ONNX",
		Msg:  fmt.Sprintf("%s is computed by %q, which disdel writes as no ONNX operator", t.source.Name, n.Op),
		Hint: "export it as safetensors: --to safetensors",
	}
}

// step writes an operator whose value only this node's operators read, and returns its name.
func (t *translator) step(n *model.Node, kind, name string, in []string, options ...attribute) string {
	name = n.Name + "/" + name
	t.as(kind, operator{name: name, in: in, out: name}, options...)
	return name
}

// constant adds an array, and returns its name.
func (t *translator) constant(n *model.Node, name string, shape []int, values ...float32) string {
	name = n.Name + "/" + name
	t.out.values(name, shape, values)
	return name
}

// reshaped writes a reshape; a side of 0 stays.
func (t *translator) reshaped(n *model.Node, name, in string, sides ...int) string {
	t.out.numbers(n.Name+"/"+name+".sides", sides...)
	return t.step(n, "Reshape", name, []string{in, n.Name + "/" + name + ".sides"})
}

// cut writes what lies along an axis from one place to another.
func (t *translator) cut(n *model.Node, name, in string, axis, from, to int) string {
	at := n.Name + "/" + name
	t.out.numbers(at+".from", from)
	t.out.numbers(at+".to", to)
	t.out.numbers(at+".axis", axis)
	return t.step(n, "Slice", name, []string{in, at + ".from", at + ".to", at + ".axis"})
}

// layerNorm writes (x - mean) / sqrt(variance + eps), a weight and a bias; ONNX has an operator for it from opset 17
// on. Channels of images are turned to the end and back.
func (t *translator) layerNorm(n *model.Node, o operator) {
	last := o.in[0]
	step := func(kind, name string, in []string, attributes ...attribute) {
		last = n.Name + "." + name
		t.as(kind, operator{name: last, in: in, out: last}, attributes...)
	}
	if len(n.Out) == 3 {
		step("Transpose", "turned", []string{last}, integers("perm", 0, 2, 3, 1))
	}
	x := last
	t.out.values(n.Name+".two", nil, []float32{2})
	t.out.values(n.Name+".eps", nil, []float32{float32(n.Eps)})
	means := []attribute{integers("axes", -1), integer("keepdims", 1)}
	step("ReduceMean", "mean", []string{x}, means...)
	step("Sub", "centred", []string{x, last})
	centred := last
	step("Pow", "squares", []string{centred, n.Name + ".two"})
	step("ReduceMean", "variance", []string{last}, means...)
	step("Add", "above", []string{last, n.Name + ".eps"})
	step("Sqrt", "deviation", []string{last})
	step("Div", "normed", []string{centred, last})
	step("Mul", "scaled", []string{last, n.Name + ".weight"})
	if o.in = []string{last, n.Name + ".bias"}; len(n.Out) == 1 {
		t.as("Add", o)
		return
	}
	step("Add", "shifted", o.in)
	o.in = []string{last}
	t.as("Transpose", o, integers("perm", 0, 3, 1, 2))
}

// groupNorm writes groups as the channels of an InstanceNormalization, as PyTorch does: GroupNormalization itself has
// one weight a channel from opset 21 on.
func (t *translator) groupNorm(n *model.Node, o operator) {
	ones := make([]float32, n.Groups)
	for i := range ones {
		ones[i] = 1
	}
	last := t.step(n, "InstanceNormalization", "normed", []string{
		t.reshaped(n, "groups", o.in[0], 0, n.Groups, -1), t.constant(n, "ones", []int{n.Groups}, ones...),
		t.constant(n, "zeros", []int{n.Groups}, make([]float32, n.Groups)...),
	}, number("epsilon", n.Eps))
	last = t.reshaped(n, "image", last, 0, n.Out[0], n.Out[1], n.Out[2])
	o.in = []string{t.step(n, "Mul", "scaled", []string{last, n.Name + ".weight"}), n.Name + ".bias"}
	t.as("Add", o)
}

// norms writes the same of the channels of each position, and RMS norms, which have no mean and no bias.
func (t *translator) norms(n *model.Node, o operator) {
	x, root := o.in[0], n.Op == model.OpRMSNorm
	means := []attribute{integers("axes", 1), integer("keepdims", 1)}
	if !root {
		x = t.step(n, "Sub", "centred", []string{x, t.step(n, "ReduceMean", "mean", []string{x}, means...)})
	}
	last := t.step(n, "ReduceMean", "variance", []string{t.step(n, "Mul", "squares", []string{x, x})}, means...)
	last = t.step(n, "Add", "above", []string{last, t.constant(n, "eps", nil, float32(n.Eps))})
	last = t.step(n, "Div", "normed", []string{x, t.step(n, "Sqrt", "deviation", []string{last})})
	if o.in = []string{last, n.Name + ".weight"}; root {
		t.as("Mul", o)
		return
	}
	o.in = []string{t.step(n, "Mul", "scaled", o.in), n.Name + ".bias"}
	t.as("Add", o)
}

// sequence writes what works on a sequence, whose values are [rows channels positions].
func (t *translator) sequence(n *model.Node, o operator) error {
	x := o.in[0]
	switch n.Op {
	case model.OpDense:
		owner := n
		if n.Tied > 0 {
			owner = &t.source.Nodes[n.Tied]
		}
		if o.in = []string{owner.Name + ".weight", x}; !n.Bias {
			t.as("MatMul", o)
			return nil
		}
		o.in = []string{t.step(n, "MatMul", "product", o.in), n.Name + ".bias"}
		t.as("Add", o)
	case model.OpEmbedding:
		if n.Padded {
			return t.refused(n)
		}
		last := t.step(n, "Cast", "tokens", o.in, integer("to", int64s))
		o.in = []string{t.step(n, "Gather", "rows", []string{n.Name + ".weight", last}, integer("axis", 0))}
		t.as("Transpose", o, integers("perm", 0, 2, 1))
	case model.OpPositions:
		if vectors := n.Name + ".weight"; n.Fixed {
			o.in = append(o.in, t.constant(n, "sines", n.Out, sines(n.Out[0], n.Out[1])...))
		} else {
			o.in = append(o.in, t.step(n, "Transpose", "vectors", []string{vectors}, integers("perm", 1, 0)))
		}
		t.as("Add", o)
	case model.OpClassToken:
		t.out.numbers(n.Name+".row", n.Out[0], 1)
		rows := t.cut(n, "rows", t.step(n, "Shape", "shape", o.in), 0, 0, 1)
		rows = t.step(n, "Concat", "sides", []string{rows, n.Name + ".row"}, integer("axis", 0))
		o.in = []string{t.step(n, "Expand", "token", []string{n.Name + ".weight", rows}), x}
		t.as("Concat", o, integer("axis", 2))
	case model.OpSequence:
		t.out.numbers(n.Name+".sides", append([]int{0}, n.Out...)...)
		o.in = append(o.in, n.Name+".sides")
		t.as("Reshape", o)
	case model.OpTakePosition:
		t.takePosition(n, o)
	default:
		t.attention(n, o)
	}
	return nil
}

// takePosition writes one position, or the mean of all.
func (t *translator) takePosition(n *model.Node, o operator) {
	in := t.source.Nodes[n.Inputs[0]].Out
	half, last := in[0]/2, in[1]-1
	switch n.Take {
	case model.TakeMean:
		t.as("ReduceMean", o, integers("axes", 2), integer("keepdims", 0))
	case model.TakeEnds:
		x, place := o.in[0], t.place(n, "end", last)
		forward := []string{t.cut(n, "forward", x, 1, 0, half), place}
		back := []string{t.cut(n, "back", x, 1, half, in[0]), t.place(n, "start", 0)}
		o.in = []string{
			t.step(n, "Gather", "forward.end", forward, integer("axis", 2)),
			t.step(n, "Gather", "back.start", back, integer("axis", 2)),
		}
		t.as("Concat", o, integer("axis", 1))
	default:
		if n.Take == model.TakeFirst {
			last = 0
		}
		o.in = append(o.in, t.place(n, "one", last))
		t.as("Gather", o, integer("axis", 2))
	}
}

// place adds the index of one position.
func (t *translator) place(n *model.Node, name string, at int) string {
	name = n.Name + "/" + name
	t.out.array(name, nil, int64s, binary.LittleEndian.AppendUint64(nil, uint64(at)))
	return name
}

// beforeRecurrence tells whether a node is the dense layer of a recurrence, which stands behind it.
func beforeRecurrence(g *model.Graph, i int) bool {
	return i+1 < len(g.Nodes) && g.Nodes[i+1].Op.Gates() > 0
}

// isOfPositions tells whether a node is a convolution over positions, between two views of them as an image.
func isOfPositions(g *model.Graph, n *model.Node) bool {
	return n.Op == model.OpConv && g.Nodes[n.Inputs[0]].Op == model.OpSequence
}

// hasReverse tells whether a recurrence has the one behind it that reads backwards.
func (t *translator) hasReverse(i int) bool {
	return i+1 < len(t.at) && t.source.Nodes[i+1].Op == model.OpReverse
}

// recurrent writes an LSTM or a GRU with the dense layer before it, and with the other direction where last is behind
// it. ONNX's gates are i, o, f, c of an LSTM, and z, r, h of a GRU.
func (t *translator) recurrent(n *model.Node, o operator, last int) {
	kind, order, options := "LSTM", []int{0, 3, 1, 2}, []attribute{integer("hidden_size", int64(n.Units))}
	if n.Op == model.OpGRU {
		kind, order, options = "GRU", []int{1, 0, 2}, append(options, integer("linear_before_reset", 1))
	}
	names, positions := []string{n.Name}, n.Out[1]
	if end := &t.source.Nodes[last]; end != n {
		names = append(names, n.Name+".reverse")
		options = append(options, text("direction", "bidirectional"))
	}
	var places []int
	for i := range len(order) * n.Units {
		places = append(places, order[i/n.Units]*n.Units+i%n.Units)
	}
	t.out.numbers(n.Name+".places", places...)
	t.out.numbers(n.Name+".first", 0)
	all := func(name string, parts ...string) string { // of the directions, with the gates in ONNX's order
		var list []string
		for _, direction := range names {
			var halves []string
			for _, part := range parts {
				array := direction + part
				in := []string{array, n.Name + ".places"}
				halves = append(halves, t.step(n, "Gather", array, in, integer("axis", 0)))
			}
			if len(halves) > 1 {
				halves[0] = t.step(n, "Concat", direction+"."+name, halves, integer("axis", 0))
			}
			in := []string{halves[0], n.Name + ".first"}
			list = append(list, t.step(n, "Unsqueeze", direction+"."+name+".row", in))
		}
		return t.step(n, "Concat", name, list, integer("axis", 0))
	}
	x := t.step(n, kind, "steps", []string{
		t.step(n, "Transpose", "turned", o.in, integers("perm", 2, 0, 1)), all("inputs", ".input.weight"),
		all("states", ".weight"), all("biases", ".input.bias", ".bias"),
	}, options...)
	x = t.step(n, "Transpose", "directions", []string{x}, integers("perm", 0, 2, 1, 3))
	o.in = []string{t.reshaped(n, "all", x, positions, -1, len(names)*n.Units)}
	t.as("Transpose", o, integers("perm", 1, 2, 0))
}

// sines are the fixed vectors of positions, [channels positions] (Vaswani 2017, 3.5).
func sines(channels, positions int) []float32 {
	out := make([]float32, channels*positions)
	for i := range out {
		c, at := i/positions, float64(i%positions)
		s, cos := math.Sincos(at / math.Pow(10000, float64(c-c%2)/float64(channels)))
		if out[i] = float32(s); c%2 == 1 {
			out[i] = float32(cos)
		}
	}
	return out
}

// geluTanh writes x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
func (t *translator) geluTanh(n *model.Node, o operator) {
	x, one := o.in[0], t.constant(n, "one", nil, 1)
	last := t.step(n, "Mul", "square", []string{x, x})
	last = t.step(n, "Mul", "curved", []string{last, t.constant(n, "curve", nil, 0.044715)})
	last = t.step(n, "Add", "bent", []string{last, one})
	last = t.step(n, "Mul", "argument", []string{last, x})
	last = t.step(n, "Mul", "wide", []string{last, t.constant(n, "width", nil, float32(math.Sqrt(2/math.Pi)))})
	last = t.step(n, "Add", "above", []string{t.step(n, "Tanh", "tanh", []string{last}), one})
	o.in = []string{t.step(n, "Mul", "both", []string{last, x}), t.constant(n, "half", nil, 0.5)}
	t.as("Mul", o)
}

// gelu writes x/2 (1 + erf(x / sqrt(2))); ONNX has an operator for it from opset 20 on.
func (t *translator) gelu(n *model.Node, o operator) {
	x, last := o.in[0], ""
	step := func(kind string, in ...string) {
		last = fmt.Sprintf("%s.%s", n.Name, kind)
		t.as(kind, operator{name: last, in: in, out: last})
	}
	t.out.values(n.Name+".root", nil, []float32{math.Sqrt2})
	t.out.values(n.Name+".one", nil, []float32{1})
	t.out.values(n.Name+".half", nil, []float32{0.5})
	step("Div", x, n.Name+".root")
	step("Erf", last)
	step("Add", last, n.Name+".one")
	step("Mul", last, x)
	o.in = []string{last, n.Name + ".half"}
	t.as("Mul", o)
}

// biased takes the node's bias, where it has one.
func biased(n *model.Node, o operator) operator {
	if n.Bias {
		o.in = append(o.in, n.Name+".bias")
	}
	return o
}

func pads(n *model.Node) attribute {
	return integers("pads", n.Pad.Top, n.Pad.Left, n.Pad.Bottom, n.Pad.Right)
}

// norm writes a batch norm as it computes after training. ONNX has no norm without scale or center.
func (t *translator) norm(n *model.Node, o operator) {
	constant := func(name string, v float32) {
		values := make([]float32, n.Out[0])
		for i := range values {
			values[i] = v
		}
		t.out.values(n.Name+name, []int{len(values)}, values)
	}
	if n.NoScale {
		constant(".weight", 1)
	}
	if n.NoCenter {
		constant(".bias", 0)
	}
	for _, name := range []string{".weight", ".bias", ".running_mean", ".running_var"} {
		o.in = append(o.in, n.Name+name)
	}
	t.as("BatchNormalization", o, number("epsilon", n.Eps))
}

// adaptive writes a mean over windows that are not all of one size, which ONNX has no operator for, as two products:
// the matrices have what each pixel counts for in each mean, by columns and by rows.
func (t *translator) adaptive(n *model.Node, o operator) {
	in := t.source.Nodes[n.Inputs[0]].Out
	height, width := in[1], in[2]
	across := shares(width, n.Out[2])
	turned := make([]float32, len(across)) // [width out]
	for i := range n.Out[2] {
		for k := range width {
			turned[k*n.Out[2]+i] = across[i*width+k]
		}
	}
	t.out.values(n.Name+".across", []int{width, n.Out[2]}, turned)
	t.out.values(n.Name+".down", []int{n.Out[1], height}, shares(height, n.Out[1]))
	t.as("MatMul", operator{name: n.Name + ".columns", in: []string{o.in[0], n.Name + ".across"}, out: n.Name + ".means"})
	o.in = []string{n.Name + ".down", n.Name + ".means"}
	t.as("MatMul", o)
}

// shares is what each of so many pixels counts for in each of so many means, [means pixels]: mean i is that of the
// pixels from floor(i pixels/means) up to ceil((i+1) pixels/means), as PyTorch has it.
func shares(pixels, means int) []float32 {
	out := make([]float32, means*pixels)
	for i := range means {
		from, to := i*pixels/means, ((i+1)*pixels+means-1)/means
		for k := from; k < to; k++ {
			out[i*pixels+k] = 1 / float32(to-from)
		}
	}
	return out
}

// channels writes a shuffle as a turned reshape, and then the channels that are taken.
func (t *translator) channels(n *model.Node, o operator) {
	in := t.source.Nodes[n.Inputs[0]].Out
	step := func(kind, name string, attributes ...attribute) {
		t.as(kind, operator{name: n.Name + "." + name, in: o.in, out: n.Name + "." + name}, attributes...)
		o.in = []string{n.Name + "." + name}
	}
	if n.Groups > 1 {
		t.out.numbers(n.Name+".split", 0, n.Groups, in[0]/n.Groups, in[1], in[2])
		t.out.numbers(n.Name+".joined", 0, in[0], in[1], in[2])
		o.in = append(o.in, n.Name+".split")
		step("Reshape", "groups")
		step("Transpose", "turned", integers("perm", 0, 2, 1, 3, 4))
		o.in = append(o.in, n.Name+".joined")
		step("Reshape", "shuffled")
	}
	t.out.numbers(n.Name+".first", n.First)
	t.out.numbers(n.Name+".end", n.First+n.Filters)
	t.out.numbers(n.Name+".axis", 1)
	o.in = append(o.in, n.Name+".first", n.Name+".end", n.Name+".axis")
	t.as("Slice", o)
}

// apart writes zeros between the pixels of an image: a transposed convolution of single pixels puts them there.
func (t *translator) apart(n *model.Node, x string) string {
	channels := t.source.Nodes[n.Inputs[0]].Out[0]
	ones := make([]float32, channels)
	for i := range ones {
		ones[i] = 1
	}
	return t.step(n, "ConvTranspose", "apart", []string{x, t.constant(n, "ones", []int{channels, 1, 1, 1}, ones...)},
		integers("strides", n.Stride.H, n.Stride.W), integer("group", int64(channels)))
}

// downsample writes every so-manieth pixel, and zeros for the channels that are new, on both sides.
func (t *translator) downsample(n *model.Node, o operator) {
	t.out.numbers(n.Name+".starts", 0, 0)
	t.out.numbers(n.Name+".ends", math.MaxInt32, math.MaxInt32)
	t.out.numbers(n.Name+".axes", 2, 3)
	t.out.numbers(n.Name+".steps", n.Stride.H, n.Stride.W)
	t.as("Slice", operator{name: n.Name + ".pixels", out: n.Name + ".fewer", in: []string{
		o.in[0], n.Name + ".starts", n.Name + ".ends", n.Name + ".axes", n.Name + ".steps",
	}})
	more := n.Filters - t.source.Nodes[n.Inputs[0]].Out[0]
	t.out.numbers(n.Name+".zeros", 0, more/2, 0, 0, 0, more-more/2, 0, 0)
	o.in = []string{n.Name + ".fewer", n.Name + ".zeros"}
	t.as("Pad", o)
}
