package model

import (
	"fmt"
	"maps"
	"math"
)

// families are torchvision's classification networks, besides those that zoo names. Layers are named as torchvision's
// modules are, so that arrays of weights have the names of its state_dict; those of vgg are named as vgg16's.
var families = joinFamilies(
	atLeast(32, vggs()), resnets(), atLeast(29, densenets()), squeezenets(), mobilenets(), mnasnets(), shufflenets(),
	efficientnets(), regnets(), atLeast(32, convnexts()), vits(),
	atLeast(63, map[string]Entry{"alexnet": ofTorchvision("AlexNet (Krizhevsky 2014)", "", 224, alexnet)}),
	map[string]Entry{
		"googlenet": ofTorchvision("GoogLeNet without auxiliary classifiers (Szegedy 2014)", "", 224, googlenet),
	},
)

// atLeast has networks refuse images with a side below what their windows need.
func atLeast(side int, list map[string]Entry) map[string]Entry {
	for name, e := range list {
		e.min = side
		list[name] = e
	}
	return list
}

func joinFamilies(lists ...map[string]Entry) map[string]Entry {
	all := map[string]Entry{}
	for _, list := range lists {
		maps.Copy(all, list)
	}
	return all
}

// ofTorchvision is a network for ImageNet. variantOf is the smaller network of its family, "" if it is that one.
func ofTorchvision(title, variantOf string, side int, build func(*Builder, int)) Entry {
	return Entry{
		Title: title + ", torchvision", Input: Shape{3, side, side}, Classes: 1000, VariantOf: variantOf, build: build,
	}
}

// divisible rounds channels to a multiple of 8, and up where that would take more than a tenth away (Sandler 2018).
func divisible(channels float64) int {
	near := max(8, int(channels+4)/8*8)
	if float64(near) < 0.9*channels {
		near += 8
	}
	return near
}

// blocks builds networks of units. The fields are what all units of a network share.
type blocks struct {
	*Builder
	norm  Norm
	plain bool // the parts of a unit are NAME.conv, NAME.bn and NAME.relu instead of NAME.0, NAME.1 and NAME.2
}

// unit adds a convolution without bias that keeps the size, its batch norm and an activation, unless that is OpUnknown.
func (k *blocks) unit(name string, in, filters, kernel, stride, groups int, activation Op) int {
	parts := [3]string{".0", ".1", ".2"}
	if k.plain {
		parts = [3]string{".conv", ".bn", ".relu"}
	}
	return k.named([3]string{name + parts[0], name + parts[1], name + parts[2]}, in, filters, kernel, stride, groups,
		activation)
}

func (k *blocks) named(names [3]string, in, filters, kernel, stride, groups int, activation Op) int {
	x := k.Conv(names[0], in, filters, Square(kernel, stride, kernel/2), groups, false)
	x = k.Norm(names[1], x, k.norm)
	if activation != OpUnknown {
		x = k.Same(names[2], x, activation)
	}
	return x
}

// depthwise is unit of every channel by itself.
func (k *blocks) depthwise(name string, in, kernel, stride int, activation Op) int {
	c := k.Out(in)[0]
	return k.unit(name, in, c, kernel, stride, c, activation)
}

// excite multiplies each channel with a gate that the means of all channels decide on (Hu 2018).
func (k *blocks) excite(name string, in, squeeze int, activation, gate Op) int {
	x := k.Conv(name+".fc1", k.GlobalPool(name+".avgpool", in), squeeze, Square(1, 1, 0), 1, true)
	x = k.Same(name+".activation", x, activation)
	x = k.Conv(name+".fc2", x, k.Out(in)[0], Square(1, 1, 0), 1, true)
	return k.Multiply(name+".multiply", in, k.Same(name+".scale_activation", x, gate))
}

// sum adds in where x has its shape: a residual.
func (k *blocks) sum(name string, in, x int) int {
	if k.Out(in).Text() != k.Out(x).Text() {
		return x
	}
	return k.Add(name, x, in)
}

// ceilPool is a max pool whose last window may leave the image.
func (k *blocks) ceilPool(name string, in, kernel, stride int) int {
	_, h, w := k.image(name, in)
	more := func(size int) int { return max(0, (stride-(size-kernel)%stride)%stride) }
	window := Square(kernel, stride, 0)
	window.Pad.Bottom, window.Pad.Right = more(h), more(w)
	return k.Pool(name, in, OpMaxPool, window)
}

// finish averages an image and adds a dense layer, after a dropout where rate is above 0.
func (k *blocks) finish(dropout string, rate float64, dense string, in, classes int) {
	x := k.Flatten("flatten", k.GlobalPool("avgpool", in))
	if rate > 0 {
		x = k.Dropout(dropout, x, rate)
	}
	k.Dense(dense, x, classes)
}

func densenets() map[string]Entry {
	of := func(title, variantOf string, growth, first int, blocks ...int) Entry {
		return ofTorchvision(title+" (Huang 2017)", variantOf, 224, densenet(growth, first, blocks))
	}
	return map[string]Entry{
		"densenet121": of("DenseNet-121", "", 32, 64, 6, 12, 24, 16),
		"densenet161": of("DenseNet-161", "densenet121", 48, 96, 6, 12, 36, 24),
		"densenet169": of("DenseNet-169", "densenet121", 32, 64, 6, 12, 32, 32),
		"densenet201": of("DenseNet-201", "densenet121", 32, 64, 6, 12, 48, 32),
	}
}

// densenet joins what each layer adds, growth channels, to what it has read.
func densenet(growth, first int, counts []int) func(*Builder, int) {
	return func(b *Builder, classes int) {
		x := convBN(b, "features.conv0", "features.norm0", 0, first, Square(7, 2, 3))
		x = b.Pool("features.pool0", b.Same("features.relu0", x, OpReLU), OpMaxPool, Square(3, 2, 1))
		normReLU := func(name, number string, in int) int {
			return b.Same(name+"relu"+number, b.BatchNorm(name+"norm"+number, in), OpReLU)
		}
		for s, count := range counts {
			for i := range count {
				name := fmt.Sprintf("features.denseblock%d.denselayer%d.", s+1, i+1)
				y := b.Conv(name+"conv1", normReLU(name, "1", x), 4*growth, Square(1, 1, 0), 1, false)
				y = b.Conv(name+"conv2", normReLU(name, "2", y), growth, Square(3, 1, 1), 1, false)
				x = b.Concat(name+"concat", x, y)
			}
			if s < len(counts)-1 {
				name := fmt.Sprintf("features.transition%d.", s+1)
				x = b.Conv(name+"conv", normReLU(name, "", x), b.Out(x)[0]/2, Square(1, 1, 0), 1, false)
				x = b.Pool(name+"pool", x, OpAvgPool, Square(2, 2, 0))
			}
		}
		k := blocks{Builder: b}
		k.finish("", 0, "classifier", normReLU("features.", "5", x), classes)
	}
}

func squeezenets() map[string]Entry {
	return map[string]Entry{
		"squeezenet1_0": ofTorchvision("SqueezeNet 1.0 (Iandola 2016)", "squeezenet1_1", 224,
			squeezenet(96, 7, map[int]bool{2: true, 6: true, 11: true})),
		"squeezenet1_1": ofTorchvision("SqueezeNet 1.1 (Iandola 2016)", "", 224,
			squeezenet(64, 3, map[int]bool{2: true, 5: true, 8: true})),
	}
}

// squeezenet has eight fires behind a convolution. pools are the places of its max pools.
func squeezenet(first, kernel int, pools map[int]bool) func(*Builder, int) {
	return func(b *Builder, classes int) {
		k := blocks{Builder: b}
		x := b.Same("features.1", b.Conv("features.0", 0, first, Square(kernel, 2, 0), 1, true), OpReLU)
		place := 2
		pool := func() {
			if pools[place] {
				x = k.ceilPool(fmt.Sprintf("features.%d", place), x, 3, 2)
				place++
			}
		}
		for _, squeeze := range []int{16, 16, 32, 32, 48, 48, 64, 64} {
			pool()
			x = k.fire(fmt.Sprintf("features.%d.", place), x, squeeze)
			place++
			pool()
		}
		x = b.Conv("classifier.1", b.Dropout("classifier.0", x, 0.5), classes, Square(1, 1, 0), 1, true)
		b.Flatten("flatten", b.GlobalPool("classifier.3", b.Same("classifier.2", x, OpReLU)))
	}
}

func (k *blocks) fire(name string, in, squeeze int) int {
	one, three := Square(1, 1, 0), Square(3, 1, 1)
	part := func(part string, in, filters int, w Window) int {
		return k.Same(name+part+"_activation", k.Conv(name+part, in, filters, w, 1, true), OpReLU)
	}
	x := part("squeeze", in, squeeze, one)
	return k.Concat(name+"concat", part("expand1x1", x, 4*squeeze, one), part("expand3x3", x, 4*squeeze, three))
}

func mobilenets() map[string]Entry {
	return map[string]Entry{
		"mobilenet_v2":       ofTorchvision("MobileNet v2 (Sandler 2018)", "", 224, mobileNetV2),
		"mobilenet_v3_small": ofTorchvision("MobileNet v3, small (Howard 2019)", "", 224, mobileNetV3(1024, smallV3)),
		"mobilenet_v3_large": ofTorchvision("MobileNet v3, large (Howard 2019)", "mobilenet_v3_small", 224,
			mobileNetV3(1280, largeV3)),
	}
}

func mobileNetV2(b *Builder, classes int) {
	k := blocks{Builder: b}
	x := k.unit("features.0", 0, 32, 3, 2, 1, OpReLU6)
	i := 1
	for _, s := range []struct{ expand, filters, count, stride int }{
		{1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2}, {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1},
	} {
		for n := range s.count {
			stride := 1
			if n == 0 {
				stride = s.stride
			}
			x = k.inverted(fmt.Sprintf("features.%d", i), x, s.expand, s.filters, stride)
			i++
		}
	}
	x = k.unit("features.18", x, 1280, 1, 1, 1, OpReLU6)
	k.finish("classifier.0", 0.2, "classifier.1", x, classes)
}

// inverted is MobileNet v2's block: more channels, a convolution of each, and fewer channels.
func (k *blocks) inverted(name string, in, expand, filters, stride int) int {
	part := 0
	next := func() string { part++; return fmt.Sprintf("%s.conv.%d", name, part-1) }
	x := in
	if expand != 1 {
		x = k.unit(next(), x, expand*k.Out(in)[0], 1, 1, 1, OpReLU6)
	}
	x = k.depthwise(next(), x, 3, stride, OpReLU6)
	x = k.named([3]string{next(), next()}, x, filters, 1, 1, 1, OpUnknown)
	return k.sum(name+".add", in, x)
}

// blockV3 is a row of tables 1 and 2 of Howard 2019.
type blockV3 struct {
	kernel, expand, filters int
	excite                  bool
	activation              Op
	stride                  int
}

var largeV3 = []blockV3{
	{3, 16, 16, false, OpReLU, 1},
	{3, 64, 24, false, OpReLU, 2},
	{3, 72, 24, false, OpReLU, 1},
	{5, 72, 40, true, OpReLU, 2},
	{5, 120, 40, true, OpReLU, 1},
	{5, 120, 40, true, OpReLU, 1},
	{3, 240, 80, false, OpHardSwish, 2},
	{3, 200, 80, false, OpHardSwish, 1},
	{3, 184, 80, false, OpHardSwish, 1},
	{3, 184, 80, false, OpHardSwish, 1},
	{3, 480, 112, true, OpHardSwish, 1},
	{3, 672, 112, true, OpHardSwish, 1},
	{5, 672, 160, true, OpHardSwish, 2},
	{5, 960, 160, true, OpHardSwish, 1},
	{5, 960, 160, true, OpHardSwish, 1},
}

var smallV3 = []blockV3{
	{3, 16, 16, true, OpReLU, 2},
	{3, 72, 24, false, OpReLU, 2},
	{3, 88, 24, false, OpReLU, 1},
	{5, 96, 40, true, OpHardSwish, 2},
	{5, 240, 40, true, OpHardSwish, 1},
	{5, 240, 40, true, OpHardSwish, 1},
	{5, 120, 48, true, OpHardSwish, 1},
	{5, 144, 48, true, OpHardSwish, 1},
	{5, 288, 96, true, OpHardSwish, 2},
	{5, 576, 96, true, OpHardSwish, 1},
	{5, 576, 96, true, OpHardSwish, 1},
}

func mobileNetV3(hidden int, rows []blockV3) func(*Builder, int) {
	return func(b *Builder, classes int) {
		k := blocks{Builder: b, norm: Norm{Eps: 1e-3, Momentum: 0.01}}
		x := k.unit("features.0", 0, 16, 3, 2, 1, OpHardSwish)
		for i := range rows {
			x = k.blockV3(fmt.Sprintf("features.%d", i+1), x, &rows[i])
		}
		x = k.unit(fmt.Sprintf("features.%d", len(rows)+1), x, 6*k.Out(x)[0], 1, 1, 1, OpHardSwish)
		k.finish("", 0, "classifier.0", x, hidden)
		x = k.Dropout("classifier.2", k.Same("classifier.1", k.Last(), OpHardSwish), 0.2)
		k.Dense("classifier.3", x, classes)
	}
}

func (k *blocks) blockV3(name string, in int, row *blockV3) int {
	part := 0
	next := func() string { part++; return fmt.Sprintf("%s.block.%d", name, part-1) }
	x := in
	if row.expand != k.Out(in)[0] {
		x = k.unit(next(), x, row.expand, 1, 1, 1, row.activation)
	}
	x = k.depthwise(next(), x, row.kernel, row.stride, row.activation)
	if row.excite {
		x = k.excite(next(), x, divisible(float64(row.expand)/4), OpReLU, OpHardSigmoid)
	}
	return k.sum(name+".add", in, k.unit(next(), x, row.filters, 1, 1, 1, OpUnknown))
}

func mnasnets() map[string]Entry {
	list := map[string]Entry{}
	for name, alpha := range map[string]float64{
		"mnasnet0_5": 0.5, "mnasnet0_75": 0.75, "mnasnet1_0": 1, "mnasnet1_3": 1.3,
	} {
		title := fmt.Sprintf("MnasNet with %g of the channels (Tan 2019)", alpha)
		list[name] = ofTorchvision(title, "mobilenet_v2", 224, mnasnet(alpha))
	}
	return list
}

func mnasnet(alpha float64) func(*Builder, int) {
	return func(b *Builder, classes int) {
		k := blocks{Builder: b, norm: Norm{Momentum: 1 - 0.9997}}
		// sequence adds a unit whose parts are named by their places in a list.
		sequence := func(name string, first, in, filters, kernel, stride, groups int, activation Op) int {
			at := func(i int) string { return fmt.Sprintf("%s%d", name, first+i) }
			return k.named([3]string{at(0), at(1), at(2)}, in, filters, kernel, stride, groups, activation)
		}
		width := func(channels int) int { return divisible(float64(channels) * alpha) }
		x := sequence("layers.", 0, 0, width(32), 3, 2, 1, OpReLU)
		x = sequence("layers.", 3, x, width(32), 3, 1, width(32), OpReLU)
		x = sequence("layers.", 6, x, width(16), 1, 1, 1, OpUnknown)
		for s, row := range []struct{ filters, kernel, stride, expand, count int }{
			{24, 3, 2, 3, 3}, {40, 5, 2, 3, 3}, {80, 5, 2, 6, 3}, {96, 3, 1, 6, 2}, {192, 5, 2, 6, 4}, {320, 3, 1, 6, 1},
		} {
			for i := range row.count {
				name, in, stride := fmt.Sprintf("layers.%d.%d.layers.", s+8, i), x, 1
				if i == 0 {
					stride = row.stride
				}
				inner := row.expand * k.Out(in)[0]
				x = sequence(name, 0, x, inner, 1, 1, 1, OpReLU)
				x = sequence(name, 3, x, inner, row.kernel, stride, inner, OpReLU)
				x = k.sum(name+"add", in, sequence(name, 6, x, width(row.filters), 1, 1, 1, OpUnknown))
			}
		}
		x = sequence("layers.", 14, x, 1280, 1, 1, 1, OpReLU)
		k.finish("classifier.0", 0.2, "classifier.1", x, classes)
	}
}

func shufflenets() map[string]Entry {
	of := func(times, variantOf string, widths ...int) Entry {
		return ofTorchvision("ShuffleNet v2, "+times+" (Ma 2018)", variantOf, 224, shufflenet(widths))
	}
	return map[string]Entry{
		"shufflenet_v2_x0_5": of("0.5x", "", 48, 96, 192, 1024),
		"shufflenet_v2_x1_0": of("1.0x", "shufflenet_v2_x0_5", 116, 232, 464, 1024),
		"shufflenet_v2_x1_5": of("1.5x", "shufflenet_v2_x0_5", 176, 352, 704, 1024),
		"shufflenet_v2_x2_0": of("2.0x", "shufflenet_v2_x0_5", 244, 488, 976, 2048),
	}
}

func shufflenet(widths []int) func(*Builder, int) {
	return func(b *Builder, classes int) {
		k := blocks{Builder: b}
		x := b.Pool("maxpool", k.unit("conv1", 0, 24, 3, 2, 1, OpReLU), OpMaxPool, Square(3, 2, 1))
		for s, count := range []int{4, 8, 4} {
			for i := range count {
				x = k.shuffled(fmt.Sprintf("stage%d.%d", s+2, i), x, widths[s]/2, i == 0)
			}
		}
		x = k.unit("conv5", x, widths[3], 1, 1, 1, OpReLU)
		k.finish("", 0, "fc", x, classes)
	}
}

// shuffled adds a block of two branches with filters channels each. Only a block that halves the image computes both.
func (k *blocks) shuffled(name string, in, filters int, halve bool) int {
	part := func(branch string, first, in, kernel, stride, groups int, activation Op) int {
		at := func(i int) string { return fmt.Sprintf("%s.%s.%d", name, branch, first+i) }
		width := filters
		if groups > 1 {
			width = groups
		}
		return k.named([3]string{at(0), at(1), at(2)}, in, width, kernel, stride, groups, activation)
	}
	one, two, stride := in, in, 2
	if halve {
		one = part("branch1", 0, in, 3, 2, k.Out(in)[0], OpUnknown)
		one = part("branch1", 2, one, 1, 1, 1, OpReLU)
	} else {
		stride = 1
		one = k.Channels(name+".first", in, 0, filters, 1)
		two = k.Channels(name+".second", in, filters, filters, 1)
	}
	two = part("branch2", 0, two, 1, 1, 1, OpReLU)
	two = part("branch2", 3, two, 3, stride, filters, OpUnknown)
	two = part("branch2", 5, two, 1, 1, 1, OpReLU)
	return k.Channels(name+".shuffle", k.Concat(name+".concat", one, two), 0, 0, 2)
}

// stage is a row of EfficientNet's tables: blocks with an expansion, a kernel, and the stride of the first block.
type stage struct {
	fused                                  bool // one convolution expands, instead of two
	expand, kernel, stride, filters, count int
}

// stagesV1 is table 1 of Tan 2019.
var stagesV1 = []stage{
	{false, 1, 3, 1, 16, 1},
	{false, 6, 3, 2, 24, 2},
	{false, 6, 5, 2, 40, 2},
	{false, 6, 3, 2, 80, 3},
	{false, 6, 5, 1, 112, 3},
	{false, 6, 5, 2, 192, 4},
	{false, 6, 3, 1, 320, 1},
}

// efficientnet is one network of the family: of first channels, then stages, then last channels; 0: four times as many.
type efficientnet struct {
	first, last int
	stages      []stage
	dropout     float64
	norm        Norm
}

func efficientnets() map[string]Entry {
	list := map[string]Entry{}
	for i, v := range []struct {
		width, depth, dropout float64
		side                  int
	}{
		{1, 1, 0.2, 224},
		{1, 1.1, 0.2, 240},
		{1.1, 1.2, 0.3, 288},
		{1.2, 1.4, 0.3, 300},
		{1.4, 1.8, 0.4, 380},
		{1.6, 2.2, 0.4, 456},
		{1.8, 2.6, 0.5, 528},
		{2, 3.1, 0.5, 600},
	} {
		net := efficientnet{first: divisible(32 * v.width), dropout: v.dropout}
		for _, s := range stagesV1 {
			s.filters, s.count = divisible(float64(s.filters)*v.width), int(math.Ceil(float64(s.count)*v.depth))
			net.stages = append(net.stages, s)
		}
		variantOf := "efficientnet_b0"
		if i == 0 {
			variantOf = ""
		}
		if i >= 5 {
			net.norm = Norm{Eps: 1e-3, Momentum: 0.01}
		}
		list[fmt.Sprintf("efficientnet_b%d", i)] = ofTorchvision(fmt.Sprintf("EfficientNet-B%d (Tan 2019)", i), variantOf,
			v.side, net.build)
	}
	for name, net := range efficientnetsV2 {
		side, of := 480, "efficientnet_v2_s"
		if name == of {
			side, of = 384, ""
		}
		net.last, net.norm = 1280, Norm{Eps: 1e-3}
		list[name] = ofTorchvision("EfficientNet v2, size "+name[len(name)-1:]+" (Tan 2021)", of, side, net.build)
	}
	return list
}

// efficientnetsV2 are table 4 of Tan 2021 and its larger sizes.
var efficientnetsV2 = map[string]efficientnet{
	"efficientnet_v2_s": {first: 24, dropout: 0.2, stages: []stage{
		{true, 1, 3, 1, 24, 2},
		{true, 4, 3, 2, 48, 4},
		{true, 4, 3, 2, 64, 4},
		{false, 4, 3, 2, 128, 6},
		{false, 6, 3, 1, 160, 9},
		{false, 6, 3, 2, 256, 15},
	}},
	"efficientnet_v2_m": {first: 24, dropout: 0.3, stages: []stage{
		{true, 1, 3, 1, 24, 3},
		{true, 4, 3, 2, 48, 5},
		{true, 4, 3, 2, 80, 5},
		{false, 4, 3, 2, 160, 7},
		{false, 6, 3, 1, 176, 14},
		{false, 6, 3, 2, 304, 18},
		{false, 6, 3, 1, 512, 5},
	}},
	"efficientnet_v2_l": {first: 32, dropout: 0.4, stages: []stage{
		{true, 1, 3, 1, 32, 4},
		{true, 4, 3, 2, 64, 7},
		{true, 4, 3, 2, 96, 7},
		{false, 4, 3, 2, 192, 10},
		{false, 6, 3, 1, 224, 19},
		{false, 6, 3, 2, 384, 25},
		{false, 6, 3, 1, 640, 7},
	}},
}

func (net *efficientnet) build(b *Builder, classes int) {
	k := blocks{Builder: b, norm: net.norm}
	x := k.unit("features.0", 0, net.first, 3, 2, 1, OpSiLU)
	blocks, at := 0, 0
	for _, st := range net.stages {
		blocks += st.count
	}
	for s, st := range net.stages {
		for i := range st.count {
			x = k.mbConv(fmt.Sprintf("features.%d.%d", s+1, i), x, &st, 0.2*float64(at)/float64(blocks))
			st.stride = 1
			at++
		}
	}
	last := net.last
	if last == 0 {
		last = 4 * k.Out(x)[0]
	}
	x = k.unit(fmt.Sprintf("features.%d", len(net.stages)+1), x, last, 1, 1, 1, OpSiLU)
	k.finish("classifier.0", net.dropout, "classifier.1", x, classes)
}

// mbConv adds a block that leaves out the branch of a share of the rows, where there is a sum.
func (k *blocks) mbConv(name string, in int, s *stage, share float64) int {
	part := 0
	next := func() string { part++; return fmt.Sprintf("%s.block.%d", name, part-1) }
	c := k.Out(in)[0]
	x, inner := in, c*s.expand
	switch {
	case s.fused && s.expand == 1:
		return k.sparse(name, in, k.unit(next(), x, s.filters, s.kernel, s.stride, 1, OpSiLU), share)
	case s.fused:
		x = k.unit(next(), x, inner, s.kernel, s.stride, 1, OpSiLU)
	default:
		if s.expand != 1 {
			x = k.unit(next(), x, inner, 1, 1, 1, OpSiLU)
		}
		x = k.depthwise(next(), x, s.kernel, s.stride, OpSiLU)
		x = k.excite(next(), x, max(1, c/4), OpSiLU, OpSigmoid)
	}
	return k.sparse(name, in, k.unit(next(), x, s.filters, 1, 1, 1, OpUnknown), share)
}

// sparse is sum with stochastic depth.
func (k *blocks) sparse(name string, in, x int, share float64) int {
	if share > 0 && k.Out(in).Text() == k.Out(x).Text() {
		x = k.DropPath(name+".stochastic_depth", x, share)
	}
	return k.sum(name+".add", in, x)
}

// regnet is one network of the family: channels and blocks of its four stages, and channels of a group.
type regnet struct {
	widths, counts [4]int
	group          int
	excite         bool
}

var regnetSizes = map[string]regnet{
	"regnet_x_400mf": {[4]int{32, 64, 160, 400}, [4]int{1, 2, 7, 12}, 16, false},
	"regnet_x_800mf": {[4]int{64, 128, 288, 672}, [4]int{1, 3, 7, 5}, 16, false},
	"regnet_x_1_6gf": {[4]int{72, 168, 408, 912}, [4]int{2, 4, 10, 2}, 24, false},
	"regnet_x_3_2gf": {[4]int{96, 192, 432, 1008}, [4]int{2, 6, 15, 2}, 48, false},
	"regnet_x_8gf":   {[4]int{80, 240, 720, 1920}, [4]int{2, 5, 15, 1}, 120, false},
	"regnet_x_16gf":  {[4]int{256, 512, 896, 2048}, [4]int{2, 6, 13, 1}, 128, false},
	"regnet_x_32gf":  {[4]int{336, 672, 1344, 2520}, [4]int{2, 7, 13, 1}, 168, false},
	"regnet_y_400mf": {[4]int{48, 104, 208, 440}, [4]int{1, 3, 6, 6}, 8, true},
	"regnet_y_800mf": {[4]int{64, 144, 320, 784}, [4]int{1, 3, 8, 2}, 16, true},
	"regnet_y_1_6gf": {[4]int{48, 120, 336, 888}, [4]int{2, 6, 17, 2}, 24, true},
	"regnet_y_3_2gf": {[4]int{72, 216, 576, 1512}, [4]int{2, 5, 13, 1}, 24, true},
	"regnet_y_8gf":   {[4]int{224, 448, 896, 2016}, [4]int{2, 4, 10, 1}, 56, true},
	"regnet_y_16gf":  {[4]int{224, 448, 1232, 3024}, [4]int{2, 4, 11, 1}, 112, true},
	"regnet_y_32gf":  {[4]int{232, 696, 1392, 3712}, [4]int{2, 5, 12, 1}, 232, true},
}

func regnets() map[string]Entry {
	list := map[string]Entry{}
	for name, net := range regnetSizes {
		kind, variantOf := "RegNetX", "regnet_y_400mf"
		if net.excite {
			kind = "RegNetY"
		}
		if name == variantOf {
			variantOf = ""
		}
		list[name] = ofTorchvision(kind+", "+name[len("regnet_x_"):]+" (Radosavovic 2020)", variantOf, 224, net.build)
	}
	return list
}

func (net *regnet) build(b *Builder, classes int) {
	k := blocks{Builder: b}
	x := k.unit("stem", 0, 32, 3, 2, 1, OpReLU)
	for s, count := range net.counts {
		for i := range count {
			stride := 1
			if i == 0 {
				stride = 2
			}
			x = k.regular(fmt.Sprintf("trunk_output.block%d.block%d-%d.", s+1, s+1, i), x, stride, s, net)
		}
	}
	k.finish("", 0, "fc", x, classes)
}

func (k *blocks) regular(name string, in, stride, s int, net *regnet) int {
	width, squeeze := net.widths[s], int(math.RoundToEven(float64(k.Out(in)[0])/4))
	short := in
	if stride > 1 || k.Out(in)[0] != width {
		short = k.unit(name+"proj", in, width, 1, stride, 1, OpUnknown)
	}
	x := k.unit(name+"f.a", in, width, 1, 1, 1, OpReLU)
	x = k.unit(name+"f.b", x, width, 3, stride, width/min(width, net.group), OpReLU)
	if net.excite {
		x = k.excite(name+"f.se", x, squeeze, OpReLU, OpSigmoid)
	}
	x = k.unit(name+"f.c", x, width, 1, 1, 1, OpUnknown)
	return k.Same(name+"activation", k.Add(name+"add", short, x), OpReLU)
}

func convnexts() map[string]Entry {
	of := func(title, variantOf string, width, deep int, share float64) Entry {
		return ofTorchvision("ConvNeXt, "+title+" (Liu 2022)", variantOf, 224, convnext(width, share, 3, 3, deep, 3))
	}
	return map[string]Entry{
		"convnext_tiny":  of("tiny", "", 96, 9, 0.1),
		"convnext_small": of("small", "convnext_tiny", 96, 27, 0.4),
		"convnext_base":  of("base", "convnext_tiny", 128, 27, 0.5),
		"convnext_large": of("large", "convnext_tiny", 192, 27, 0.5),
	}
}

// convnext is a network whose last block leaves out its branch for this share of the rows, and earlier ones for less.
func convnext(width int, share float64, counts ...int) func(*Builder, int) {
	const eps = 1e-6
	return func(b *Builder, classes int) {
		norm := func(name string, in int) int { return b.LayerNorm(name, in, OpLayerNorm, eps) }
		blocks, at := 0, 0
		for _, count := range counts {
			blocks += count
		}
		x := norm("features.0.1", b.Conv("features.0.0", 0, width, Square(4, 4, 0), 1, true))
		for s, count := range counts {
			c := width << s
			if s > 0 {
				name := fmt.Sprintf("features.%d.", 2*s)
				x = b.Conv(name+"1", norm(name+"0", x), c, Square(2, 2, 0), 1, true)
			}
			for i := range count {
				name := fmt.Sprintf("features.%d.%d.", 2*s+1, i)
				y := norm(name+"block.2", b.Conv(name+"block.0", x, c, Square(7, 1, 3), c, true))
				y = b.Same(name+"block.4", b.Conv(name+"block.3", y, 4*c, Square(1, 1, 0), 1, true), OpGELU)
				y = b.Conv(name+"block.5", y, c, Square(1, 1, 0), 1, true)
				y = b.LayerScale(name+"layer_scale", y, eps)
				if at > 0 {
					y = b.DropPath(name+"stochastic_depth", y, share*float64(at)/float64(blocks-1))
				}
				x = b.Add(name+"add", x, y)
				at++
			}
		}
		x = norm("classifier.0", b.GlobalPool("avgpool", x))
		b.Dense("classifier.2", b.Flatten("classifier.1", x), classes)
	}
}

// googlenet has 3x3 convolutions where the paper has 5x5: torchvision's weights came from TensorFlow's network.
func googlenet(b *Builder, classes int) {
	k := blocks{Builder: b, norm: Norm{Eps: 1e-3}, plain: true}
	x := k.ceilPool("maxpool1", k.unit("conv1", 0, 64, 7, 2, 1, OpReLU), 3, 2)
	x = k.unit("conv3", k.unit("conv2", x, 64, 1, 1, 1, OpReLU), 192, 3, 1, 1, OpReLU)
	x = k.ceilPool("maxpool2", x, 3, 2)
	for _, m := range []struct {
		name                           string
		one, in3, out3, in5, out5, out int
	}{
		{"3a", 64, 96, 128, 16, 32, 32},
		{"3b", 128, 128, 192, 32, 96, 64},
		{"4a", 192, 96, 208, 16, 48, 64},
		{"4b", 160, 112, 224, 24, 64, 64},
		{"4c", 128, 128, 256, 24, 64, 64},
		{"4d", 112, 144, 288, 32, 64, 64},
		{"4e", 256, 160, 320, 32, 128, 128},
		{"5a", 256, 160, 320, 32, 128, 128},
		{"5b", 384, 192, 384, 48, 128, 128},
	} {
		name := "inception" + m.name + "."
		switch m.name {
		case "4a":
			x = k.ceilPool("maxpool3", x, 3, 2)
		case "5a":
			x = k.ceilPool("maxpool4", x, 2, 2)
		}
		double := func(branch string, inner, filters int) int {
			y := k.unit(name+branch+".0", x, inner, 1, 1, 1, OpReLU)
			return k.unit(name+branch+".1", y, filters, 3, 1, 1, OpReLU)
		}
		one := k.unit(name+"branch1", x, m.one, 1, 1, 1, OpReLU)
		three, five := double("branch2", m.in3, m.out3), double("branch3", m.in5, m.out5)
		pool := k.unit(name+"branch4.1", k.Pool(name+"branch4.0", x, OpMaxPool, Square(3, 1, 1)), m.out, 1, 1, 1, OpReLU)
		x = k.Concat(name+"concat", one, three, five, pool)
	}
	k.finish("dropout", 0.2, "fc", x, classes)
}
