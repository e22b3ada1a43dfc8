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
	c := &convolution{o, k, out[0]}
	inputs := gorgonia.Nodes{x, w}
	grads := []compute{
		func(d []float32, v [][]float32) { c.dataGradient(d, v[1], v[len(v)-1]) },
		func(d []float32, v [][]float32) { c.weightGradient(d, v[0], v[len(v)-1]) },
	}
	if bias != nil {
		inputs = append(inputs, bias)
		grads = append(grads, func(d []float32, v [][]float32) { channelSums(d, v[len(v)-1], k.OH*k.OW) })
	}
	return o.apply("conv", out, c.forward, func() []compute { return grads }, inputs...)
}

// channelSums adds up dy, [rows channels pixels], over rows and pixels, in float64.
func channelSums(d, dy []float32, pixels int) {
	sums := make([]float64, len(d))
	for i := 0; i < len(dy); i += pixels {
		for _, v := range dy[i : i+pixels] {
			sums[i/pixels%len(d)] += float64(v)
		}
	}
	for i, s := range sums {
		d[i] = float32(s)
	}
}

// importWeights converts from PyTorch's layout; filters that pad a block are zero.
func (c *convolution) importWeights(dst, src []float32) {
	clear(dst)
	c.Each(func(there, here int) { dst[here] = src[there] })
}

func (c *convolution) forward(y []float32, v [][]float32) {
	x, out, weights := c.work.take(c.In.Len()), c.work.take(c.Out().Len()), c.work.take(c.WeightLen())
	c.importWeights(weights, v[1])
	var bias []float32
	if len(v) > 2 {
		bias = c.work.takeZero(c.BiasLen())
		for k, b := range v[2] {
			bias[c.BiasAt(k)] = b
		}
	}
	c.run(func(w *kernel.Worker) {
		w.Import(x, c.In, plan.Border{}, v[0], c.rows)
		w.Sync()
		w.Forward(&c.Conv, x, weights, bias, out)
		c.export(w, y, out, c.Out(), c.rows)
	})
}

// export has one worker write a result; the others have done their share.
func (o *Ops) export(w *kernel.Worker, dst, src []float32, im plan.Image, rows int) {
	if w.ID == 0 {
		w.Export(dst, src, im, rows)
	}
}

func (c *convolution) dataGradient(d, weights, dy []float32) {
	in, out, wi := c.work.take(c.In.Len()), c.work.take(c.Out().Len()), c.work.take(c.WeightLen())
	c.importWeights(wi, weights)
	c.run(func(w *kernel.Worker) {
		w.Import(out, c.Out(), plan.Border{}, dy, c.rows)
		w.Sync()
		w.BackData(&c.Conv, out, wi, in, false)
		c.export(w, d, in, c.In, c.rows)
	})
}

func (c *convolution) weightGradient(d, x, dy []float32) {
	in, out, wi := c.work.take(c.In.Len()), c.work.take(c.Out().Len()), c.work.take(c.WeightLen())
	scratch := c.work.take(c.ScratchLen())
	c.run(func(w *kernel.Worker) {
		w.Import(in, c.In, plan.Border{}, x, c.rows)
		w.Import(out, c.Out(), plan.Border{}, dy, c.rows)
		w.Sync()
		w.BackWeights(&c.Conv, in, out, wi, scratch)
	})
	c.Each(func(there, here int) { d[there] = wi[here] })
}
