package model

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/disdel/disdel"
)

func build(t *testing.T, name string, classes int, input ...int) *Graph {
	t.Helper()
	g, err := Build(disdel.Network{Name: name, Input: input, Classes: classes})
	if err != nil {
		t.Fatalf("%s at %v: %v", name, input, err)
	}
	return g
}

// The larger networks have the parameters that torchvision's and Keras Applications' own tables and summaries give, and
// the multiply-accumulates published for them. He 2015, table 6, has 0.27M for both ResNet-20s.
func TestLargeNetworksHaveThePublishedSizes(t *testing.T) {
	for _, c := range []struct {
		name             string
		input            []int
		classes          int
		total, trainable int64
		macs             int64 // 0: none published to the last digit
	}{
		{"mobilenetv1", []int{3, 224, 224}, 1000, 4_253_864, 4_231_976, 568_740_352},
		{"resnet50", []int{3, 224, 224}, 1000, 25_557_032 + 53_120, 25_557_032, 4_089_184_256},
		{"resnet152", []int{3, 224, 224}, 1000, 60_192_808 + 151_424, 60_192_808, 11_513_626_624},
		{"resnet50-keras", []int{3, 224, 224}, 1000, 25_636_712, 25_583_592, 3_857_973_248},
		{"inceptionv3", []int{3, 299, 299}, 1000, 23_851_784, 23_817_352, 0},
		{"vit-b16", []int{3, 224, 224}, 1000, 86_567_656, 86_567_656, 0},
		// Conv 432 + 32; stages 14,016 + 51,072 + 203,520; dense 650. Option B adds 512 + 64 and 2,048 + 128.
		{"resnet20-cifar", []int{3, 32, 32}, 10, 269_722 + 1_376, 269_722, 0},
		{"resnet20-cifar-b", []int{3, 32, 32}, 10, 272_474 + 1_568, 272_474, 0},
	} {
		n := build(t, c.name, c.classes, c.input...).Count()
		if n.Trainable != c.trainable || n.Trainable+n.NonTrainable != c.total {
			t.Errorf("%s: %d parameters, %d trainable; want %d and %d", c.name, n.Trainable+n.NonTrainable, n.Trainable, c.total,
				c.trainable)
		}
		if c.macs > 0 && n.MACs != c.macs {
			t.Errorf("%s: %d MACs, want %d", c.name, n.MACs, c.macs)
		}
	}
}

// torchvision lists Inception v3 with 5.71 GMACs; Keras' differs in no convolution.
func TestInceptionHasThePublishedMACs(t *testing.T) {
	if got := fmt.Sprintf("%.2f", float64(build(t, "inceptionv3", 1000, 3, 299, 299).Count().MACs)/1e9); got != "5.71" {
		t.Errorf("%s GMACs, want 5.71", got)
	}
}

// Small images, as CIFAR's and MNIST's, go through every network but those that say a smallest side and those listed:
// their windows no longer fit.
func TestEveryNetworkTakesSmallImages(t *testing.T) {
	refused := map[string]string{
		"mobilenetv1 at 28":          "conv_dw_12",
		"vgg16 at 28":                "pool5",
		"vgg16-cifar at 28":          "pool5",
		"vgg16-cifar-adaptive at 28": "pool5",
	}
	for _, e := range Zoo() {
		for _, side := range []int{28, 32} {
			what := fmt.Sprintf("%s at %d", e.Name, side)
			g, err := Build(disdel.Network{Name: e.Name, Input: []int{e.Input[0], side, side}, Classes: 10})
			want, bad := refused[what]
			if side < e.min {
				want, bad = "too small", true
			}
			switch {
			case bad && (!errors.Is(err, disdel.Invalid) || !strings.Contains(err.Error(), want)):
				t.Errorf("%s: %v, want Invalid with %q", what, err, want)
			case !bad && err != nil:
				t.Errorf("%s: %v", what, err)
			case !bad && g.Output().Len() != 10:
				t.Errorf("%s: output %v", what, g.Output())
			}
		}
	}
}

func TestInceptionTakes75PixelsAndSaysSo(t *testing.T) {
	for _, side := range []int{75, 96} {
		build(t, "inceptionv3", 10, 3, side, side)
	}
	_, err := Build(disdel.Network{Name: "inceptionv3", Input: []int{3, 32, 32}, Classes: 10})
	want := disdel.Error{
		Kind: disdel.Invalid, Op: "build network inceptionv3",
		Msg:  "an input of 32x32 pixels is too small: it needs at least 75x75",
		Hint: "disdel model show inceptionv3 --input 3x75x75",
	}
	if e := disdel.AsError(err); e == nil || e.Msg != want.Msg || e.Hint != want.Hint || e.Kind != want.Kind {
		t.Errorf("got %+v", err)
	}
}

func node(t *testing.T, g *Graph, name string) *Node {
	t.Helper()
	for i := range g.Nodes {
		if g.Nodes[i].Name == name {
			return &g.Nodes[i]
		}
	}
	t.Fatalf("%s has no layer %s", g.Name, name)
	return nil
}

// Where the two libraries differ, each network follows its own.
func TestNetworksFollowTheirLibrary(t *testing.T) {
	torch, keras := build(t, "resnet50", 1000, 3, 224, 224), build(t, "resnet50-keras", 1000, 3, 224, 224)
	if a, b := node(t, torch, "layer2.0.conv1").Stride.H, node(t, torch, "layer2.0.conv2").Stride.H; a != 1 || b != 2 {
		t.Errorf("torchvision: strides %d and %d, want 1 and 2", a, b)
	}
	if a, b := node(t, keras, "conv3_block1_1_conv").Stride.H, node(t, keras, "conv3_block1_2_conv").Stride.H; a != 2 ||
		b != 1 {
		t.Errorf("Keras: strides %d and %d, want 2 and 1", a, b)
	}
	if n := node(t, torch, "layer1.0.downsample.1"); n.Eps != 1e-5 || n.Momentum != 0.1 || n.NoScale {
		t.Errorf("torchvision: %+v", n)
	}
	mobile := build(t, "mobilenetv1", 1000, 3, 224, 224)
	if n := node(t, mobile, "conv_dw_2"); n.Pad != (Padding{Bottom: 1, Right: 1}) || n.Groups != 64 || n.Bias {
		t.Errorf("MobileNet: %+v", n)
	}
	if n := node(t, mobile, "conv1_bn"); n.Eps != 1e-3 || n.Momentum != 0.01 {
		t.Errorf("MobileNet: %+v", n)
	}
	inception := build(t, "inceptionv3", 1000, 3, 299, 299)
	if n := node(t, inception, "average_pooling2d"); n.CountPad || n.Pad != (Padding{1, 1, 1, 1}) {
		t.Errorf("Inception: %+v", n)
	}
	if n := node(t, inception, "conv2d_93"); n.Filters != 192 {
		t.Errorf("Inception: 94 convolutions, the last with %d filters", n.Filters)
	}
}

// Without scale and center a batch norm has its statistics alone.
func TestParametersLeaveOutScaleAndCenter(t *testing.T) {
	b := NewBuilder("norms", Shape{2, 3, 3})
	b.Norm("both", b.Norm("center", b.Norm("scale", 0, Norm{NoCenter: true}), Norm{NoScale: true}),
		Norm{NoScale: true, NoCenter: true})
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range g.Params() {
		names = append(names, p.Name)
	}
	want := "scale.weight scale.running_mean scale.running_var center.bias center.running_mean center.running_var " +
		"both.running_mean both.running_var"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// Values of tf.nn.conv2d's documentation: out = ceil(in/stride), and of an odd total the last side gets more.
func TestSamePaddingIsTensorFlows(t *testing.T) {
	for _, c := range []struct {
		size, kernel, stride, dilation int
		want                           Padding
	}{
		{28, 3, 1, 1, Padding{1, 1, 1, 1}},
		{28, 3, 2, 1, Padding{0, 1, 0, 1}}, // 13 x 2 + 3 - 28 = 1
		{29, 3, 2, 1, Padding{1, 1, 1, 1}}, // 14 x 2 + 3 - 29 = 2
		{224, 7, 2, 1, Padding{2, 3, 2, 3}},
		{10, 3, 1, 2, Padding{2, 2, 2, 2}},
		{10, 2, 1, 1, Padding{0, 1, 0, 1}},
		{10, 1, 3, 1, Padding{}},
	} {
		w := Square(c.kernel, c.stride, 0)
		w.Dilation = Sides{c.dilation, c.dilation}
		if got := w.SamePad(c.size, c.size).Pad; got != c.want {
			t.Errorf("%+v: got %+v", c, got)
		}
	}
}

// A window of padding alone has no maximum and no mean.
func TestPoolsRefuseWindowsOfPaddingAlone(t *testing.T) {
	b := NewBuilder("pools", Shape{1, 4, 4})
	b.Pool("pool", 0, OpMaxPool, Square(2, 2, 2))
	if _, err := b.Graph(); !errors.Is(err, disdel.Invalid) {
		t.Errorf("got %v, want Invalid", err)
	}
}
