package gorgonia

import (
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/disdel/disdel/runtime/engine/native/kernel"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// channelwise is a depthwise convolution on arrays of gorgonia.
type channelwise struct {
	*Ops
	plan.Pool
	rows int
}

func (o *Ops) depthwise(x, w, bias *gorgonia.Node, g plan.Pool) (*gorgonia.Node, error) {
	c := &channelwise{o, g, x.Shape()[0]}
	o.window(g.KH * g.KW)
	return o.layer("depthwise", tensor.Shape{c.rows, g.In.C, g.OH, g.OW}, c, x, w, bias)
}

// tapsFirst writes weights [channels taps] as [taps channels], the kernels' layout; transpose goes back.
func (c *channelwise) tapsFirst(src []float32) []float32 {
	dst := c.work.take(len(src))
	transpose(dst, src, c.In.C, c.KH*c.KW)
	return dst
}

func (c *channelwise) forward(y []float32, v [][]float32) {
	m, weights := c.images(c.rows, c.In, c.Out()), c.tapsFirst(v[1])
	m.forward(v[0], y, func(w *kernel.Worker) { w.DepthwiseForward(&c.Pool, m.x, weights, m.y) })
	if len(v) < 3 {
		return
	}
	pixels := c.OH * c.OW
	for i := range y {
		y[i] += v[2][i/pixels%c.In.C]
	}
}

func (c *channelwise) dataGradient(d, weights, dy []float32) {
	m, wi := c.images(c.rows, c.In, c.Out()), c.tapsFirst(weights)
	m.back(dy, d, func(w *kernel.Worker) { w.DepthwiseBackData(&c.Pool, m.y, wi, m.x, false) })
}

func (c *channelwise) weightGradient(d, x, dy []float32) {
	m, wi, sums := c.images(c.rows, c.In, c.Out()), c.work.take(len(d)), c.work.take(c.In.C*16)
	m.both(x, dy, func(w *kernel.Worker) { w.DepthwiseBackWeights(&c.Pool, m.x, m.y, wi, sums) })
	transpose(d, wi, c.KH*c.KW, c.In.C)
}

// transpose writes src, [rows columns], as dst, [columns rows].
func transpose(dst, src []float32, rows, columns int) {
	for r := range rows {
		for c := range columns {
			dst[c*rows+r] = src[r*columns+c]
		}
	}
}
