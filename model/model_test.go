package model

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/disdel/disdel"
)

// The published counts: torchvision's parameters and GMACs, Keras Applications' sizes, convnet-burden's feature memory.
func TestCountsAreThePublishedOnes(t *testing.T) {
	for _, c := range []struct {
		name                string
		input               []int
		classes             int
		trainable, other    int64
		activA, activB, mac int64
	}{
		{"lenet5", []int{1, 28, 28}, 10, 61_706, 0, 6_518, 8_094, 416_520},
		{"lenet-kubeml", []int{1, 28, 28}, 10, 44_426, 0, 4_694, 5_814, 281_640},
		{"resnet18", []int{3, 224, 224}, 1000, 11_689_512, 9_600, 2_484_712, 5_922_280, 1_814_073_344},
		{"resnet34", []int{3, 224, 224}, 1000, 21_797_672, 17_024, 3_739_112, 9_058_280, 3_663_761_408},
		{"resnet18", []int{3, 32, 32}, 10, 11_181_642, 9_600, 50_698, 121_354, 37_016_576},
		{"resnet32-cifar", []int{3, 32, 32}, 10, 464_154, 2_272, 303_114, 749_642, 68_862_592},
		{"resnet32-cifar-b", []int{3, 32, 32}, 10, 466_906, 2_464, 315_402, 774_218, 69_124_736},
		{"resnet50-keras", []int{3, 224, 224}, 1000, 25_583_592, 53_120, 10_588_136, 26_897_384, 3_857_973_248},
		{"vgg16", []int{3, 224, 224}, 1000, 138_357_544, 0, 13_556_712, 15_087_080, 15_470_264_320},
		{"vgg16-cifar", []int{3, 32, 32}, 10, 33_638_218, 0, 284_682, 315_914, 332_111_872},
		{"vgg16-cifar-adaptive", []int{3, 32, 32}, 10, 134_301_514, 0, 284_682, 341_002, 432_775_168},
		{"softmax-regression", []int{1, 28, 28}, 10, 7_850, 0, 10, 10, 7_840},
	} {
		g, err := Build(disdel.Network{Name: c.name, Input: c.input, Classes: c.classes})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		n := g.Count()
		got := []int64{n.Trainable, n.NonTrainable, n.ActivationsA, n.ActivationsB, n.MACs}
		if diff := cmp.Diff([]int64{c.trainable, c.other, c.activA, c.activB, c.mac}, got); diff != "" {
			t.Errorf("%s at %v: trainable, other, activations A, B, MACs (-want +got):\n%s", c.name, c.input, diff)
		}
	}
}

func TestEveryNetworkBuildsAtItsStandardInput(t *testing.T) {
	for _, e := range Zoo() {
		g, err := Build(disdel.Network{Name: e.Name, Input: e.Input, Classes: e.Classes})
		if err != nil {
			t.Errorf("%s: %v", e.Name, err)
			continue
		}
		if g.Output().Len() != e.Classes {
			t.Errorf("%s: %v outputs, want %d", e.Name, g.Output(), e.Classes)
		}
	}
}

func TestParametersHavePyTorchNamesAndLayouts(t *testing.T) {
	g, err := Build(disdel.Network{Name: "lenet5", Input: []int{1, 28, 28}, Classes: 10})
	if err != nil {
		t.Fatal(err)
	}
	want := []Param{
		{"conv1.weight", 1, []int{6, 1, 5, 5}, true, false},
		{"conv1.bias", 1, []int{6}, true, false},
		{"conv2.weight", 4, []int{16, 6, 5, 5}, true, false},
		{"conv2.bias", 4, []int{16}, true, false},
		{"fc1.weight", 8, []int{120, 400}, true, false},
		{"fc1.bias", 8, []int{120}, true, false},
		{"fc2.weight", 10, []int{84, 120}, true, false},
		{"fc2.bias", 10, []int{84}, true, false},
		{"fc3.weight", 12, []int{10, 84}, true, false},
		{"fc3.bias", 12, []int{10}, true, false},
	}
	if diff := cmp.Diff(want, g.Params()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A graph built by hand with the layers that no small network has.
func TestShapesAndCountsOfTheOtherLayers(t *testing.T) {
	b := NewBuilder("odd", Shape{4, 9, 7})
	grouped := b.Conv("grouped", 0, 8,
		Window{Kernel: Sides{3, 3}, Stride: Sides{2, 1}, Pad: Padding{1, 0, 1, 1}, Dilation: Sides{1, 1}}, 2, false)
	depth := b.Conv("depth", grouped, 8, Square(3, 1, 1), 8, true)
	bn := b.BatchNorm("bn", depth)
	sum := b.Add("sum", bn, grouped)
	cat := b.Concat("cat", sum, grouped)
	drop := b.Dropout("drop", cat, 0.3)
	avg := b.Pool("avg", drop, OpAvgPool, Square(2, 2, 0))
	b.Dense("fc", b.Flatten("flat", avg), 5)
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	shapes := map[string][]int{}
	for _, n := range g.Nodes {
		shapes[n.Name] = n.Out
	}
	// Height: (9+1-3)/2+1 = 4; width: 7+2-3+1 = 7. Pool: 2 x 3.
	want := map[string][]int{
		"input": {4, 9, 7}, "grouped": {8, 4, 7}, "depth": {8, 4, 7}, "bn": {8, 4, 7}, "sum": {8, 4, 7},
		"cat": {16, 4, 7}, "drop": {16, 4, 7}, "avg": {16, 2, 3}, "flat": {96}, "fc": {5},
	}
	if diff := cmp.Diff(want, shapes); diff != "" {
		t.Errorf("shapes (-want +got):\n%s", diff)
	}
	c := g.Count()
	// 8 filters of 2 x 3 x 3; 8 of 1 x 3 x 3 with bias; 2 x 8 of batch norm; 96 x 5 + 5.
	if want := int64(144 + 72 + 8 + 16 + 485); c.Trainable != want {
		t.Errorf("trainable parameters %d, want %d", c.Trainable, want)
	}
	if want := int64(224*18 + 224*9 + 480); c.MACs != want {
		t.Errorf("MACs %d, want %d", c.MACs, want)
	}
}

func TestMistakesNameTheLayerAndTheNumbers(t *testing.T) {
	for _, c := range []struct {
		name   string
		layers []disdel.Layer
		want   string
	}{
		{
			"window too large",
			[]disdel.Layer{{Kind: "conv", Filters: 2, Kernel: 9}},
			"layer 0: a window of 9 (stride 1, dilation 1) does not fit 8 pixels",
		},
		{
			"conv on a vector",
			[]disdel.Layer{{Kind: "flatten"}, {Kind: "conv", Filters: 2, Kernel: 1}},
			"layer 1: its input [64] is no image",
		},
		{
			"groups",
			[]disdel.Layer{{Kind: "conv", Filters: 3, Kernel: 1, Groups: 2}},
			"layer 0: 2 groups do not divide 1 input and 3 output channels",
		},
		{
			"softmax inside",
			[]disdel.Layer{{Kind: "flatten"}, {Kind: "softmax"}, {Kind: "dense", Units: 2}},
			"layer 1: softmax may only come last",
		},
		{"kind", []disdel.Layer{{Kind: "crf"}}, `layer 0: there is no kind of layer "crf"`},
	} {
		_, err := Build(disdel.Network{Layers: c.layers, Input: []int{1, 8, 8}, Classes: 2})
		if !errors.Is(err, disdel.Invalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want Invalid with %q", c.name, err, c.want)
		}
	}
}

func TestCheckLayersListsEveryFault(t *testing.T) {
	got := CheckLayers("model.layers", []disdel.Layer{
		{Kind: "dens", Units: 3},
		{Kind: "dense"},
		{Kind: "dropout", Rate: 1.5},
		{Kind: "relu", Units: 2},
		{Kind: "softmax"},
		{Kind: "transformer", Heads: 1, Theta: 500},
		{Kind: "transformer", Heads: 1, Theta: 1, Rotary: new(true)},
		{Kind: "dense", Units: 10, Activation: "swish"},
	})
	want := []disdel.Fault{
		{Path: "model.layers[0]", Msg: `there is no kind of layer "dens"`, Hint: `did you mean "dense"?`},
		{Path: "model.layers[1].dense.units", Msg: "dense needs units"},
		{Path: "model.layers[2].dropout.rate", Msg: "must be at least 0 and below 1"},
		{Path: "model.layers[3].relu.units", Msg: "relu takes no units"},
		{Path: "model.layers[4]", Msg: "softmax may only come last"},
		{
			Path: "model.layers[5].transformer.theta", Msg: "only rotary positions have it",
			Hint: "write rotary: true, too",
		},
		{Path: "model.layers[6].transformer.theta", Msg: "must be above 1 and at most 1e+12"},
		{Path: "model.layers[7].dense.activation", Msg: `there is no activation "swish"`},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// pair draws sides that are mostly not given.
func pair(t *rapid.T) [2]int {
	if rapid.IntRange(0, 3).Draw(t, "given") > 0 {
		return [2]int{}
	}
	side := rapid.OneOf(rapid.IntRange(-1, 4), rapid.Int())
	return [2]int{side.Draw(t, "height"), side.Draw(t, "width")}
}

// Whatever layers a person writes, Build gives a graph of positive shapes or an error, and never panics.
func TestBuildNeverPanics(t *testing.T) {
	small := rapid.IntRange(-1, 9)
	rapid.Check(t, func(t *rapid.T) {
		layers := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) disdel.Layer {
			return disdel.Layer{
				Kind:  rapid.SampledFrom(append(LayerKinds(), "nonsense")).Draw(t, "kind"),
				Name:  rapid.SampledFrom([]string{"", "", "a", "b", "input", "1"}).Draw(t, "name"),
				From:  rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "input", "0", "1"}), 0, 2).Draw(t, "from"),
				Shape: rapid.SliceOfN(small, 0, 3).Draw(t, "shape"), Dilation: small.Draw(t, "dilation"),
				SamePad:  rapid.Bool().Draw(t, "same"),
				KernelHW: pair(t), StrideHW: pair(t), DilationHW: pair(t),
				PaddingAt: [4]int{small.Draw(t, "top"), 0, small.Draw(t, "left"), 0},
				Bias:      new(rapid.Bool().Draw(t, "bias")), Eps: rapid.Float64().Draw(t, "eps"),
				Momentum: rapid.Float64().Draw(t, "momentum"),
				Units:    small.Draw(t, "units"), Filters: small.Draw(t, "filters"), Kernel: small.Draw(t, "kernel"),
				Stride:  small.Draw(t, "stride"),
				Padding: small.Draw(t, "padding"), Groups: small.Draw(t, "groups"), Rate: rapid.Float64Range(-1, 2).Draw(t, "rate"),
				Activation: rapid.SampledFrom([]string{"", "relu", "softmax", "x"}).Draw(t, "activation"),
			}
		}), 0, 6).Draw(t, "layers")
		input := rapid.SliceOfN(rapid.IntRange(0, 12), 0, 4).Draw(t, "input")
		g, err := Build(disdel.Network{Layers: layers, Input: input, Classes: 3})
		CheckLayers("model.layers", layers)
		if err != nil {
			return
		}
		for _, n := range g.Nodes {
			if n.Out.Len() < 1 {
				t.Fatalf("%s has shape %v", n.Name, n.Out)
			}
		}
	})
}

// A residual block in a job file: names, from, branches that join.
func TestLayersMayBranchAndJoin(t *testing.T) {
	g, err := Build(disdel.Network{Input: []int{2, 8, 8}, Classes: 3, Layers: []disdel.Layer{
		{Kind: "conv", Name: "stem", Filters: 4, Kernel: 3, SamePad: true, Activation: "relu"},
		{Kind: "conv", Filters: 4, KernelHW: [2]int{1, 3}, PaddingAt: [4]int{0, 0, 2, 0}, Bias: new(false)},
		{Kind: "batchNorm", Name: "norm", Eps: 1e-3, Momentum: 0.01, Scale: new(false)},
		{Kind: "conv", Name: "short", From: []string{"stem"}, Filters: 4, Kernel: 1, Dilation: 2},
		{Kind: "add", Name: "sum", From: []string{"norm", "short"}},
		{Kind: "concat", From: []string{"sum", "stem", "input"}},
		{Kind: "dense", Units: 3, Bias: new(false)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	name := func(i int) string { return g.Nodes[i].Name }
	cat := node(t, g, "5")
	if got := []string{name(cat.Inputs[0]), name(cat.Inputs[1]), name(cat.Inputs[2])}; !cmp.Equal(got,
		[]string{"sum", "stem.relu", "input"}) || cat.Out[0] != 10 {
		t.Errorf("concat takes %v and gives %v", got, cat.Out)
	}
	if n := node(t, g, "1"); n.Bias || n.Pad != (Padding{Left: 2}) || n.Kernel != (Sides{1, 3}) {
		t.Errorf("%+v", n)
	}
	// Stem 4 x 18 + 4, 4 x 12, norm 4, shortcut 4 x 4 + 4, dense 10 x 64 x 3.
	if c := g.Count(); c.Trainable != 76+48+4+20+1920 || c.NonTrainable != 8 {
		t.Errorf("%d trainable and %d other parameters", c.Trainable, c.NonTrainable)
	}
}

// Padding in pixels counts in an average, as in PyTorch; that of same does not, as in TensorFlow.
func TestAveragesCountPaddingInPixelsOnly(t *testing.T) {
	g, err := Build(disdel.Network{Input: []int{1, 8, 8}, Classes: 3, Layers: []disdel.Layer{
		{Kind: "avgPool", Name: "pixels", Kernel: 3, Stride: 1, Padding: 1},
		{Kind: "avgPool", Name: "same", Kernel: 3, Stride: 1, SamePad: true},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if a, b := node(t, g, "pixels"), node(t, g, "same"); !a.CountPad || b.CountPad || a.Pad != b.Pad {
		t.Errorf("%+v\n%+v", a, b)
	}
}

// Numbers that no machine could hold are refused before a count of them overflows.
func TestNetworksBeyondAnyMachineAreRefused(t *testing.T) {
	for _, l := range []disdel.Layer{
		{Kind: "conv", Filters: 1 << 62, Kernel: 1},
		{Kind: "conv", Filters: 1, Kernel: 1 << 62, SamePad: true},
		{Kind: "conv", Filters: 1, Kernel: 2, Dilation: 1 << 62},
		{Kind: "conv", Filters: 1, Kernel: 1, Padding: 1 << 62},
		{Kind: "dense", Units: 1 << 41},
	} {
		if _, err := Build(disdel.Network{Input: []int{1, 8, 8}, Classes: 3, Layers: []disdel.Layer{l}}); !errors.Is(err,
			disdel.Invalid) {
			t.Errorf("%+v: got %v, want Invalid", l, err)
		}
	}
}

func TestCheckLayersKnowsNamesAndBranches(t *testing.T) {
	for _, c := range []struct {
		layers []disdel.Layer
		want   []disdel.Fault
	}{
		{[]disdel.Layer{{Kind: "relu", Name: "a b"}, {Kind: "tanh", Name: "0"}, {Kind: "relu", Name: "0"}}, []disdel.Fault{
			{Path: "l[0].relu.name", Msg: "a name has letters, digits and _ - . /, at most 100, the first a letter, digit or _"},
			{Path: "l[2].relu.name", Msg: `the name "0" is taken`},
		}},
		{[]disdel.Layer{{Kind: "add", From: []string{"input"}}, {Kind: "relu", From: []string{"1"}}}, []disdel.Fault{
			{Path: "l[0].add.from", Msg: "add needs two layers or more", Hint: "write from: [a, b] with the names of layers"},
			{Path: "l[1].relu.from", Msg: `there is no layer "1" before this one`},
		}},
		{[]disdel.Layer{{Kind: "conv", Filters: 1, KernelHW: [2]int{0, 3}, PaddingAt: [4]int{0, -1}, Eps: 1}}, []disdel.Fault{
			{Path: "l[0].conv.eps", Msg: "conv takes no eps"},
			{Path: "l[0].conv.kernel", Msg: "must be at least 1"},
			{Path: "l[0].conv.padding", Msg: "must not be negative"},
		}},
		{[]disdel.Layer{{Kind: "relu", Name: "a"}, {Kind: "relu", From: []string{"input"}}}, []disdel.Fault{
			{Path: "l[0]", Msg: "nothing uses its output", Hint: `name "a" in the from of a later layer, or take it out`},
		}},
	} {
		got := CheckLayers("l", c.layers)
		for i := range got {
			if c.want[min(i, len(c.want)-1)].Hint == "" {
				got[i].Hint = ""
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
