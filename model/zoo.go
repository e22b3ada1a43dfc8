package model

import (
	"fmt"
	"sort"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/nearest"
)

// Entry is one network of the zoo.
type Entry struct {
	Name    string
	Title   string
	Input   Shape // the standard one
	Classes int
	build   func(b *Builder, classes int)
}

// zoo is every network by name. Sources of the architectures are named in the titles.
var zoo = map[string]Entry{
	"softmax-regression":   {Title: "Softmax regression", Input: Shape{1, 28, 28}, Classes: 10, build: softmaxRegression},
	"mlp":                  {Title: "Perceptron with two hidden layers of 128 and 64 units", Input: Shape{1, 28, 28}, Classes: 10, build: mlp},
	"digits-cnn":           {Title: "Small convolutional network for 8x8 digits", Input: Shape{1, 8, 8}, Classes: 10, build: digitsCNN},
	"lenet5":               {Title: "LeNet-5 with ReLU and max pooling, padded (LeCun 1998)", Input: Shape{1, 28, 28}, Classes: 10, build: lenet(2)},
	"lenet-kubeml":         {Title: "LeNet without padding, KubeML's 44K", Input: Shape{1, 28, 28}, Classes: 10, build: lenet(0)},
	"resnet18":             {Title: "ResNet-18 (He 2015, torchvision)", Input: Shape{3, 224, 224}, Classes: 1000, build: resnetBasic(2, 2, 2, 2)},
	"resnet34":             {Title: "ResNet-34 (He 2015, torchvision)", Input: Shape{3, 224, 224}, Classes: 1000, build: resnetBasic(3, 4, 6, 3)},
	"resnet50":             {Title: "ResNet-50 v1 (Keras Applications)", Input: Shape{3, 224, 224}, Classes: 1000, build: resnetKeras(3, 4, 6, 3)},
	"resnet32-cifar":       {Title: "ResNet-32 for CIFAR, shortcuts of option A (He 2015, 4.2)", Input: Shape{3, 32, 32}, Classes: 10, build: resnetCIFAR(5, false)},
	"resnet32-cifar-b":     {Title: "ResNet-32 for CIFAR, shortcuts of option B", Input: Shape{3, 32, 32}, Classes: 10, build: resnetCIFAR(5, true)},
	"vgg16":                {Title: "VGG-16 (Simonyan 2014, torchvision)", Input: Shape{3, 224, 224}, Classes: 1000, build: vgg16(true)},
	"vgg16-cifar":          {Title: "VGG-16 with a head on 512 features", Input: Shape{3, 32, 32}, Classes: 10, build: vgg16(false)},
	"vgg16-cifar-adaptive": {Title: "VGG-16 with torchvision's head at 32x32, KubeML's 134M", Input: Shape{3, 32, 32}, Classes: 10, build: vgg16(true)},
}

// Zoo lists the networks by name.
func Zoo() []Entry {
	out := make([]Entry, 0, len(zoo))
	for name, e := range zoo {
		e.Name = name
		out = append(out, e)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// Find returns the network of that name.
func Find(name string) (Entry, bool) {
	e, ok := zoo[name]
	e.Name = name
	return e, ok
}

// Nearest returns the name a person probably meant, or "".
func Nearest(name string) string {
	var names []string
	for _, e := range Zoo() {
		names = append(names, e.Name)
	}
	return nearest.Word(name, names)
}

// Build makes the graph of a network: of the zoo by name, else from its layers. It returns Invalid for an unknown name and
// for layers that do not fit the input.
func Build(n disdel.Network) (*Graph, error) {
	if n.Name == "" {
		return fromLayers(n)
	}
	e, ok := Find(n.Name)
	if !ok {
		return nil, &disdel.Error{Kind: disdel.Invalid, Op: "build network", Msg: fmt.Sprintf("there is no network %q", n.Name), Hint: "disdel model list"}
	}
	if n.Classes < 1 {
		return nil, &disdel.Error{Kind: disdel.Invalid, Op: "build network " + n.Name, Msg: "a classifier needs at least one class"}
	}
	b := NewBuilder(n.Name, Shape(n.Input))
	if b.err == nil && len(n.Input) != 3 {
		b.fail("input", "%s takes [channels height width], not %v", n.Name, n.Input)
	}
	if b.err == nil {
		e.build(b, n.Classes)
		b.Same("softmax", b.Last(), OpSoftmax)
	}
	return b.Graph()
}

// classifier adds flatten and a dense layer.
func classifier(b *Builder, name string, classes int) {
	b.Flatten("flatten", b.Last())
	b.Dense(name, b.Last(), classes)
}

func softmaxRegression(b *Builder, classes int) { classifier(b, "fc", classes) }

// head adds dense layers with ReLU between them: fc1, fc2, ...
func head(b *Builder, units ...int) {
	for i, u := range units {
		b.Dense(fmt.Sprintf("fc%d", i+1), b.Last(), u)
		if i < len(units)-1 {
			b.Same(fmt.Sprintf("fc%d.relu", i+1), b.Last(), OpReLU)
		}
	}
}

func mlp(b *Builder, classes int) {
	b.Flatten("flatten", 0)
	head(b, 128, 64, classes)
}

func convReLU(b *Builder, name string, filters int, w Window) {
	b.Conv(name, b.Last(), filters, w, 1, true)
	b.Same(name+".relu", b.Last(), OpReLU)
}

func digitsCNN(b *Builder, classes int) {
	convReLU(b, "conv1", 16, Square(3, 1, 1))
	convReLU(b, "conv2", 32, Square(3, 1, 1))
	b.Pool("pool", b.Last(), OpMaxPool, Square(2, 2, 0))
	b.Flatten("flatten", b.Last())
	head(b, 64, classes)
}

func lenet(pad int) func(*Builder, int) {
	return func(b *Builder, classes int) {
		convReLU(b, "conv1", 6, Square(5, 1, pad))
		b.Pool("pool1", b.Last(), OpMaxPool, Square(2, 2, 0))
		convReLU(b, "conv2", 16, Square(5, 1, 0))
		b.Pool("pool2", b.Last(), OpMaxPool, Square(2, 2, 0))
		b.Flatten("flatten", b.Last())
		head(b, 120, 84, classes)
	}
}

// convBN adds a convolution and its batch norm.
func convBN(b *Builder, conv, bn string, in, filters int, w Window, bias bool) int {
	return b.BatchNorm(bn, b.Conv(conv, in, filters, w, 1, bias))
}

// imageNetStem is conv 7x7/2, batch norm, ReLU, max pool 3x3/2.
func imageNetStem(b *Builder, bias bool) {
	convBN(b, "conv1", "bn1", 0, 64, Square(7, 2, 3), bias)
	b.Same("relu", b.Last(), OpReLU)
	b.Pool("maxpool", b.Last(), OpMaxPool, Square(3, 2, 1))
}

// basicBlock is two 3x3 convolutions beside a shortcut; project makes the shortcut where shapes differ.
func basicBlock(b *Builder, name string, filters, stride int, project func(in int) int) {
	in := b.Last()
	convBN(b, name+".conv1", name+".bn1", in, filters, Square(3, stride, 1), false)
	b.Same(name+".relu1", b.Last(), OpReLU)
	out := convBN(b, name+".conv2", name+".bn2", b.Last(), filters, Square(3, 1, 1), false)
	short := in
	if stride > 1 || b.Out(in)[0] != filters {
		short = project(in)
	}
	b.Add(name+".add", out, short)
	b.Same(name+".relu2", b.Last(), OpReLU)
}

func resnetBasic(blocks ...int) func(*Builder, int) {
	return func(b *Builder, classes int) {
		imageNetStem(b, false)
		for s, n := range blocks {
			for i := range n {
				name, stride := fmt.Sprintf("layer%d.%d", s+1, i), 1
				if i == 0 && s > 0 {
					stride = 2
				}
				basicBlock(b, name, 64<<s, stride, func(in int) int {
					return convBN(b, name+".downsample.0", name+".downsample.1", in, 64<<s, Square(1, stride, 0), false)
				})
			}
		}
		b.GlobalPool("avgpool", b.Last())
		classifier(b, "fc", classes)
	}
}

func resnetCIFAR(n int, project bool) func(*Builder, int) {
	return func(b *Builder, classes int) {
		convBN(b, "conv1", "bn1", 0, 16, Square(3, 1, 1), false)
		b.Same("relu", b.Last(), OpReLU)
		for s := range 3 {
			for i := range n {
				name, stride := fmt.Sprintf("layer%d.%d", s+1, i), 1
				if i == 0 && s > 0 {
					stride = 2
				}
				basicBlock(b, name, 16<<s, stride, func(in int) int {
					if project {
						return convBN(b, name+".downsample.0", name+".downsample.1", in, 16<<s, Square(1, stride, 0), false)
					}
					return b.Downsample(name+".downsample", in, 16<<s, stride)
				})
			}
		}
		b.GlobalPool("avgpool", b.Last())
		classifier(b, "fc", classes)
	}
}

// resnetKeras is version 1 of Keras Applications: biases everywhere, the stride in the first 1x1 convolution.
func resnetKeras(blocks ...int) func(*Builder, int) {
	return func(b *Builder, classes int) {
		imageNetStem(b, true)
		for s, n := range blocks {
			for i := range n {
				stride := 1
				if i == 0 && s > 0 {
					stride = 2
				}
				bottleneck(b, fmt.Sprintf("conv%d_block%d", s+2, i+1), 64<<s, stride, i == 0)
			}
		}
		b.GlobalPool("avg_pool", b.Last())
		classifier(b, "predictions", classes)
	}
}

func bottleneck(b *Builder, name string, filters, stride int, project bool) {
	in := b.Last()
	short := in
	if project {
		short = convBN(b, name+".0_conv", name+".0_bn", in, 4*filters, Square(1, stride, 0), true)
	}
	convBN(b, name+".1_conv", name+".1_bn", in, filters, Square(1, stride, 0), true)
	b.Same(name+".1_relu", b.Last(), OpReLU)
	convBN(b, name+".2_conv", name+".2_bn", b.Last(), filters, Square(3, 1, 1), true)
	b.Same(name+".2_relu", b.Last(), OpReLU)
	out := convBN(b, name+".3_conv", name+".3_bn", b.Last(), 4*filters, Square(1, 1, 0), true)
	b.Add(name+".add", short, out)
	b.Same(name+".out", b.Last(), OpReLU)
}

// vgg16 has torchvision's head on 7x7 features, or one on what is left of a small image.
func vgg16(adaptive bool) func(*Builder, int) {
	return func(b *Builder, classes int) {
		for s, filters := range []int{64, 128, 256, 512, 512} {
			for i := range []int{2, 2, 3, 3, 3}[s] {
				convReLU(b, fmt.Sprintf("conv%d_%d", s+1, i+1), filters, Square(3, 1, 1))
			}
			b.Pool(fmt.Sprintf("pool%d", s+1), b.Last(), OpMaxPool, Square(2, 2, 0))
		}
		if s := b.Out(b.Last()); adaptive && (s[1] != 7 || s[2] != 7) {
			b.AdaptivePool("avgpool", b.Last(), 7)
		}
		b.Flatten("flatten", b.Last())
		for i := range 2 {
			b.Dense(fmt.Sprintf("fc%d", i+1), b.Last(), 4096)
			b.Same(fmt.Sprintf("fc%d.relu", i+1), b.Last(), OpReLU)
			b.Dropout(fmt.Sprintf("fc%d.dropout", i+1), b.Last(), 0.5)
		}
		b.Dense("fc3", b.Last(), classes)
	}
}
