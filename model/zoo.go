package model

import (
	"fmt"
	"sort"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/spelling"
)

// Entry is one network of the zoo.
type Entry struct {
	Name    string
	Title   string
	Input   Shape // the standard one
	Classes int
	min     int // sides below it do not build, as in Keras; 0: as the windows allow
	build   func(b *Builder, classes int)
}

// zoo is every network by name. Sources of the architectures are named in the titles.
var zoo = map[string]Entry{
	"softmax-regression": {Title: "Softmax regression", Input: Shape{1, 28, 28}, Classes: 10, build: softmaxRegression},
	"mlp": {
		Title: "Perceptron with two hidden layers of 128 and 64 units", Input: Shape{1, 28, 28},
		Classes: 10, build: mlp,
	},
	"bert-tiny":  bertOf(2, 128, "Turc 2019"),
	"bert-mini":  bertOf(4, 256, "Turc 2019"),
	"bert-small": bertOf(4, 512, "Turc 2019"),
	"bert-base":  bertOf(12, 768, "Devlin 2018"),
	"gpt-tiny":   gptOf(2, 128, 128, ""),
	"gpt-small":  gptOf(6, 384, 256, ""),
	"gpt2":       gptOf(12, 768, 1024, " (Radford 2019)"),
	"digits-cnn": {
		Title: "Small convolutional network for 8x8 digits", Input: Shape{1, 8, 8}, Classes: 10,
		build: digitsCNN,
	},
	"lenet5": {
		Title: "LeNet-5 with ReLU and max pooling, padded (LeCun 1998)", Input: Shape{1, 28, 28},
		Classes: 10, build: lenet(2),
	},
	"lenet-kubeml": {
		Title: "LeNet without padding, KubeML's 44K", Input: Shape{1, 28, 28}, Classes: 10,
		build: lenet(0),
	},
	"resnet18": {
		Title: "ResNet-18 (He 2015, torchvision)", Input: Shape{3, 224, 224}, Classes: 1000,
		build: resnetBasic(2, 2, 2, 2),
	},
	"resnet34": {
		Title: "ResNet-34 (He 2015, torchvision)", Input: Shape{3, 224, 224}, Classes: 1000,
		build: resnetBasic(3, 4, 6, 3),
	},
	"resnet50": {
		Title: "ResNet-50 with stride in the 3x3 convolutions (torchvision)",
		Input: Shape{3, 224, 224}, Classes: 1000, build: resnetBottleneck(3, 4, 6, 3),
	},
	"resnet50-keras": {
		Title: "ResNet-50 v1 (Keras Applications)", Input: Shape{3, 224, 224}, Classes: 1000,
		build: resnetKeras(3, 4, 6, 3),
	},
	"resnet152": {
		Title: "ResNet-152 with stride in the 3x3 convolutions (torchvision)",
		Input: Shape{3, 224, 224}, Classes: 1000, build: resnetBottleneck(3, 8, 36, 3),
	},
	"resnet20-cifar": {
		Title: "ResNet-20 for CIFAR, shortcuts of option A (He 2015, 4.2)", Input: Shape{3, 32, 32},
		Classes: 10, build: resnetCIFAR(3, false),
	},
	"resnet20-cifar-b": {
		Title: "ResNet-20 for CIFAR, shortcuts of option B", Input: Shape{3, 32, 32}, Classes: 10,
		build: resnetCIFAR(3, true),
	},
	"resnet32-cifar": {
		Title: "ResNet-32 for CIFAR, shortcuts of option A (He 2015, 4.2)", Input: Shape{3, 32, 32},
		Classes: 10, build: resnetCIFAR(5, false),
	},
	"resnet32-cifar-b": {
		Title: "ResNet-32 for CIFAR, shortcuts of option B", Input: Shape{3, 32, 32}, Classes: 10,
		build: resnetCIFAR(5, true),
	},
	"mobilenetv1": {
		Title: "MobileNet v1 (Howard 2017, Keras Applications)", Input: Shape{3, 224, 224},
		Classes: 1000, build: mobileNetV1,
	},
	"inceptionv3": {
		Title: "Inception v3 (Szegedy 2015, Keras Applications)", Input: Shape{3, 299, 299},
		Classes: 1000, min: 75, build: inceptionV3,
	},
	"vit-tiny-cifar": {
		Title: "ViT with 12 layers of 192 channels and patches of 4x4 (Dosovitskiy 2020)", Input: Shape{3, 32, 32},
		Classes: 10, build: vit(4, 12, 192),
	},
	"vit-b16": {
		Title: "ViT-B/16 with patches of 16x16 (Dosovitskiy 2020, torchvision)", Input: Shape{3, 224, 224}, Classes: 1000,
		build: vit(16, 12, 768),
	},
	"vgg16": {
		Title: "VGG-16 (Simonyan 2014, torchvision)", Input: Shape{3, 224, 224}, Classes: 1000,
		build: vgg16(true),
	},
	"vgg16-cifar": {
		Title: "VGG-16 with a head on 512 features", Input: Shape{3, 32, 32}, Classes: 10,
		build: vgg16(false),
	},
	"vgg16-cifar-adaptive": {
		Title: "VGG-16 with torchvision's head at 32x32, KubeML's 134M", Input: Shape{3, 32, 32},
		Classes: 10, build: vgg16(true),
	},
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
	return spelling.Closest(name, names)
}

// Build makes the graph of a network: what a binary says of its own, or of the zoo by name, else from its layers. It
// returns Invalid for an unknown name, for layers that do not fit the input, and as Graph.Freeze and Graph.Adapt do.
func Build(n disdel.Network) (*Graph, error) {
	g, err := trainable(n)
	switch {
	case err != nil:
		return g, err
	case n.LoRA != nil:
		return g, g.Adapt(n.Init, *n.LoRA)
	case n.Init.Freeze != "":
		return g, g.Freeze(n.Init)
	}
	return g, nil
}

// trainable is Build without frozen layers.
func trainable(n disdel.Network) (*Graph, error) {
	if n.Custom != nil {
		return fromCustom(n)
	}
	if n.Sparse != nil {
		return fromSparse(n)
	}
	if n.Name == "" {
		return fromLayers(n)
	}
	e, ok := Find(n.Name)
	if !ok {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "build network",
			Msg: fmt.Sprintf("there is no network %q", n.Name), Hint: "disdel model list",
		}
	}
	if n.Classes < 1 {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "build network " + n.Name,
			Msg: "a classifier needs at least one class",
		}
	}
	b := NewBuilder(n.Name, Shape(n.Input))
	b.next = n.NextToken
	if b.err == nil && len(n.Input) != 3 {
		b.fail("input", "%s takes [channels height width], not %v", n.Name, n.Input)
	}
	if b.err == nil && min(n.Input[1], n.Input[2]) < e.min {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "build network " + n.Name,
			Msg: fmt.Sprintf("an input of %dx%d pixels is too small: it needs at least %dx%d", n.Input[1], n.Input[2], e.min,
				e.min),
			Hint: fmt.Sprintf("disdel model show %s --input %dx%dx%d", n.Name, n.Input[0], e.min, e.min),
		}
	}
	if b.err == nil {
		e.build(b, n.Classes)
		if n.NextToken {
			b.checkTokens(n.Classes)
		} else {
			b.Same("softmax", b.Last(), OpSoftmax)
		}
	}
	return b.Graph()
}

func bertOf(layers, width int, source string) Entry {
	return Entry{
		Title: fmt.Sprintf("BERT with %d layers of %d channels, a classifier of tokens (%s)", layers, width, source),
		Input: Shape{1, 1, 512}, Classes: 2, build: bert(layers, width),
	}
}

func gptOf(layers, width, positions int, source string) Entry {
	return Entry{
		Title: fmt.Sprintf("GPT-2 with %d layers of %d channels, for the next token or classes of texts%s", layers, width,
			source),
		Input: Shape{1, 1, positions}, Classes: 2, build: gpt2(layers, width),
	}
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
