package model

import (
	"slices"
	"strings"
)

// KindOption is one option of a kind of layer.
type KindOption struct {
	Name     string
	Required bool
	Default  string // as a job file would give it, or in words; "" where it is required
}

// Kind is what a job file may say of one kind of layer, for people and programs that ask.
type Kind struct {
	Name, Meaning string
	Options       []KindOption // besides name and from, which every layer takes
	Many          bool         // takes two layers or more
}

// kindMeanings are in the order that people look for them.
var kindMeanings = [][2]string{
	{"conv", "Convolution over an image."},
	{"depthwiseConv", "Convolution of every channel by itself."},
	{"dense", "Weighted sums of all inputs (fully connected, linear); an image is flattened first."},
	{"batchNorm", "Brings every channel to mean 0 and variance 1 over the batch, then scales and shifts it."},
	{"maxPool", "The largest value of a window."},
	{"avgPool", "The mean of a window."},
	{"globalAvgPool", "The mean of every channel."},
	{"flatten", "Makes a vector of an image."},
	{"relu", "max(x, 0)."},
	{"relu6", "min(max(x, 0), 6)."},
	{"sigmoid", "1 / (1 + exp(-x))."},
	{"tanh", "Hyperbolic tangent."},
	{"softmax", "Probabilities of the classes; comes last."},
	{"dropout", "Sets a share of the values to zero in training, and scales the others up."},
	{"add", "Sum of layers of one shape: a residual."},
	{"concat", "Layers of one height and width, channel after channel."},
	{"input", "What the network is made for; comes first, and may be left out."},
}

// kindDefaults are the options' defaults; pools differ in their stride.
var kindDefaults = map[string]string{
	"stride": "1", "padding": "0", "dilation": "1", "groups": "1", "bias": "true", "activation": "none",
	"eps": "1e-05", "momentum": "0.1", "scale": "true", "center": "true",
}

// Kinds describes every kind of layer that a job file may name.
func Kinds() []Kind {
	out := make([]Kind, 0, len(kindMeanings))
	for _, m := range kindMeanings {
		k := layerKinds[m[0]]
		d := Kind{Name: m[0], Meaning: m[1], Many: k.many}
		for _, option := range words(k.options) {
			o := KindOption{Name: option, Required: slices.Contains(words(k.required), option)}
			switch {
			case o.Required:
			case option == "stride" && strings.HasSuffix(d.Name, "Pool"):
				o.Default = "the kernel"
			default:
				o.Default = kindDefaults[option]
			}
			d.Options = append(d.Options, o)
		}
		out = append(out, d)
	}
	return out
}

// FindKind describes one kind of layer.
func FindKind(name string) (Kind, bool) {
	for _, k := range Kinds() {
		if k.Name == name {
			return k, true
		}
	}
	return Kind{}, false
}

// Activations are the words that conv and dense take as their activation.
func Activations() []string { return []string{"relu", "relu6", "sigmoid", "tanh", "softmax"} }
