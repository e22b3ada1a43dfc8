package model

import (
	"fmt"
	"strings"
)

// Values of Node.Take.
const (
	TakeMean  = "mean"  // of the positions that are no padding
	TakeFirst = "first" // the first position
	TakeLast  = "last"  // the last position that is no padding
	TakeEnds  = "ends"  // where the directions of a bidirectional layer end: half of the channels each
)

// largestVocabulary bounds tokens: data sets store float32, which has all whole numbers up to 2^24.
const largestVocabulary = 1 << 19

// embeddingSpread is the standard deviation of the first weights of embeddings and positions, as of GPT-2 and BERT.
const embeddingSpread = 0.02

func noProducts(*Node) int64 { return 0 }

func positionParams(g *Graph, out []Param, i int) []Param {
	n := &g.Nodes[i]
	if n.Fixed {
		return out
	}
	return append(out, n.param(i, "weight", true, n.Out[1], n.Out[0]))
}

func layerNormParams(g *Graph, out []Param, i int) []Param {
	n := &g.Nodes[i]
	out = append(out, n.param(i, "weight", true, n.Out[0]))
	if n.Op != OpRMSNorm {
		out = append(out, n.param(i, "bias", true, n.Out[0]))
	}
	return out
}

// Gates is how many gates a recurrent layer has: 4 of an LSTM, 3 of a GRU.
func (o Op) Gates() int {
	switch o {
	case OpLSTM:
		return 4
	case OpGRU:
		return 3
	default:
		return 0
	}
}

// recurrentParams are PyTorch's weight_hh and bias_hh: rows for the gates i, f, g, o of an LSTM, and r, z, n of a GRU.
func recurrentParams(g *Graph, out []Param, i int) []Param {
	n := &g.Nodes[i]
	rows := n.Op.Gates() * n.Units
	return append(out, n.param(i, "weight", true, rows, n.Units), n.param(i, "bias", true, rows))
}

func recurrentProducts(n *Node) int64 {
	return int64(n.Out.Len()) * int64(n.Op.Gates()) * int64(n.Units)
}

// HasTokens tells whether a network takes rows of tokens: whole numbers from 0.
func (g *Graph) HasTokens() bool { return g.embedding() != nil }

// Vocabulary is how many tokens a network knows: rows hold 0 to Vocabulary-1. 0: it takes no tokens.
func (g *Graph) Vocabulary() int {
	if n := g.embedding(); n != nil {
		return n.Vocabulary
	}
	return 0
}

// PredictsTokens tells whether a network is a language model: at each position it has an output for each token that may
// come next.
func (g *Graph) PredictsTokens() bool { return len(g.Output()) == 2 && !g.Slice.Leaves() }

// HasPadding tells whether token 0 fills rows that are shorter than others.
func (g *Graph) HasPadding() bool {
	if g.Slice != nil {
		g = g.Slice.Whole
	}
	n := g.embedding()
	return n != nil && n.Padded
}

// embedding is the node that reads the tokens, nil where the network takes none.
func (g *Graph) embedding() *Node {
	for i := range g.Nodes {
		if g.Nodes[i].Op == OpEmbedding {
			return &g.Nodes[i]
		}
	}
	return nil
}

// sequence returns the input's shape as channels and positions.
func (b *Builder) sequence(name string, in int) (channels, positions int) {
	s := b.Out(in)
	if len(s) != 2 {
		b.fail(name, "its input %v is no sequence; an embedding makes one of tokens", []int(s))
		return 1, 1
	}
	return s[0], s[1]
}

// Embedding adds a sequence of width channels for the tokens of a vector, the data. With padded set, token 0 fills rows
// that are shorter than others.
func (b *Builder) Embedding(name string, in, vocabulary, width int, padded bool) int {
	s := b.Out(in)
	switch from := b.g.Nodes[in]; {
	case b.g.embedding() != nil:
		b.fail(name, "a network has one embedding")
	case in != 0 && !(from.Op == OpFlatten && from.Inputs[0] == 0):
		b.fail(name, "it takes the data's tokens, and no layer's output; put it first")
	case len(s) != 1:
		b.fail(name, "its input %v is no row of tokens", []int(s))
	case vocabulary < 1 || vocabulary > largestVocabulary || width < 1:
		b.fail(name, "vocabulary must be 1 to %d, and width at least 1", largestVocabulary)
	}
	return b.add(Node{
		Name: name, Op: OpEmbedding, Inputs: []int{in}, Out: Shape{width, s.Len()}, Units: width, Vocabulary: vocabulary,
		Padded: padded,
	})
}

// TiedDense adds a dense layer with the weight of an embedding and no bias: an output for each token (Press 2016).
func (b *Builder) TiedDense(name string, in, embedding int) int {
	c, positions := b.sequence(name, in)
	e := &b.g.Nodes[embedding]
	if e.Op != OpEmbedding || e.Units != c {
		b.fail(name, "it has the weight of an embedding of %d channels, and %s is none", c, e.Name)
	}
	return b.add(Node{
		Name: name, Op: OpDense, Inputs: []int{in}, Out: Shape{e.Vocabulary, positions},
		Units: e.Vocabulary, Tied: embedding,
	})
}

// checkTokens fails unless each position of the last node has an output for each token, and knows none behind it.
func (b *Builder) checkTokens(vocabulary int) {
	last := b.g.Nodes[b.Last()]
	want, embedding := Shape{vocabulary, Shape(b.g.Input()).Len()}, b.g.embedding()
	var faults []string
	if embedding == nil || fmt.Sprint(last.Out) != fmt.Sprint(want) {
		faults = append(faults, fmt.Sprintf("%s: the output is %v, and a language model has an output for each token "+
			"and position: %v; the networks gpt-tiny, llama-tiny and their larger sizes do",
			last.Name, []int(last.Out), []int(want)))
	}
	if embedding != nil && embedding.Vocabulary < vocabulary {
		faults = append(faults, fmt.Sprintf("%s: it knows %d tokens, and the data has %d", embedding.Name,
			embedding.Vocabulary, vocabulary))
	}
	for _, c := range []struct {
		reads  func(Node) bool // tokens behind a position
		remedy string
	}{
		{func(n Node) bool { return n.Op == OpAttention && !n.Causal }, "write causal: true"},
		{func(n Node) bool { return n.Op == OpReverse }, "leave bidirectional out"},
		{func(n Node) bool { return n.Op == OpConv && n.Pad.Bottom > 0 }, "write padding: [kernel - 1, 0, 0, 0]"},
	} {
		var layers []string
		for _, n := range b.g.Nodes {
			if c.reads(n) {
				layers = append(layers, n.Name)
			}
		}
		if len(layers) > 0 {
			faults = append(faults,
				strings.Join(layers, ", ")+": it reads the tokens that it should predict; "+c.remedy)
		}
	}
	if len(faults) > 0 {
		first, rest, _ := strings.Cut(strings.Join(faults, "; layer "), ": ")
		b.fail(first, "%s", rest)
	}
}

// Positions adds a vector of each position to a sequence: learned, or with fixed set sines.
func (b *Builder) Positions(name string, in int, fixed bool) int {
	b.sequence(name, in)
	return b.add(Node{Name: name, Op: OpPositions, Inputs: []int{in}, Out: b.Out(in), Fixed: fixed})
}

// LayerNorm adds a normalisation over the channels of each position: OpLayerNorm or OpRMSNorm. An eps of 0 is 1e-5.
func (b *Builder) LayerNorm(name string, in int, op Op, eps float64) int {
	if eps == 0 {
		eps = 1e-5
	}
	if !(eps > 0) {
		b.fail(name, "eps %g must be above 0", eps)
	}
	return b.add(Node{Name: name, Op: op, Inputs: []int{in}, Out: b.Out(in), Eps: eps})
}

// Sequence makes a sequence of the pixels of an image, row after row.
func (b *Builder) Sequence(name string, in int) int {
	c, height, width := b.image(name, in)
	return b.add(Node{Name: name, Op: OpSequence, Inputs: []int{in}, Out: Shape{c, height * width}})
}

// Conv1D adds a convolution over the positions of a sequence: NAME, of an image one pixel wide, between two views,
// NAME.image and NAME.positions. Its weight is that of PyTorch's Conv1d with one more side of 1.
func (b *Builder) Conv1D(name string, in, filters int, w Window, groups int, bias bool) int {
	c, positions := b.sequence(name, in)
	if w.Pad.Left > 0 || w.Pad.Right > 0 || w.Kernel.W > 1 || w.Stride.W > 1 || w.Dilation.W > 1 {
		b.fail(name, "a window over positions has one side")
	}
	x := b.add(Node{Name: name + ".image", Op: OpSequence, Inputs: []int{in}, Out: Shape{c, positions, 1}})
	return b.Sequence(name+".positions", b.Conv(name, x, filters, w, groups, bias))
}

// ClassToken puts a learned position before those of a sequence (Dosovitskiy 2020).
func (b *Builder) ClassToken(name string, in int) int {
	c, positions := b.sequence(name, in)
	return b.add(Node{Name: name, Op: OpClassToken, Inputs: []int{in}, Out: Shape{c, positions + 1}})
}

// TakePosition makes a vector of a sequence: take is TakeMean, TakeFirst, TakeLast or TakeEnds.
func (b *Builder) TakePosition(name string, in int, take string) int {
	c, _ := b.sequence(name, in)
	switch {
	case take != TakeMean && take != TakeFirst && take != TakeLast && take != TakeEnds:
		b.fail(name, "take is %q; it must be mean, first, last or ends", take)
	case take == TakeEnds && c%2 != 0:
		b.fail(name, "take: ends needs the channels of two directions, and there are %d", c)
	}
	n := Node{Name: name, Op: OpTakePosition, Inputs: []int{in}, Out: Shape{c}, Take: take}
	if take != TakeFirst {
		b.mask(&n)
	}
	return b.add(n)
}

// Attention says how a multi-head attention works (Vaswani 2017).
type Attention struct {
	Heads   int
	KVHeads int     // 0: as many as Heads; fewer share keys and values (Ainslie 2023)
	Causal  bool    // a position attends to none that are behind it
	Theta   float64 // base of the angles that turn queries and keys by their position (Su 2021); 0: none
	NoBias  bool    // the dense layers have no bias, as in Llama
}

// UsualTheta is the base of rotary angles that Su 2021 takes: channel pair c of a head of w channels turns by
// position / theta^(2c/w).
const UsualTheta = 10000

// LargestTheta bounds the base of rotary angles, far above those of published networks.
const LargestTheta = 1e12

// MultiHeadAttention adds a dense layer for queries, keys and values, the attention, and a dense layer of its outputs:
// NAME.qkv, NAME.heads and NAME.out. No position attends to padding.
func (b *Builder) MultiHeadAttention(name string, in int, a Attention) int {
	c, positions := b.sequence(name, in)
	if a.KVHeads == 0 {
		a.KVHeads = a.Heads
	}
	if a.Heads < 1 || a.KVHeads < 1 || c%a.Heads != 0 || a.Heads%a.KVHeads != 0 {
		b.fail(name, "%d heads with keys and values of %d must divide each other and %d channels", a.Heads, a.KVHeads, c)
		return 0
	}
	width := c / a.Heads
	if a.Theta > 0 && width%2 != 0 {
		b.fail(name, "rotary positions turn pairs of channels, and a head has %d", width)
	}
	qkv := b.dense(name+".qkv", in, c+2*width*a.KVHeads, !a.NoBias)
	n := Node{
		Name: name + ".heads", Op: OpAttention, Inputs: []int{qkv}, Out: Shape{c, positions}, Heads: a.Heads,
		KVHeads: a.KVHeads, Causal: a.Causal, Theta: a.Theta,
	}
	b.mask(&n)
	return b.dense(name+".out", b.add(n), c, !a.NoBias)
}

// Recurrent adds a recurrent layer, OpLSTM or OpGRU, and before it a dense layer, NAME.input, with the products of all
// positions. A position knows those before it.
func (b *Builder) Recurrent(name string, in int, op Op, units int) int {
	_, positions := b.sequence(name, in)
	x := b.dense(name+".input", in, op.Gates()*units, true)
	return b.add(Node{Name: name, Op: op, Inputs: []int{x}, Out: Shape{units, positions}, Units: units})
}

// Bidirectional adds a recurrent layer NAME and a second one, NAME.reverse, that reads each row from its last position
// that is no padding to its first. NAME.both joins the channels of both, so it has 2 x units (Schuster 1997, as PyTorch
// has it).
func (b *Builder) Bidirectional(name string, in int, op Op, units int) int {
	forth := b.Recurrent(name, in, op, units)
	back := b.Recurrent(name+".reverse", b.reverse(name+".reverse.order", in), op, units)
	return b.Concat(name+".both", forth, b.reverse(name+".reverse.back", back))
}

// reverse adds the positions of a sequence in reverse order.
func (b *Builder) reverse(name string, in int) int {
	b.sequence(name, in)
	n := Node{Name: name, Op: OpReverse, Inputs: []int{in}, Out: b.Out(in)}
	b.mask(&n)
	return b.add(n)
}

// mask has a node leave out padding, where the embedding says that there is any.
func (b *Builder) mask(n *Node) {
	if from := b.g.embedding(); from != nil && from.Padded {
		if tokens, have := from.Out[1], b.Out(n.Inputs[0])[1]; tokens != have {
			b.fail(n.Name, "its %d positions are not those of the %d tokens, which say where padding is; "+
				"keep the number of positions, or leave padded: true out", have, tokens)
		}
		n.Masked, n.Inputs = true, append(n.Inputs, from.Inputs[0])
	}
}
