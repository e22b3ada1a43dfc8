package model

import (
	"cmp"
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
	// VariantOf is the smaller network of the same family, "" for the smallest: checks that need not try every size
	// leave out networks that have it.
	VariantOf string

	min   int // sides below it do not build, as in Keras; 0: as the windows allow
	build func(b *Builder, classes int)
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
	"distilbert": {
		Title: "DistilBERT with 6 layers of 768 channels, a classifier of tokens (Sanh 2019)", Input: Shape{1, 1, 512},
		Classes: 2, VariantOf: "bert-tiny", build: bert(6, 768, true),
	},
	"gpt-tiny":    gptOf(2, 128, 128, ""),
	"gpt-small":   gptOf(6, 384, 256, ""),
	"gpt2":        gptOf(12, 768, 1024, " (Radford 2019)"),
	"llama-tiny":  llamaOf(llama{layers: 2, heads: 2, kvHeads: 1, hidden: 344, vocabulary: 32000}, 128, ""),
	"llama-small": llamaOf(llama{layers: 6, heads: 6, kvHeads: 2, hidden: 1024, vocabulary: 32000}, 256, ""),
	"smollm-135m": llamaOf(llama{layers: 30, heads: 9, kvHeads: 3, hidden: 1536, vocabulary: 49152, tied: true}, 1024,
		"; SmolLM 2024"),
	"lstm": {
		Title: "LSTM with two layers of 64 units for each direction, a classifier of tokens",
		Input: Shape{1, 1, 200}, Classes: 2, build: lstm,
	},
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
		Input: Shape{3, 224, 224}, Classes: 1000, build: resnetBottleneck(1, 64, 3, 4, 6, 3),
	},
	"resnet50-keras": {
		Title: "ResNet-50 v1 (Keras Applications)", Input: Shape{3, 224, 224}, Classes: 1000,
		build: resnetKeras(3, 4, 6, 3),
	},
	"resnet152": {
		Title: "ResNet-152 with stride in the 3x3 convolutions (torchvision)",
		Input: Shape{3, 224, 224}, Classes: 1000, build: resnetBottleneck(1, 64, 3, 8, 36, 3),
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
		build: vgg(true, false, 2, 2, 3, 3, 3),
	},
	"vgg16-cifar": {
		Title: "VGG-16 with a head on 512 features", Input: Shape{3, 32, 32}, Classes: 10,
		build: vgg(false, false, 2, 2, 3, 3, 3),
	},
	"vgg16-cifar-adaptive": {
		Title: "VGG-16 with torchvision's head at 32x32, KubeML's 134M", Input: Shape{3, 32, 32},
		Classes: 10, build: vgg(true, false, 2, 2, 3, 3, 3),
	},
}

// Zoo lists the networks by name.
func Zoo() []Entry {
	out := make([]Entry, 0, len(zoo)+len(families))
	for _, list := range []map[string]Entry{zoo, families} {
		for name, e := range list {
			e.Name = name
			out = append(out, e)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// torchvisionNames are the networks of zoo that have another name there.
var torchvisionNames = map[string]string{"vit_b_16": "vit-b16"}

// Find returns the network of that name.
func Find(name string) (Entry, bool) {
	e, ok := zoo[cmp.Or(torchvisionNames[name], name)]
	if !ok {
		e, ok = families[name]
	}
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
		Input: Shape{1, 1, 512}, Classes: 2, build: bert(layers, width, false),
	}
}

func gptOf(layers, width, positions int, source string) Entry {
	return Entry{
		Title: fmt.Sprintf("GPT-2 with %d layers of %d channels, for the next token or classes of texts%s", layers, width,
			source),
		Input: Shape{1, 1, positions}, Classes: 2, build: gpt2(layers, width),
	}
}

func llamaOf(net llama, positions int, source string) Entry {
	return Entry{
		Title: fmt.Sprintf("Llama with %d layers of %d channels, for the next token or classes of texts (Touvron 2023%s)",
			net.layers, 64*net.heads, source),
		Input: Shape{1, 1, positions}, Classes: 2, build: net.build,
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

// vgg has torchvision's head on 7x7 features, or one on what is left of a small image. counts are the convolutions of
// its five stages, with a batch norm each if norms is set.
func vgg(adaptive, norms bool, counts ...int) func(*Builder, int) {
	return func(b *Builder, classes int) {
		for s, filters := range []int{64, 128, 256, 512, 512} {
			for i := range counts[s] {
				name := fmt.Sprintf("conv%d_%d", s+1, i+1)
				x := b.Conv(name, b.Last(), filters, Square(3, 1, 1), 1, true)
				if norms {
					x = b.BatchNorm(name+".bn", x)
				}
				b.Same(name+".relu", x, OpReLU)
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

func vggs() map[string]Entry {
	list := map[string]Entry{}
	for name, counts := range map[string][]int{
		"vgg11": {1, 1, 2, 2, 2}, "vgg13": {2, 2, 2, 2, 2}, "vgg16": {2, 2, 3, 3, 3}, "vgg19": {2, 2, 4, 4, 4},
	} {
		title := "VGG-" + name[3:]
		list[name] = ofTorchvision(title+" (Simonyan 2014)", "vgg11", 224, vgg(true, false, counts...))
		list[name+"_bn"] = ofTorchvision(title+" with batch norms", "vgg11", 224, vgg(true, true, counts...))
	}
	delete(list, "vgg16") // the zoo has it
	smallest := list["vgg11"]
	smallest.VariantOf = ""
	list["vgg11"] = smallest
	return list
}

func alexnet(b *Builder, classes int) {
	x := 0
	for _, c := range []struct {
		place, filters int
		window         Window
		pool           bool
	}{
		{0, 64, Square(11, 4, 2), true},
		{3, 192, Square(5, 1, 2), true},
		{6, 384, Square(3, 1, 1), false},
		{8, 256, Square(3, 1, 1), false},
		{10, 256, Square(3, 1, 1), true},
	} {
		at := func(i int) string { return fmt.Sprintf("features.%d", c.place+i) }
		x = b.Same(at(1), b.Conv(at(0), x, c.filters, c.window, 1, true), OpReLU)
		if c.pool {
			x = b.Pool(at(2), x, OpMaxPool, Square(3, 2, 0))
		}
	}
	x = b.Flatten("flatten", b.AdaptivePool("avgpool", x, 6))
	for i, dense := range []string{"classifier.1", "classifier.4"} {
		x = b.Dense(dense, b.Dropout(fmt.Sprintf("classifier.%d", 3*i), x, 0.5), 4096)
		x = b.Same(fmt.Sprintf("classifier.%d", 3*i+2), x, OpReLU)
	}
	b.Dense("classifier.6", x, classes)
}

// kerasNorm is Keras' BatchNormalization as its layer's own defaults have it: epsilon 1e-3, momentum 0.99, which counts
// the old statistics where ours counts the new ones.
var kerasNorm = Norm{Eps: 1e-3, Momentum: 0.01}

// afterZeros is a square window of stride 2 behind Keras' ZeroPadding2D(((0, 1), (0, 1))): zeros below and right only.
func afterZeros(kernel int) Window {
	return Window{Kernel: Sides{kernel, kernel}, Stride: Sides{2, 2}, Pad: Padding{Bottom: 1, Right: 1}}
}

// mobileNetV1 is keras/src/applications/mobilenet.py with alpha and depth_multiplier 1 (Howard 2017, table 1).
func mobileNetV1(b *Builder, classes int) {
	normReLU6 := func(conv int, name string) {
		b.Norm(name+"_bn", conv, kerasNorm)
		b.Same(name+"_relu", b.Last(), OpReLU6)
	}
	normReLU6(b.Conv("conv1", 0, 32, afterZeros(3), 1, false), "conv1")
	for i, block := range []struct{ filters, stride int }{
		{64, 1},
		{128, 2},
		{128, 1},
		{256, 2},
		{256, 1},
		{512, 2},
		{512, 1},
		{512, 1},
		{512, 1},
		{512, 1},
		{512, 1},
		{1024, 2},
		{1024, 1},
	} {
		deep, point := fmt.Sprintf("conv_dw_%d", i+1), fmt.Sprintf("conv_pw_%d", i+1)
		in, w := b.Last(), Square(3, 1, 1)
		if block.stride == 2 {
			w = afterZeros(3)
		}
		c := b.Out(in)[0]
		normReLU6(b.Conv(deep, in, c, w, c, false), deep)
		normReLU6(b.Conv(point, b.Last(), block.filters, Square(1, 1, 0), 1, false), point)
	}
	b.GlobalPool("global_average_pooling2d", b.Last())
	b.Dropout("dropout", b.Last(), 1e-3)
	b.Conv("conv_preds", b.Last(), classes, Square(1, 1, 0), 1, true)
	b.Flatten("reshape_2", b.Last())
}

// inception builds keras/src/applications/inception_v3.py (Szegedy 2015, figures 5 to 7). Its layers have the names
// that Keras gives them in a new session: conv2d, conv2d_1, ...
type inception struct {
	*Builder
	convs, pools int
}

// numbered is Keras' name of the n-th layer of a kind, from 0.
func numbered(kind string, n int) string {
	if n == 0 {
		return kind
	}
	return fmt.Sprintf("%s_%d", kind, n)
}

// conv is Keras' conv2d_bn: a convolution without bias, a batch norm without scale, ReLU.
func (k *inception) conv(in, filters, height, width, stride int, same bool) int {
	n := k.convs
	k.convs++
	w := Window{Kernel: Sides{height, width}, Stride: Sides{stride, stride}}
	if same {
		w = w.SamePad(k.Out(in)[1], k.Out(in)[2])
	}
	out := k.Conv(numbered("conv2d", n), in, filters, w, 1, false)
	norm := kerasNorm
	norm.NoScale = true
	out = k.Norm(numbered("batch_normalization", n), out, norm)
	return k.Same(numbered("activation", n), out, OpReLU)
}

// same is a convolution of stride 1 that keeps the size.
func (k *inception) same(in, filters, height, width int) int {
	return k.conv(in, filters, height, width, 1, true)
}

func (k *inception) maxPool(in, n int) int {
	return k.Pool(numbered("max_pooling2d", n), in, OpMaxPool, Square(3, 2, 0))
}

// average is the pool that every block without stride has; TensorFlow does not count the padding.
func (k *inception) average(in int) int {
	n := k.pools
	k.pools++
	return k.Pool(numbered("average_pooling2d", n), in, OpAvgPool, Square(3, 1, 1))
}

// inceptionV3 needs 75x75 pixels, as Keras does: below, the last valid window does not fit.
func inceptionV3(b *Builder, classes int) {
	k := &inception{Builder: b}
	x := k.conv(0, 32, 3, 3, 2, false)
	x = k.conv(x, 32, 3, 3, 1, false)
	x = k.maxPool(k.same(x, 64, 3, 3), 0)
	x = k.conv(x, 80, 1, 1, 1, false)
	x = k.maxPool(k.conv(x, 192, 3, 3, 1, false), 1)
	for i, pooled := range []int{32, 64, 64} {
		x = k.blockA(fmt.Sprintf("mixed%d", i), x, pooled)
	}
	x = k.reduceA("mixed3", x)
	for i, inner := range []int{128, 160, 160, 192} {
		x = k.blockB(fmt.Sprintf("mixed%d", i+4), x, inner)
	}
	x = k.reduceB("mixed8", x)
	for i := range 2 {
		x = k.blockC(i, x)
	}
	b.Flatten("avg_pool.flatten", b.GlobalPool("avg_pool", x))
	b.Dense("predictions", b.Last(), classes)
}

// blockA has branches of 1x1, 5x5, double 3x3 and a pool: 35x35 pixels at the standard input.
func (k *inception) blockA(name string, x, pooled int) int {
	one := k.same(x, 64, 1, 1)
	five := k.same(k.same(x, 48, 1, 1), 64, 5, 5)
	double := k.same(k.same(k.same(x, 64, 1, 1), 96, 3, 3), 96, 3, 3)
	pool := k.same(k.average(x), pooled, 1, 1)
	return k.Concat(name, one, five, double, pool)
}

func (k *inception) reduceA(name string, x int) int {
	three := k.conv(x, 384, 3, 3, 2, false)
	double := k.conv(k.same(k.same(x, 64, 1, 1), 96, 3, 3), 96, 3, 3, 2, false)
	return k.Concat(name, three, double, k.maxPool(x, 2))
}

// blockB has branches of 1x7 and 7x1: 17x17 pixels.
func (k *inception) blockB(name string, x, inner int) int {
	one := k.same(x, 192, 1, 1)
	seven := k.same(k.same(k.same(x, inner, 1, 1), inner, 1, 7), 192, 7, 1)
	double := k.same(k.same(k.same(x, inner, 1, 1), inner, 7, 1), inner, 1, 7)
	double = k.same(k.same(double, inner, 7, 1), 192, 1, 7)
	pool := k.same(k.average(x), 192, 1, 1)
	return k.Concat(name, one, seven, double, pool)
}

func (k *inception) reduceB(name string, x int) int {
	three := k.conv(k.same(x, 192, 1, 1), 320, 3, 3, 2, false)
	seven := k.same(k.same(k.same(x, 192, 1, 1), 192, 1, 7), 192, 7, 1)
	seven = k.conv(seven, 192, 3, 3, 2, false)
	return k.Concat(name, three, seven, k.maxPool(x, 3))
}

// blockC forks within its branches: 8x8 pixels.
func (k *inception) blockC(i, x int) int {
	fork := func(name string, in int) int {
		return k.Concat(name, k.same(in, 384, 1, 3), k.same(in, 384, 3, 1))
	}
	one := k.same(x, 320, 1, 1)
	three := fork(fmt.Sprintf("mixed9_%d", i), k.same(x, 384, 1, 1))
	double := fork(numbered("concatenate", i), k.same(k.same(x, 448, 1, 1), 384, 3, 3))
	pool := k.same(k.average(x), 192, 1, 1)
	return k.Concat(fmt.Sprintf("mixed%d", 9+i), one, three, double, pool)
}

// convBN adds a convolution without bias and its batch norm.
func convBN(b *Builder, conv, bn string, in, filters int, w Window) int {
	return b.BatchNorm(bn, b.Conv(conv, in, filters, w, 1, false))
}

// imageNetStem is conv 7x7/2, batch norm, ReLU, max pool 3x3/2.
func imageNetStem(b *Builder) {
	convBN(b, "conv1", "bn1", 0, 64, Square(7, 2, 3))
	b.Same("relu", b.Last(), OpReLU)
	b.Pool("maxpool", b.Last(), OpMaxPool, Square(3, 2, 1))
}

// basicBlock is two 3x3 convolutions beside a shortcut; project makes the shortcut where shapes differ.
func basicBlock(b *Builder, name string, filters, stride int, project func(in int) int) {
	in := b.Last()
	convBN(b, name+".conv1", name+".bn1", in, filters, Square(3, stride, 1))
	b.Same(name+".relu1", b.Last(), OpReLU)
	out := convBN(b, name+".conv2", name+".bn2", b.Last(), filters, Square(3, 1, 1))
	short := in
	if stride > 1 || b.Out(in)[0] != filters {
		short = project(in)
	}
	b.Add(name+".add", out, short)
	b.Same(name+".relu2", b.Last(), OpReLU)
}

// stages calls block for every block of a network, in order; all stages but the first start with stride 2.
func stages(blocks []int, block func(stage, i, stride int)) {
	for s, n := range blocks {
		for i := range n {
			stride := 1
			if i == 0 && s > 0 {
				stride = 2
			}
			block(s, i, stride)
		}
	}
}

// shortcut is torchvision's: a 1x1 convolution and its batch norm.
func shortcut(b *Builder, name string, filters, stride int) func(in int) int {
	return func(in int) int {
		return convBN(b, name+".downsample.0", name+".downsample.1", in, filters, Square(1, stride, 0))
	}
}

// resnetBasic is torchvision's ResNet of basic blocks (He 2015, table 1).
func resnetBasic(blocks ...int) func(*Builder, int) {
	return func(b *Builder, classes int) {
		imageNetStem(b)
		stages(blocks, func(s, i, stride int) {
			name := fmt.Sprintf("layer%d.%d", s+1, i)
			basicBlock(b, name, 64<<s, stride, shortcut(b, name, 64<<s, stride))
		})
		b.GlobalPool("avgpool", b.Last())
		classifier(b, "fc", classes)
	}
}

// resnetBottleneck is torchvision's ResNet of bottlenecks, with the stride in the 3x3 convolution ("V1.5"): He's paper
// and Keras have it in the first 1x1. The 3x3 convolution has groups, each with base channels for every 64 that the
// block counts (Xie 2017, Zagoruyko 2016). Source: torchvision/models/resnet.py.
func resnetBottleneck(groups, base int, blocks ...int) func(*Builder, int) {
	return func(b *Builder, classes int) {
		imageNetStem(b)
		stages(blocks, func(s, i, stride int) {
			bottleneck(b, fmt.Sprintf("layer%d.%d", s+1, i), 64<<s, stride, groups, base<<s*groups)
		})
		b.GlobalPool("avgpool", b.Last())
		classifier(b, "fc", classes)
	}
}

func bottleneck(b *Builder, name string, filters, stride, groups, width int) {
	in := b.Last()
	convBN(b, name+".conv1", name+".bn1", in, width, Square(1, 1, 0))
	b.Same(name+".relu1", b.Last(), OpReLU)
	b.BatchNorm(name+".bn2", b.Conv(name+".conv2", b.Last(), width, Square(3, stride, 1), groups, false))
	b.Same(name+".relu2", b.Last(), OpReLU)
	out := convBN(b, name+".conv3", name+".bn3", b.Last(), 4*filters, Square(1, 1, 0))
	short := in
	if stride > 1 || b.Out(in)[0] != 4*filters {
		short = shortcut(b, name, 4*filters, stride)(in)
	}
	b.Add(name+".add", out, short)
	b.Same(name+".relu3", b.Last(), OpReLU)
}

func resnets() map[string]Entry {
	of := func(title string, build func(*Builder, int)) Entry {
		return ofTorchvision(title, "resnet50", 224, build)
	}
	return map[string]Entry{
		"resnet101":        of("ResNet-101 (He 2015)", resnetBottleneck(1, 64, 3, 4, 23, 3)),
		"resnext50_32x4d":  of("ResNeXt-50, 32 groups of 4 (Xie 2017)", resnetBottleneck(32, 4, 3, 4, 6, 3)),
		"resnext101_32x8d": of("ResNeXt-101, 32 groups of 8 (Xie 2017)", resnetBottleneck(32, 8, 3, 4, 23, 3)),
		"resnext101_64x4d": of("ResNeXt-101, 64 groups of 4 (Xie 2017)", resnetBottleneck(64, 4, 3, 4, 23, 3)),
		"wide_resnet50_2":  of("Wide ResNet-50-2 (Zagoruyko 2016)", resnetBottleneck(1, 128, 3, 4, 6, 3)),
		"wide_resnet101_2": of("Wide ResNet-101-2 (Zagoruyko 2016)", resnetBottleneck(1, 128, 3, 4, 23, 3)),
	}
}

// resnetCIFAR has 6n+2 layers on 16, 32 and 64 channels (He 2015, section 4.2); project takes shortcuts of option B.
func resnetCIFAR(n int, project bool) func(*Builder, int) {
	return func(b *Builder, classes int) {
		convBN(b, "conv1", "bn1", 0, 16, Square(3, 1, 1))
		b.Same("relu", b.Last(), OpReLU)
		stages([]int{n, n, n}, func(s, i, stride int) {
			name := fmt.Sprintf("layer%d.%d", s+1, i)
			short := shortcut(b, name, 16<<s, stride)
			if !project {
				short = func(in int) int { return b.Downsample(name+".downsample", in, 16<<s, stride) }
			}
			basicBlock(b, name, 16<<s, stride, short)
		})
		b.GlobalPool("avgpool", b.Last())
		classifier(b, "fc", classes)
	}
}

// resnetNorm is the batch norm of Keras' ResNets.
var resnetNorm = Norm{Eps: 1.001e-5, Momentum: 0.01}

// resnetKeras is version 1 of Keras Applications (keras/src/applications/resnet.py): biases everywhere, the stride in
// the first 1x1 convolution.
func resnetKeras(blocks ...int) func(*Builder, int) {
	return func(b *Builder, classes int) {
		normKeras(b, "conv1_conv", "conv1_bn", 0, 64, Square(7, 2, 3))
		b.Same("conv1_relu", b.Last(), OpReLU)
		b.Pool("pool1_pool", b.Last(), OpMaxPool, Square(3, 2, 1)) // after ReLU, Keras' zeros are no larger than any pixel
		stages(blocks, func(s, i, stride int) {
			bottleneckKeras(b, fmt.Sprintf("conv%d_block%d", s+2, i+1), 64<<s, stride, i == 0)
		})
		b.GlobalPool("avg_pool", b.Last())
		classifier(b, "predictions", classes)
	}
}

func normKeras(b *Builder, conv, bn string, in, filters int, w Window) int {
	return b.Norm(bn, b.Conv(conv, in, filters, w, 1, true), resnetNorm)
}

func bottleneckKeras(b *Builder, name string, filters, stride int, project bool) {
	in := b.Last()
	short := in
	if project {
		short = normKeras(b, name+"_0_conv", name+"_0_bn", in, 4*filters, Square(1, stride, 0))
	}
	normKeras(b, name+"_1_conv", name+"_1_bn", in, filters, Square(1, stride, 0))
	b.Same(name+"_1_relu", b.Last(), OpReLU)
	normKeras(b, name+"_2_conv", name+"_2_bn", b.Last(), filters, Square(3, 1, 1))
	b.Same(name+"_2_relu", b.Last(), OpReLU)
	out := normKeras(b, name+"_3_conv", name+"_3_bn", b.Last(), 4*filters, Square(1, 1, 0))
	b.Add(name+"_add", short, out)
	b.Same(name+"_out", b.Last(), OpReLU)
}
