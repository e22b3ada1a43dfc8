package model

import (
	"strconv"
	"strings"

	"github.com/disdel/disdel"
)

// Shape is the shape of one sample: [channels height width] for images, [channels positions] for sequences, [units] for
// vectors.
type Shape []int

// Len is the product of the sides.
func (s Shape) Len() int {
	n := 1
	for _, v := range s {
		n *= v
	}
	return n
}

// Text is the shape as it is typed: 1x28x28.
func (s Shape) Text() string {
	parts := make([]string, len(s))
	for i, v := range s {
		parts[i] = strconv.Itoa(v)
	}
	return strings.Join(parts, "x")
}

// Op is what a node computes.
type Op uint8

// The operations of the papers' networks. Zero is no operation.
const (
	OpUnknown Op = iota
	OpInput
	OpConv // Filters, Kernel, Stride, Pad, Dilation, Groups, Bias; Groups equal to the input channels is depthwise
	OpDense
	// over channels; Eps, Momentum; parameters weight (unless NoScale), bias (unless NoCenter); statistics running_mean,
	// running_var
	OpBatchNorm
	OpReLU
	OpReLU6
	OpSigmoid
	OpTanh
	OpHardSwish       // x min(max(x + 3, 0), 6) / 6, of MobileNetV3
	OpLeakyReLU       // x above 0, Slope times x below (Maas 2013)
	OpELU             // x above 0, exp(x) - 1 below (Clevert 2016)
	OpSoftplus        // log(1 + exp(x))
	OpPReLU           // x above 0, below it times a learned slope: weight [Groups], one for all channels or one each
	OpHardSigmoid     // min(max(x + 3, 0), 6) / 6
	OpGELU            // x times the normal distribution function of x (Hendrycks 2016)
	OpGELUTanh        // its approximation by tanh, of GPT-2
	OpSiLU            // x sigmoid(x)
	OpSoftmax         // last node only: the loss takes its input, prediction its output
	OpMaxPool         // Kernel, Stride, Pad
	OpAvgPool         // Kernel, Stride, Pad, CountPad
	OpAdaptiveAvgPool // to Kernel, whatever the input
	OpGlobalAvgPool   // to [channels 1 1]
	OpPad             // zeros around an image: Pad; and between its pixels, which are Stride apart if that is given
	OpUpsample        // each pixel of an image Kernel times
	OpSpaceToDepth    // the pixels of each block of Kernel as channels of one pixel, row after row
	OpScale           // Factor times x: what an adapter adds is scaled by it (see Graph.Adapt)
	OpDropout         // Rate is the share dropped while training
	OpDropout2D       // the same of whole channels of an image (Tompson 2015)
	OpDropPath        // the same of whole rows: stochastic depth (Huang 2016)
	OpFlatten
	OpAdd        // element-wise, two inputs or more of one shape
	OpMultiply   // element-wise, two inputs: of one shape, or the second is [channels 1 1] (Hu 2018)
	OpConcat     // along channels
	OpChannels   // Filters channels from First on, of the channels with one of each of Groups in turn: channel shuffle
	OpDownsample // every Stride-th pixel, channels padded with zeros on both sides to Filters: ResNet's option A
	OpEmbedding  // a sequence of Units channels of tokens: row k of weight [Vocabulary Units] for token k
	OpPositions  // adds a vector of each position: weight [positions channels], or sines with Fixed
	OpLayerNorm  // over the channels of each position; Eps; parameters weight, bias
	OpRMSNorm    // the same without mean and bias (Zhang 2019)
	OpGroupNorm  // over the pixels and channels of each of Groups; Eps; parameters weight, bias (Wu 2018)
	OpAttention  // Heads, KVHeads, Causal, Theta; the input's channels are queries, keys and values
	// of an image of queries, keys and values, within windows of Kernel: Heads, Shift, Grid, Cosine; parameters weight,
	// scale; Out may have fewer rows and columns than the input
	OpWindowAttention
	OpLSTM         // Units: the recurrence of an LSTM; the input has the products of all four gates (Hochreiter 1997)
	OpGRU          // the same of the three gates of a GRU (Cho 2014)
	OpSequence     // the pixels of an image, by rows, as positions
	OpClassToken   // puts a position before the others, weight [1 channels], as ViT does
	OpReverse      // positions in reverse order; padding stays where it is
	OpTakePosition // Take: the mean of the positions, or one of them; a vector of the channels
	OpCustom       // Custom: a whole network that only an action's own binary computes
	OpLinear       // Sparse: the sum of a sparse row's entries, each times the weight of its column, and a bias
	OpFactors      // Sparse: product of a user's factors and an item's, and the biases of both
)

// op is what this folder knows of an Op. What a job file may say of a layer is in layerKinds; how engines compute it is
// in their tables.
type op struct {
	name string // in reports; where users write layers, it is theirs
	// weighs tells that ActivationsB counts the outputs. ReLU and dropout work in place, flatten is a view, option A's
	// shortcut is recomputed, and softmax belongs to the loss.
	weighs  bool
	product bool // its outputs are weighted sums, which Activations counts
	// weight is the shape of the array "weight"; a node with Bias has a "bias" besides. nil: it has no such arrays.
	weight func(n *Node, in Shape) []int
	// params appends the arrays of node i where they are others than weight says.
	params func(g *Graph, out []Param, i int) []Param
	// macs is the multiply-accumulates of one sample where it is not every value of weight once an output.
	macs func(n *Node) int64
}

// ops has a row for every Op.
var ops = [...]op{
	OpUnknown: {name: "unknown"},
	OpInput:   {name: "input"},
	OpConv: {name: "conv", weighs: true, product: true, weight: func(n *Node, in Shape) []int {
		return []int{n.Filters, in[0] / n.Groups, n.Kernel.H, n.Kernel.W}
	}},
	OpDense: {name: "dense", weighs: true, product: true, weight: func(n *Node, in Shape) []int {
		return []int{n.Units, in[0]}
	}},
	OpBatchNorm:       {name: "batchNorm", weighs: true, params: normParams},
	OpReLU:            {name: "relu"},
	OpReLU6:           {name: "relu6"},
	OpSigmoid:         {name: "sigmoid", weighs: true},
	OpTanh:            {name: "tanh", weighs: true},
	OpHardSwish:       {name: "hardSwish", weighs: true},
	OpSoftmax:         {name: "softmax"},
	OpMaxPool:         {name: "maxPool", weighs: true},
	OpAvgPool:         {name: "avgPool", weighs: true},
	OpAdaptiveAvgPool: {name: "adaptiveAvgPool", weighs: true},
	OpGlobalAvgPool:   {name: "globalAvgPool", weighs: true},
	OpDropout:         {name: "dropout"},
	OpFlatten:         {name: "flatten"},
	OpAdd:             {name: "add", weighs: true},
	OpMultiply:        {name: "multiply", weighs: true},
	OpConcat:          {name: "concat", weighs: true},
	OpChannels:        {name: "channels", weighs: true},
	OpDownsample:      {name: "downsample"},
	OpLeakyReLU:       {name: "leakyRelu", weighs: true},
	OpELU:             {name: "elu", weighs: true},
	OpSoftplus:        {name: "softplus", weighs: true},
	OpHardSigmoid:     {name: "hardSigmoid", weighs: true},
	OpPad:             {name: "pad", weighs: true},
	OpUpsample:        {name: "upsample", weighs: true},
	OpSpaceToDepth:    {name: "spaceToDepth", weighs: true},
	OpScale:           {name: "scale"},
	OpDropout2D:       {name: "dropout2d"},
	OpDropPath:        {name: "dropPath"},
	OpGELU:            {name: "gelu", weighs: true},
	OpGELUTanh:        {name: "geluTanh", weighs: true},
	OpSiLU:            {name: "silu", weighs: true},
	OpPReLU: {
		name: "prelu", weighs: true, macs: noProducts, weight: func(n *Node, _ Shape) []int { return []int{n.Groups} },
	},
	OpEmbedding: {
		name: "embedding", weighs: true, macs: noProducts,
		weight: func(n *Node, _ Shape) []int { return []int{n.Vocabulary, n.Units} },
	},
	OpPositions: {name: "positions", params: positionParams},
	OpLayerNorm: {name: "layerNorm", weighs: true, params: layerNormParams},
	OpRMSNorm:   {name: "rmsNorm", weighs: true, params: layerNormParams},
	OpGroupNorm: {name: "groupNorm", weighs: true, params: layerNormParams},
	OpAttention: {name: "attention", weighs: true, macs: func(n *Node) int64 {
		return 2 * int64(n.Out.Len()) * int64(n.Out[1])
	}},
	OpWindowAttention: {name: "windowAttention", weighs: true, params: windowParams, macs: windowProducts},
	OpLSTM:            {name: "lstm", weighs: true, params: recurrentParams, macs: recurrentProducts},
	OpGRU:             {name: "gru", weighs: true, params: recurrentParams, macs: recurrentProducts},
	OpSequence:        {name: "sequence"},
	OpClassToken: {
		name: "classToken", weighs: true, macs: noProducts,
		weight: func(n *Node, _ Shape) []int { return []int{1, n.Out[0]} },
	},
	OpReverse:      {name: "reverse", weighs: true},
	OpTakePosition: {name: "takePosition", weighs: true},
	OpCustom:       {name: "custom", weighs: true, params: customParams},
	OpLinear: {
		name: linearNode, weighs: true, weight: func(_ *Node, in Shape) []int { return []int{1, in[0]} },
		macs: func(n *Node) int64 { return int64(n.Sparse.Mean) }, // of a row's entries
	},
	OpFactors: {
		name: factorsNode, weighs: true, params: factorParams,
		macs: func(n *Node) int64 { return int64(n.Sparse.Rank) },
	},
}

// String is the name of the op in reports.
func (o Op) String() string {
	if int(o) < len(ops) {
		return ops[o].name
	}
	return ops[OpUnknown].name
}

// Sides is a value for height and one for width.
type Sides struct{ H, W int }

// Padding counts the zeros on each side.
type Padding struct{ Top, Bottom, Left, Right int }

// Node is one layer. Inputs are indices of earlier nodes. Fields an Op does not name above are zero.
type Node struct {
	Name     string // unique, PyTorch-style where the network is from there: "layer1.0.conv1"
	Op       Op
	Inputs   []int
	Out      Shape // of one sample
	Filters  int
	First    int // of the channels that are taken
	Units    int
	Kernel   Sides
	Stride   Sides
	Pad      Padding
	Dilation Sides // 1 is dense
	Groups   int
	Bias     bool
	Rate     float64
	Slope    float64 // of a leaky ReLU, for values below 0
	Factor   float64 // of a scale; of a convolution that is a layer scale: what its weights start from
	Eps      float64
	Momentum float64 // share of the newest batch in the running statistics: PyTorch's, 1 minus Keras'
	NoScale  bool    // batch norm without weight, as a weight of 1
	NoCenter bool    // batch norm without bias, as a bias of 0
	Custom   *disdel.CustomNetwork
	Sparse   *disdel.SparseNetwork
	CountPad bool // average pool divides by the whole window: PyTorch's count_include_pad; Keras leaves padding out

	Vocabulary int     // of an embedding: tokens are 0 to Vocabulary-1
	Tied       int     // of a dense layer: the embedding whose weight it has; 0: it has its own
	Lent       bool    // of an embedding: a layer of a later slice has its weight, too (see Graph.Sliced)
	Borrows    bool    // of a dense layer: the weight is that of an embedding in an earlier slice
	Padded     bool    // of an embedding: token 0 fills rows that are shorter than others
	Fixed      bool    // positions are sines (Vaswani 2017), and nothing is learned
	Heads      int     // of an attention: that the queries are of
	KVHeads    int     // that the keys and values are of, which divide Heads
	Shift      Sides   // of windows, up and to the left, around the edges of the map
	Grid       bool    // windows have pixels that are as far apart as there are windows
	Cosine     bool    // scores are cosines times a learned scale of each head
	Causal     bool    // a position attends to none that are behind it
	Theta      float64 // base of the angles that turn queries and keys by their position (Su 2021); 0: none
	Take       string  // TakeMean, TakeFirst, TakeLast or TakeEnds
	Masked     bool    // the last input is the tokens that the first came from: where they are 0, there is padding

	Adapter AdapterPart // of a dense layer that Graph.Adapt has added

	Frozen bool // training changes none of its arrays, and a batch norm uses its running statistics: see Graph.Freeze
}

// Graph is a network: nodes in topological order, node 0 the input, the last node the output. Built only by a Builder,
// so that every Out is right.
type Graph struct {
	Name  string
	Nodes []Node
	Slice *Slice // nil: it is a whole network
}

// Input is the shape of one sample.
func (g *Graph) Input() Shape { return g.Nodes[0].Out }

// Output is the shape of one sample's output.
func (g *Graph) Output() Shape { return g.Nodes[len(g.Nodes)-1].Out }

// Param is one array of a network's weights.
type Param struct {
	Name      string // node name and ".weight", ".bias", ".running_mean" or ".running_var"; OpCustom: as the binary has it
	Node      int
	Shape     []int // PyTorch's layout: conv [out in/groups kh kw], dense [out in]
	Trainable bool
	Frozen    bool // its node is: no step changes it, whether it is a weight or a statistic
}

// Len is the number of values.
func (p Param) Len() int { return Shape(p.Shape).Len() }
