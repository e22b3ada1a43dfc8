package gorgonia

import (
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/disdel/disdel/runtime/engine/native/kernel"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

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
