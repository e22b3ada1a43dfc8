package model

// Params lists the arrays of a graph's weights in node order, with PyTorch's names and layouts.
func (g *Graph) Params() []Param {
	out := make([]Param, 0, 2*len(g.Nodes))
	for i := range g.Nodes {
		out = g.appendParams(out, i)
	}
	return out
}

// Head returns the name of the last layer with weights: a dense or convolution layer with weights of its own. ok is
// false for other networks, and for those that have no other layer with weights.
func (g *Graph) Head() (name string, ok bool) {
	params := g.Params()
	if len(params) == 0 {
		return "", false
	}
	last := params[len(params)-1].Node
	for i := last + 1; i < len(g.Nodes); i++ {
		if g.Nodes[i].Tied > 0 {
			return "", false
		}
	}
	n := &g.Nodes[last]
	return n.Name, params[0].Node != last && (n.Op == OpDense || n.Op == OpConv)
}

// appendParams appends the arrays of a node.
func (g *Graph) appendParams(out []Param, i int) []Param {
	first := len(out)
	out = g.appendTrained(out, i)
	for k := first; k < len(out) && g.Nodes[i].Frozen; k++ {
		out[k].Trainable, out[k].Frozen = false, true
	}
	return out
}

// appendTrained is appendParams without regard to frozen layers.
func (g *Graph) appendTrained(out []Param, i int) []Param {
	n := &g.Nodes[i]
	switch row := &ops[n.Op]; {
	case n.Tied > 0 || n.Borrows:
	case row.params != nil:
		return row.params(g, out, i)
	case row.weight != nil:
		out = append(out, n.param(i, "weight", true, row.weight(n, g.in(n))...))
		if n.Bias {
			out = append(out, n.param(i, "bias", true, n.Out[0]))
		}
	}
	return out
}

// param is an array of node i, which n is.
func (n *Node) param(i int, name string, trainable bool, shape ...int) Param {
	return Param{Name: n.Name + "." + name, Node: i, Shape: shape, Trainable: trainable}
}

func normParams(g *Graph, out []Param, i int) []Param {
	n := &g.Nodes[i]
	c := n.Out[0]
	if !n.NoScale {
		out = append(out, n.param(i, "weight", true, c))
	}
	if !n.NoCenter {
		out = append(out, n.param(i, "bias", true, c))
	}
	return append(out, n.param(i, "running_mean", false, c), n.param(i, "running_var", false, c))
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
	Frozen       int64 // of NonTrainable: values of frozen layers
	ActivationsA int64 // outputs of convolutions and dense layers: DiSDeL's Table I
	ActivationsB int64 // outputs that take memory of their own: all but those of ReLUs, views, dropout and softmax
	MACs         int64
	Layers       []LayerCount // every node but the input
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
			if p.Frozen {
				c.Frozen += int64(p.Len())
			}
		}
		if n.Op == OpCustom {
			l.Outputs = n.Custom.Activations
			l.Activations = l.Outputs
		}
		l.Parameters = l.Trainable + l.NonTrainable
		if ops[n.Op].product {
			l.Activations = l.Outputs
		}
		c.Trainable += l.Trainable
		c.NonTrainable += l.NonTrainable
		c.MACs += l.MACs
		c.ActivationsA += l.Activations
		if ops[n.Op].weighs {
			c.ActivationsB += l.Outputs
		}
		c.Layers = append(c.Layers, l)
	}
	return c
}

// macs is the multiply-accumulates of one sample.
func (g *Graph) macs(n *Node) int64 {
	switch row := &ops[n.Op]; {
	case row.macs != nil:
		return row.macs(n)
	case row.weight != nil:
		return int64(n.Out.Len()) * int64(Shape(row.weight(n, g.in(n))[1:]).Len())
	default:
		return 0
	}
}

// TableI is what DiSDeL's Table I counts of a network, as it is printed: the parameters of its convolutions and dense
// layers, each with a bias, and for one sample the outputs of them. A depthwise-separable layer is one layer of it: c
// s^2
// + c f + f parameters, and the outputs of its pointwise half alone. Batch norms do not occur in it. What a custom
// network
// says of itself is taken as it is.
//
// Count counts what is there instead: no bias before a batch norm, batch norms' own parameters, and both halves of a
// separable layer.
func (g *Graph) TableI() (parameters, activations int64) {
	for i := 1; i < len(g.Nodes); i++ {
		n := &g.Nodes[i]
		switch n.Op {
		case OpConv:
			c, f := int64(g.in(n)[0]), int64(n.Filters)
			weights := c / int64(n.Groups) * int64(n.Kernel.H*n.Kernel.W) * f
			if g.depthwise(n) {
				parameters += weights
				continue
			}
			parameters, activations = parameters+weights+f, activations+int64(n.Out.Len())
		case OpDense:
			parameters += int64(g.in(n)[0])*int64(n.Units) + int64(n.Units)
			activations += int64(n.Out.Len())
		case OpCustom:
			for _, p := range g.appendParams(nil, i) {
				if p.Trainable {
					parameters += int64(p.Len())
				}
			}
			activations += n.Custom.Activations
		}
	}
	return parameters, activations
}

// depthwise tells whether a convolution is the first half of a depthwise-separable layer: a window for each channel.
func (g *Graph) depthwise(n *Node) bool {
	c := g.in(n)[0]
	return c > 1 && n.Groups == c
}
