package model

import (
	"cmp"
	"fmt"
	"sort"
	"strings"

	"github.com/disdel/disdel"
)

// layerKind is what a job file may say of one kind of layer.
type layerKind struct {
	options  string // taken besides name and from
	required string
	many     bool // takes two layers or more
	add      func(b *Builder, name string, in []int, l *disdel.Layer)
}

// layerKinds is the table of model.layers.
var layerKinds = map[string]layerKind{
	"input": {options: "shape", required: "shape", add: addInput},
	"conv": {
		options: "filters kernel stride padding dilation groups bias activation", required: "filters kernel",
		add: addConv,
	},
	"depthwiseConv": {options: "kernel stride padding dilation bias activation", required: "kernel", add: addDepthwise},
	"dense":         {options: "units bias activation", required: "units", add: addDense},
	"batchNorm":     {options: "eps momentum scale center", add: addNorm},
	"relu":          {add: same(OpReLU)},
	"relu6":         {add: same(OpReLU6)},
	"sigmoid":       {add: same(OpSigmoid)},
	"tanh":          {add: same(OpTanh)},
	"softmax":       {add: same(OpSoftmax)},
	"maxPool":       {options: "kernel stride padding", required: "kernel", add: pool(OpMaxPool)},
	"avgPool":       {options: "kernel stride padding", required: "kernel", add: pool(OpAvgPool)},
	"globalAvgPool": {add: single((*Builder).GlobalPool)},
	"flatten":       {add: single((*Builder).Flatten)},
	"add":           {many: true, add: joined((*Builder).Add)},
	"concat":        {many: true, add: joined((*Builder).Concat)},
	"dropout": {options: "rate", required: "rate", add: func(b *Builder, name string, in []int, l *disdel.Layer) {
		b.Dropout(name, in[0], l.Rate)
	}},
}

// activations is what conv and dense take as activation.
var activations = map[string]Op{
	"relu": OpReLU, "relu6": OpReLU6, "sigmoid": OpSigmoid, "tanh": OpTanh,
	"softmax": OpSoftmax,
}

func same(op Op) func(*Builder, string, []int, *disdel.Layer) {
	return func(b *Builder, name string, in []int, _ *disdel.Layer) { b.Same(name, in[0], op) }
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
	w.Pad = Padding{l.Padding, l.Padding, l.Padding, l.Padding}
	if p := l.PaddingAt; p != [4]int{} {
		w.Pad = Padding{Top: p[0], Bottom: p[1], Left: p[2], Right: p[3]}
	}
	if l.SamePad {
		_, height, width := b.image(name, in)
		return w.SamePad(height, width)
	}
	return w
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

func addDepthwise(b *Builder, name string, in []int, l *disdel.Layer) {
	c, _, _ := b.image(name, in[0])
	b.Conv(name, in[0], c, b.window(name, in[0], l), c, isTrue(l.Bias))
}

// isTrue reads an option that is on unless it says otherwise.
func isTrue(v *bool) bool { return v == nil || *v }

// addDense flattens an image first, as people expect.
func addDense(b *Builder, name string, in []int, l *disdel.Layer) {
	from := in[0]
	if len(b.Out(from)) != 1 {
		from = b.Flatten(name+".flatten", from)
	}
	b.dense(name, from, l.Units, isTrue(l.Bias))
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
func fromLayers(n disdel.Network) (*Graph, error) { return buildLayers("layers", n.Input, n.Layers) }

func buildLayers(title string, input []int, layers []disdel.Layer) (*Graph, error) {
	b := NewBuilder(title, Shape(input))
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
	return b.Graph()
}

func (b *Builder) addLayer(name string, l *disdel.Layer, ends map[string]int) {
	kind, ok := layerKinds[l.Kind]
	if !ok {
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
	kind.add(b, name, in, l)
	if op, ok := activations[l.Activation]; ok {
		b.Same(name+"."+l.Activation, b.last, op)
	}
	if _, taken := ends[name]; taken {
		b.fail(name, "the name is taken")
	}
	ends[name] = b.last
}

// LayerKinds lists the kinds of layers a job file may name.
func LayerKinds() []string {
	out := make([]string, 0, len(layerKinds))
	for k := range layerKinds {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}

func words(list string) []string { return strings.Fields(list) }
