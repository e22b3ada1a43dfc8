package model

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/disdel/disdel"
)

// Layers of sequences have as many weights as PyTorch's.
func TestSequenceLayersHavePyTorchsCounts(t *testing.T) {
	for _, c := range []struct {
		layer disdel.Layer
		want  int64
	}{
		{disdel.Layer{Kind: "multiHeadAttention", Heads: 8}, 1_050_624},        // nn.MultiheadAttention(512, 8)
		{disdel.Layer{Kind: "transformer", Heads: 8, Hidden: 2048}, 3_152_384}, // nn.TransformerEncoderLayer(512, 8)
		{disdel.Layer{Kind: "transformer", Heads: 8, NormFirst: new(false)}, 3_152_384},
		{disdel.Layer{Kind: "lstm", Units: 300}, 976_800}, // nn.LSTM(512, 300)
		{disdel.Layer{Kind: "gru", Units: 300}, 732_600},  // nn.GRU(512, 300)
		{disdel.Layer{Kind: "layerNorm"}, 1024},
		{disdel.Layer{Kind: "rmsNorm"}, 512},
		{disdel.Layer{Kind: "positions"}, 30 * 512},
		{disdel.Layer{Kind: "positions", Learned: new(false)}, 0},
	} {
		g, err := Build(disdel.Network{Input: []int{1, 1, 30}, Layers: []disdel.Layer{
			{Kind: "embedding", Vocabulary: 100, Width: 512}, c.layer, {Kind: "takePosition", Take: TakeMean},
		}})
		if err != nil {
			t.Errorf("%s: %v", c.layer.Kind, err)
			continue
		}
		if got := g.Count().Trainable - 100*512; got != c.want {
			t.Errorf("%s has %d weights, want %d", c.layer.Kind, got, c.want)
		}
	}
}

// What does not fit a sequence is refused with its reason.
func TestSequencesThatDoNotFit(t *testing.T) {
	embedding := disdel.Layer{Kind: "embedding", Vocabulary: 9, Width: 6}
	for want, layers := range map[string][]disdel.Layer{
		"is a sequence; make a vector": {embedding},
		"is no sequence; an embedding": {{Kind: "positions"}},
		"is no image":                  {embedding, {Kind: "maxPool", Kernel: 2}},
		"one embedding":                {embedding, {Kind: "takePosition", Take: TakeLast}, embedding},
		"and no layer's output":        {{Kind: "relu"}, embedding},
		"vocabulary must be":           {{Kind: "embedding", Width: 3}},
		"must divide each other":       {embedding, {Kind: "multiHeadAttention", Heads: 4}},
		"rotary positions turn pairs":  {embedding, {Kind: "multiHeadAttention", Heads: 2, Rotary: new(true)}},
		"and the network has none":     {{Kind: "tiedDense"}},
		`take is "middle"`:             {embedding, {Kind: "takePosition", Take: "middle"}},
	} {
		_, err := Build(disdel.Network{Input: []int{1, 1, 5}, Layers: layers})
		if !errors.Is(err, disdel.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want Invalid with %q", err, want)
		}
	}
}

// BERT and GPT-2 have the published counts: those of the checkpoints on the hub, without the classifier. BERT's vectors
// for the two parts of a row are left out here.
func TestTransformersHaveThePublishedCounts(t *testing.T) {
	for name, c := range map[string]struct {
		positions, width int
		published        int64
	}{
		"bert-tiny": {512, 128, 4_385_920}, "bert-mini": {512, 256, 11_170_560}, "bert-small": {512, 512, 28_763_648},
		"bert-base": {512, 768, 109_482_240}, "gpt2": {1024, 768, 124_439_808},
	} {
		want := c.published + int64(2*c.width) // the classifier of two classes
		if strings.HasPrefix(name, "bert") {
			want += 2 - int64(2*c.width) // its bias; the vectors of two parts
		}
		if got := build(t, name, 2, 1, 1, c.positions).Count().Trainable; got != want {
			t.Errorf("%s has %d weights, want %d", name, got, want)
		}
	}
}

// As language models with the published vocabulary they have exactly the published weights: the last layer has the
// weight of the embedding. Networks that give no token at each position, or read ahead, are refused.
func TestLanguageModels(t *testing.T) {
	language := func(name string, vocabulary, positions int) (*Graph, error) {
		return Build(disdel.Network{
			Name: name, Input: []int{1, 1, positions}, Classes: vocabulary, NextToken: true,
		})
	}
	for name, want := range map[string]int64{"gpt2": 124_439_808, "gpt-small": 30_339_456, "gpt-tiny": 6_960_768} {
		g, err := language(name, 50257, 1024)
		if err != nil {
			t.Fatal(err)
		}
		if got := g.Count().Trainable; got != want || !g.PredictsTokens() || g.Vocabulary() != 50257 {
			t.Errorf("%s has %d weights, want %d", name, got, want)
		}
	}
	counts := map[string]int64{"smollm-135m": 134_515_008, "lstm": 50257*128 + 2*(128+128+2)*512 + 129*50257}
	for name, want := range counts {
		vocabulary := map[string]int{"smollm-135m": 49152, "lstm": 50257}[name]
		if g, err := language(name, vocabulary, 64); err != nil || g.Count().Trainable != want {
			t.Errorf("%s: %v, %v", name, err, g.Count().Trainable)
		}
	}
	for _, name := range []string{"mlp", "bert-tiny"} {
		if _, err := language(name, 300, 16); err == nil || !strings.Contains(err.Error(), "an output for each token") {
			t.Errorf("%s: %v", name, err)
		}
	}
	layers := func(causal bool, units int) error {
		_, err := Build(disdel.Network{Input: []int{1, 1, 16}, Classes: 300, NextToken: true, Layers: []disdel.Layer{
			{Kind: "embedding", Vocabulary: 300, Width: 8},
			{Kind: "transformer", Heads: 2, Causal: &causal},
			{Kind: "dense", Units: units},
		}})
		return err
	}
	if err := layers(true, 300); err != nil {
		t.Error(err)
	}
	yes := true
	_, err := Build(disdel.Network{Input: []int{1, 1, 16}, Classes: 300, NextToken: true, Layers: []disdel.Layer{
		{Kind: "embedding", Vocabulary: 300, Width: 8},
		{Kind: "gru", Units: 8, Bidirectional: &yes},
		{Kind: "dense", Units: 300},
	}})
	if err == nil || !strings.Contains(err.Error(), "leave bidirectional out") {
		t.Error(err)
	}
	if err := layers(false, 300); err == nil || !strings.Contains(err.Error(), "causal") {
		t.Error(err)
	}
	if err := layers(true, 299); err == nil || !strings.Contains(err.Error(), "an output for each token") {
		t.Error(err)
	}
}

// A convolution of a language model reads no token ahead, and padding stays where tokens say.
func TestConvolutionsOfSequencesKeepPositions(t *testing.T) {
	conv := func(padding [4]int, stride int) []disdel.Layer {
		return []disdel.Layer{
			{Kind: "embedding", Vocabulary: 9, Width: 4, Padded: new(true)},
			{Kind: "conv1d", Filters: 4, Kernel: 3, PaddingAt: padding, Stride: stride},
			{Kind: "dense", Units: 9},
		}
	}
	n := disdel.Network{Input: []int{12}, Classes: 9, NextToken: true, Layers: conv([4]int{2}, 1)}
	if _, err := Build(n); err != nil {
		t.Error(err)
	}
	n.Layers = conv([4]int{1, 1}, 1)
	if _, err := Build(n); err == nil || !strings.Contains(err.Error(), "padding: [kernel - 1, 0, 0, 0]") {
		t.Error(err)
	}
	n.NextToken, n.Layers = false, conv([4]int{1, 1}, 2)
	n.Layers[2] = disdel.Layer{Kind: "takePosition", Take: "mean"}
	if _, err := Build(n); err == nil || !strings.Contains(err.Error(), "its 6 positions are not those of the 12 tokens") {
		t.Error(err)
	}
}

// Layers of a job file make the network that the zoo has: GPT-2 with its tied head, and BERT's norms and activations.
func TestLayersSayWhatTheZooHas(t *testing.T) {
	block := disdel.Layer{Kind: "transformer", Heads: 2, Causal: new(true), Activation: "geluTanh", Rate: 0.1}
	layers := []disdel.Layer{
		{Kind: "embedding", Name: "tokens", Vocabulary: 90, Width: 128},
		{Kind: "positions", Name: "positions"},
		{Kind: "dropout", Name: "dropout", Rate: 0.1},
		block, block,
		{Kind: "layerNorm", Name: "norm"},
		{Kind: "tiedDense", Name: "head"},
	}
	layers[3].Name, layers[4].Name = "layers.0", "layers.1"
	n := disdel.Network{Input: []int{1, 1, 16}, Classes: 90, NextToken: true, Layers: layers}
	got, err := Build(n)
	if err != nil {
		t.Fatal(err)
	}
	n.Name, n.Layers = "gpt-tiny", nil
	want, err := Build(n)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want.Nodes {
		a, b := got.Nodes[i], want.Nodes[i]
		a.Name, b.Name = "", "" // of flatten, which the zoo calls data
		if !reflect.DeepEqual(a, b) {
			t.Errorf("node %d is %+v, not %+v", i, a, b)
		}
	}
	n.Layers = append(layers[:3:3], disdel.Layer{Kind: "transformer", Name: "b", Heads: 2, Eps: 1e-12, Activation: "relu"})
	n.Name, n.NextToken = "", false
	n.Layers = append(n.Layers, disdel.Layer{Kind: "takePosition", Take: TakeLast})
	g, err := Build(n)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, node := range g.Nodes {
		if node.Op == OpLayerNorm && node.Eps == 1e-12 || node.Name == "b.activation" && node.Op == OpReLU {
			found++
		}
	}
	if last := g.Nodes[len(g.Nodes)-1]; found != 3 || last.Op != OpTakePosition {
		t.Errorf("%d of two norms and an activation are as the layer says; the last node is %v", found, last.Op)
	}
}

// A decoder as Llama has it has the published weights of TinyLlama 1.1B, whose last layer has a weight of its own.
func TestLlamaHasThePublishedCount(t *testing.T) {
	b := NewBuilder("tinyllama", Shape{1, 1, 8})
	b.next = true
	llama{layers: 22, heads: 32, kvHeads: 4, hidden: 5632}.build(b, 32000)
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	if n := g.Count().Trainable; n != 1_100_048_384 {
		t.Errorf("%d weights", n)
	}
}
