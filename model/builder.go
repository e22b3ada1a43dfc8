package model

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/disdel/disdel"
)

// Builder makes a graph node by node. Each method returns the index of the node it added; after a mistake the rest are
// ignored and Graph returns the first error. The zero value is not usable.
type Builder struct {
	g     Graph
	names map[string]bool
	last  int  // the node that the next one follows unless it says otherwise
	next  bool // the network learns the next token at each position
	err   error
}

// NewBuilder starts a graph with an input of one sample's shape.
func NewBuilder(name string, input Shape) *Builder {
	b := &Builder{g: Graph{Name: name}, names: map[string]bool{"input": true}}
	for _, v := range input {
		if v < 1 {
			b.fail("input", "shape %v has a side below 1", []int(input))
		}
	}
	if b.err == nil && tooLarge(input) {
		b.fail("input", "an input of %v is beyond any machine", []int(input))
	}
	if len(input) != 1 && len(input) != 3 {
		b.fail("input", "shape %v is neither [units] nor [channels height width]", []int(input))
	}
	b.g.Nodes = []Node{{Name: "input", Op: OpInput, Out: input}}
	return b
}

// Graph returns the finished graph, or the first error (Invalid).
func (b *Builder) Graph() (*Graph, error) {
	if b.err != nil {
		return nil, b.err
	}
	g := b.g
	return &g, nil
}

func (b *Builder) fail(layer, format string, args ...any) {
	if b.err == nil {
		b.err = &disdel.Error{
			Kind: disdel.Invalid, Op: "build network " + b.g.Name,
			Msg: fmt.Sprintf("layer %s: %s", layer, fmt.Sprintf(format, args...)),
		}
	}
}

// Out is the shape of a node's output.
func (b *Builder) Out(node int) Shape { return b.g.Nodes[node].Out }

// Last is the index of the newest node.
func (b *Builder) Last() int { return len(b.g.Nodes) - 1 }

// What no machine computes: bounds of an array's values, of a layer's products and of a window's sides, so that no
// count overflows.
const (
	largestArray  = 1 << 40
	largestWork   = 1 << 52
	largestWindow = 1 << 20
)

// tooLarge says whether a product of sides is no count of values that could be stored.
func tooLarge(sides []int) bool {
	p := product(sides)
	return p < 1 || p > largestArray
}

func product(sides []int) float64 {
	p := 1.0
	for _, v := range sides {
		p *= float64(v)
	}
	return p
}

// weights is the shape of a node's largest array of weights, [1] where that is no matter.
func (b *Builder) weights(n *Node) []int {
	if weight := ops[n.Op].weight; weight != nil {
		return weight(n, b.Out(n.Inputs[0]))
	}
	return []int{1}
}

func (b *Builder) add(n Node) int {
	if b.err != nil {
		return 0
	}
	if n.Name == "" || b.names[n.Name] {
		b.fail(n.Name, "the name is empty or taken")
		return 0
	}
	if w := b.weights(&n); tooLarge(n.Out) || tooLarge(w) || float64(n.Out.Len())*product(w[1:]) > largestWork {
		b.fail(n.Name, "an output of %v or its weights are beyond any machine", []int(n.Out))
		return 0
	}
	b.names[n.Name] = true
	b.g.Nodes = append(b.g.Nodes, n)
	b.last = len(b.g.Nodes) - 1
	return b.last
}

// alias continues from a node that is there already, under another name.
func (b *Builder) alias(name string, node int) {
	if name == "" || b.names[name] {
		b.fail(name, "the name is empty or taken")
	}
	b.names[name], b.last = true, node
}

// image returns the input's shape as channels, height, width.
func (b *Builder) image(name string, in int) (c, h, w int) {
	s := b.Out(in)
	if len(s) != 3 {
		b.fail(name, "its input %v is no image", []int(s))
		return 1, 1, 1
	}
	return s[0], s[1], s[2]
}

// Window is a kernel sliding over an image. Zero sides mean: stride 1 (pools: the kernel), no padding, dilation 1.
type Window struct {
	Kernel, Stride, Dilation Sides
	Pad                      Padding
	CountPad                 bool // average pools only
}

// Square is a window with equal sides.
func Square(kernel, stride, pad int) Window {
	return Window{Kernel: Sides{kernel, kernel}, Stride: Sides{stride, stride}, Pad: Padding{pad, pad, pad, pad}}
}

// SamePad pads a window as padding "same" of TensorFlow does for an image of height x width: the output has
// ceil(size/stride) pixels, and the odd zero goes to the bottom and right.
func (w Window) SamePad(height, width int) Window {
	side := func(size, kernel, stride, dilation int) (before, after int) {
		stride, dilation = max(stride, 1), max(dilation, 1)
		total := max(((size+stride-1)/stride-1)*stride+dilation*(kernel-1)+1-size, 0)
		return total / 2, total - total/2
	}
	w.Pad.Top, w.Pad.Bottom = side(height, w.Kernel.H, w.Stride.H, w.Dilation.H)
	w.Pad.Left, w.Pad.Right = side(width, w.Kernel.W, w.Stride.W, w.Dilation.W)
	return w
}

// slide returns the size of the output of a window, checking that at least one position fits.
func (b *Builder) slide(name string, w *Window, height, width int) (oh, ow int) {
	if w.Stride == (Sides{}) {
		w.Stride = Sides{1, 1}
	}
	if w.Dilation == (Sides{}) {
		w.Dilation = Sides{1, 1}
	}
	side := func(size, before, after, kernel, stride, dilation int) int {
		reach := dilation*(kernel-1) + 1
		if max(kernel, stride, dilation, before, after) > largestWindow || kernel < 1 || stride < 1 || dilation < 1 ||
			before < 0 || after < 0 || size+before+after < reach {
			b.fail(name, "a window of %d (stride %d, dilation %d) does not fit %d pixels with padding %d and %d", kernel, stride,
				dilation, size, before, after)
			return 1
		}
		return (size+before+after-reach)/stride + 1
	}
	oh = side(height, w.Pad.Top, w.Pad.Bottom, w.Kernel.H, w.Stride.H, w.Dilation.H)
	ow = side(width, w.Pad.Left, w.Pad.Right, w.Kernel.W, w.Stride.W, w.Dilation.W)
	return oh, ow
}

// Conv adds a convolution to filters channels; groups equal to the input's channels make it depthwise.
func (b *Builder) Conv(name string, in, filters int, w Window, groups int, bias bool) int {
	c, h, wd := b.image(name, in)
	oh, ow := b.slide(name, &w, h, wd)
	groups = max(groups, 1)
	if filters < 1 || c%groups != 0 || filters%groups != 0 {
		b.fail(name, "%d groups do not divide %d input and %d output channels", groups, c, filters)
	}
	return b.add(Node{
		Name: name, Op: OpConv, Inputs: []int{in}, Out: Shape{filters, oh, ow}, Filters: filters,
		Kernel: w.Kernel, Stride: w.Stride, Pad: w.Pad, Dilation: w.Dilation, Groups: groups, Bias: bias,
	})
}

// LayerScale multiplies each channel of an image with a learned number that starts as first (Touvron 2021): a depthwise
// convolution of single pixels.
func (b *Builder) LayerScale(name string, in int, first float64) int {
	c, _, _ := b.image(name, in)
	x := b.Conv(name, in, c, Square(1, 1, 0), c, false)
	b.g.Nodes[x].Factor = first
	return x
}

// Dense adds a fully connected layer on a vector, or on each position of a sequence.
func (b *Builder) Dense(name string, in, units int) int { return b.dense(name, in, units, true) }

// DenseWithoutBias adds the same without a bias.
func (b *Builder) DenseWithoutBias(name string, in, units int) int {
	return b.dense(name, in, units, false)
}

func (b *Builder) dense(name string, in, units int, bias bool) int {
	out := append(Shape{units}, b.Out(in)[1:]...)
	if len(out) > 2 {
		b.fail(name, "its input %v is neither vector nor sequence; flatten it first", []int(b.Out(in)))
	}
	if units < 1 {
		b.fail(name, "units must be at least 1")
	}
	return b.add(Node{Name: name, Op: OpDense, Inputs: []int{in}, Out: out, Units: units, Bias: bias})
}

// Norm says how a batch norm works. Zero values are PyTorch's: eps 1e-5, momentum 0.1, weight and bias.
type Norm struct {
	Eps, Momentum     float64
	NoScale, NoCenter bool
}

// BatchNorm adds a normalisation over channels with PyTorch's defaults.
func (b *Builder) BatchNorm(name string, in int) int { return b.Norm(name, in, Norm{}) }

// Norm adds a normalisation over channels.
func (b *Builder) Norm(name string, in int, n Norm) int {
	eps, momentum := cmp.Or(n.Eps, 1e-5), cmp.Or(n.Momentum, 0.1)
	if !(eps > 0) || !(momentum > 0) || momentum > 1 {
		b.fail(name, "eps %g must be above 0, and momentum %g above 0 and at most 1", eps, momentum)
	}
	return b.add(Node{
		Name: name, Op: OpBatchNorm, Inputs: []int{in}, Out: b.Out(in),
		Eps: eps, Momentum: momentum, NoScale: n.NoScale, NoCenter: n.NoCenter,
	})
}

// GroupNorm adds a normalisation of an image over the pixels of each group of channels. An eps of 0 is 1e-5.
func (b *Builder) GroupNorm(name string, in, groups int, eps float64) int {
	channels, _, _ := b.image(name, in)
	if eps == 0 {
		eps = 1e-5
	}
	switch {
	case groups < 1 || channels%groups != 0:
		b.fail(name, "%d groups must divide %d channels", groups, channels)
	case !(eps > 0):
		b.fail(name, "eps %g must be above 0", eps)
	}
	return b.add(Node{Name: name, Op: OpGroupNorm, Inputs: []int{in}, Out: b.Out(in), Groups: groups, Eps: eps})
}

// Same adds an activation: an op whose output has its input's shape. OpSoftmax takes a vector.
func (b *Builder) Same(name string, in int, op Op) int {
	if op == OpSoftmax && len(b.Out(in)) != 1 {
		b.fail(name, "softmax takes a vector, not %v; make one with flatten or takePosition", []int(b.Out(in)))
	}
	n := Node{Name: name, Op: op, Inputs: []int{in}, Out: b.Out(in)}
	if op == OpLeakyReLU {
		n.Slope = defaultSlope
	}
	return b.add(n)
}

// Slopes of PyTorch: of a leaky ReLU, and what a learned one starts from.
const (
	defaultSlope = 0.01
	firstSlope   = 0.25
)

// LeakyReLU adds a ReLU that multiplies values below 0 with a slope, above 0 and at most 1; 0 means 0.01.
func (b *Builder) LeakyReLU(name string, in int, slope float64) int {
	if !(slope >= 0 && slope <= 1) {
		b.fail(name, "slope %g must be above 0 and at most 1", slope)
	}
	return b.add(Node{
		Name: name, Op: OpLeakyReLU, Inputs: []int{in}, Out: b.Out(in), Slope: cmp.Or(slope, defaultSlope),
	})
}

// PReLU adds a ReLU that multiplies values below 0 with a learned slope (He 2015): slopes is 1, a slope for all
// channels, or the number of channels. Slopes start at 0.25, as PyTorch's do.
func (b *Builder) PReLU(name string, in, slopes int) int {
	if c := b.Out(in)[0]; slopes != 1 && slopes != c {
		b.fail(name, "%d slopes for %d channels; there is one for all of them, or one for each", slopes, c)
	}
	return b.add(Node{Name: name, Op: OpPReLU, Inputs: []int{in}, Out: b.Out(in), Groups: slopes})
}

// Pad puts zeros around an image.
func (b *Builder) Pad(name string, in int, p Padding) int {
	c, h, w := b.image(name, in)
	if min(p.Top, p.Bottom, p.Left, p.Right) < 0 || max(p.Top, p.Bottom, p.Left, p.Right) > largestWindow {
		b.fail(name, "padding %v must be 0 to %d on each side", p, largestWindow)
	}
	return b.add(Node{
		Name: name, Op: OpPad, Inputs: []int{in}, Out: Shape{c, h + p.Top + p.Bottom, w + p.Left + p.Right}, Pad: p,
	})
}

// ConvTranspose adds a transposed convolution: NAME.apart puts zeros between the pixels, which are stride apart, and
// NAME is a convolution of that. The weight is the convolution's, [filters channels/groups height width]: PyTorch's
// with the first two sides exchanged in each group, and both windows' sides turned around.
func (b *Builder) ConvTranspose(name string, in, filters int, w Window, groups int, bias bool) int {
	c, height, width := b.image(name, in)
	apart := Sides{max(w.Stride.H, 1), max(w.Stride.W, 1)}
	w.Stride, w.Dilation = Sides{1, 1}, Sides{max(w.Dilation.H, 1), max(w.Dilation.W, 1)}
	down, right := w.Dilation.H*(w.Kernel.H-1), w.Dilation.W*(w.Kernel.W-1)
	p := Padding{Top: down - w.Pad.Top, Bottom: down - w.Pad.Bottom, Left: right - w.Pad.Left, Right: right - w.Pad.Right}
	if min(p.Top, p.Bottom, p.Left, p.Right) < 0 || max(apart.H, apart.W) > largestWindow {
		b.fail(name, "padding %v takes away more than a window of %dx%d adds", w.Pad, w.Kernel.H, w.Kernel.W)
	}
	w.Pad = p
	x := b.add(Node{
		Name: name + ".apart", Op: OpPad, Inputs: []int{in}, Stride: apart,
		Out: Shape{c, (height-1)*apart.H + 1, (width-1)*apart.W + 1},
	})
	return b.Conv(name, x, filters, w, groups, bias)
}

// Upsample repeats each pixel of an image times.H times downwards and times.W times to the right (nearest).
func (b *Builder) Upsample(name string, in int, times Sides) int {
	c, h, w := b.image(name, in)
	if min(times.H, times.W) < 1 || max(times.H, times.W) > largestWindow {
		b.fail(name, "size %dx%d must be 1 to %d", times.H, times.W, largestWindow)
	}
	return b.add(Node{
		Name: name, Op: OpUpsample, Inputs: []int{in}, Out: Shape{c, h * times.H, w * times.W}, Kernel: times,
	})
}

// Pool adds OpMaxPool or OpAvgPool.
func (b *Builder) Pool(name string, in int, op Op, w Window) int {
	c, h, wd := b.image(name, in)
	if w.Stride == (Sides{}) {
		w.Stride = w.Kernel
	}
	oh, ow := b.slide(name, &w, h, wd)
	count := w.CountPad && op == OpAvgPool
	if p := w.Pad; !count && (max(p.Top, p.Bottom) >= w.Kernel.H || max(p.Left, p.Right) >= w.Kernel.W) {
		b.fail(name, "padding %v of a window of %dx%d: some windows would see padding alone", p, w.Kernel.H, w.Kernel.W)
	}
	return b.add(Node{
		Name: name, Op: op, Inputs: []int{in}, Out: Shape{c, oh, ow}, Kernel: w.Kernel, Stride: w.Stride,
		Pad: w.Pad, CountPad: count,
	})
}

// AdaptivePool averages to side x side, whatever the input.
func (b *Builder) AdaptivePool(name string, in, side int) int {
	return b.adaptivePool(name, in, Sides{side, side})
}

func (b *Builder) adaptivePool(name string, in int, size Sides) int {
	c, _, _ := b.image(name, in)
	return b.add(Node{
		Name: name, Op: OpAdaptiveAvgPool, Inputs: []int{in}, Out: Shape{c, size.H, size.W}, Kernel: size,
	})
}

// GlobalMaxPool takes the largest value of each channel: [channels 1 1].
func (b *Builder) GlobalMaxPool(name string, in int) int {
	_, h, w := b.image(name, in)
	return b.Pool(name, in, OpMaxPool, Window{Kernel: Sides{h, w}})
}

// GlobalPool averages each channel to one value: [channels 1 1].
func (b *Builder) GlobalPool(name string, in int) int {
	c, _, _ := b.image(name, in)
	return b.add(Node{Name: name, Op: OpGlobalAvgPool, Inputs: []int{in}, Out: Shape{c, 1, 1}})
}

// Dropout zeroes a share of values while training.
func (b *Builder) Dropout(name string, in int, rate float64) int {
	return b.dropout(name, in, OpDropout, rate)
}

// Dropout2D zeroes a share of an image's channels while training.
func (b *Builder) Dropout2D(name string, in int, rate float64) int {
	b.image(name, in)
	return b.dropout(name, in, OpDropout2D, rate)
}

// DropPath zeroes all values of a share of the rows while training: stochastic depth, of a branch before its sum.
func (b *Builder) DropPath(name string, in int, rate float64) int {
	return b.dropout(name, in, OpDropPath, rate)
}

func (b *Builder) dropout(name string, in int, op Op, rate float64) int {
	if rate < 0 || rate >= 1 {
		b.fail(name, "rate %g is not in [0, 1)", rate)
	}
	return b.add(Node{Name: name, Op: op, Inputs: []int{in}, Out: b.Out(in), Rate: rate})
}

// Flatten makes a vector of an image.
func (b *Builder) Flatten(name string, in int) int {
	return b.add(Node{Name: name, Op: OpFlatten, Inputs: []int{in}, Out: Shape{b.Out(in).Len()}})
}

// Add sums nodes of one shape.
func (b *Builder) Add(name string, in ...int) int {
	for _, n := range in {
		if fmt.Sprint(b.Out(n)) != fmt.Sprint(b.Out(in[0])) {
			b.fail(name, "cannot add %v and %v", []int(b.Out(in[0])), []int(b.Out(n)))
		}
	}
	return b.add(Node{Name: name, Op: OpAdd, Inputs: in, Out: b.Out(in[0])})
}

// Multiply multiplies two nodes of one shape, or an image with a value for each channel, [channels 1 1]: the gate of
// squeeze and excitation (Hu 2018).
func (b *Builder) Multiply(name string, in ...int) int {
	if len(in) != 2 {
		b.fail(name, "it multiplies two layers, not %d", len(in))
		return 0
	}
	x, gate := in[0], in[1]
	isGate := func(gate, x Shape) bool { return len(x) == 3 && slices.Equal(gate, Shape{x[0], 1, 1}) }
	if isGate(b.Out(x), b.Out(gate)) {
		x, gate = gate, x
	}
	if a, g := b.Out(x), b.Out(gate); !slices.Equal(a, g) && !isGate(g, a) {
		b.fail(name, "cannot multiply %v and %v; shapes are equal, or one is [channels 1 1]", []int(a), []int(g))
	}
	return b.add(Node{Name: name, Op: OpMultiply, Inputs: []int{x, gate}, Out: b.Out(x)})
}

// Concat joins images of one size, or sequences of as many positions, along channels.
func (b *Builder) Concat(name string, in ...int) int {
	size, rank := b.image, len(b.Out(in[0]))
	switch rank {
	case 1:
		size = func(name string, in int) (c, h, w int) {
			out := b.Out(in)
			if len(out) != 1 {
				b.fail(name, "its input %v is no vector, and its first one is", []int(out))
			}
			return out[0], 1, 1
		}
	case 2:
		size = func(name string, in int) (c, h, w int) { c, h = b.sequence(name, in); return c, h, 1 }
	}
	_, h, w := size(name, in[0])
	channels := 0
	for _, n := range in {
		c, nh, nw := size(name, n)
		if nh != h || nw != w {
			b.fail(name, "cannot join %dx%d and %dx%d pixels", h, w, nh, nw)
		}
		channels += c
	}
	return b.add(Node{Name: name, Op: OpConcat, Inputs: in, Out: Shape{channels, h, w}[:min(rank, 3)]})
}

// Channels takes count channels of an image, from first on; 0 takes all that follow. With groups above 1, the channels
// are those of groups of equal size, one of each group in turn: ShuffleNet's channel shuffle (Zhang 2017).
func (b *Builder) Channels(name string, in, first, count, groups int) int {
	c, h, w := b.image(name, in)
	groups = max(groups, 1)
	if count == 0 {
		count = c - first
	}
	if c%groups != 0 || first < 0 || count < 1 || count > c-first {
		b.fail(name, "it takes %d channels from %d on of %d, in %d groups", count, first, c, groups)
	}
	return b.add(Node{
		Name: name, Op: OpChannels, Inputs: []int{in}, Out: Shape{count, h, w}, First: first, Filters: count, Groups: groups,
	})
}

// Downsample is ResNet's shortcut of option A: every stride-th pixel, channels padded with zeros to filters.
func (b *Builder) Downsample(name string, in, filters, stride int) int {
	c, h, w := b.image(name, in)
	if filters < c {
		b.fail(name, "cannot pad %d channels to %d", c, filters)
	}
	return b.add(Node{
		Name: name, Op: OpDownsample, Inputs: []int{in},
		Out:     Shape{filters, (h + stride - 1) / stride, (w + stride - 1) / stride},
		Filters: filters, Stride: Sides{stride, stride},
	})
}
