package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/disdel/disdel"
)

// layerKind describes one kind of layer of a job file: its name, its meaning and its options.
type layerKind struct {
	name, meaning string
	options       string // taken besides name and from
	required      string
	many          bool // takes two layers or more
	add           func(b *Builder, name string, in []int, l *disdel.Layer)

	// Of activations, which conv and dense take as an option, too.
	activation Op     // it; OpUnknown: the kind is none
	keras      string // what Keras calls it, where that is another name
	negative   bool   // its values may be below 0

	inside bool // the activation that it takes stands between its own layers, and not behind them
}

// layerKinds is the table of model.layers, in the order that people look for kinds.
var layerKinds = [...]layerKind{
	{
		name: "conv", meaning: "Convolution over an image.",
		options: "filters kernel stride padding dilation groups bias activation", required: "filters kernel", add: addConv,
	},
	{
		name: "conv1d", meaning: "Convolution over the positions of a sequence.",
		options: "filters kernel stride padding dilation groups bias activation", required: "filters kernel", add: addConv1D,
	},
	{
		name:    "convTranspose",
		meaning: "Transposed convolution: an image grows by its stride, and padding takes away pixels.",
		options: "filters kernel stride padding dilation groups bias activation", required: "filters kernel",
		add: addConvTranspose,
	},
	{
		name: "depthwiseConv", meaning: "Convolution of every channel by itself.",
		options: "kernel stride padding dilation bias activation", required: "kernel", add: addDepthwise,
	},
	{
		name: "dense", meaning: "Weighted sums of all inputs, or of each position's; an image is flattened first.",
		options: "units bias activation", required: "units", add: addDense,
	},
	{
		name:    "batchNorm",
		meaning: "Brings every channel to mean 0 and variance 1 over the batch, then scales and shifts it.",
		options: "eps momentum scale center", add: addNorm,
	},
	{
		name: "maxPool", meaning: "The largest value of a window.",
		options: "kernel stride padding", required: "kernel", add: pool(OpMaxPool),
	},
	{
		name: "avgPool", meaning: "The mean of a window.",
		options: "kernel stride padding", required: "kernel", add: pool(OpAvgPool),
	},
	{
		name: "adaptiveAvgPool", meaning: "Means of windows that cover the image, as many as size says.",
		options: "size", required: "size",
		add: func(b *Builder, name string, in []int, l *disdel.Layer) {
			b.adaptivePool(name, in[0], sides(l.Size, l.SizeHW))
		},
	},
	{name: "globalMaxPool", meaning: "The largest value of every channel.", add: single((*Builder).GlobalMaxPool)},
	{name: "globalAvgPool", meaning: "The mean of every channel.", add: single((*Builder).GlobalPool)},
	{
		name: "pad", meaning: "Puts zeros around an image.", options: "padding", required: "padding",
		add: func(b *Builder, name string, in []int, l *disdel.Layer) {
			if l.SamePad {
				b.fail(name, "padding is a number of zeros here, or [top, bottom, left, right]")
			}
			b.Pad(name, in[0], paddingOf(l))
		},
	},
	{
		name: "upsample", meaning: "Repeats each pixel of an image, as many times as size says (nearest).",
		options: "size", required: "size",
		add: func(b *Builder, name string, in []int, l *disdel.Layer) {
			b.Upsample(name, in[0], sides(l.Size, l.SizeHW))
		},
	},
	{
		name: "spaceToDepth", meaning: "Makes one pixel of each block of an image, with the channels of all its pixels.",
		options: "size", required: "size",
		add: func(b *Builder, name string, in []int, l *disdel.Layer) {
			b.SpaceToDepth(name, in[0], sides(l.Size, l.SizeHW))
		},
	},
	{name: "flatten", meaning: "Makes a vector of an image.", add: single((*Builder).Flatten)},
	{name: "relu", meaning: "max(x, 0).", activation: OpReLU},
	{name: "relu6", meaning: "min(max(x, 0), 6).", activation: OpReLU6},
	{name: "sigmoid", meaning: "1 / (1 + exp(-x)).", activation: OpSigmoid},
	{name: "tanh", meaning: "Hyperbolic tangent.", activation: OpTanh, negative: true},
	{
		name: "hardSwish", meaning: "x min(max(x + 3, 0), 6) / 6: the activation of MobileNetV3.",
		activation: OpHardSwish, keras: "hard_silu", negative: true,
	},
	{
		name: "gelu", meaning: "x times the share of a normal distribution that is below x.",
		activation: OpGELU, negative: true,
	},
	{
		name: "geluTanh", meaning: "gelu by a formula with tanh, as GPT-2 has it.",
		activation: OpGELUTanh, keras: notInKeras, negative: true,
	},
	{name: "silu", meaning: "x sigmoid(x), also called swish.", activation: OpSiLU, negative: true},
	{
		name: "leakyRelu", meaning: "x above 0, and slope times x below; as an activation of another layer, of slope 0.01.",
		options: "slope", activation: OpLeakyReLU, keras: notInKeras, negative: true,
		add: func(b *Builder, name string, in []int, l *disdel.Layer) { b.LeakyReLU(name, in[0], l.Slope) },
	},
	{
		name: "prelu", meaning: "x above 0, and a learned slope times x below: one slope, or one for each channel.",
		options: "groups",
		add:     func(b *Builder, name string, in []int, l *disdel.Layer) { b.PReLU(name, in[0], max(l.Groups, 1)) },
	},
	{name: "elu", meaning: "x above 0, exp(x) - 1 below.", activation: OpELU, negative: true},
	{name: "softplus", meaning: "log(1 + exp(x)).", activation: OpSoftplus},
	{
		name: "hardSigmoid", meaning: "min(max(x + 3, 0), 6) / 6.",
		activation: OpHardSigmoid, keras: notInKeras, // whose versions differ
	},
	{name: "softmax", meaning: "Probabilities of the classes; comes last.", activation: OpSoftmax},
	{
		name: "dropout", meaning: "Sets a share of the values to zero in training, and scales the others up.",
		options: "rate", required: "rate",
		add: func(b *Builder, name string, in []int, l *disdel.Layer) { b.Dropout(name, in[0], l.Rate) },
	},
	{
		name: "dropout2d", meaning: "Sets a share of an image's channels to zero in training, and scales the others up.",
		options: "rate", required: "rate",
		add: func(b *Builder, name string, in []int, l *disdel.Layer) { b.Dropout2D(name, in[0], l.Rate) },
	},
	{
		name: "dropPath", options: "rate", required: "rate",
		meaning: "Sets all values of a share of the rows to zero in training, and scales the others up: stochastic depth.",
		add:     func(b *Builder, name string, in []int, l *disdel.Layer) { b.DropPath(name, in[0], l.Rate) },
	},
	{name: "add", meaning: "Sum of layers of one shape: a residual.", many: true, add: joined((*Builder).Add)},
	{
		name: "multiply", meaning: "Product of two layers of one shape, or of an image and a value for each channel.",
		many: true, add: joined((*Builder).Multiply),
	},
	{
		name: "concat", meaning: "Layers of one height and width, channel after channel, or vectors.",
		many: true, add: joined((*Builder).Concat),
	},
	{
		name: "channels", options: "first filters groups",
		meaning: "Takes channels of an image. With groups, one of each group comes in turn: a channel shuffle.",
		add: func(b *Builder, name string, in []int, l *disdel.Layer) {
			b.Channels(name, in[0], l.First, l.Filters, l.Groups)
		},
	},
	{
		name: "embedding", meaning: "A vector for each token of a row: a sequence. Tokens are whole numbers from 0.",
		options: "vocabulary width padded", required: "vocabulary width", add: addEmbedding,
	},
	{
		name: "positions", meaning: "Adds a vector of its own to each position of a sequence.",
		options: "learned",
		add:     func(b *Builder, name string, in []int, l *disdel.Layer) { b.Positions(name, in[0], !isTrue(l.Learned)) },
	},
	{
		name: "layerNorm", meaning: "Brings the channels of each position or pixel to mean 0 and variance 1.",
		options: "eps", add: addLayerNorm(OpLayerNorm),
	},
	{
		name: "rmsNorm", meaning: "Divides the channels of each position by the root of their mean square.",
		options: "eps", add: addLayerNorm(OpRMSNorm),
	},
	{
		name: "groupNorm", options: "groups eps", required: "groups",
		meaning: "Brings each group of an image's channels to mean 0 and variance 1, then scales and shifts each channel.",
		add:     func(b *Builder, name string, in []int, l *disdel.Layer) { b.GroupNorm(name, in[0], l.Groups, l.Eps) },
	},
	{
		name: "multiHeadAttention", meaning: "Each position takes a mean of all positions, by weights of its own.",
		options: "heads kvHeads causal rotary theta bias", required: "heads", add: addAttention,
	},
	{
		name:    "windowAttention",
		meaning: "Each pixel takes a mean of the pixels of its window, by weights of its own (Swin, MaxViT).",
		options: "heads size shift grid cosine bias", required: "heads size", add: addWindowAttention,
	},
	{
		name: "transformer", meaning: "A block of a transformer: an attention, two dense layers with gelu, sums and norms.",
		options: "heads kvHeads causal rotary theta hidden normFirst rate eps activation", required: "heads", inside: true,
		add: addTransformer,
	},
	{
		name: "lstm", meaning: "Reads a sequence from the first position to the last, with a memory (PyTorch's LSTM).",
		options: "units bidirectional", required: "units", add: addRecurrent(OpLSTM),
	},
	{
		name: "gru", meaning: "A smaller lstm (PyTorch's GRU).",
		options: "units bidirectional", required: "units", add: addRecurrent(OpGRU),
	},
	{
		name: "tiedDense", meaning: "An output for each token: a dense layer with the weight of the embedding.",
		add: addTiedDense,
	},
	{name: "sequence", meaning: "Makes a sequence of the pixels of an image.", add: single((*Builder).Sequence)},
	{
		name: "classToken", meaning: "Puts a learned position before those of a sequence.",
		add: single((*Builder).ClassToken),
	},
	{
		name: "takePosition", meaning: "Makes a vector of a sequence: one position, the mean of all, or both ends.",
		options: "take", required: "take",
		add: func(b *Builder, name string, in []int, l *disdel.Layer) { b.TakePosition(name, in[0], l.Take) },
	},
	{
		name: "input", meaning: "What the network is made for; comes first, and may be left out.",
		options: "shape", required: "shape", add: addInput,
	},
}

// layerKindOf is the row of a kind, nil where there is none of that name.
func layerKindOf(name string) *layerKind {
	for i := range layerKinds {
		if layerKinds[i].name == name {
			return &layerKinds[i]
		}
	}
	return nil
}

// activationOf is the row of an activation, nil where there is none of that name.
func activationOf(name string) *layerKind {
	if k := layerKindOf(name); k != nil && k.activation != OpUnknown {
		return k
	}
	return nil
}

// optionDefaults are the options' defaults; pools differ in their stride.
var optionDefaults = map[string]string{
	"first": "0", "filters": "all that follow",
	"stride": "1", "padding": "0", "dilation": "1", "groups": "1", "bias": "true", "activation": "none",
	"eps": "1e-05", "momentum": "0.1", "scale": "true", "center": "true", "learned": "true", "padded": "false",
	"kvHeads": "heads", "causal": "false", "rotary": "false", "theta": "10000", "bidirectional": "false",
	"shift": "0", "grid": "false", "cosine": "false",
	"hidden": "4 x channels", "normFirst": "true", "rate": "0", "slope": "0.01",
}

func single(add func(*Builder, string, int) int) func(*Builder, string, []int, *disdel.Layer) {
	return func(b *Builder, name string, in []int, _ *disdel.Layer) { add(b, name, in[0]) }
}

func joined(add func(*Builder, string, ...int) int) func(*Builder, string, []int, *disdel.Layer) {
	return func(b *Builder, name string, in []int, _ *disdel.Layer) { add(b, name, in...) }
}

// addInput holds the data against what the network is made for. A network made for a vector takes an image as one.
func addInput(b *Builder, name string, in []int, l *disdel.Layer) {
	got, want := b.Out(in[0]), Shape(l.Shape)
	switch {
	case b.Last() > 0:
		b.fail(name, "input comes first")
	case fmt.Sprint(got) == fmt.Sprint(want):
		b.alias(name, in[0])
	case len(want) == 1 && got.Len() == want.Len():
		b.Flatten(name, in[0])
	default:
		b.fail(name, "the network is made for %v, and the data has %v", l.Shape, []int(got))
	}
}

// window is a layer's kernel, stride, dilation and padding; a stride not given stays zero.
func (b *Builder) window(name string, in int, l *disdel.Layer) Window {
	w := Window{
		Kernel: sides(l.Kernel, l.KernelHW), Stride: sides(l.Stride, l.StrideHW),
		Dilation: sides(l.Dilation, l.DilationHW),
	}
	w.Pad = paddingOf(l)
	if l.SamePad {
		_, height, width := b.image(name, in)
		return w.SamePad(height, width)
	}
	return w
}

// paddingOf is the zeros around a layer's image, if they are given in pixels.
func paddingOf(l *disdel.Layer) Padding {
	if p := l.PaddingAt; p != [4]int{} {
		return Padding{Top: p[0], Bottom: p[1], Left: p[2], Right: p[3]}
	}
	return Padding{l.Padding, l.Padding, l.Padding, l.Padding}
}

func sides(one int, two [2]int) Sides {
	if two != [2]int{} {
		return Sides{two[0], two[1]}
	}
	return Sides{one, one}
}

func addConv(b *Builder, name string, in []int, l *disdel.Layer) {
	b.Conv(name, in[0], l.Filters, b.window(name, in[0], l), l.Groups, isTrue(l.Bias))
}

// addConv1D takes windows with one side, and zeros before and behind the sequence, which [top, bottom, 0, 0] names.
func addConv1D(b *Builder, name string, in []int, l *disdel.Layer) {
	if l.KernelHW != [2]int{} || l.StrideHW != [2]int{} || l.DilationHW != [2]int{} {
		b.fail(name, "kernel, stride and dilation are numbers of positions")
	}
	w := Window{
		Kernel: Sides{l.Kernel, 1}, Stride: Sides{max(l.Stride, 1), 1}, Dilation: Sides{max(l.Dilation, 1), 1},
		Pad: paddingOf(l),
	}
	if l.Padding > 0 {
		w.Pad.Left, w.Pad.Right = 0, 0
	}
	if l.SamePad {
		_, positions := b.sequence(name, in[0])
		w = w.SamePad(positions, 1)
	}
	b.Conv1D(name, in[0], l.Filters, w, l.Groups, isTrue(l.Bias))
}

func addConvTranspose(b *Builder, name string, in []int, l *disdel.Layer) {
	if l.SamePad {
		b.fail(name, "padding is a number of pixels here, or [top, bottom, left, right]")
	}
	b.ConvTranspose(name, in[0], l.Filters, b.window(name, in[0], l), l.Groups, isTrue(l.Bias))
}

func addDepthwise(b *Builder, name string, in []int, l *disdel.Layer) {
	c, _, _ := b.image(name, in[0])
	b.Conv(name, in[0], c, b.window(name, in[0], l), c, isTrue(l.Bias))
}

// isTrue reads an option that is on unless it says otherwise.
func isTrue(v *bool) bool { return v == nil || *v }

// isSet reads an option that is off unless it says otherwise.
func isSet(v *bool) bool { return v != nil && *v }

// addDense flattens an image first, as people expect.
func addDense(b *Builder, name string, in []int, l *disdel.Layer) {
	from := in[0]
	if len(b.Out(from)) == 3 {
		from = b.Flatten(name+".flatten", from)
	}
	b.dense(name, from, l.Units, isTrue(l.Bias))
}

// addEmbedding makes a row of tokens of data with the shape of an image.
func addEmbedding(b *Builder, name string, in []int, l *disdel.Layer) {
	from := in[0]
	if len(b.Out(from)) == 3 {
		from = b.Flatten(name+".flatten", from)
	}
	b.Embedding(name, from, l.Vocabulary, l.Width, isSet(l.Padded))
}

func addTransformer(b *Builder, name string, in []int, l *disdel.Layer) {
	b.Transformer(name, in[0], Transformer{
		Attention: attentionOf(l), Hidden: l.Hidden, PostNorm: !isTrue(l.NormFirst), Dropout: l.Rate, Eps: l.Eps,
		Activation: opNamed(l.Activation),
	})
}

// opNamed is the Op that job files call by a name, OpUnknown if there is none.
func opNamed(name string) Op {
	return Op(max(0, slices.IndexFunc(ops[:], func(o op) bool { return o.name == name })))
}

// addTiedDense needs no name of the embedding: a network has one.
func addTiedDense(b *Builder, name string, in []int, _ *disdel.Layer) {
	for i := range b.g.Nodes {
		if b.g.Nodes[i].Op == OpEmbedding {
			b.TiedDense(name, in[0], i)
			return
		}
	}
	b.fail(name, "it has the weight of an embedding, and the network has none")
}

func addRecurrent(op Op) func(*Builder, string, []int, *disdel.Layer) {
	return func(b *Builder, name string, in []int, l *disdel.Layer) {
		if isSet(l.Bidirectional) {
			b.Bidirectional(name, in[0], op, l.Units)
			return
		}
		b.Recurrent(name, in[0], op, l.Units)
	}
}

func attentionOf(l *disdel.Layer) Attention {
	a := Attention{Heads: l.Heads, KVHeads: l.KVHeads, Causal: isSet(l.Causal), NoBias: !isTrue(l.Bias)}
	if isSet(l.Rotary) {
		a.Theta = cmp.Or(l.Theta, UsualTheta)
	}
	return a
}

func addWindowAttention(b *Builder, name string, in []int, l *disdel.Layer) {
	b.WindowAttention(name, in[0], WindowAttention{
		Heads: l.Heads, Window: sides(l.Size, l.SizeHW), Shift: sides(l.Shift, l.ShiftHW), Grid: isSet(l.Grid),
		Cosine: isSet(l.Cosine), NoBias: !isTrue(l.Bias),
	})
}

func addAttention(b *Builder, name string, in []int, l *disdel.Layer) {
	b.MultiHeadAttention(name, in[0], attentionOf(l))
}

func addLayerNorm(op Op) func(*Builder, string, []int, *disdel.Layer) {
	return func(b *Builder, name string, in []int, l *disdel.Layer) { b.LayerNorm(name, in[0], op, l.Eps) }
}

func addNorm(b *Builder, name string, in []int, l *disdel.Layer) {
	b.Norm(name, in[0], Norm{Eps: l.Eps, Momentum: l.Momentum, NoScale: !isTrue(l.Scale), NoCenter: !isTrue(l.Center)})
}

// pool counts padding that is given in pixels, as zeros count, and leaves out the padding of "same", as TensorFlow
// does.
func pool(op Op) func(*Builder, string, []int, *disdel.Layer) {
	return func(b *Builder, name string, in []int, l *disdel.Layer) {
		if l.Stride == 0 && l.StrideHW == [2]int{} {
			k := *l
			k.Stride, k.StrideHW = l.Kernel, l.KernelHW
			l = &k
		}
		w := b.window(name, in[0], l)
		w.CountPad = !l.SamePad
		b.Pool(name, in[0], op, w)
	}
}

// layerName is what a layer is called: as it says, else by its place, as torch.nn.Sequential does: "0", "1", ...
func layerName(i int, l *disdel.Layer) string { return cmp.Or(l.Name, fmt.Sprint(i)) }

// fromLayers builds a job file's list.
func fromLayers(n disdel.Network) (*Graph, error) { return buildLayers("layers", n) }

func buildLayers(title string, n disdel.Network) (*Graph, error) {
	layers := n.Layers
	b := NewBuilder(title, Shape(n.Input))
	ends := map[string]int{"input": 0} // the node that a layer's output comes from
	for i := range layers {
		if b.err == nil {
			b.addLayer(layerName(i, &layers[i]), &layers[i], ends)
		}
	}
	for _, node := range b.g.Nodes[:len(b.g.Nodes)-1] {
		if node.Op == OpSoftmax {
			b.fail(node.Name, "softmax may only come last")
		}
	}
	if n.NextToken {
		if b.err == nil {
			b.checkTokens(n.Classes)
		}
		return b.Graph()
	}
	if last := b.g.Nodes[len(b.g.Nodes)-1]; len(last.Out) == 2 {
		b.fail(last.Name, "the output %v is a sequence; make a vector of it with takePosition or flatten", []int(last.Out))
	}
	return b.Graph()
}

func (b *Builder) addLayer(name string, l *disdel.Layer, ends map[string]int) {
	kind := layerKindOf(l.Kind)
	if kind == nil {
		b.fail(name, "there is no kind of layer %q", l.Kind)
		return
	}
	in := []int{b.last}
	if len(l.From) > 0 {
		in = in[:0]
	}
	for _, from := range l.From {
		node, ok := ends[from]
		if !ok {
			b.fail(name, "there is no layer %q before it", from)
		}
		in = append(in, node)
	}
	if kind.many != (len(in) > 1) {
		b.fail(name, "%s cannot take %d layers", l.Kind, len(in))
		return
	}
	if kind.add != nil {
		kind.add(b, name, in, l)
	} else {
		b.Same(name, in[0], kind.activation)
	}
	if after := activationOf(l.Activation); after != nil && !kind.inside {
		b.Same(name+"."+l.Activation, b.last, after.activation)
	}
	if _, taken := ends[name]; taken {
		b.fail(name, "the name is taken")
	}
	ends[name] = b.last
}

// LayerKinds lists the kinds of layers a job file may name, by name.
func LayerKinds() []string {
	out := make([]string, 0, len(layerKinds))
	for i := range layerKinds {
		out = append(out, layerKinds[i].name)
	}
	slices.Sort(out)
	return out
}

// Activations are the words that conv and dense take as their activation.
func Activations() []string {
	var out []string
	for i := range layerKinds {
		if k := &layerKinds[i]; k.activation != OpUnknown {
			out = append(out, k.name)
		}
	}
	return out
}

// KindOption is one option of a kind of layer.
type KindOption struct {
	Name     string
	Required bool
	Default  string // as a job file would give it, or in words; "" where it is required
}

// Kind is what a job file may say of one kind of layer, for people and programs that ask.
type Kind struct {
	Name, Meaning string
	Options       []KindOption // besides name and from, which every layer takes
	Many          bool         // takes two layers or more
}

// Kinds describes every kind of layer that a job file may name.
func Kinds() []Kind {
	out := make([]Kind, 0, len(layerKinds))
	for i := range layerKinds {
		out = append(out, layerKinds[i].describe())
	}
	return out
}

// FindKind describes one kind of layer.
func FindKind(name string) (Kind, bool) {
	k := layerKindOf(name)
	if k == nil {
		return Kind{}, false
	}
	return k.describe(), true
}

func (k *layerKind) describe() Kind {
	d := Kind{Name: k.name, Meaning: k.meaning, Many: k.many}
	for _, option := range words(k.options) {
		o := KindOption{Name: option, Required: slices.Contains(words(k.required), option)}
		switch {
		case o.Required:
		case option == "stride" && strings.HasSuffix(k.name, "Pool"):
			o.Default = "the kernel"
		default:
			o.Default = optionDefaults[option]
		}
		d.Options = append(d.Options, o)
	}
	return d
}

func words(list string) []string { return strings.Fields(list) }

// TwoOutputs makes two outputs with softmax of a network's single output with sigmoid, as people write a choice between
// two classes. Both can say the same: the sigmoid of z is the softmax of 0 and z. ok is false for any other network.
func TwoOutputs(layers []disdel.Layer) (out []disdel.Layer, ok bool) {
	last := len(layers) - 1
	switch {
	case last >= 0 && layers[last].Kind == "dense" && layers[last].Units == 1 && layers[last].Activation == "sigmoid":
		out = slices.Clone(layers)
		out[last].Units, out[last].Activation = 2, "softmax"
		return out, true
	case last >= 1 && layers[last].Kind == "sigmoid" && follows(layers, last) && layers[last-1].Kind == "dense" &&
		layers[last-1].Units == 1 && layers[last-1].Activation == "":
		out = slices.Clone(layers)
		out[last-1].Units, out[last].Kind = 2, "softmax"
		return out, true
	default:
		return nil, false
	}
}

// WithOutputs returns layers whose last layer with weights has n outputs. ok is false for layers that do not end in a
// dense layer, with or without an activation or dropout after it.
func WithOutputs(layers []disdel.Layer, n int) (out []disdel.Layer, ok bool) {
	for i := len(layers) - 1; i >= 0; i-- {
		switch l := &layers[i]; {
		case l.Kind == "dense":
			out = slices.Clone(layers)
			out[i].Units = n
			return out, true
		case !slices.Contains(afterHead, l.Kind) || !follows(layers, i):
			return nil, false
		}
	}
	return nil, false
}

// afterHead lists kinds of layers without weights that may follow the last dense layer.
var afterHead = []string{"softmax", "sigmoid", "tanh", "relu", "dropout", "flatten"}

// follows says whether layer i takes the one before it.
func follows(layers []disdel.Layer, i int) bool {
	from := layers[i].From
	return len(from) == 0 || len(from) == 1 && from[0] == layerName(i-1, &layers[i-1])
}
