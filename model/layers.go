package model

import (
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/nearest"
)

// layerKind is what a job file may say of one kind of layer.
type layerKind struct {
	options  []string // taken
	required []string
	add      func(b *Builder, name string, l disdel.Layer)
}

// layerKinds is the table of model.layers.
var layerKinds = map[string]layerKind{
	"conv": {[]string{"filters", "kernel", "stride", "padding", "groups", "activation"}, []string{"filters", "kernel"}, func(b *Builder, name string, l disdel.Layer) {
		b.Conv(name, b.Last(), l.Filters, Square(l.Kernel, max(l.Stride, 1), l.Padding), l.Groups, true)
	}},
	"depthwiseConv": {[]string{"kernel", "stride", "padding", "activation"}, []string{"kernel"}, func(b *Builder, name string, l disdel.Layer) {
		c, _, _ := b.image(name, b.Last())
		b.Conv(name, b.Last(), c, Square(l.Kernel, max(l.Stride, 1), l.Padding), c, true)
	}},
	"dense":         {[]string{"units", "activation"}, []string{"units"}, func(b *Builder, name string, l disdel.Layer) { addDense(b, name, l.Units) }},
	"batchNorm":     {nil, nil, func(b *Builder, name string, _ disdel.Layer) { b.BatchNorm(name, b.Last()) }},
	"relu":          {nil, nil, same(OpReLU)},
	"relu6":         {nil, nil, same(OpReLU6)},
	"sigmoid":       {nil, nil, same(OpSigmoid)},
	"tanh":          {nil, nil, same(OpTanh)},
	"softmax":       {nil, nil, same(OpSoftmax)},
	"maxPool":       {[]string{"kernel", "stride", "padding"}, []string{"kernel"}, pool(OpMaxPool)},
	"avgPool":       {[]string{"kernel", "stride", "padding"}, []string{"kernel"}, pool(OpAvgPool)},
	"globalAvgPool": {nil, nil, func(b *Builder, name string, _ disdel.Layer) { b.GlobalPool(name, b.Last()) }},
	"dropout":       {[]string{"rate"}, []string{"rate"}, func(b *Builder, name string, l disdel.Layer) { b.Dropout(name, b.Last(), l.Rate) }},
	"flatten":       {nil, nil, func(b *Builder, name string, _ disdel.Layer) { b.Flatten(name, b.Last()) }},
}

// activations is what conv and dense take as activation.
var activations = map[string]Op{"relu": OpReLU, "relu6": OpReLU6, "sigmoid": OpSigmoid, "tanh": OpTanh, "softmax": OpSoftmax}

func same(op Op) func(*Builder, string, disdel.Layer) {
	return func(b *Builder, name string, _ disdel.Layer) { b.Same(name, b.Last(), op) }
}

func pool(op Op) func(*Builder, string, disdel.Layer) {
	return func(b *Builder, name string, l disdel.Layer) {
		stride := l.Stride
		if stride == 0 {
			stride = l.Kernel
		}
		b.Pool(name, b.Last(), op, Square(l.Kernel, stride, l.Padding))
	}
}

// addDense flattens an image first, as people expect.
func addDense(b *Builder, name string, units int) {
	if len(b.Out(b.Last())) != 1 {
		b.Flatten(name+".flatten", b.Last())
	}
	b.Dense(name, b.Last(), units)
}

// fromLayers builds a job file's list. Layers are named by their place, as torch.nn.Sequential names them: "0", "1", ...
func fromLayers(n disdel.Network) (*Graph, error) {
	b := NewBuilder("layers", Shape(n.Input))
	for i, l := range n.Layers {
		kind, ok := layerKinds[l.Kind]
		if !ok {
			b.fail(fmt.Sprint(i), "there is no kind of layer %q", l.Kind)
		}
		if b.err != nil {
			break
		}
		kind.add(b, fmt.Sprint(i), l)
		if op, ok := activations[l.Activation]; ok {
			b.Same(fmt.Sprintf("%d.%s", i, l.Activation), b.Last(), op)
		}
	}
	for _, node := range b.g.Nodes[:len(b.g.Nodes)-1] {
		if node.Op == OpSoftmax {
			b.fail(node.Name, "softmax may only come last")
		}
	}
	return b.Graph()
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

// CheckLayers lists every fault of a job file's layers; path is where the list stands ("model.layers").
func CheckLayers(path string, layers []disdel.Layer) []disdel.Fault {
	var faults []disdel.Fault
	for i, l := range layers {
		at := fmt.Sprintf("%s[%d]", path, i)
		kind, ok := layerKinds[l.Kind]
		if !ok {
			f := disdel.Fault{Path: at, Msg: fmt.Sprintf("there is no kind of layer %q", l.Kind), Hint: "kinds: " + strings.Join(LayerKinds(), ", ")}
			if near := nearest.Word(l.Kind, LayerKinds()); near != "" {
				f.Hint = fmt.Sprintf("did you mean %q?", near)
			}
			faults = append(faults, f)
			continue
		}
		faults = append(faults, checkOptions(at+"."+l.Kind, kind, l)...)
		if last := i == len(layers)-1; !last && (l.Kind == "softmax" || l.Activation == "softmax") {
			faults = append(faults, disdel.Fault{Path: at, Msg: "softmax may only come last"})
		}
	}
	return faults
}

func checkOptions(at string, kind layerKind, l disdel.Layer) []disdel.Fault {
	var faults []disdel.Fault
	add := func(option, format string, args ...any) {
		faults = append(faults, disdel.Fault{Path: at + "." + option, Msg: fmt.Sprintf(format, args...)})
	}
	v := reflect.ValueOf(l)
	for i := range v.NumField() {
		option, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if option == "-" {
			continue
		}
		value := v.Field(i)
		switch {
		case !value.IsZero() && !slices.Contains(kind.options, option):
			add(option, "%s takes no %s", l.Kind, option)
		case value.IsZero() && slices.Contains(kind.required, option):
			add(option, "%s needs %s", l.Kind, option)
		case value.CanInt() && value.Int() < 0:
			add(option, "must not be negative")
		}
	}
	if l.Rate < 0 || l.Rate >= 1 {
		add("rate", "must be at least 0 and below 1")
	}
	if _, ok := activations[l.Activation]; l.Activation != "" && !ok {
		add("activation", "there is no activation %q", l.Activation)
	}
	return faults
}
