package gorgonia

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
)

// formula makes an operation on input nodes.
type formula func(o *Ops, in []*node) (*node, error)

// bench runs a formula with the sum of its output times fixed numbers as a loss.
type bench struct {
	shapes   []tensor.Shape
	f        formula
	training bool
	still    map[int]bool // inputs without a gradient
	lisp     bool
}

func values(shape tensor.Shape, seed int) []float32 {
	rng := rand.New(rand.NewPCG(uint64(seed), 9))
	v := make([]float32, shape.TotalSize())
	for i := range v {
		v[i] = float32(rng.NormFloat64()) + 0.2
	}
	return v
}

func (b bench) run(t *testing.T, in [][]float32) (loss float64, out []float32, grads [][]float32) {
	t.Helper()
	g := gorgonia.NewGraph()
	o, err := NewOps(OpsConfig{Rows: b.shapes[0][0], Training: b.training, Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	var nodes, wrt gorgonia.Nodes
	for i, s := range b.shapes {
		v := tensor.New(tensor.WithShape(s.Clone()...), tensor.WithBacking(append([]float32(nil), in[i]...)))
		nodes = append(nodes, gorgonia.NewTensor(g, tensor.Float32, s.Dims(), gorgonia.WithName(fmt.Sprint("in", i)),
			gorgonia.WithShape(s.Clone()...), gorgonia.WithValue(v)))
		if !b.still[i] {
			wrt = append(wrt, nodes[i])
		}
	}
	y, err := b.f(o, nodes)
	if err != nil {
		t.Fatal(err)
	}
	shape := y.Shape().Clone()
	weights := gorgonia.NewTensor(g, tensor.Float32, shape.Dims(), gorgonia.WithName("weights"),
		gorgonia.WithShape(shape...),
		gorgonia.WithValue(tensor.New(tensor.WithShape(shape.Clone()...), tensor.WithBacking(values(shape, 77)))))
	sum := gorgonia.Must(gorgonia.Sum(gorgonia.Must(gorgonia.HadamardProd(y, weights))))
	var read gorgonia.Value
	gorgonia.Read(y, &read)
	var m gorgonia.VM
	if b.lisp {
		m = gorgonia.NewLispMachine(g)
	} else {
		if _, err := gorgonia.Grad(sum, wrt...); err != nil {
			t.Fatal(err)
		}
		m = gorgonia.NewTapeMachine(g, gorgonia.BindDualValues(wrt...))
	}
	defer m.Close()
	if err := m.RunAll(); err != nil {
		t.Fatal(err)
	}
	total := 0.0
	out = append(out, read.Data().([]float32)...)
	for i, w := range values(shape, 77) {
		total += float64(w) * float64(out[i])
	}
	for _, n := range wrt {
		d, err := n.Grad()
		if err != nil {
			t.Fatal(err)
		}
		grads = append(grads, append([]float32(nil), d.Data().([]float32)...))
	}
	return total, out, grads
}

func (b bench) inputs() [][]float32 {
	var in [][]float32
	for i, s := range b.shapes {
		in = append(in, values(s, i))
	}
	return in
}

func (b bench) checkGradients(t *testing.T) {
	t.Helper()
	in := b.inputs()
	_, _, grads := b.run(t, in)
	const h = 4e-3
	k := 0
	for i := range b.shapes {
		if b.still[i] {
			continue
		}
		for j := 0; j < len(in[i]); j += max(1, len(in[i])/6) {
			old := in[i][j]
			in[i][j] = old + h
			up, _, _ := b.run(t, in)
			in[i][j] = old - h
			down, _, _ := b.run(t, in)
			in[i][j] = old
			want, got := (up-down)/(2*h), float64(grads[k][j])
			if !(math.Abs(want-got) <= 5e-3+0.02*math.Abs(want)) {
				t.Errorf("gradient %d of input %d is %.5f, difference quotient %.5f", j, i, got, want)
			}
		}
		k++
	}
}

var own = map[string]bench{
	"conv": {shapes: []tensor.Shape{{3, 4, 5, 7}, {6, 2, 3, 2}, {6}}, f: func(o *Ops, in []*node) (*node, error) {
		w := model.Window{
			Stride: model.Sides{H: 2, W: 1}, Dilation: model.Sides{H: 1, W: 2},
			Pad: model.Padding{Top: 2, Right: 1},
		}
		return o.Conv2d(in[0], in[1], in[2], w, 2)
	}},
	"depthwise": {shapes: []tensor.Shape{{17, 5, 5, 3}, {5, 1, 2, 3}, {1, 5}}, f: func(o *Ops, in []*node) (*node, error) {
		return o.DepthwiseConv2d(in[0], in[1], in[2], model.Window{Pad: model.Padding{Top: 1, Left: 1}})
	}},
	"dense": {shapes: []tensor.Shape{{3, 7}, {5, 7}, {5}}, f: func(o *Ops, in []*node) (*node, error) {
		return o.Dense(in[0], in[1], in[2])
	}},
	"dense without bias": {shapes: []tensor.Shape{{18, 3}, {2, 3}}, f: func(o *Ops, in []*node) (*node, error) {
		return o.Dense(in[0], in[1], nil)
	}},
	"average pool": {shapes: []tensor.Shape{{3, 2, 5, 4}}, f: func(o *Ops, in []*node) (*node, error) {
		return o.AvgPool2d(in[0], model.Square(3, 2, 1))
	}},
	"adaptive pool": {shapes: []tensor.Shape{{3, 2, 5, 7}}, f: func(o *Ops, in []*node) (*node, error) {
		return o.AdaptiveAvgPool2d(in[0], 3, 4)
	}},
	"batch norm": {
		training: true, shapes: []tensor.Shape{{3, 2, 3, 4}, {2}, {2}, {2}, {2}},
		still: map[int]bool{3: true, 4: true}, f: func(o *Ops, in []*node) (*node, error) {
			return o.BatchNorm(in[0], in[1], in[2], in[3], in[4], Norm{})
		},
	},
	"batch norm of vectors": {
		training: true, shapes: []tensor.Shape{{7, 5}, {5}, {5}, {5}},
		still: map[int]bool{2: true, 3: true}, f: func(o *Ops, in []*node) (*node, error) {
			return o.BatchNorm(in[0], in[1], nil, in[2], in[3], Norm{Eps: 1e-3})
		},
	},
	"batch norm in use": {
		shapes: []tensor.Shape{{3, 2, 3, 4}, {2}, {2}, {2}, {2}}, still: map[int]bool{3: true, 4: true},
		f: func(o *Ops, in []*node) (*node, error) {
			return o.BatchNorm(in[0], in[1], in[2], in[3], in[4], Norm{Eps: 2})
		},
	},
	"relu6": {shapes: []tensor.Shape{{3, 5}}, f: func(o *Ops, in []*node) (*node, error) { return o.ReLU6(in[0]) }},
	"relu":  {shapes: []tensor.Shape{{3, 5}}, f: func(o *Ops, in []*node) (*node, error) { return o.ReLU(in[0]) }},
	"downsample": {
		shapes: []tensor.Shape{{2, 3, 5, 4}},
		f:      func(o *Ops, in []*node) (*node, error) { return o.Downsample(in[0], 6, 2) },
	},
	"logistic loss": {
		shapes: []tensor.Shape{{3, 5}, {3, 5}}, still: map[int]bool{1: true},
		f: func(o *Ops, in []*node) (*node, error) {
			return o.LogisticLoss(in[0], in[1])
		},
	},
	"max pool": {shapes: []tensor.Shape{{2, 2, 5, 4}}, f: func(o *Ops, in []*node) (*node, error) {
		return o.MaxPool2d(in[0], model.Window{Kernel: model.Sides{H: 2, W: 2}, Pad: model.Padding{Left: 1}})
	}},
}

func TestOperationsHaveTheGradientsOfDifferenceQuotients(t *testing.T) {
	for name, b := range own {
		t.Run(name, func(t *testing.T) { b.checkGradients(t) })
	}
}

// Both ways of gorgonia to differentiate give the same.
func TestSymbolicAndAutomaticDifferentiationAgree(t *testing.T) {
	for name, b := range own {
		if len(b.still) > 0 {
			continue // a LispMachine differentiates by every input
		}
		t.Run(name, func(t *testing.T) {
			_, out, grads := b.run(t, b.inputs())
			b.lisp = true
			_, out2, grads2 := b.run(t, b.inputs())
			closeTo(t, "output", out2, out, 0)
			for i := range grads {
				closeTo(t, fmt.Sprint("gradient ", i), grads2[i], grads[i], 0)
			}
		})
	}
}

func closeTo(t *testing.T, what string, got, want []float32, bound float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i, w := range want {
		if d := math.Abs(float64(got[i] - w)); !(d <= bound*(1+math.Abs(float64(w)))) {
			t.Errorf("%s: value %d is %v, want %v", what, i, got[i], w)
			return
		}
	}
}

// Where gorgonia's operation is right, ours is the same.
func TestOperationsAgreeWithGorgoniasOwn(t *testing.T) {
	square := func(v, n int) []int { return []int{v, n} }
	for name, c := range map[string]struct {
		b     bench
		stock formula
	}{
		"conv": {bench{shapes: []tensor.Shape{{3, 3, 9, 7}, {5, 3, 3, 2}}, f: func(o *Ops, in []*node) (*node, error) {
			w := model.Square(3, 2, 1)
			w.Dilation = model.Sides{H: 2, W: 1}
			return o.Conv2d(in[0], in[1], nil, w, 1)
		}}, func(_ *Ops, in []*node) (*node, error) {
			return gorgonia.Conv2d(in[0], in[1], tensor.Shape{3, 2}, square(1, 1), square(2, 2), square(2, 1))
		}},
		"max pool": {bench{shapes: []tensor.Shape{{3, 3, 9, 7}}, f: func(o *Ops, in []*node) (*node, error) {
			return o.MaxPool2d(in[0], model.Square(3, 2, 1))
		}}, func(_ *Ops, in []*node) (*node, error) {
			return gorgonia.MaxPool2D(in[0], tensor.Shape{3, 3}, square(1, 1), square(2, 2))
		}},
		"relu": {bench{shapes: []tensor.Shape{{3, 9}}, f: func(o *Ops, in []*node) (*node, error) {
			return o.ReLU(in[0])
		}}, func(_ *Ops, in []*node) (*node, error) { return gorgonia.Rectify(in[0]) }},
		"dense": {bench{shapes: []tensor.Shape{{3, 9}, {4, 9}}, f: func(o *Ops, in []*node) (*node, error) {
			return o.Dense(in[0], in[1], nil)
		}}, func(_ *Ops, in []*node) (*node, error) {
			return gorgonia.Mul(in[0], gorgonia.Must(gorgonia.Transpose(in[1])))
		}},
		"batch norm": {bench{
			training: true, shapes: []tensor.Shape{{3, 2, 3, 5}, {1, 2, 1, 1}, {1, 2, 1, 1}},
			f: func(o *Ops, in []*node) (*node, error) {
				g := in[0].Graph()
				running := func(name string) *node {
					return gorgonia.NewVector(g, tensor.Float32, gorgonia.WithShape(2), gorgonia.WithName(name),
						gorgonia.WithInit(gorgonia.Ones()))
				}
				return o.BatchNorm(in[0], in[1], in[2], running("mean"), running("variance"), Norm{})
			},
		}, func(_ *Ops, in []*node) (*node, error) {
			y, _, _, _, err := gorgonia.BatchNorm(in[0], in[1], in[2], 0.1, 1e-5)
			return y, err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			_, out, grads := c.b.run(t, c.b.inputs())
			c.b.f = c.stock
			_, out2, grads2 := c.b.run(t, c.b.inputs())
			closeTo(t, "output", out, out2, 1e-5)
			for i := range grads {
				closeTo(t, fmt.Sprint("gradient ", i), grads[i], grads2[i], 2e-5)
			}
		})
	}
}

// Dropout drops its share, keeps the mean, draws anew at every run, and its gradient has the mask of the forward run.
func TestDropoutKeepsTheMeanAndItsMask(t *testing.T) {
	b := bench{
		training: true, shapes: []tensor.Shape{{50, 40}},
		f: func(o *Ops, in []*node) (*node, error) { return o.Dropout(in[0], 0.4) },
	}
	in := b.inputs()
	_, out, grads := b.run(t, in)
	weights := values(tensor.Shape{50, 40}, 77)
	dropped := 0
	for i, x := range in[0] {
		scale := out[i] / x
		if scale == 0 {
			dropped++
		} else if math.Abs(float64(scale)-1/0.6) > 1e-5 {
			t.Fatalf("a kept value is multiplied by %v", scale)
		}
		if math.Abs(float64(grads[0][i]-scale*weights[i])) > 1e-5 {
			t.Fatalf("gradient %d is %v, and the mask %v times %v", i, grads[0][i], scale, weights[i])
		}
	}
	if dropped < 700 || dropped > 900 {
		t.Errorf("%d of 2000 values dropped at a rate of 0.4", dropped)
	}
}

func TestOperationsRefuseWhatDoesNotFit(t *testing.T) {
	g := gorgonia.NewGraph()
	in := func(name string, shape ...int) *node {
		return gorgonia.NewTensor(g, tensor.Float32, len(shape), gorgonia.WithName(name), gorgonia.WithShape(shape...))
	}
	double := gorgonia.NewTensor(g, tensor.Float64, 4, gorgonia.WithName("double"), gorgonia.WithShape(2, 3, 5, 5))
	o, err := NewOps(OpsConfig{Rows: 2})
	if err != nil {
		t.Fatal(err)
	}
	x, v := in("x", 2, 3, 5, 5), in("v", 2, 3)
	second := func(_ *node, err error) error { return err }
	for name, err := range map[string]error{
		"double":           second(o.GlobalAvgPool2d(double)),
		"rank":             second(o.GlobalAvgPool2d(v)),
		"channels":         second(o.Conv2d(x, in("w1", 2, 4, 1, 1), nil, model.Window{}, 1)),
		"groups":           second(o.Conv2d(x, in("w2", 4, 1, 1, 1), nil, model.Window{}, 3)),
		"bias":             second(o.Conv2d(x, in("w3", 2, 3, 1, 1), in("b", 3), model.Window{}, 1)),
		"large kernel":     second(o.Conv2d(x, in("w4", 2, 3, 7, 7), nil, model.Window{}, 1)),
		"padding alone":    second(o.MaxPool2d(x, model.Square(2, 2, 2))),
		"dense":            second(o.Dense(v, in("w5", 2, 4), nil)),
		"rate":             second(o.Dropout(v, 1)),
		"no statistics":    second(o.BatchNorm(x, nil, nil, nil, nil, Norm{})),
		"short statistics": second(o.BatchNorm(x, nil, nil, in("m", 2), in("s", 3), Norm{})),
		"fewer channels":   second(o.Downsample(x, 2, 1)),
		"targets":          second(o.LogisticLoss(v, in("t", 2, 4))),
	} {
		if !errors.Is(err, disdel.Invalid) {
			t.Errorf("%s: got %v, want Invalid", name, err)
		}
	}
}
