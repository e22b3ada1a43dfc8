package model

import (
	"strconv"
	"strings"

	"github.com/disdel/disdel"
)

// Shape is the shape of one sample: [channels height width] for images, [units] for vectors.
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
	OpSoftmax         // last node only: the loss takes its input, prediction its output
	OpMaxPool         // Kernel, Stride, Pad
	OpAvgPool         // Kernel, Stride, Pad, CountPad
	OpAdaptiveAvgPool // to Kernel, whatever the input
	OpGlobalAvgPool   // to [channels 1 1]
	OpDropout         // Rate is the share dropped while training
	OpFlatten
	OpAdd        // element-wise, two inputs or more of one shape
	OpConcat     // along channels
	OpDownsample // every Stride-th pixel, channels padded with zeros on both sides to Filters: ResNet's option A
	OpCustom     // Custom: a whole network that only an action's own binary computes
	OpLinear     // Sparse: the sum of a sparse row's entries, each times the weight of its column, and a bias
	OpFactors    // Sparse: product of a user's factors and an item's, and the biases of both
)

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
	Units    int
	Kernel   Sides
	Stride   Sides
	Pad      Padding
	Dilation Sides // 1 is dense
	Groups   int
	Bias     bool
	Rate     float64
	Eps      float64
	Momentum float64 // share of the newest batch in the running statistics: PyTorch's, 1 minus Keras'
	NoScale  bool    // batch norm without weight, as a weight of 1
	NoCenter bool    // batch norm without bias, as a bias of 0
	Custom   *disdel.CustomNetwork
	Sparse   *disdel.SparseNetwork
	CountPad bool // average pool divides by the whole window: PyTorch's count_include_pad; Keras leaves padding out
}

// Graph is a network: nodes in topological order, node 0 the input, the last node the output. Built only by a Builder,
// so that every Out is right.
type Graph struct {
	Name  string
	Nodes []Node
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
}

// Len is the number of values.
func (p Param) Len() int { return Shape(p.Shape).Len() }
