package gorgonia

import (
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

func pool(in plan.Image, w model.Window, oh, ow int) plan.Pool {
	return plan.Pool{
		In: in, KH: w.Kernel.H, KW: w.Kernel.W, SH: w.Stride.H, SW: w.Stride.W, DH: w.Dilation.H, DW: w.Dilation.W,
		Top: w.Pad.Top, Left: w.Pad.Left, OH: oh, OW: ow, CountPad: w.CountPad,
	}
}

// MaxPool2d takes the largest value of each window of x [rows channels height width]; padding never is it, and of equal
// values the first gets the gradient. A zero stride is the kernel.
func (o *Ops) MaxPool2d(x *gorgonia.Node, win model.Window) (*gorgonia.Node, error) {
	p, err := o.pooling("max pool", x, win)
	if err != nil {
		return nil, err
	}
	return p.apply("maxPool", p.shape(), p.forward((*kernel.Worker).MaxPool), func() []compute {
		return []compute{func(d []float32, v [][]float32) { p.maxBack(d, v[0], v[1], v[2]) }}
	}, x)
}

// AvgPool2d takes the mean of each window of x [rows channels height width], over the pixels that the window meets, or
// over all of it where CountPad is set. A zero stride is the kernel.
func (o *Ops) AvgPool2d(x *gorgonia.Node, win model.Window) (*gorgonia.Node, error) {
	p, err := o.pooling("average pool", x, win)
	if err != nil {
		return nil, err
	}
	back := func(w *kernel.Worker, dy, dx []float32) { w.AvgPoolBack(&p.Pool, dy, dx) }
	return p.apply("avgPool", p.shape(), p.forward((*kernel.Worker).AvgPool), p.averageBack(back), x)
}

// AdaptiveAvgPool2d averages x [rows channels height width] to height x width pixels, by PyTorch's rule of the bins.
func (o *Ops) AdaptiveAvgPool2d(x *gorgonia.Node, height, width int) (*gorgonia.Node, error) {
	const op = "adaptive pool"
	if err := check(op, x, 4); err != nil {
		return nil, err
	}
	if height < 1 || width < 1 {
		return nil, refuse(op, "%dx%d pixels", height, width)
	}
	p := &pooling{o, plan.Pool{In: image(x.Shape()), OH: height, OW: width}, x.Shape()[0]}
	o.window(p.In.H * p.In.W)
	forward := func(w *kernel.Worker, g *plan.Pool, x, y []float32) { w.AdaptivePool(g.In, g.OH, g.OW, x, y) }
	back := func(w *kernel.Worker, dy, dx []float32) { w.AdaptivePoolBack(p.In, height, width, dy, dx) }
	return p.apply("adaptivePool", p.shape(), p.forward(forward), p.averageBack(back), x)
}

// GlobalAvgPool2d averages every channel of x [rows channels height width] to [rows channels 1 1].
func (o *Ops) GlobalAvgPool2d(x *gorgonia.Node) (*gorgonia.Node, error) {
	return o.AdaptiveAvgPool2d(x, 1, 1)
}

// pooling is a pool on arrays of gorgonia.
type pooling struct {
	*Ops
	plan.Pool
	rows int
}

func (o *Ops) pooling(op string, x *gorgonia.Node, win model.Window) (*pooling, error) {
	if err := check(op, x, 4); err != nil {
		return nil, err
	}
	if win.Stride == (model.Sides{}) {
		win.Stride = win.Kernel
	}
	in := image(x.Shape())
	oh, ow, err := slide(op, &win, in.H, in.W)
	if err != nil {
		return nil, err
	}
	p := win.Pad
	if !win.CountPad && (max(p.Top, p.Bottom) >= win.Kernel.H || max(p.Left, p.Right) >= win.Kernel.W) {
		return nil, refuse(op, "padding %v of a window of %dx%d: some windows would see padding alone", p, win.Kernel.H,
			win.Kernel.W)
	}
	o.window(win.Kernel.H * win.Kernel.W)
	return &pooling{o, pool(in, win, oh, ow), x.Shape()[0]}, nil
}

func (p *pooling) shape() tensor.Shape { return tensor.Shape{p.rows, p.In.C, p.OH, p.OW} }

func (p *pooling) forward(f func(w *kernel.Worker, g *plan.Pool, x, y []float32)) compute {
	return func(y []float32, v [][]float32) {
		m := p.images(p.rows, p.In, p.Out())
		m.forward(v[0], y, func(w *kernel.Worker) { f(w, &p.Pool, m.x, m.y) })
	}
}

func (p *pooling) maxBack(d, x, y, dy []float32) {
	in, out, dOut := p.work.take(p.In.Len()), p.work.take(p.Out().Len()), p.work.take(p.Out().Len())
	dIn := p.work.takeZero(p.In.Len())
	p.run(func(w *kernel.Worker) {
		w.Import(in, p.In, plan.Border{}, x, p.rows)
		w.Import(out, p.Out(), plan.Border{}, y, p.rows)
		w.Import(dOut, p.Out(), plan.Border{}, dy, p.rows)
		w.Sync()
		w.MaxPoolBack(&p.Pool, in, out, dOut, dIn)
		p.export(w, d, dIn, p.In, p.rows)
	})
}

func (p *pooling) averageBack(f func(w *kernel.Worker, dy, dx []float32)) func() []compute {
	return func() []compute {
		return []compute{func(d []float32, v [][]float32) {
			dOut, dIn := p.work.take(p.Out().Len()), p.work.takeZero(p.In.Len())
			p.run(func(w *kernel.Worker) {
				w.Import(dOut, p.Out(), plan.Border{}, v[2], p.rows)
				w.Sync()
				f(w, dOut, dIn)
				p.export(w, d, dIn, p.In, p.rows)
			})
		}}
	}
}

// weighted is a layer with weights, on arrays of gorgonia. The inputs v of its operation are x, the weights and, where
// it has one, the bias.
type weighted interface {
	forward(y []float32, v [][]float32)
	dataGradient(d, weights, dy []float32)
	weightGradient(d, x, dy []float32)
}

// layer makes the operation of a layer with weights, whose output has a shape of [rows channels ...]; bias may be nil.
func (o *Ops) layer(name string, out tensor.Shape, l weighted, x, w, bias *gorgonia.Node) (*gorgonia.Node, error) {
	inputs := gorgonia.Nodes{x, w}
	grads := []compute{
		func(d []float32, v [][]float32) { l.dataGradient(d, v[1], v[len(v)-1]) },
		func(d []float32, v [][]float32) { l.weightGradient(d, v[0], v[len(v)-1]) },
	}
	if bias != nil {
		inputs = append(inputs, bias)
		pixels := out.TotalSize() / (out[0] * out[1])
		grads = append(grads, func(d []float32, v [][]float32) { channelSums(d, v[len(v)-1], pixels) })
	}
	return o.apply(name, out, l.forward, func() []compute { return grads }, inputs...)
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

// images are what a layer reads and what it writes, or the gradients of these, as the kernels hold them. They are the
// first two buffers of every operation, so that all operations share them.
type images struct {
	*Ops
	rows    int
	in, out plan.Image
	x, y    []float32
}

func (o *Ops) images(rows int, in, out plan.Image) images {
	return images{o, rows, in, out, o.work.take(in.Len()), o.work.take(out.Len())}
}

// forward brings src in as x, has every worker do f, and brings y out as dst.
func (m *images) forward(src, dst []float32, f func(w *kernel.Worker)) {
	m.run(func(w *kernel.Worker) {
		w.Import(m.x, m.in, plan.Border{}, src, m.rows)
		w.Sync()
		f(w)
		m.export(w, dst, m.y, m.out, m.rows)
	})
}

// back brings dy in as y, has every worker do f, and brings x out as dx.
func (m *images) back(dy, dx []float32, f func(w *kernel.Worker)) {
	m.run(func(w *kernel.Worker) {
		w.Import(m.y, m.out, plan.Border{}, dy, m.rows)
		w.Sync()
		f(w)
		m.export(w, dx, m.x, m.in, m.rows)
	})
}

// both brings src in as x and dy as y, and has every worker do f.
func (m *images) both(src, dy []float32, f func(w *kernel.Worker)) {
	m.run(func(w *kernel.Worker) {
		w.Import(m.x, m.in, plan.Border{}, src, m.rows)
		w.Import(m.y, m.out, plan.Border{}, dy, m.rows)
		w.Sync()
		f(w)
	})
}

// export has one worker write a result; the others have done their share.
func (o *Ops) export(w *kernel.Worker, dst, src []float32, im plan.Image, rows int) {
	if w.ID == 0 {
		w.Export(dst, src, im, rows)
	}
}
