package gorgonia

import (
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
)

// compiler turns a model graph into a Program, with gorgonia's own operations where they are right, so that this
// backend and the engine check each other.
type compiler struct {
	*Ops
	g      *model.Graph
	p      *Program
	nodes  []*node
	params map[string]*node
	values map[string]*param
	norms  []stockNorm
	cost   string // the loss
	logs   *node  // logarithms of a last softmax, where the loss needs them
}

func compileGraph(g *model.Graph, o *Ops, params []param, loss string) (*Program, error) {
	c := &compiler{
		Ops: o, g: g, cost: loss, p: &Program{Graph: gorgonia.NewGraph()}, params: map[string]*node{},
		values: map[string]*param{},
	}
	for i := range params {
		q := &params[i]
		c.values[q.name] = q
		if !q.trainable && c.training && c.stockNorms() {
			continue // gorgonia's batch norm keeps its own statistics
		}
		n := c.tensor(q.name, q.value.Shape())
		c.params[q.name] = n
		if q.trainable {
			c.p.Params = append(c.p.Params, n)
		} else {
			c.p.State = append(c.p.State, n)
		}
	}
	for i := range g.Nodes {
		out, err := c.layer(&g.Nodes[i])
		if err != nil {
			n := &g.Nodes[i]
			return nil, &disdel.Error{Kind: disdel.Invalid, Op: "compile network " + g.Name, Msg: "layer " + n.Name + " (" +
				n.Op.String() + ")", Err: err}
		}
		c.nodes = append(c.nodes, out)
	}
	if err := c.loss(); err != nil {
		return nil, err
	}
	if len(c.norms) > 0 {
		c.p.before, c.p.after = c.loadStatistics, c.storeStatistics
	}
	return c.p, nil
}

func (c *compiler) tensor(name string, shape tensor.Shape) *node {
	return gorgonia.NewTensor(c.p.Graph, tensor.Float32, shape.Dims(), gorgonia.WithName(name),
		gorgonia.WithShape(shape.Clone()...))
}

func (c *compiler) constant(name string, value float32, shape tensor.Shape) *node {
	data := make([]float32, shape.TotalSize())
	for i := range data {
		data[i] = value
	}
	return gorgonia.NewTensor(c.p.Graph, tensor.Float32, shape.Dims(), gorgonia.WithName(name),
		gorgonia.WithShape(shape.Clone()...),
		gorgonia.WithValue(tensor.New(tensor.WithShape(shape.Clone()...), tensor.WithBacking(data))))
}

// layer is the table of kinds: what a layer is in gorgonia's graph.
func (c *compiler) layer(n *model.Node) (*node, error) {
	in := make([]*node, len(n.Inputs))
	for i, k := range n.Inputs {
		in[i] = c.nodes[k]
	}
	switch n.Op {
	case model.OpInput:
		c.p.Input = c.tensor("input", append(tensor.Shape{c.Rows()}, n.Out...))
		return c.p.Input, nil
	case model.OpConv:
		return c.conv(n, in[0])
	case model.OpDense:
		return c.dense(n, in[0])
	case model.OpBatchNorm:
		return c.batchNorm(n, in[0])
	case model.OpMaxPool:
		return c.maxPool(n, in[0])
	case model.OpAvgPool:
		return c.AvgPool2d(in[0], window(n))
	case model.OpAdaptiveAvgPool:
		return c.AdaptiveAvgPool2d(in[0], n.Kernel.H, n.Kernel.W)
	case model.OpGlobalAvgPool:
		return c.GlobalAvgPool2d(in[0])
	case model.OpFlatten:
		return c.Flatten(in[0])
	case model.OpDropout:
		return c.Dropout(in[0], n.Rate)
	case model.OpAdd:
		return c.add(in)
	case model.OpConcat:
		return gorgonia.Concat(1, in...)
	case model.OpDownsample:
		return c.Downsample(in[0], n.Filters, n.Stride.H)
	case model.OpReLU:
		return positive(in[0])
	case model.OpReLU6:
		return c.ReLU6(in[0])
	case model.OpSigmoid:
		return gorgonia.Sigmoid(in[0])
	case model.OpTanh:
		return gorgonia.Tanh(in[0])
	case model.OpHardSwish:
		return c.hardSwish(in[0])
	case model.OpSoftmax:
		return c.softmax(in[0])
	default:
		return nil, refuse(n.Op.String(), "this engine has no such operation")
	}
}

// lacks tells whether gorgonia's graphs have no such operation.
func lacks(op model.Op) bool {
	switch op {
	case model.OpLeakyReLU, model.OpELU, model.OpSoftplus, model.OpHardSigmoid, model.OpDropout2D, model.OpDropPath,
		model.OpPReLU, model.OpScale, model.OpPad, model.OpUpsample,
		model.OpGELU, model.OpGELUTanh, model.OpSiLU, model.OpEmbedding, model.OpPositions, model.OpLayerNorm,
		model.OpRMSNorm, model.OpGroupNorm, model.OpAttention, model.OpWindowAttention,
		model.OpSpaceToDepth, model.OpLSTM, model.OpGRU, model.OpSequence,
		model.OpClassToken, model.OpTakePosition, model.OpReverse, model.OpMultiply, model.OpChannels:
		return true
	default:
		return false
	}
}

// hardSwish is x ReLU6(x + 3) / 6.
func (c *compiler) hardSwish(x *node) (*node, error) {
	shifted, err := gorgonia.Add(x, gorgonia.NewConstant(float32(3)))
	if err != nil {
		return nil, err
	}
	gate, err := c.ReLU6(shifted)
	if err != nil {
		return nil, err
	}
	if gate, err = gorgonia.Mul(gate, gorgonia.NewConstant(float32(1.0/6))); err != nil {
		return nil, err
	}
	return gorgonia.HadamardProd(x, gate)
}

// softmax goes by the logarithms that cross-entropy needs: gorgonia takes SoftMax and LogSoftMax of one input for the
// same node, whichever came first.
func (c *compiler) softmax(x *node) (out *node, err error) {
	if x.Shape()[1] == 1 {
		return c.only(x, 1)
	}
	if c.cost != crossEntropy {
		return gorgonia.SoftMax(x)
	}
	if c.logs, err = gorgonia.LogSoftMax(x); err != nil {
		return nil, err
	}
	return gorgonia.Exp(c.logs)
}

// positive is x times (x > 0): Rectify's gradient at 0 is 1, and a network's zeros are many (borders, empty
// background).
func positive(x *node) (*node, error) {
	above, err := gorgonia.Gt(x, gorgonia.NewConstant(float32(0)), true)
	if err != nil {
		return nil, err
	}
	return gorgonia.HadamardProd(x, above)
}

func window(n *model.Node) model.Window {
	return model.Window{Kernel: n.Kernel, Stride: n.Stride, Dilation: n.Dilation, Pad: n.Pad, CountPad: n.CountPad}
}

// even tells whether padding is the same on opposite sides, which is all that gorgonia can do.
func even(p model.Padding) bool { return p.Top == p.Bottom && p.Left == p.Right }

func (c *compiler) conv(n *model.Node, x *node) (*node, error) {
	w, b := c.params[n.Name+".weight"], c.params[n.Name+".bias"]
	if n.Groups > 1 || !even(n.Pad) {
		return c.Conv2d(x, w, b, window(n), n.Groups)
	}
	y, err := gorgonia.Conv2d(x, w, tensor.Shape{n.Kernel.H, n.Kernel.W}, []int{n.Pad.Top, n.Pad.Left},
		[]int{n.Stride.H, n.Stride.W}, []int{n.Dilation.H, n.Dilation.W})
	if err != nil || b == nil {
		return y, err
	}
	return gorgonia.BroadcastAdd(y, b, nil, []byte{0, 2, 3})
}

func (c *compiler) dense(n *model.Node, x *node) (*node, error) {
	y, err := gorgonia.Mul(x, c.params[n.Name+".weight"])
	b := c.params[n.Name+".bias"]
	if err != nil || b == nil {
		return y, err
	}
	return gorgonia.BroadcastAdd(y, b, nil, []byte{0})
}

func (c *compiler) maxPool(n *model.Node, x *node) (*node, error) {
	if !even(n.Pad) {
		return c.MaxPool2d(x, window(n))
	}
	return gorgonia.MaxPool2D(x, tensor.Shape{n.Kernel.H, n.Kernel.W}, []int{n.Pad.Top, n.Pad.Left},
		[]int{n.Stride.H, n.Stride.W})
}

func (c *compiler) add(in []*node) (*node, error) {
	out := in[0]
	for _, other := range in[1:] {
		var err error
		if out, err = gorgonia.Add(out, other); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// stockNorm is one of gorgonia's batch norms, which is right while training but for its statistics: a machine resets
// them when it is made, so they are brought before every step and fetched after it.
type stockNorm struct {
	op             *gorgonia.BatchNormOp
	mean, variance *param
}

// stockNorms tells whether gorgonia's batch norm can stand for all of this graph's: two on one input would become one
// node, the variance of a row that stands twice needs correction, and on images that are one column its gradient is
// wrong.
func (c *compiler) stockNorms() bool {
	if c.rows == 1 {
		return false
	}
	seen := map[int]bool{}
	for _, n := range c.g.Nodes {
		if n.Op == model.OpBatchNorm {
			column := len(n.Out) == 3 && n.Out[2] == 1 && n.Out[1] > 1
			if column || seen[n.Inputs[0]] {
				return false
			}
			seen[n.Inputs[0]] = true
		}
	}
	return true
}

func (c *compiler) batchNorm(n *model.Node, x *node) (*node, error) {
	scale, bias := c.params[n.Name+".weight"], c.params[n.Name+".bias"]
	mean, variance := n.Name+".running_mean", n.Name+".running_var"
	if c.params[mean] != nil {
		return c.BatchNorm(x, scale, bias, c.params[mean], c.params[variance], Norm{Eps: n.Eps, Momentum: n.Momentum})
	}
	shape := tensor.Shape{1, n.Out[0], 1, 1}[:1+len(n.Out)]
	if scale == nil {
		scale = c.constant(n.Name+".one", 1, shape)
	}
	if bias == nil {
		bias = c.constant(n.Name+".zero", 0, shape)
	}
	y, _, _, op, err := gorgonia.BatchNorm(x, scale, bias, n.Momentum, n.Eps)
	if err != nil {
		return nil, err
	}
	c.norms = append(c.norms, stockNorm{op, c.values[mean], c.values[variance]})
	return y, nil
}

func (c *compiler) loadStatistics() error {
	for _, n := range c.norms {
		v := func(p *param) *tensor.Dense {
			return tensor.New(tensor.WithShape(len(p.data)), tensor.WithBacking(append([]float32(nil), p.data...)))
		}
		if err := n.op.SetStats(v(n.mean), v(n.variance)); err != nil {
			return err
		}
	}
	return nil
}

func (c *compiler) storeStatistics() error {
	for _, n := range c.norms {
		mean, variance := n.op.Stats()
		n.store(n.mean, mean)
		n.store(n.variance, variance)
	}
	return nil
}

func (n *stockNorm) store(p *param, v tensor.Tensor) {
	data, _ := v.Data().([]float32)
	copy(p.data, data)
}

// crossEntropy is the loss that a configuration without one means.
const crossEntropy = "crossEntropy"

// loss adds the target and the loss, a mean over the rows. Cross-entropy reads the inputs of a last softmax, or the
// outputs if there is none. Binary cross-entropy reads the inputs of a last sigmoid, so that no logarithm meets a
// rounded 0; without one, the outputs are probabilities. mse reads the outputs.
func (c *compiler) loss() error {
	out := c.nodes[len(c.nodes)-1]
	c.p.Output = out
	c.p.Target = c.tensor("target", tensor.Shape{c.Rows(), c.g.Output().Len()})
	var err error
	switch c.cost {
	case crossEntropy:
		c.p.Loss, err = c.crossEntropy(out)
	case "binaryCrossEntropy":
		c.p.Loss, err = c.mean(c.binary(out))
	case "mse":
		c.p.Loss, err = c.meanSquare(out)
	default:
		return &disdel.Error{Kind: disdel.Invalid, Op: "compile network " + c.g.Name, Msg: "there is no loss \"" + c.cost +
			"\"", Hint: "use crossEntropy, binaryCrossEntropy or mse"}
	}
	return err
}

func (c *compiler) binary(out *node) (*node, error) {
	switch n := &c.g.Nodes[len(c.g.Nodes)-1]; {
	case n.Op == model.OpSigmoid:
		return c.LogisticLoss(c.nodes[n.Inputs[0]], c.p.Target)
	case n.Op == model.OpSoftmax && c.g.Output().Len() == 1:
		return c.only(out, 0)
	case n.Op == model.OpSoftmax:
		odds, err := c.logOdds(c.nodes[n.Inputs[0]])
		if err != nil {
			return nil, err
		}
		return c.LogisticLoss(odds, c.p.Target)
	}
	return c.BinaryCrossEntropy(out, c.p.Target)
}

// crossEntropy is the mean over rows of -log softmax at the label.
func (c *compiler) crossEntropy(out *node) (_ *node, err error) {
	logs := c.logs
	switch {
	case c.g.Output().Len() == 1:
		if logs, err = c.only(out, 0); err != nil {
			return nil, err
		}
	case logs == nil:
		if logs, err = gorgonia.LogSoftMax(out); err != nil {
			return nil, err
		}
	}
	terms, err := gorgonia.HadamardProd(logs, c.p.Target)
	if err != nil {
		return nil, err
	}
	sum, err := gorgonia.Sum(terms)
	if err != nil {
		return nil, err
	}
	return gorgonia.Mul(sum, gorgonia.NewConstant(-1/float32(c.Rows())))
}

func (c *compiler) meanSquare(out *node) (*node, error) {
	diff, err := gorgonia.Sub(out, c.p.Target)
	if err != nil {
		return nil, err
	}
	return c.mean(gorgonia.Square(diff))
}

// mean is over rows and classes.
func (c *compiler) mean(terms *node, err error) (*node, error) {
	if err != nil {
		return nil, err
	}
	sum, err := gorgonia.Sum(terms)
	if err != nil {
		return nil, err
	}
	return gorgonia.Mul(sum, gorgonia.NewConstant(1/float32(terms.Shape().TotalSize())))
}
