package model

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
