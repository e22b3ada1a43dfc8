package gorgonia

import (
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/disdel/disdel/model"
)

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
