package gorgonia

import (
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// Conv2d is a convolution: x [rows channels height width], w [filters channels/groups kernel kernel], bias [filters] in
// any shape, or nil. Stride, padding (each side its own) and dilation are the window's; its kernel is w's. Zero
// strides, dilations and groups are 1.
func (o *Ops) Conv2d(x, w, bias *gorgonia.Node, win model.Window, groups int) (*gorgonia.Node, error) {
	const op = "conv2d"
	if err := check(op, x, 4); err != nil {
		return nil, err
	}
	if err := check(op, w, 4); err != nil {
		return nil, err
	}
	if err := checkLen(op, bias, w.Shape()[0]); err != nil {
		return nil, err
	}
	groups = max(groups, 1)
	in, ws := image(x.Shape()), w.Shape()
	if in.C%groups != 0 || ws[0]%groups != 0 || ws[1] != in.C/groups {
		return nil, refuse(op, "weights %v do not go with %d channels in %d groups", ws, in.C, groups)
	}
	win.Kernel = model.Sides{H: ws[2], W: ws[3]}
	oh, ow, err := slide(op, &win, in.H, in.W)
	if err != nil {
		return nil, err
	}
	if groups == in.C && ws[0] == in.C && groups > 1 {
		return o.depthwise(x, w, bias, pool(in, win, oh, ow))
	}
	return o.conv(x, w, bias, tensor.Shape{x.Shape()[0], ws[0], oh, ow}, plan.Conv{
		In: in, Filters: ws[0], KH: ws[2], KW: ws[3], SH: win.Stride.H, SW: win.Stride.W, DH: win.Dilation.H,
		DW:  win.Dilation.W,
		Top: win.Pad.Top, Left: win.Pad.Left, OH: oh, OW: ow, Groups: groups,
	})
}

// DepthwiseConv2d is a convolution of every channel with a kernel of its own: w is [channels 1 kernel kernel].
func (o *Ops) DepthwiseConv2d(x, w, bias *gorgonia.Node, win model.Window) (*gorgonia.Node, error) {
	if err := check("depthwise", x, 4); err != nil {
		return nil, err
	}
	return o.Conv2d(x, w, bias, win, x.Shape()[1])
}

// Dense is y = x w^T + bias: x [rows in], w [out in] as PyTorch has it, bias [out] in any shape, or nil.
func (o *Ops) Dense(x, w, bias *gorgonia.Node) (*gorgonia.Node, error) {
	const op = "dense"
	if err := check(op, x, 2); err != nil {
		return nil, err
	}
	if err := check(op, w, 2); err != nil {
		return nil, err
	}
	rows, in, out := x.Shape()[0], x.Shape()[1], w.Shape()[0]
	if w.Shape()[1] != in {
		return nil, refuse(op, "weights %v do not go with %d inputs", w.Shape(), in)
	}
	if err := checkLen(op, bias, out); err != nil {
		return nil, err
	}
	return o.conv(x, w, bias, tensor.Shape{rows, out}, plan.Dense(in, out, plan.Padded(rows)))
}

// slide fills in a window's defaults and returns the size of its output.
func slide(op string, w *model.Window, height, width int) (oh, ow int, err error) {
	if w.Stride == (model.Sides{}) {
		w.Stride = model.Sides{H: 1, W: 1}
	}
	if w.Dilation == (model.Sides{}) {
		w.Dilation = model.Sides{H: 1, W: 1}
	}
	side := func(size, before, after, kernel, stride, dilation int) int {
		reach := dilation*(kernel-1) + 1
		if kernel < 1 || stride < 1 || dilation < 1 || before < 0 || after < 0 || size+before+after < reach {
			err = refuse(op, "a window of %d (stride %d, dilation %d) does not fit %d pixels with padding %d and %d", kernel,
				stride, dilation, size, before, after)
			return 0
		}
		return (size+before+after-reach)/stride + 1
	}
	oh = side(height, w.Pad.Top, w.Pad.Bottom, w.Kernel.H, w.Stride.H, w.Dilation.H)
	ow = side(width, w.Pad.Left, w.Pad.Right, w.Kernel.W, w.Stride.W, w.Dilation.W)
	return oh, ow, err
}

// convolution computes one layer on arrays of gorgonia.
type convolution struct {
	*Ops
	plan.Conv
	rows int
}

func (o *Ops) conv(x, w, bias *gorgonia.Node, out tensor.Shape, k plan.Conv) (*gorgonia.Node, error) {
	return o.layer("conv", out, &convolution{o, k, out[0]}, x, w, bias)
}

// importWeights converts from PyTorch's layout; filters that pad a block are zero.
func (c *convolution) importWeights(dst, src []float32) {
	clear(dst)
	c.Each(func(there, here int) { dst[here] = src[there] })
}

func (c *convolution) forward(y []float32, v [][]float32) {
	m, weights := c.images(c.rows, c.In, c.Out()), c.work.take(c.WeightLen())
	c.importWeights(weights, v[1])
	var bias []float32
	if len(v) > 2 {
		bias = c.work.takeZero(c.BiasLen())
		for k, b := range v[2] {
			bias[c.BiasAt(k)] = b
		}
	}
	m.forward(v[0], y, func(w *kernel.Worker) { w.Forward(&c.Conv, m.x, weights, bias, m.y) })
}

func (c *convolution) dataGradient(d, weights, dy []float32) {
	m, wi := c.images(c.rows, c.In, c.Out()), c.work.take(c.WeightLen())
	c.importWeights(wi, weights)
	m.back(dy, d, func(w *kernel.Worker) {
		w.BackData(&c.Conv, m.y, wi, m.x, false)
		w.Sync()
	})
}

func (c *convolution) weightGradient(d, x, dy []float32) {
	m, wi, scratch := c.images(c.rows, c.In, c.Out()), c.work.take(c.WeightLen()), c.work.take(c.ScratchLen())
	m.both(x, dy, func(w *kernel.Worker) { w.BackWeights(&c.Conv, m.x, m.y, wi, scratch) })
	c.Each(func(there, here int) { d[there] = wi[here] })
}

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
