package export

import (
	"fmt"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
)

// hubFamily is an architecture as a hub has it: what config.json calls its sizes, and which tensors are which weights
// of the network. The network has the layer names of the zoo, so that zoo networks leave in the same way.
type hubFamily struct {
	zoo    string // begins the names of the zoo's networks
	kind   string // names its classes, as in BertForSequenceClassification
	prefix string // begins the names of tensors, unless a file has the body only
	block  string // begins the names of a block's tensors, before the block's number
	turned bool   // dense weights of blocks are [in out]
	eps    float64

	keys    hubKeys
	fixed   map[string]any      // keys whose value disdel cannot change
	outside map[string][]string // network's layers outside of blocks, or their arrays: names of tensors or layers
	inside  map[string][]string // layers of a block
	head    []string            // layers that a file without a classifier lacks
	others  []string            // parts of tensors' names that stand for no weight of the network
	layers  func(s *hubSizes) []disdel.Layer
}

// hubKeys are the names of sizes in config.json.
type hubKeys struct {
	width, blocks, heads, hidden, positions, activation, eps, dropout, headDropout string
}

// hubSizes are the sizes of a network.
type hubSizes struct {
	width, blocks, heads, hidden, positions, vocabulary int
	kvHeads                                             int // of Llama, else 0
	patch, channels, side                               int // of ViT: of patches and pictures
	eps, dropout, headDropout, theta                    float64
	activation                                          string // as job files name it
	outputs                                             int
	nextToken, tied, distilled                          bool // a language model; with the embedding's weight; DistilBERT
}

var hubActivations = map[string]string{
	"gelu": "gelu", "gelu_new": "geluTanh", "gelu_pytorch_tanh": "geluTanh", "relu": "relu", "silu": "silu",
	"swish": "silu", "tanh": "tanh",
}

// hubFamilies are the architectures by config.json's model_type.
var hubFamilies = map[string]*hubFamily{
	"bert": {
		zoo: "bert-", kind: "Bert", prefix: "bert.", eps: 1e-12, block: "bert.encoder.layer.",
		keys: hubKeys{
			"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "max_position_embeddings",
			"hidden_act", "layer_norm_eps", "hidden_dropout_prob", "classifier_dropout",
		},
		fixed: map[string]any{
			"position_embedding_type": "absolute", "is_decoder": false, "add_cross_attention": false, "pad_token_id": 0.0,
		},
		outside: map[string][]string{
			"embeddings.words":     {"bert.embeddings.word_embeddings"},
			"embeddings.positions": {"bert.embeddings.position_embeddings"},
			"embeddings.norm":      {"bert.embeddings.LayerNorm"}, "pooler": {"bert.pooler.dense"},
			"classifier": {"classifier"},
		},
		inside: map[string][]string{
			"attention.qkv": {"attention.self.query", "attention.self.key", "attention.self.value"},
			"attention.out": {"attention.output.dense"}, "norm1": {"attention.output.LayerNorm"},
			"up": {"intermediate.dense"}, "down": {"output.dense"}, "norm2": {"output.LayerNorm"},
		},
		head: []string{"pooler", "classifier"}, others: []string{"position_ids", hubTypes},
		layers: bertLayers,
	},
	"distilbert": {
		kind: "DistilBert", prefix: "distilbert.", eps: 1e-12, block: "distilbert.transformer.layer.",
		keys: hubKeys{
			"dim", "n_layers", "n_heads", "hidden_dim", "max_position_embeddings", "activation", "", "dropout",
			"seq_classif_dropout",
		},
		fixed: map[string]any{"pad_token_id": 0.0},
		outside: map[string][]string{
			"embeddings.words":     {"distilbert.embeddings.word_embeddings"},
			"embeddings.positions": {"distilbert.embeddings.position_embeddings"},
			"embeddings.norm":      {"distilbert.embeddings.LayerNorm"}, "pre_classifier": {"pre_classifier"},
			"classifier": {"classifier"},
		},
		inside: map[string][]string{
			"attention.qkv": {"attention.q_lin", "attention.k_lin", "attention.v_lin"},
			"attention.out": {"attention.out_lin"}, "norm1": {"sa_layer_norm"}, "up": {"ffn.lin1"}, "down": {"ffn.lin2"},
			"norm2": {"output_layer_norm"},
		},
		head: []string{"pre_classifier", "classifier"}, others: []string{"position_ids"}, layers: bertLayers,
	},
	"gpt2": {
		zoo: "gpt", kind: "GPT2", prefix: "transformer.", eps: 1e-5, block: "transformer.h.", turned: true,
		keys: hubKeys{
			"n_embd", "n_layer", "n_head", "n_inner", "n_positions", "activation_function", "layer_norm_epsilon", "resid_pdrop",
			"",
		},
		fixed: map[string]any{
			"scale_attn_weights": true, "scale_attn_by_inverse_layer_idx": false, "add_cross_attention": false,
		},
		outside: map[string][]string{
			"tokens": {"transformer.wte"}, "positions": {"transformer.wpe"}, "norm": {"transformer.ln_f"},
			"classifier": {"score"}, "head": {"lm_head"},
		},
		inside: map[string][]string{
			"attention.qkv": {"attn.c_attn"}, "attention.out": {"attn.c_proj"}, "norm1": {"ln_1"}, "norm2": {"ln_2"},
			"up": {"mlp.c_fc"}, "down": {"mlp.c_proj"},
		},
		others: []string{".attn.bias", ".attn.masked_bias", hubTiedHead}, layers: gpt2Layers,
	},
	"llama": {
		kind: "Llama", prefix: "model.", eps: 1e-6, block: "model.layers.",
		keys: hubKeys{
			"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "max_position_embeddings",
			"hidden_act", "rms_norm_eps", "", "",
		},
		fixed: map[string]any{"attention_bias": false, "mlp_bias": false},
		outside: map[string][]string{
			"tokens": {"model.embed_tokens"}, "norm": {"model.norm"}, "classifier": {"score"}, "head": {"lm_head"},
		},
		inside: map[string][]string{
			"attention.qkv": {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"},
			"attention.out": {"self_attn.o_proj"}, "norm1": {"input_layernorm"}, "norm2": {"post_attention_layernorm"},
			"gate": {"mlp.gate_proj"}, "up": {"mlp.up_proj"}, "down": {"mlp.down_proj"},
		},
		others: []string{"rotary_emb.inv_freq", hubTiedHead}, layers: llamaLayers,
	},
	"vit": {
		zoo: "vit-", kind: "ViT", prefix: "vit.", eps: 1e-12, block: "vit.encoder.layer.",
		keys: hubKeys{
			"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "", "hidden_act", "layer_norm_eps",
			"hidden_dropout_prob", "",
		},
		fixed: map[string]any{"qkv_bias": true},
		outside: map[string][]string{
			"class_token.weight": {"vit.embeddings.cls_token"}, "conv_proj": {"vit.embeddings.patch_embeddings.projection"},
			"positions.weight": {"vit.embeddings.position_embeddings"}, "norm": {"vit.layernorm"}, "head": {"classifier"},
		},
		inside: map[string][]string{
			"attention.qkv": {
				"attention.attention.query", "attention.attention.key", "attention.attention.value",
			},
			"attention.out": {"attention.output.dense"}, "norm1": {"layernorm_before"}, "norm2": {"layernorm_after"},
			"up": {"intermediate.dense"}, "down": {"output.dense"},
		},
		head: []string{"head"}, others: []string{"vit.pooler."}, layers: vitLayers,
	},
}

// Tensors that are no weight of the network. An export writes them, too.
const (
	hubTypes    = "bert.embeddings.token_type_embeddings.weight" // texts of one part use its first row
	hubTiedHead = "lm_head.weight"                               // a copy of the embedding
)

// tensors are the names of the tensors that make an array of the network, one below the other; nil: none. Only
// weights of blocks are turned.
func (f *hubFamily) tensors(array string) (names []string, turned bool) {
	if list, ok := f.outside[array]; ok {
		return list, false
	}
	dot := strings.LastIndexByte(array, '.')
	layer, of := array[:max(dot, 0)], array[dot+1:]
	list, ok := f.outside[layer]
	before := ""
	if rest, isBlock := strings.CutPrefix(layer, "layers."); !ok && isBlock {
		number, part, _ := strings.Cut(rest, ".")
		list, before = f.inside[part], f.block+number+"."
		turned = f.turned && of == "weight" && !strings.HasPrefix(part, "norm")
	}
	for _, name := range list {
		names = append(names, before+name+"."+of)
	}
	return names, turned
}

// rowsOf are the rows of an array that each of its tensors has. Keys and values may have fewer heads than queries, and
// queries have as many rows as columns then.
func rowsOf(shape []int, tensors int) []int {
	rows := make([]int, tensors)
	for i := range rows {
		rows[i] = shape[0] / tensors
	}
	if tensors == 3 && len(shape) == 2 {
		rest := (shape[0] - shape[1]) / 2
		rows = []int{shape[1], rest, rest}
	}
	return rows
}

// blocksOf are a family's transformer blocks.
func (s *hubSizes) blocksOf(causal, normFirst bool) (out []disdel.Layer) {
	for i := range s.blocks {
		l := disdel.Layer{
			Kind: "transformer", Name: fmt.Sprintf("layers.%d", i), Heads: s.heads, Hidden: s.hidden, Rate: s.dropout,
			Eps: s.eps, Activation: s.activation,
		}
		if causal {
			l.Causal = &causal
		}
		if !normFirst {
			l.NormFirst = &normFirst
		}
		out = append(out, l)
	}
	return out
}

func (s *hubSizes) embedding(name string, padded bool) disdel.Layer {
	l := disdel.Layer{Kind: "embedding", Name: name, Vocabulary: s.vocabulary, Width: s.width}
	if padded {
		l.Padded = &padded
	}
	return l
}

func (s *hubSizes) drop(name string, rate float64) []disdel.Layer {
	if rate == 0 {
		return nil
	}
	return []disdel.Layer{{Kind: "dropout", Name: name, Rate: rate}}
}

// bertLayers are BERT's and DistilBERT's, which differ in the layer before the classifier.
func bertLayers(s *hubSizes) []disdel.Layer {
	pooler, activation := "pooler", "tanh"
	if s.distilled {
		pooler, activation = "pre_classifier", "relu"
	}
	out := []disdel.Layer{
		{Kind: "input", Name: dataLayer, Shape: []int{1, 1, s.positions}},
		s.embedding("embeddings.words", true),
		{Kind: "positions", Name: "embeddings.positions"},
		{Kind: "layerNorm", Name: "embeddings.norm", Eps: s.eps},
	}
	out = append(append(out, s.drop("embeddings.dropout", s.dropout)...), s.blocksOf(false, false)...)
	out = append(out, disdel.Layer{Kind: "takePosition", Name: "first", Take: model.TakeFirst},
		disdel.Layer{Kind: "dense", Name: pooler, Units: s.width, Activation: activation})
	out = append(out, s.drop("dropout", s.headDropout)...)
	return append(out, disdel.Layer{Kind: "dense", Name: "classifier", Units: s.outputs})
}

func gpt2Layers(s *hubSizes) []disdel.Layer {
	out := []disdel.Layer{
		{Kind: "input", Name: dataLayer, Shape: []int{1, 1, s.positions}},
		s.embedding("tokens", false),
		{Kind: "positions", Name: "positions"},
	}
	out = append(append(out, s.drop("dropout", s.dropout)...), s.blocksOf(true, true)...)
	return s.decides(append(out, disdel.Layer{Kind: "layerNorm", Name: "norm", Eps: s.eps}))
}

// llamaLayers are Llama's: rotary positions, norms by the root of the mean square, and gated dense layers.
func llamaLayers(s *hubSizes) []disdel.Layer {
	out := []disdel.Layer{{Kind: "input", Name: dataLayer, Shape: []int{1, 1, s.positions}}, s.embedding("tokens", false)}
	in := "tokens"
	for i := range s.blocks {
		name := func(part string) string { return fmt.Sprintf("layers.%d.%s", i, part) }
		out = append(out,
			disdel.Layer{Kind: "rmsNorm", Name: name("norm1"), Eps: s.eps},
			disdel.Layer{
				Kind: "multiHeadAttention", Name: name("attention"), Heads: s.heads, KVHeads: s.kvHeads, Causal: new(true),
				Rotary: new(true), Theta: s.theta, Bias: new(false),
			},
			disdel.Layer{Kind: "add", Name: name("sum1"), From: []string{in, name("attention")}},
			disdel.Layer{Kind: "rmsNorm", Name: name("norm2"), Eps: s.eps},
			disdel.Layer{Kind: "dense", Name: name("gate"), Units: s.hidden, Bias: new(false)},
			disdel.Layer{Kind: s.activation, Name: name("activation")},
			disdel.Layer{Kind: "dense", Name: name("up"), Units: s.hidden, Bias: new(false), From: []string{name("norm2")}},
			disdel.Layer{Kind: "multiply", Name: name("product"), From: []string{name("activation"), name("up")}},
			disdel.Layer{Kind: "dense", Name: name("down"), Units: s.width, Bias: new(false)},
			disdel.Layer{Kind: "add", Name: name("sum2"), From: []string{name("sum1"), name("down")}})
		in = name("sum2")
	}
	return s.decides(append(out, disdel.Layer{Kind: "rmsNorm", Name: "norm", Eps: s.eps}))
}

// decides adds the last layers of a decoder: the next token's, or those of a classifier by the last position.
func (s *hubSizes) decides(out []disdel.Layer) []disdel.Layer {
	switch {
	case s.nextToken && s.tied:
		return append(out, disdel.Layer{Kind: "tiedDense", Name: "head"})
	case s.nextToken:
		return append(out, disdel.Layer{Kind: "dense", Name: "head", Units: s.vocabulary, Bias: new(false)})
	}
	return append(out, disdel.Layer{Kind: "takePosition", Name: "last", Take: model.TakeLast},
		disdel.Layer{Kind: "dense", Name: "classifier", Units: s.outputs, Bias: new(false)})
}

func vitLayers(s *hubSizes) []disdel.Layer {
	out := []disdel.Layer{
		{Kind: "input", Name: dataLayer, Shape: []int{s.channels, s.side, s.side}},
		{Kind: "conv", Name: "conv_proj", Filters: s.width, Kernel: s.patch, Stride: s.patch},
		{Kind: "sequence", Name: "patches"},
		{Kind: "classToken", Name: "class_token"},
		{Kind: "positions", Name: "positions"},
	}
	out = append(append(out, s.drop("dropout", s.dropout)...), s.blocksOf(false, true)...)
	return append(out, disdel.Layer{Kind: "layerNorm", Name: "norm", Eps: s.eps},
		disdel.Layer{Kind: "takePosition", Name: "first", Take: model.TakeFirst},
		disdel.Layer{Kind: "dense", Name: "head", Units: s.outputs})
}
