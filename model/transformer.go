package model

import (
	"cmp"
	"fmt"
)

// Transformer says how a block of a transformer works (Vaswani 2017): an attention, and two dense layers on each
// position. Each has a sum and a layer norm.
type Transformer struct {
	Attention
	Hidden     int     // units between the two dense layers; 0: four times the channels
	PostNorm   bool    // norms come behind the sums, as in BERT; they come first in GPT-2
	Activation Op      // between the dense layers; 0: OpGELU
	Dropout    float64 // share dropped before each sum while training
	Eps        float64 // of the norms; 0: 1e-5
}

// Transformer adds a block: NAME.norm1, NAME.attention, NAME.norm2, NAME.up and NAME.down.
func (b *Builder) Transformer(name string, in int, t Transformer) int {
	channels, _ := b.sequence(name, in)
	x := b.branch(name, "1", in, &t, func(x int) int {
		return b.MultiHeadAttention(name+".attention", x, t.Attention)
	})
	return b.branch(name, "2", x, &t, func(x int) int {
		x = b.Dense(name+".up", x, cmp.Or(t.Hidden, 4*channels))
		return b.Dense(name+".down", b.Same(name+".activation", x, cmp.Or(t.Activation, OpGELU)), channels)
	})
}

// branch adds what f makes of x to x.
func (b *Builder) branch(name, number string, x int, t *Transformer, f func(x int) int) int {
	norm := func(x int) int { return b.LayerNorm(name+".norm"+number, x, OpLayerNorm, t.Eps) }
	in := x
	if !t.PostNorm {
		in = norm(x)
	}
	y := f(in)
	if t.Dropout > 0 {
		y = b.Dropout(name+".dropout"+number, y, t.Dropout)
	}
	y = b.Add(name+".sum"+number, x, y)
	if t.PostNorm {
		return norm(y)
	}
	return y
}

// bert is BERT of a size (Devlin 2018; Turc 2019) with its pooler, and a classifier of it. Rows have one part, so the
// vectors for two parts are left out. DistilBERT (Sanh 2019) has pre_classifier with a ReLU instead of the pooler.
func bert(layers, width int, distilled bool) func(*Builder, int) {
	const vocabulary, eps, share = 30522, 1e-12, 0.1
	return func(b *Builder, classes int) {
		x := b.Embedding("embeddings.words", b.Flatten("tokens", 0), vocabulary, width, true)
		x = b.Positions("embeddings.positions", x, false)
		x = b.Dropout("embeddings.dropout", b.LayerNorm("embeddings.norm", x, OpLayerNorm, eps), share)
		for i := range layers {
			x = b.Transformer(fmt.Sprintf("layers.%d", i), x, Transformer{
				Attention: Attention{Heads: width / 64}, PostNorm: true, Dropout: share, Eps: eps,
			})
		}
		if distilled {
			x = b.Dense("pre_classifier", b.TakePosition("first", x, TakeFirst), width)
			x = b.Dropout("dropout", b.Same("pre_classifier.relu", x, OpReLU), 2*share)
			b.Dense("classifier", x, classes)
			return
		}
		x = b.Same("pooler.tanh", b.Dense("pooler", b.TakePosition("first", x, TakeFirst), width), OpTanh)
		b.Dense("classifier", b.Dropout("dropout", x, share), classes)
	}
}

// gpt2 is GPT-2 of a size (Radford 2019) with heads of 64 channels: a language model, whose last layer has the weight
// of the embedding. Of data with classes it is a classifier of the last position.
func gpt2(layers, width int) func(*Builder, int) {
	const share = 0.1
	return func(b *Builder, classes int) {
		vocabulary := 50257
		if b.next {
			vocabulary = classes
		}
		tokens := b.Embedding("tokens", b.Flatten("data", 0), vocabulary, width, false)
		x := b.Dropout("dropout", b.Positions("positions", tokens, false), share)
		for i := range layers {
			x = b.Transformer(fmt.Sprintf("layers.%d", i), x, Transformer{
				Attention: Attention{Heads: width / 64, Causal: true}, Activation: OpGELUTanh, Dropout: share,
			})
		}
		x = b.LayerNorm("norm", x, OpLayerNorm, 0)
		if b.next {
			b.TiedDense("head", x, tokens)
			return
		}
		b.dense("classifier", b.TakePosition("last", x, TakeLast), classes, false)
	}
}

// llama is a decoder of a size (Touvron 2023) with heads of 64 channels: RMS norms, rotary positions, SwiGLU, no bias.
type llama struct {
	layers, heads, kvHeads, hidden, vocabulary int

	tied bool // the last layer has the weight of the embedding
}

func (net llama) build(b *Builder, classes int) {
	vocabulary := net.vocabulary
	if b.next {
		vocabulary = classes
	}
	tokens := b.Embedding("tokens", b.Flatten("data", 0), vocabulary, 64*net.heads, false)
	x := tokens
	for i := range net.layers {
		x = net.block(b, fmt.Sprintf("layers.%d", i), x)
	}
	switch x = b.LayerNorm("norm", x, OpRMSNorm, 0); {
	case b.next && net.tied:
		b.TiedDense("head", x, tokens)
	case b.next:
		b.dense("head", x, classes, false)
	default:
		b.dense("classifier", b.TakePosition("last", x, TakeLast), classes, false)
	}
}

func (net llama) block(b *Builder, name string, x int) int {
	y := b.MultiHeadAttention(name+".attention", b.LayerNorm(name+".norm1", x, OpRMSNorm, 0), Attention{
		Heads: net.heads, KVHeads: net.kvHeads, Causal: true, Theta: UsualTheta, NoBias: true,
	})
	x = b.Add(name+".sum1", x, y)
	y = b.LayerNorm(name+".norm2", x, OpRMSNorm, 0)
	gate := b.Same(name+".silu", b.dense(name+".gate", y, net.hidden, false), OpSiLU)
	y = b.Multiply(name+".product", gate, b.dense(name+".up", y, net.hidden, false))
	return b.Add(name+".sum2", x, b.dense(name+".down", y, b.Out(x)[0], false))
}

// lstm classifies by the ends of two layers, each of two directions. A language model has one direction.
func lstm(b *Builder, classes int) {
	const vocabulary, width, units = 32000, 128, 64
	tokens := b.Flatten("data", 0)
	if b.next {
		x := b.Recurrent("lstm1", b.Embedding("tokens", tokens, classes, width, false), OpLSTM, 2*units)
		b.Dense("head", b.Recurrent("lstm2", x, OpLSTM, 2*units), classes)
		return
	}
	x := b.Bidirectional("lstm1", b.Embedding("tokens", tokens, vocabulary, width, true), OpLSTM, units)
	x = b.TakePosition("ends", b.Bidirectional("lstm2", x, OpLSTM, units), TakeEnds)
	b.Dense("classifier", x, classes)
}

// vit is a vision transformer of a size (Dosovitskiy 2020), as torchvision has it, of square patches.
func vit(patch, layers, width int) func(*Builder, int) {
	const eps = 1e-6
	return func(b *Builder, classes int) {
		x := b.Conv("conv_proj", 0, width, Square(patch, patch, 0), 1, true)
		x = b.Positions("positions", b.ClassToken("class_token", b.Sequence("patches", x)), false)
		for i := range layers {
			x = b.Transformer(fmt.Sprintf("layers.%d", i), x, Transformer{
				Attention: Attention{Heads: width / 64}, Eps: eps,
			})
		}
		b.Dense("head", b.TakePosition("first", b.LayerNorm("norm", x, OpLayerNorm, eps), TakeFirst), classes)
	}
}

func vits() map[string]Entry {
	of := func(name string, patch, layers, width int) Entry {
		e := ofTorchvision("ViT-"+name+" (Dosovitskiy 2020)", "vit-b16", 224, vit(patch, layers, width))
		e.min = patch
		return e
	}
	return map[string]Entry{
		"vit_b_32": of("B/32", 32, 12, 768), "vit_l_16": of("L/16", 16, 24, 1024), "vit_l_32": of("L/32", 32, 24, 1024),
	}
}
