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
	inputs := gorgonia.Nodes{x, w}
	grads := []compute{
		func(d []float32, v [][]float32) { c.dataGradient(d, v[1], v[len(v)-1]) },
		func(d []float32, v [][]float32) { c.weightGradient(d, v[0], v[len(v)-1]) },
	}
	if bias != nil {
		inputs = append(inputs, bias)
		grads = append(grads, func(d []float32, v [][]float32) { channelSums(d, v[len(v)-1], g.OH*g.OW) })
	}
	out := tensor.Shape{c.rows, g.In.C, g.OH, g.OW}
	return o.apply("depthwise", out, c.forward, func() []compute { return grads }, inputs...)
}

// tapsFirst writes weights [channels taps] as [taps channels], the kernels' layout; transpose goes back.
func (c *channelwise) tapsFirst(src []float32) []float32 {
	dst := c.work.take(len(src))
	transpose(dst, src, c.In.C, c.KH*c.KW)
	return dst
}

func (c *channelwise) forward(y []float32, v [][]float32) {
	x, out, weights := c.work.take(c.In.Len()), c.work.take(c.Out().Len()), c.tapsFirst(v[1])
	c.run(func(w *kernel.Worker) {
		w.Import(x, c.In, plan.Border{}, v[0], c.rows)
		w.Sync()
		w.DepthwiseForward(&c.Pool, x, weights, out)
		c.export(w, y, out, c.Out(), c.rows)
	})
	if len(v) < 3 {
		return
	}
	pixels := c.OH * c.OW
	for i := range y {
		y[i] += v[2][i/pixels%c.In.C]
	}
}

func (c *channelwise) dataGradient(d, weights, dy []float32) {
	in, out, wi := c.work.take(c.In.Len()), c.work.take(c.Out().Len()), c.tapsFirst(weights)
	c.run(func(w *kernel.Worker) {
		w.Import(out, c.Out(), plan.Border{}, dy, c.rows)
		w.Sync()
		w.DepthwiseBackData(&c.Pool, out, wi, in, false)
		c.export(w, d, in, c.In, c.rows)
	})
}

func (c *channelwise) weightGradient(d, x, dy []float32) {
	in, out, wi := c.work.take(c.In.Len()), c.work.take(c.Out().Len()), c.work.take(len(d))
	sums := c.work.take(c.In.C * 16)
	c.run(func(w *kernel.Worker) {
		w.Import(in, c.In, plan.Border{}, x, c.rows)
		w.Import(out, c.Out(), plan.Border{}, dy, c.rows)
		w.Sync()
		w.DepthwiseBackWeights(&c.Pool, in, out, wi, sums)
	})
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
