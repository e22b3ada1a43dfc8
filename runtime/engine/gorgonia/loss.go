package gorgonia

import (
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
)

// crossEntropy is the loss that a configuration without one means.
const crossEntropy = "crossEntropy"

// loss adds the target and the loss, a mean over the rows. Cross-entropy takes what a last softmax takes, or the
// outputs where there is none; binary cross-entropy takes the outputs for probabilities, or what a last sigmoid takes,
// where no logarithm meets a rounded 0; mse takes the outputs.
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
	if n := &c.g.Nodes[len(c.g.Nodes)-1]; n.Op == model.OpSigmoid {
		return c.LogisticLoss(c.nodes[n.Inputs[0]], c.p.Target)
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
