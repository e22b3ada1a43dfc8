package gorgonia

import (
	"math"

	"gorgonia.org/gorgonia"

	"github.com/disdel/disdel/runtime/engine/native/kernel"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// Norm says how a batch norm works; zero values are PyTorch's 1e-5 and 0.1.
type Norm struct {
	Eps      float64
	Momentum float64 // share of the newest batch in the running statistics
}

// BatchNorm normalises x, [rows channels height width] or [rows units], over its channels (Ioffe 2015): scale
// (x - mean) / sqrt(variance + eps) + bias. scale and bias, [channels] in any shape, may be nil: 1 and 0. mean and
// variance are input nodes of [channels] values with a value of their own. While training the batch's statistics count,
// and each run moves the values of mean and variance towards them, the variance without bias, as PyTorch does;
// otherwise mean and variance are what counts. They have no gradient.
func (o *Ops) BatchNorm(x, scale, bias, mean, variance *gorgonia.Node, n Norm) (*gorgonia.Node, error) {
	const op = "batch norm"
	if err := check(op, x, 2, 4); err != nil {
		return nil, err
	}
	if mean == nil || variance == nil {
		return nil, refuse(op, "it needs nodes for the running mean and variance")
	}
	im := image(x.Shape())
	for _, p := range []*gorgonia.Node{scale, bias, mean, variance} {
		if err := checkLen(op, p, im.C); err != nil {
			return nil, err
		}
	}
	b := newNorm(o, im, x.Shape()[0], n)
	inputs := gorgonia.Nodes{x, mean, variance}
	if b.scale = scale != nil; b.scale {
		inputs = append(inputs, scale)
	}
	if b.bias = bias != nil; b.bias {
		inputs = append(inputs, bias)
	}
	if o.training {
		return o.apply("batchNorm", x.Shape().Clone(), b.forward, b.grads, inputs...)
	}
	return o.apply("batchNorm", x.Shape().Clone(), b.eval, b.evalGrads, inputs...)
}

// norm is a batch norm on arrays of gorgonia.
type norm struct {
	o *Ops
	kernel.Norm
	state       kernel.NormState
	momentum    float64
	batch       [2][]float32 // mean and unbiased variance of the last batch
	scale, bias bool
	turn        int // forward runs
}

func newNorm(o *Ops, im plan.Image, rows int, n Norm) *norm {
	if n.Eps == 0 {
		n.Eps = 1e-5
	}
	if n.Momentum == 0 {
		n.Momentum = 0.1
	}
	v := func(values int) []float32 { return make([]float32, values, values+slack) }
	b := &norm{
		o: o, Norm: kernel.Norm{Image: im, Eps: n.Eps, Momentum: 1, Rows: rows}, momentum: n.Momentum,
		batch: [2][]float32{v(im.C), v(im.C)},
	}
	b.state = kernel.NormState{
		Mean: v(im.C), Var: v(im.C), Shift: v(im.C), Scale: v(im.C), Offset: v(im.C), Third: v(im.C), Sums: v(im.C * 32),
		Mask: v(im.Lanes),
	}
	for i := range rows {
		b.state.Mask[i] = 1
	}
	return b
}

// affine points the kernels to scale and bias among an op's inputs.
func (b *norm) affine(v [][]float32) {
	b.state.Gamma, b.state.Beta = nil, nil
	v = v[3:]
	if b.scale {
		b.state.Gamma, v = v[0], v[1:]
	}
	if b.bias {
		b.state.Beta = v[0]
	}
}

func (b *norm) forward(y []float32, v [][]float32) {
	b.turn++
	b.affine(v)
	clear(b.batch[0])
	clear(b.batch[1])
	b.through(y, v[0], func(w *kernel.Worker, x, out []float32) { w.NormForward(&b.Norm, &b.state, b.batch, x, out) })
	unbias := b.single()
	for c := range b.C {
		v[1][c] += float32(b.momentum * (float64(b.batch[0][c]) - float64(v[1][c])))
		v[2][c] += float32(b.momentum * (float64(b.batch[1][c])*unbias - float64(v[2][c])))
	}
}

// single corrects the variance of a batch of one row that stands twice: n/(n-1) must count its pixels once.
func (b *norm) single() float64 {
	pixels := float64(b.H * b.W)
	if b.o.rows != 1 || pixels == 1 {
		return 1
	}
	twice := pixels * minBatch
	return (twice - 1) / twice * pixels / (pixels - 1)
}

func (b *norm) through(y, x []float32, f func(w *kernel.Worker, x, y []float32)) {
	in, out := b.o.work.take(b.Len()), b.o.work.take(b.Len())
	b.o.run(func(w *kernel.Worker) {
		w.Import(in, b.Image, plan.Border{}, x, b.Rows)
		w.Sync()
		f(w, in, out)
		b.o.export(w, y, out, b.Image, b.Rows)
	})
}

func (b *norm) eval(y []float32, v [][]float32) {
	b.affine(v)
	running := [2][]float32{v[1], v[2]}
	b.through(y, v[0], func(w *kernel.Worker, x, out []float32) { w.NormEval(&b.Norm, &b.state, running, x, out) })
}

// normBack is what one backward pass computes for all inputs at once.
type normBack struct {
	*norm
	turn            int // of the forward run it belongs to
	dx, dScale, dSh []float32
}

// list arranges gradients as the inputs are.
func (b *norm) list(x, scale, bias compute) []compute {
	out := []compute{x, nil, nil}
	if b.scale {
		out = append(out, scale)
	}
	if b.bias {
		out = append(out, bias)
	}
	return out
}

func (b *norm) grads() []compute {
	p := &normBack{norm: b, turn: -1}
	part := func(pick func() []float32) compute {
		return func(d []float32, v [][]float32) {
			p.compute(v)
			copy(d, pick())
		}
	}
	return b.list(part(func() []float32 { return p.dx }), part(func() []float32 { return p.dScale }),
		part(func() []float32 { return p.dSh }))
}

func (p *normBack) compute(v [][]float32) {
	if p.turn == p.norm.turn {
		return
	}
	p.turn = p.norm.turn
	if p.dx == nil {
		p.dx, p.dScale, p.dSh = make([]float32, len(v[0])), make([]float32, p.C), make([]float32, p.C)
	}
	p.affine(v)
	in, out, dy := p.o.work.take(p.Len()), p.o.work.take(p.Len()), p.o.work.take(p.Len())
	p.o.run(func(w *kernel.Worker) {
		w.Import(in, p.Image, plan.Border{}, v[0], p.Rows)
		w.Import(dy, p.Image, plan.Border{}, v[len(v)-1], p.Rows)
		w.Sync()
		w.NormBack(&p.Norm, &p.state, in, out, dy, p.dScale, p.dSh)
		p.o.export(w, p.dx, dy, p.Image, p.Rows)
	})
}

// evalGrads are those of y = scale (x - mean) inv + bias with a fixed mean and inv.
func (b *norm) evalGrads() []compute {
	pixels := b.H * b.W
	inv := func(v [][]float32, c int) float64 { return 1 / math.Sqrt(float64(v[2][c])+b.Eps) }
	sums := func(d []float32, f func(i, c int) float64) {
		total := make([]float64, b.C)
		for i := range b.Rows * b.C * pixels {
			c := i / pixels % b.C
			total[c] += f(i, c)
		}
		for c := range d {
			d[c] = float32(total[c])
		}
	}
	return b.list(
		func(d []float32, v [][]float32) {
			b.affine(v)
			for i, g := range v[len(v)-1] {
				c := i / pixels % b.C
				scale := 1.0
				if b.scale {
					scale = float64(b.state.Gamma[c])
				}
				d[i] = float32(float64(g) * scale * inv(v, c))
			}
		},
		func(d []float32, v [][]float32) {
			sums(d, func(i, c int) float64 {
				return float64(v[len(v)-1][i]) * (float64(v[0][i]) - float64(v[1][c])) * inv(v, c)
			})
		},
		func(d []float32, v [][]float32) {
			sums(d, func(i, _ int) float64 { return float64(v[len(v)-1][i]) })
		})
}
