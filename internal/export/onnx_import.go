package export

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
)

// Imported is a network that was read from an ONNX file.
type Imported struct {
	Network disdel.Network // layers, input and number of outputs
	Weights disdel.Weights // by the network's names and in its order; they may be views of the file
	Notes   []string       // what is different from the file
}

// ONNXOptions says what an ONNX file leaves open.
type ONNXOptions struct {
	// KeepOutput has the network answer what the ONNX graph does. Otherwise a softmax is added to two or more outputs
	// that are no probabilities yet.
	KeepOutput bool
	Row        []int  // sides of one row, for a file that does not fix them; nil: the file's
	Output     string // the value of the graph that is the network's output; "": the file's only output
}

// newestOpset is the newest one whose operators mean what they do here. Those from 22 to 26 only take more types.
const newestOpset = 26

// ImportONNX reads the network and the weights of an ONNX model (opset 7 to 26). folder has the model's external data;
// with nil there is none. A file of ConvertONNX gives the network that was written.
//
// The error is *disdel.Faults with every node that disdel cannot compute, Corrupt for a damaged file, or Invalid.
func ImportONNX(data []byte, folder *os.Root, opt ONNXOptions) (Imported, error) {
	s, err := readONNX(data, folder)
	if err == nil {
		err = s.choose(opt)
	}
	if err != nil {
		return Imported{}, err
	}
	if in, ok := ownNetwork(data, s); ok && opt.Output == "" {
		return in, nil
	}
	r := &importer{source: s, at: map[string]value{}, users: map[string][]*step{}}
	r.names, r.scales = map[string]int{"input": 1, dataLayer: 1}, map[int]shift{}
	r.keepOutput = opt.KeepOutput
	r.room = len(data)/2 + roomBeside // weights are copied twice where a file joins their gates
	for _, size := range s.loaded {
		r.room += int(size / 2)
	}
	r.folds = 2*mostMoved + r.room/8 // Swin v2 computes biases of its weights: the larger it is, the more
	if err := r.run(); err != nil {
		return Imported{}, err
	}
	return r.finish()
}

// choose leaves one output and one input, and gives the input its sides.
func (s *source) choose(opt ONNXOptions) error {
	if opt.Output != "" {
		s.outputs = []end{{name: opt.Output}}
	}
	if n := len(s.outputs); n != 1 {
		var names []string
		for _, e := range s.outputs[:min(n, mostNamed)] {
			names = append(names, fmt.Sprintf("%.80q", e.name))
		}
		if s.outputs = slices.DeleteFunc(s.outputs, func(e end) bool { return !e.mayAnswer() }); len(s.outputs) != 1 {
			return unfit("the graph has %d outputs, and a network of disdel has one; --output chooses one of them: %s",
				n, strings.Join(names, ", "))
		}
		s.notes = append(s.notes, fmt.Sprintf("of the outputs %s only %.80q may be a list of float32 for each row; "+
			"--output chooses another one", strings.Join(names, ", "), s.outputs[0].name))
	}
	needed := map[string]bool{}
	steps := s.reachable()
	if opt.Output != "" && len(steps) == 0 {
		return unfit("--output: no node of the graph gives %.80q", opt.Output)
	}
	for _, n := range steps {
		for _, name := range n.in {
			needed[name] = true
		}
	}
	inputs := slices.DeleteFunc(slices.Clone(s.inputs), func(e end) bool { return s.arrays[e.name] != nil })
	var beside []end
	if len(inputs) > 1 { // another output may need the others
		inputs = slices.DeleteFunc(inputs, func(e end) bool {
			is := needed[e.name] && (e.name == tokenTypes || e.name == tokenMask)
			if is {
				beside = append(beside, e)
			}
			return is || !needed[e.name]
		})
	}
	if len(inputs) != 1 {
		var names []string
		for _, e := range inputs[:min(len(inputs), mostNamed)] {
			names = append(names, fmt.Sprintf("%.80q", e.name))
		}
		return unfit("the output %.80q needs %d inputs, and a network of disdel has one: %s", s.outputs[0].name,
			len(inputs), strings.Join(names, ", "))
	}
	s.inputs = inputs
	if err := s.inputs[0].fix(opt.Row); err != nil {
		return err
	}
	return s.takeBeside(beside)
}

// mayAnswer tells whether an output may be a list of float32 for each row, or, without a kind, the names of classes
// with their probabilities.
func (e *end) mayAnswer() bool {
	return e.kind == 0 || e.kind == float32s && (len(e.sides) == 0 || len(e.sides) == 2)
}

// mostNamed is how many outputs a message names.
const mostNamed = 20

// fix gives an input the sides of one row.
func (e *end) fix(row []int) error {
	switch {
	case row == nil:
		return nil
	case len(e.sides) == 0: // the file does not even say how many there are
		e.sides = []int{0}
	case len(e.sides) != len(row)+1:
		return unfit("--input has %d sides, and the input %.80q has %d besides the rows: %v (0: not fixed)", len(row),
			e.name, len(e.sides)-1, e.sides)
	}
	for i, side := range e.sides[1:] {
		if side != 0 && side != row[i] {
			return unfit("--input: side %d is %d, and the file fixes it at %d", i+1, row[i], side)
		}
	}
	e.sides = append([]int{e.sides[0]}, row...)
	return nil
}

// value is what a name of the graph stands for: a node of the network, or a constant.
type value struct {
	node   int // of the builder, where isNode
	isNode bool
	array  *array
	whole  []int64 // of array, where isList: it is a short list of integers, and rowCount stands for the number of rows
	isList bool
	// what the graph computes of the mask, in each batch of rows; nil: it does not depend on one
	batches []*array
	means   int // columns of an adaptive pool whose rows are still to come
	view    view
	groups  int     // of channels, with inGroups, groupsTurned, groupRows and groupsNormed
	eps     float64 // with groupsNormed
	heads   *headed
	zeros   bool    // it is zeros, of any shape
	states  []state // of recurrences, [states rows units]; picked: of one, [rows units]
	picked  bool

	arranged *arrangement // its pixels are in another order; nil: they are not
}

// roomBeside is how many values a small file may make of others: turned matrices, and convolutions of ones and zeros.
const roomBeside = 4 << 20

// mostFaults is how many faults of one file are told.
const mostFaults = 200

// rowCount stands for the number of rows in a shape, and manyRows(k) for k times as many.
const rowCount = math.MinInt64

// mostRows bounds k.
const mostRows = 1 << 20

func manyRows(k int64) int64 { return rowCount + (k-1)<<20 }

// rowsIn says how many times the number of rows a side is; 0: it does not depend on them.
func rowsIn(side int64) int64 {
	if k := (side-rowCount)>>20 + 1; side < 0 && k <= mostRows && manyRows(k) == side {
		return k
	}
	return 0
}

// importer makes a network of an ONNX graph.
type importer struct {
	*source
	b       *model.Builder
	at      map[string]value
	users   map[string][]*step // nodes that take a value
	names   map[string]int     // of layers, with how often each was wanted
	room    int                // values that may still be made of others
	folds   int                // values that may still be computed of constants
	weights map[string][]float32
	faults  []disdel.Fault
	rows    int64 // that the file fixes; 0: any number

	keepOutput bool          // the network answers what the file does
	within     *arrangement  // the order of the pixels of the node at work
	order      []int         // of its channels
	scales     map[int]shift // layers that only scale and shift
	means      []int         // nodes that leave padding out, as the file does
	steeper    []string      // layers in front of a hardSigmoid of another slope
	oneWide    bool          // images are one pixel wide, and sequences in the file: [rows channels positions]
}

func (r *importer) fault(n *step, format string, args ...any) {
	if len(r.faults) == mostFaults {
		return
	}
	r.faults = append(r.faults, disdel.Fault{
		Path: fmt.Sprintf("node %.80q (%.40s)", label(n), n.kind), Msg: fmt.Sprintf(format, args...),
	})
}

// label is a node's name, or what it gives.
func label(n *step) string {
	if n.name == "" && len(n.out) > 0 {
		return n.out[0]
	}
	return n.name
}

func unfit(format string, args ...any) error {
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "import ONNX", Msg: fmt.Sprintf(format, args...), Hint: "else " + model.OwnCode,
	}
}

func (r *importer) run() error {
	if err := r.begin(); err != nil {
		return err
	}
	steps, known := r.reachable(), nodeReaders()
	for _, n := range steps {
		usual := n.domain == "" || n.domain == "ai.onnx" || n.domain == scikitDomain && isScikit(n.kind)
		if known[n.kind] == nil || !usual || n.domain != scikitDomain && isScikit(n.kind) {
			r.fault(n, "disdel has no layer for this operator")
		}
	}
	r.foldConstants(steps)
	for _, n := range steps {
		if do := known[n.kind]; do != nil && !n.done && r.known(n) && !r.fold(n) && !r.readsMask(n) && !r.arrange(n) &&
			!r.heads(n) && !r.curve(n) {
			do(r, n)
		}
		if _, err := r.b.Graph(); err != nil {
			r.fault(n, "%s", disdel.AsError(err).Msg)
			break
		}
	}
	r.checkMask()
	if last := len(r.faults) - 1; last >= 0 {
		r.faults[last].Hint = "else " + model.OwnCode
		return &disdel.Faults{Faults: r.faults}
	}
	out := r.at[r.outputs[0].name]
	if !out.isNode || out.view == flattenedLast || out.arranged != nil || out.node != r.b.Last() || out.node == 0 {
		return unfit("the output %.80q is not what the last layer computes", r.outputs[0].name)
	}
	return r.end(out.node)
}

// end checks the output and makes probabilities of it.
func (r *importer) end(node int) error {
	if len(r.b.Out(node)) != 1 {
		return unfit("the output has the shape %v; disdel trains networks whose output is a list of numbers",
			[]int(r.b.Out(node)))
	}
	r.noteScales()
	if len(r.steeper) > 0 {
		r.notes = append(r.notes, "weights in front of a hardSigmoid were multiplied, because the file's has another "+
			"slope: "+strings.Join(r.steeper, ", "))
	}
	g, err := r.b.Graph()
	if err != nil {
		return err
	}
	last := g.Nodes[node].Op
	if !r.keepOutput && r.b.Out(node)[0] > 1 && last != model.OpSoftmax && last != model.OpSigmoid {
		r.b.Same(r.name(&step{name: "softmax"}, ""), node, model.OpSoftmax)
		r.notes = append(r.notes, "a softmax was added: answers are probabilities, where the file gives scores")
	}
	return nil
}

// begin reads the input and who uses what.
func (r *importer) begin() error {
	in := r.inputs[0]
	tokens := (in.kind == int64s || in.kind == int32s) && len(in.sides) == 2
	if in.kind != float32s && !tokens {
		return unfit("the input %.80q is neither of float32 nor rows of tokens, of int64", in.name)
	}
	open := slices.Index(in.sides, 0) // rows may be second in a sequence
	if len(in.sides) < 2 || len(in.sides) > 4 || len(in.sides) == 4 && slices.Contains(in.sides[1:], 0) ||
		open >= 0 && slices.Contains(in.sides[open+1:], 0) || open > 1 || open == 1 && !tokens && len(in.sides) != 3 {
		return unfit("the input %.80q has the sides %v (0: not fixed); disdel needs [rows values], [rows positions "+
			"channels] or [rows channels height width]; --input gives the sides of a row that are not fixed, such as "+
			"3x48x192", in.name, in.sides)
	}
	if r.opset < 7 || r.opset > newestOpset {
		return unfit("the file has opset %d; disdel reads 7 to %d", r.opset, newestOpset)
	}
	r.simplify()
	r.rows, r.weights = int64(in.sides[0]), map[string][]float32{}
	for name, a := range r.arrays {
		r.at[name] = constant(a)
	}
	r.beginMask()
	for _, n := range r.reachable() {
		for _, name := range n.in {
			r.users[name] = append(r.users[name], n)
		}
	}
	shape, v := model.Shape(slices.Clone(in.sides[1:])), value{isNode: true}
	if tokens || len(in.sides) == 3 {
		shape, v = r.beginSequence(in)
	}
	if len(in.sides) == 4 {
		shape, v = r.beginImage(in)
	}
	r.b = model.NewBuilder("ONNX graph", shape)
	if len(in.sides) == 3 && !r.oneWide {
		v.node = r.channelsFirst()
	}
	r.at[in.name] = v
	return nil
}

// constant is a value of an array.
func constant(a *array) value {
	list, ok := a.numbers()
	return value{array: a, whole: list, isList: ok}
}

// reachable are the nodes that the output needs, in the file's order.
func (s *source) reachable() (list []*step) {
	needed := map[string]bool{s.outputs[0].name: true}
	for _, n := range slices.Backward(s.steps) {
		if !slices.ContainsFunc(n.out, func(name string) bool { return name != "" && needed[name] }) {
			continue
		}
		for _, name := range n.in {
			needed[name] = true
		}
		list = append(list, n)
	}
	slices.Reverse(list)
	return list
}

// foldConstants computes what nodes make of constants alone. Layers find it wherever it stands in the file.
func (r *importer) foldConstants(steps []*step) {
	unknown := func(name string) bool {
		_, ok := r.at[name]
		return name != "" && !ok
	}
	for _, n := range steps {
		switch constant := len(n.out) > 0 && !slices.ContainsFunc(n.in, unknown); {
		case n.done || !constant || n.domain != "" && n.domain != "ai.onnx":
		case n.kind == "Constant":
			r.constant(n)
			n.done = true
		default:
			n.done = r.fold(n)
		}
	}
}

// known tells whether all inputs of a node were read. If not, a fault of an earlier node says why.
func (r *importer) known(n *step) bool {
	if len(n.out) == 0 || len(n.in) == 0 && n.kind != "Constant" {
		r.fault(n, "it has no input or no output")
		return false
	}
	for _, name := range n.in {
		if _, ok := r.at[name]; name != "" && !ok {
			if len(r.faults) == 0 {
				r.fault(n, "its input %.80q is not computed before it", name)
			}
			return false
		}
	}
	return true
}

// in is an input of a node; ok is false where the node has none there.
func (r *importer) in(n *step, i int) (v value, ok bool) {
	if i >= len(n.in) || n.in[i] == "" {
		return value{}, false
	}
	v, ok = r.at[n.in[i]]
	return v, ok
}

// from is the layer that is a node's input i.
func (r *importer) from(n *step, i int) (node int, ok bool) {
	switch v, _ := r.in(n, i); {
	case v.array != nil:
		r.fault(n, "its input %d is a constant; disdel reads layers there", i)
	case !v.isNode || v.means > 0 || v.view != asLayer:
		r.fault(n, "its input %d is no output of a layer, or has its axes in another order", i)
	default:
		return v.node, true
	}
	return 0, false
}

// floats are the values and the shape of a constant input.
func (r *importer) floats(n *step, i int) ([]float32, []int, bool) {
	v, _ := r.in(n, i)
	list := v.array.floats32()
	if list == nil {
		r.fault(n, "its input %d is no constant of float32", i)
		return nil, nil, false
	}
	r.noteComputed(n, v.array)
	return list, v.array.sides, true
}

// noteComputed says that training changes the weights of a node, and not what the file computes them of.
func (r *importer) noteComputed(n *step, a *array) {
	if a.computed {
		r.notes = append(r.notes, fmt.Sprintf("the file computes weights of node %.80q from others; training changes "+
			"the results, not what they are computed of", label(n)))
	}
}

// set says what a node gives.
func (r *importer) set(n *step, v value) {
	if a := r.within; a != nil && v.isNode && v.arranged == nil {
		if r.within = nil; a.channels != r.b.Out(v.node)[0] {
			a = wider(a, r.b.Out(v.node)[0])
		}
		r.setArranged(n, v.node, a)
		return
	}
	r.at[n.out[0]] = v
	for _, extra := range n.out[1:] {
		if extra != "" && len(r.users[extra]) > 0 && n.kind != "Dropout" {
			r.fault(n, "its second output is used")
		}
	}
}

func (r *importer) layer(n *step, node int) { r.set(n, value{isNode: true, node: node}) }

// only is the one node that uses a value. It is nil where there are others, where that node gives nothing, and where
// the value is the graph's output.
func (r *importer) only(name string) *step {
	if u := r.users[name]; len(u) == 1 && len(u[0].out) > 0 && name != r.outputs[0].name {
		return u[0]
	}
	return nil
}

// name gives a layer the name that its weights have in PyTorch, else one of its node.
func (r *importer) name(n *step, weight string) string {
	base, ok := strings.CutSuffix(weight, ".weight")
	if !ok || strings.Contains(base, "::") {
		parts := strings.Split(strings.Trim(label(n), "/"), "/")
		if len(parts) > 1 && strings.HasPrefix(parts[len(parts)-1], n.kind) { // PyTorch's /layer1/conv1/Conv
			parts = parts[:len(parts)-1]
			if weight == "" {
				parts = append(parts, strings.ToLower(n.kind))
			}
		}
		base = strings.Join(parts, ".")
	}
	name := base
	for name == "" || r.names[name] > 0 {
		r.names[base]++
		name = base + "_" + strconv.Itoa(r.names[base])
	}
	r.names[name]++
	return name
}

// values makes room for values. It is nil, with a fault, where a file asks for far more than it has.
func (r *importer) values(n *step, count int) []float32 {
	if count > r.room {
		r.fault(n, "it needs %d values more than disdel makes of the weights of a file of this size", count)
		return nil
	}
	r.room -= count
	return make([]float32, count)
}

// finish writes the graph as layers, and takes the weights in their order.
func (r *importer) finish() (out Imported, err error) {
	g, err := r.b.Graph()
	if err != nil {
		return out, err
	}
	out.Network = disdel.Network{Layers: layersOf(g), Input: g.Input(), Classes: g.Output().Len()}
	built, err := model.Build(out.Network)
	if err != nil {
		return out, err
	}
	for _, p := range built.Params() {
		v := r.weights[p.Name]
		if len(v) != p.Len() {
			return out, unfit("array %.80q has %d values, and its layer needs %v", p.Name, len(v), p.Shape)
		}
		out.Weights = append(out.Weights, disdel.Tensor{Name: p.Name, Shape: p.Shape, Data: v})
	}
	out.Notes = r.notes
	return out, nil
}

// dataLayer is the name of the first layer, as "input" names the data itself.
const dataLayer = "data"

// layersOf writes a graph as the layers of a job file.
func layersOf(g *model.Graph) []disdel.Layer {
	list := []disdel.Layer{{Kind: "input", Name: dataLayer, Shape: g.Input()}}
	names := map[int]string{0: dataLayer} // of the layers whose outputs nodes are
	for i := 1; i < len(g.Nodes); {
		l, count := layerAt(g, i)
		inputs := g.Nodes[i].Inputs
		if g.Nodes[i].Masked { // the last one says where padding is
			inputs = inputs[:len(inputs)-1]
		}
		for _, from := range inputs {
			l.From = append(l.From, names[from])
		}
		list = append(list, l)
		i += count
		names[i-1] = l.Name
	}
	return list
}

// layerAt is the layer whose first node is i, and how many nodes it has.
func layerAt(g *model.Graph, i int) (l disdel.Layer, count int) {
	n := &g.Nodes[i]
	if i+1 == len(g.Nodes) {
		return layerOf(n), 1
	}
	next := &g.Nodes[i+1]
	switch {
	case next.Op == model.OpAttention:
		l = disdel.Layer{Kind: "multiHeadAttention", Name: strings.TrimSuffix(n.Name, ".qkv"), Heads: next.Heads}
		if next.Causal {
			l.Causal = new(true)
		}
		if next.KVHeads != next.Heads {
			l.KVHeads = next.KVHeads
		}
		if next.Theta > 0 {
			l.Rotary, l.Theta = new(true), next.Theta
		}
		if !n.Bias {
			l.Bias = new(false)
		}
		return l, 3
	case n.Op == model.OpPad && n.Name == strings.TrimSuffix(next.Name, ".qkv")+".pad":
		l, _ = layerAt(g, i+1)
		return l, 4
	case next.Op == model.OpWindowAttention:
		l = disdel.Layer{Kind: "windowAttention", Name: strings.TrimSuffix(n.Name, ".qkv"), Heads: next.Heads}
		l.Size, l.SizeHW = side(next.Kernel)
		l.Shift, l.ShiftHW = side(next.Shift)
		for option, set := range map[**bool]bool{&l.Grid: next.Grid, &l.Cosine: next.Cosine} {
			if set {
				*option = new(true)
			}
		}
		if !n.Bias {
			l.Bias = new(false)
		}
		return l, 3
	case next.Op.Gates() > 0:
		l = disdel.Layer{Kind: next.Op.String(), Name: next.Name, Units: next.Units}
		if i+2 < len(g.Nodes) && g.Nodes[i+2].Name == next.Name+".reverse.order" {
			l.Bidirectional = new(true)
			return l, 7
		}
		return l, 2
	case n.Op == model.OpSequence && len(n.Out) == 3:
		l = layerOf(next)
		l.Kind, l.Kernel, l.KernelHW = "conv1d", next.Kernel.H, [2]int{}
		l.Stride, l.StrideHW = next.Stride.H, [2]int{}
		l.Dilation, l.DilationHW = next.Dilation.H, [2]int{}
		if l.Padding = next.Pad.Top; next.Pad.Top == next.Pad.Bottom {
			l.PaddingAt = [4]int{}
		} else {
			l.Padding, l.PaddingAt = 0, [4]int{next.Pad.Top, next.Pad.Bottom}
		}
		return l, 3
	case n.Op == model.OpPad && n.Stride != model.Sides{}:
		l = layerOf(next)
		l.Kind = "convTranspose"
		l.Stride, l.StrideHW = side(n.Stride)
		down, right := next.Dilation.H*(next.Kernel.H-1), next.Dilation.W*(next.Kernel.W-1)
		p := next.Pad
		padded(&l, model.Padding{
			Top: down - p.Top, Bottom: down - p.Bottom, Left: right - p.Left, Right: right - p.Right,
		})
		return l, 2
	}
	return layerOf(n), 1
}

func layerOf(n *model.Node) disdel.Layer {
	l := disdel.Layer{Kind: n.Op.String(), Name: n.Name, Units: n.Units, Filters: n.Filters, Rate: n.Rate}
	window := func() {
		l.Kernel, l.KernelHW = side(n.Kernel)
		l.Stride, l.StrideHW = side(n.Stride)
		padded(&l, n.Pad)
	}
	switch n.Op {
	case model.OpConv:
		window()
		l.Dilation, l.DilationHW = side(n.Dilation)
		l.Groups, l.Bias = n.Groups, &n.Bias
	case model.OpDense:
		l.Bias = &n.Bias
	case model.OpMaxPool, model.OpAvgPool:
		window()
		if l.SamePad = n.Op == model.OpAvgPool && !n.CountPad && n.Pad != (model.Padding{}); l.SamePad {
			l.Padding, l.PaddingAt = 0, [4]int{}
		}
	case model.OpPReLU:
		l.Groups = n.Groups
	case model.OpTakePosition:
		l.Take = n.Take
	case model.OpChannels:
		l.Groups, l.First = n.Groups, n.First
	case model.OpPad:
		padded(&l, n.Pad)
	case model.OpEmbedding:
		l.Units, l.Width, l.Vocabulary = 0, n.Units, n.Vocabulary
		if n.Padded {
			l.Padded = &n.Padded
		}
	case model.OpAdaptiveAvgPool, model.OpUpsample, model.OpSpaceToDepth:
		l.Size, l.SizeHW = side(n.Kernel)
	case model.OpBatchNorm:
		l.Eps, l.Momentum = n.Eps, n.Momentum
	case model.OpLayerNorm, model.OpRMSNorm:
		l.Eps = n.Eps
	case model.OpPositions:
		if n.Fixed {
			l.Learned = new(false)
		}
	case model.OpGroupNorm:
		l.Groups, l.Eps = n.Groups, n.Eps
	case model.OpLeakyReLU:
		l.Slope = n.Slope
	}
	return l
}

// padded writes padding as a Layer has it.
func padded(l *disdel.Layer, pad model.Padding) {
	p := [4]int{pad.Top, pad.Bottom, pad.Left, pad.Right}
	if l.Padding, l.PaddingAt = disdel.EqualSides(p[:]), [4]int{}; l.Padding == 0 {
		l.PaddingAt = p
	}
}

// side writes a window's sides as a Layer has them.
func side(s model.Sides) (one int, two [2]int) {
	if s.H == s.W {
		return s.H, two
	}
	return 0, [2]int{s.H, s.W}
}
