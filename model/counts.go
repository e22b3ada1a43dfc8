package model

var opNames = [...]string{
	"unknown", "input", "conv", "dense", "batchNorm", "relu", "relu6", "sigmoid", "tanh", "softmax", "maxPool", "avgPool",
	"adaptiveAvgPool", "globalAvgPool", "dropout", "flatten", "add", "concat", "downsample", "custom",
	linearNode, factorsNode,
}

// String is the name of the op in reports; where users write layers, it is theirs.
func (o Op) String() string {
	if int(o) < len(opNames) {
		return opNames[o]
	}
	return opNames[0]
}

// Params lists the arrays of a graph's weights in node order, with PyTorch's names and layouts.
func (g *Graph) Params() []Param {
	out := make([]Param, 0, 2*len(g.Nodes))
	for i := range g.Nodes {
		out = g.appendParams(out, i)
	}
	return out
}

// appendParams appends the arrays of a node.
func (g *Graph) appendParams(out []Param, i int) []Param {
	n := &g.Nodes[i]
	add := func(name string, trainable bool, shape ...int) {
		out = append(out, Param{Name: n.Name + "." + name, Node: i, Shape: shape, Trainable: trainable})
	}
	switch n.Op {
	case OpCustom:
		return append(out, customParams(i, n)...)
	case OpFactors:
		return append(out, factorParams(i, n.Sparse)...)
	case OpLinear:
		add("weight", true, 1, g.in(n)[0])
	case OpConv:
		add("weight", true, n.Filters, g.in(n)[0]/n.Groups, n.Kernel.H, n.Kernel.W)
	case OpDense:
		add("weight", true, n.Units, g.in(n)[0])
	case OpBatchNorm:
		c := n.Out[0]
		if !n.NoScale {
			add("weight", true, c)
		}
		if !n.NoCenter {
			add("bias", true, c)
		}
		add("running_mean", false, c)
		add("running_var", false, c)
		return out
	default:
		return out
	}
	if n.Bias {
		add("bias", true, n.Out[0])
	}
	return out
}

func (g *Graph) in(n *Node) Shape { return g.Nodes[n.Inputs[0]].Out }

// LayerCount is what one layer holds and computes for one sample.
type LayerCount struct {
	Name         string `json:"name"`
	Op           string `json:"op"`
	Output       []int  `json:"output"`
	Parameters   int64  `json:"parameters"`
	Trainable    int64  `json:"trainableParameters"`
	NonTrainable int64  `json:"otherParameters"` // batch norm's running statistics
	Outputs      int64  `json:"outputs"`
	Activations  int64  `json:"activations"` // outputs of convolutions and dense layers, as DiSDeL's Table I counts
	MACs         int64  `json:"macs"`        // of convolutions and dense layers
}

// Counts is what a network holds and computes for one sample.
type Counts struct {
	Trainable    int64
	NonTrainable int64
	ActivationsA int64 // outputs of convolutions and dense layers: DiSDeL's Table I
	ActivationsB int64 // outputs that take memory of their own: all but those of ReLUs, views, dropout and softmax
	MACs         int64
	Layers       []LayerCount // every node but the input
}

// weighs tells which outputs ActivationsB counts. ReLU and dropout work in place, flatten is a view, option A's
// shortcut is recomputed, and softmax belongs to the loss.
func weighs(o Op) bool {
	switch o {
	case OpConv, OpDense, OpBatchNorm, OpMaxPool, OpAvgPool, OpAdaptiveAvgPool, OpGlobalAvgPool, OpAdd, OpConcat,
		OpSigmoid, OpTanh, OpCustom, OpLinear, OpFactors:
		return true
	default:
		return false
	}
}

// Count counts every layer of a graph.
func (g *Graph) Count() Counts {
	c := Counts{Layers: make([]LayerCount, 0, len(g.Nodes))}
	var params []Param // of a layer at a time
	for i := 1; i < len(g.Nodes); i++ {
		n := &g.Nodes[i]
		l := LayerCount{Name: n.Name, Op: n.Op.String(), Output: n.Out, Outputs: int64(n.Out.Len()), MACs: g.macs(n)}
		params = g.appendParams(params[:0], i)
		for _, p := range params {
			if p.Trainable {
				l.Trainable += int64(p.Len())
			} else {
				l.NonTrainable += int64(p.Len())
			}
		}
		if n.Op == OpCustom {
			l.Outputs = n.Custom.Activations
			l.Activations = l.Outputs
		}
		l.Parameters = l.Trainable + l.NonTrainable
		if n.Op == OpConv || n.Op == OpDense {
			l.Activations = l.Outputs
		}
		c.Trainable += l.Trainable
		c.NonTrainable += l.NonTrainable
		c.MACs += l.MACs
		c.ActivationsA += l.Activations
		if weighs(n.Op) {
			c.ActivationsB += l.Outputs
		}
		c.Layers = append(c.Layers, l)
	}
	return c
}

// macs is the multiply-accumulates of one sample: an output of a convolution sums in/groups x kernel products.
func (g *Graph) macs(n *Node) int64 {
	switch n.Op {
	case OpConv:
		return int64(n.Out.Len()) * int64(g.in(n)[0]/n.Groups*n.Kernel.H*n.Kernel.W)
	case OpDense:
		return int64(n.Units) * int64(g.in(n)[0])
	case OpLinear: // of a row's entries
		return int64(n.Sparse.Mean)
	case OpFactors:
		return int64(n.Sparse.Rank)
	default:
		return 0
	}
}
