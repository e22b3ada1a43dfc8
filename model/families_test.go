package model

import (
	"math"
	"testing"

	"github.com/disdel/disdel"
)

// published has the parameters and the billions of multiply-accumulates of torchvision 0.15's own list of weights
// (Weights.meta: num_params and _ops), with ImageNet's classes at the size of its pictures.
var published = map[string]struct {
	parameters int64
	gmacs      float64
}{
	"alexnet":            {61_100_840, 0.714},
	"googlenet":          {6_624_904, 1.498},
	"vgg11":              {132_863_336, 7.609},
	"vgg11_bn":           {132_868_840, 7.609},
	"vgg13":              {133_047_848, 11.308},
	"vgg13_bn":           {133_053_736, 11.308},
	"vgg16":              {138_357_544, 15.47},
	"vgg16_bn":           {138_365_992, 15.47},
	"vgg19":              {143_667_240, 19.632},
	"vgg19_bn":           {143_678_248, 19.632},
	"resnet18":           {11_689_512, 1.814},
	"resnet34":           {21_797_672, 3.664},
	"resnet50":           {25_557_032, 4.089},
	"resnet101":          {44_549_160, 7.801},
	"resnet152":          {60_192_808, 11.514},
	"resnext50_32x4d":    {25_028_904, 4.23},
	"resnext101_32x8d":   {88_791_336, 16.414},
	"resnext101_64x4d":   {83_455_272, 15.46},
	"wide_resnet50_2":    {68_883_240, 11.398},
	"wide_resnet101_2":   {126_886_696, 22.753},
	"densenet121":        {7_978_856, 2.834},
	"densenet161":        {28_681_000, 7.728},
	"densenet169":        {14_149_480, 3.36},
	"densenet201":        {20_013_928, 4.291},
	"squeezenet1_0":      {1_248_424, 0.819},
	"squeezenet1_1":      {1_235_496, 0.349},
	"mobilenet_v2":       {3_504_872, 0.301},
	"mobilenet_v3_small": {2_542_856, 0.057},
	"mobilenet_v3_large": {5_483_032, 0.217},
	"shufflenet_v2_x0_5": {1_366_792, 0.04},
	"shufflenet_v2_x1_0": {2_278_604, 0.145},
	"shufflenet_v2_x1_5": {3_503_624, 0.296},
	"shufflenet_v2_x2_0": {7_393_996, 0.583},
	"efficientnet_b0":    {5_288_548, 0.386},
	"efficientnet_b1":    {7_794_184, 0.687},
	"efficientnet_b2":    {9_109_994, 1.088},
	"efficientnet_b3":    {12_233_232, 1.827},
	"efficientnet_b4":    {19_341_616, 4.394},
	"efficientnet_b5":    {30_389_784, 10.266},
	"efficientnet_b6":    {43_040_704, 19.068},
	"efficientnet_b7":    {66_347_960, 37.746},
	"efficientnet_v2_s":  {21_458_488, 8.366},
	"efficientnet_v2_m":  {54_139_356, 24.582},
	"efficientnet_v2_l":  {118_515_272, 56.08},
	"regnet_y_400mf":     {4_344_144, 0.402},
	"regnet_y_800mf":     {6_432_512, 0.834},
	"regnet_y_1_6gf":     {11_202_430, 1.612},
	"regnet_y_3_2gf":     {19_436_338, 3.176},
	"regnet_y_8gf":       {39_381_472, 8.473},
	"regnet_y_16gf":      {83_590_140, 15.912},
	"regnet_y_32gf":      {145_046_770, 32.28},
	"regnet_x_400mf":     {5_495_976, 0.414},
	"regnet_x_800mf":     {7_259_656, 0.8},
	"regnet_x_1_6gf":     {9_190_136, 1.603},
	"regnet_x_3_2gf":     {15_296_552, 3.177},
	"regnet_x_8gf":       {39_572_648, 7.995},
	"regnet_x_16gf":      {54_278_536, 15.941},
	"regnet_x_32gf":      {107_811_560, 31.736},
	"convnext_tiny":      {28_589_128, 4.456},
	"convnext_small":     {50_223_688, 8.684},
	"convnext_base":      {88_591_464, 15.355},
	"convnext_large":     {197_767_336, 34.361},
	"vit_b_16":           {86_567_656, 17.564},
	"vit_b_32":           {88_224_232, 4.409},
	"vit_l_16":           {304_326_632, 61.555},
	"vit_l_32":           {306_535_400, 15.378},
	"mnasnet0_5":         {2_218_512, 0.104},
	"mnasnet0_75":        {3_170_208, 0.215},
	"mnasnet1_0":         {4_383_312, 0.314},
	"mnasnet1_3":         {6_282_256, 0.526},
}

func TestFamiliesHaveThePublishedSizes(t *testing.T) {
	for name, want := range published {
		e, ok := Find(name)
		if !ok {
			t.Errorf("there is no %s", name)
			continue
		}
		n := build(t, name, e.Classes, e.Input...).Count()
		if n.Trainable != want.parameters {
			t.Errorf("%s: %d parameters, want %d", name, n.Trainable, want.parameters)
		}
		if off := math.Abs(float64(n.MACs)/1e9 - want.gmacs); off > 0.0005+0.01*want.gmacs {
			t.Errorf("%s: %.3f GMACs, want %.3f", name, float64(n.MACs)/1e9, want.gmacs)
		}
	}
	for name := range families {
		if _, ok := published[name]; !ok {
			t.Errorf("%s has no published size", name)
		}
	}
}

// DistilBERT has the parameters of distilbert-base-uncased with a classifier of two classes, which has 66,955,010.
func TestDistilBERTHasThePublishedSize(t *testing.T) {
	if n := build(t, "distilbert", 2, 1, 1, 512).Count(); n.Trainable != 66_955_010 {
		t.Errorf("%d parameters, want 66,955,010", n.Trainable)
	}
}

// A variant's smaller network is there, and is no variant itself: leaving out variants leaves one of each family.
func TestVariantsNameTheirSmallestNetwork(t *testing.T) {
	for _, e := range Zoo() {
		if e.VariantOf == "" {
			continue
		}
		of, ok := Find(e.VariantOf)
		if !ok || of.VariantOf != "" {
			t.Errorf("%s is a variant of %s, found %v, which is one of %q", e.Name, e.VariantOf, ok, of.VariantOf)
		}
	}
}

// A layer scale starts from the number that it is given, and other convolutions from none.
func TestLayerScalesStartFromTheirNumber(t *testing.T) {
	b := NewBuilder("scaled", Shape{2, 3, 3})
	b.LayerScale("scale", b.Conv("conv", 0, 2, Square(1, 1, 0), 1, false), 0.5)
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	params := g.Params()
	if _, ok := g.Fill(params[0]); ok {
		t.Error("a convolution starts from one number")
	}
	if v, ok := g.Fill(params[1]); !ok || v != 0.5 {
		t.Errorf("got %v, %v", v, ok)
	}
}

// A network is found by torchvision's name, too, where the zoo had another one before.
func TestNetworksAreFoundByTorchvisionsName(t *testing.T) {
	if _, err := Build(disdel.Network{Name: "vit_b_16", Input: []int{3, 32, 32}, Classes: 10}); err != nil {
		t.Error(err)
	}
}

// Blocks leave out branches as torchvision's do: so many of them, the last one for this share of the rows, and these
// shares together.
func TestFamiliesHaveThePublishedStochasticDepth(t *testing.T) {
	for name, want := range map[string]struct {
		count     int
		last, sum float64
	}{
		"efficientnet_b0":   {9, 0.175, 0.9625},
		"efficientnet_b4":   {25, 0.19375, 2.5625},
		"efficientnet_v2_s": {34, 0.195, 3.605},
		"convnext_tiny":     {17, 0.1, 0.9},
		"convnext_base":     {35, 0.5, 9},
		"regnet_y_400mf":    {},
	} {
		e, _ := Find(name)
		count, last, sum := 0, 0.0, 0.0
		for _, n := range build(t, name, e.Classes, e.Input...).Nodes {
			if n.Op == OpDropPath {
				count, last, sum = count+1, n.Rate, sum+n.Rate
			}
		}
		if count != want.count || math.Abs(last-want.last) > 1e-6 || math.Abs(sum-want.sum) > 1e-6 {
			t.Errorf("%s: %d branches, the last for %.6f, all for %.6f, want %+v", name, count, last, sum, want)
		}
	}
}
