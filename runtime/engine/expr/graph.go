package expr

import (
	"errors"
	"fmt"
	"sync"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
)

// Check says whether the engine can train a network, before anything runs: Invalid with the first layer that it cannot
// compute rightly.
func Check(g *model.Graph) error {
	for i := range g.Nodes {
		if why := unsupported(&g.Nodes[i]); why != nil {
			return refusal(g, &g.Nodes[i], why)
		}
	}
	return nil
}

func refusal(g *model.Graph, n *model.Node, why error) error {
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "compile network " + g.Name, Msg: fmt.Sprintf("layer %s (%s)", n.Name, n.Op), Err: why,
		Hint: "use layers of: " + supported,
	}
}

// unsupported tells what gorgonia's stock operations compute wrongly or not at all.
func unsupported(n *model.Node) error {
	uneven := n.Pad.Top != n.Pad.Bottom || n.Pad.Left != n.Pad.Right
	switch n.Op {
	case model.OpInput, model.OpDense, model.OpReLU, model.OpSigmoid, model.OpTanh, model.OpSoftmax, model.OpFlatten, model.OpDropout, model.OpAdd, model.OpConcat:
		return nil
	case model.OpConv, model.OpMaxPool:
		if uneven {
			return errors.New("padding must be the same on opposite sides")
		}
		if n.Groups > 1 {
			return errors.New("gorgonia has no grouped convolution")
		}
		return nil
	default:
		return errors.New("gorgonia computes this wrongly or not at all, and this engine has no operation of its own yet")
	}
}

// building is held while an expression graph is made: gorgonia keeps its table of types in a package variable without a
// lock, so that building two graphs at once races.
var building sync.Mutex

// param is one array of weights as gorgonia holds it.
type param struct {
	model.Param
	value *tensor.Dense // shares data
	data  []float32
	dense bool // stored [in out], the transpose of PyTorch's layout: gorgonia multiplies it as it is
}

func newParams(g *model.Graph) []param {
	var out []param
	for _, p := range g.Params() {
		n := g.Nodes[p.Node]
		q := param{Param: p, data: make([]float32, p.Len())}
		shape := tensor.Shape(p.Shape).Clone()
		switch {
		case n.Op == model.OpDense && len(p.Shape) == 2:
			q.dense, shape = true, tensor.Shape{p.Shape[1], p.Shape[0]}
		case n.Op == model.OpDense:
			shape = tensor.Shape{1, p.Shape[0]}
		case len(p.Shape) == 1:
			shape = tensor.Shape{1, p.Shape[0], 1, 1}
		}
		q.value = tensor.New(tensor.WithShape(shape...), tensor.WithBacking(q.data))
		out = append(out, q)
	}
	return out
}

// program is a network as an expression graph for one batch size.
type program struct {
	machine gorgonia.VM
	params  gorgonia.Nodes
	x       *gorgonia.Node
	target  *gorgonia.Node // training: what the loss multiplies or compares with
	weight  *gorgonia.Node // training with mse: 1/(rows x classes) for real rows, 0 for padding
	masks   []mask
	out     gorgonia.Value // [batch classes] before softmax, and after it where nothing is trained
	loss    gorgonia.Value
}

// mask is a dropout layer: its input is filled anew at every step.
type mask struct {
	node *gorgonia.Node
	data []float32
	rate float64
}

// compiler turns a model graph into a program.
type compiler struct {
	g        *model.Graph
	eg       *gorgonia.ExprGraph
	batch    int
	training bool
	nodes    []*gorgonia.Node
	params   map[string]*gorgonia.Node
	prog     *program
	ops      uint32 // made so far
}

func compile(g *model.Graph, params []param, batch int, training bool, loss string) (p *program, err error) {
	building.Lock()
	defer building.Unlock()
	defer func() {
		if r := recover(); r != nil { // gorgonia panics on shapes
			err = &disdel.Error{Kind: disdel.Internal, Op: "compile network " + g.Name, Msg: fmt.Sprint(r)}
		}
	}()
	if err := Check(g); err != nil {
		return nil, err
	}
	c := &compiler{g: g, eg: gorgonia.NewGraph(), batch: batch, training: training, params: map[string]*gorgonia.Node{}, prog: &program{}}
	for _, q := range params {
		n := gorgonia.NewTensor(c.eg, tensor.Float32, q.value.Dims(), gorgonia.WithName(q.Name), gorgonia.WithShape(q.value.Shape()...), gorgonia.WithValue(q.value))
		c.params[q.Name] = n
		c.prog.params = append(c.prog.params, n)
	}
	if err := c.layers(); err != nil {
		return nil, err
	}
	if !training {
		gorgonia.Read(c.last(), &c.prog.out)
		c.prog.machine = gorgonia.NewTapeMachine(c.eg)
		return c.prog, nil
	}
	if err := c.lossNode(loss); err != nil {
		return nil, err
	}
	c.prog.machine = gorgonia.NewTapeMachine(c.eg, gorgonia.BindDualValues(c.prog.params...))
	return c.prog, nil
}

func (c *compiler) last() *gorgonia.Node { return c.nodes[len(c.nodes)-1] }

// layers compiles every node. While training, a last softmax belongs to the loss.
func (c *compiler) layers() error {
	for i := range c.g.Nodes {
		n := &c.g.Nodes[i]
		if n.Op == model.OpSoftmax && c.training {
			return nil
		}
		out, err := c.layer(n)
		if err != nil {
			return refusal(c.g, n, err)
		}
		c.nodes = append(c.nodes, out)
	}
	return nil
}

func (c *compiler) layer(n *model.Node) (*gorgonia.Node, error) {
	in := make([]*gorgonia.Node, len(n.Inputs))
	for i, k := range n.Inputs {
		in[i] = c.nodes[k]
	}
	switch n.Op {
	case model.OpInput:
		c.prog.x = c.input("x", n.Out)
		return c.prog.x, nil
	case model.OpConv:
		return c.conv(n, in[0])
	case model.OpDense:
		return c.dense(n, in[0])
	case model.OpReLU:
		return c.relu(in[0])
	case model.OpSigmoid:
		return gorgonia.Sigmoid(in[0])
	case model.OpTanh:
		return gorgonia.Tanh(in[0])
	case model.OpSoftmax:
		return gorgonia.SoftMax(in[0])
	case model.OpMaxPool:
		return c.maxPool(n, in[0])
	case model.OpFlatten:
		return gorgonia.Reshape(in[0], tensor.Shape{c.batch, n.Out.Len()})
	case model.OpDropout:
		return c.dropout(n, in[0])
	case model.OpAdd:
		out := in[0]
		for _, other := range in[1:] {
			var err error
			if out, err = gorgonia.Add(out, other); err != nil {
				return nil, err
			}
		}
		return out, nil
	case model.OpConcat:
		return gorgonia.Concat(1, in...)
	default:
		return nil, unsupported(n)
	}
}

const supported = "conv, dense, relu, sigmoid, tanh, maxPool, dropout, flatten, softmax"

func (c *compiler) input(name string, sample model.Shape) *gorgonia.Node {
	shape := append(tensor.Shape{c.batch}, sample...)
	return gorgonia.NewTensor(c.eg, tensor.Float32, len(shape), gorgonia.WithName(name), gorgonia.WithShape(shape...),
		gorgonia.WithValue(tensor.New(tensor.Of(tensor.Float32), tensor.WithShape(shape...))))
}

// dropout multiplies with a mask of its own: gorgonia's divides by the wrong number on the way back.
func (c *compiler) dropout(n *model.Node, in *gorgonia.Node) (*gorgonia.Node, error) {
	if !c.training || n.Rate == 0 {
		return in, nil
	}
	node := c.input(n.Name, n.Out)
	data, _ := node.Value().Data().([]float32)
	c.prog.masks = append(c.prog.masks, mask{node: node, data: data, rate: n.Rate})
	return gorgonia.HadamardProd(in, node)
}

// lossNode adds the loss and its gradients. Cross-entropy is the sum of log softmax times -1/rows at the label; mse the
// sum of weighted squares. Rows that pad a short batch have weight 0 in both, so that the loss is the mean of real rows.
func (c *compiler) lossNode(name string) (err error) {
	out := c.last()
	gorgonia.Read(out, &c.prog.out)
	c.prog.target = c.input("target", model.Shape(out.Shape()[1:]))
	var terms *gorgonia.Node
	switch name {
	case "crossEntropy":
		logs, err := gorgonia.LogSoftMax(out)
		if err != nil {
			return err
		}
		terms, err = gorgonia.HadamardProd(logs, c.prog.target)
		if err != nil {
			return err
		}
	case "mse":
		c.prog.weight = c.input("weight", model.Shape(out.Shape()[1:]))
		diff, err := gorgonia.Sub(out, c.prog.target)
		if err != nil {
			return err
		}
		square, err := gorgonia.Square(diff)
		if err != nil {
			return err
		}
		if terms, err = gorgonia.HadamardProd(square, c.prog.weight); err != nil {
			return err
		}
	default:
		return &disdel.Error{Kind: disdel.Invalid, Op: "compile network " + c.g.Name, Msg: fmt.Sprintf("there is no loss %q", name)}
	}
	loss, err := gorgonia.Sum(terms)
	if err != nil {
		return err
	}
	gorgonia.Read(loss, &c.prog.loss)
	_, err = gorgonia.Grad(loss, c.prog.params...)
	return err
}
