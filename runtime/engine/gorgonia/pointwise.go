package gorgonia

import (
	"math"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/disdel/disdel/runtime/engine/native/kernel"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// ReLU is max(x, 0), with a gradient of 0 at 0: gorgonia's Rectify has 1 there, PyTorch 0.
func (o *Ops) ReLU(x *gorgonia.Node) (*gorgonia.Node, error) {
	return o.pointwise("relu", x, (*kernel.Worker).ReLU, (*kernel.Worker).ReLUBack)
}

// ReLU6 is min(max(x, 0), 6), with a gradient of 0 at both ends.
func (o *Ops) ReLU6(x *gorgonia.Node) (*gorgonia.Node, error) {
	const top = 6
	return o.pointwise("relu6", x,
		func(w *kernel.Worker, y, x []float32) { w.Clamp(y, x, top) },
		func(w *kernel.Worker, dx, dy, y []float32) { w.ClampBack(dx, dy, y, top) })
}

// pointwise makes an operation on values one by one, whose gradient goes by its output.
func (o *Ops) pointwise(name string, x *gorgonia.Node, f func(w *kernel.Worker, y, x []float32),
	back func(w *kernel.Worker, dx, dy, y []float32),
) (*gorgonia.Node, error) {
	if err := check(name, x, 1, 2, 3, 4); err != nil {
		return nil, err
	}
	padded := func(v []float32) []float32 {
		p := o.work.takeZero(plan.Padded(len(v)))
		copy(p, v)
		return p
	}
	return o.apply(name, x.Shape().Clone(),
		func(y []float32, v [][]float32) {
			in, out := padded(v[0]), padded(y)
			o.run(func(w *kernel.Worker) { f(w, out, in) })
			copy(y, out)
		},
		func() []compute {
			return []compute{func(d []float32, v [][]float32) {
				y, dy, out := padded(v[1]), padded(v[2]), padded(d)
				o.run(func(w *kernel.Worker) { back(w, out, dy, y) })
				copy(d, out)
			}}
		}, x)
}

// Dropout zeroes a share of the values of x and multiplies the others by 1/(1-rate), so that the mean stays (Srivastava
// 2014, inverted); every run draws anew. It is x itself where the graph is not for training.
func (o *Ops) Dropout(x *gorgonia.Node, rate float64) (*gorgonia.Node, error) {
	const op = "dropout"
	if err := check(op, x, 1, 2, 3, 4); err != nil {
		return nil, err
	}
	if !(rate >= 0 && rate < 1) {
		return nil, refuse(op, "rate %g is not in [0, 1)", rate)
	}
	if !o.training || rate == 0 {
		return x, nil
	}
	mask, keep := make([]float32, x.Shape().TotalSize()), float32(1/(1-rate))
	times := func(y, x []float32) {
		for i, v := range x {
			y[i] = v * mask[i]
		}
	}
	return o.apply(op, x.Shape().Clone(),
		func(y []float32, v [][]float32) {
			for i := range mask {
				mask[i] = 0
				if o.random.Float64() >= rate {
					mask[i] = keep
				}
			}
			times(y, v[0])
		},
		func() []compute {
			return []compute{func(d []float32, v [][]float32) { times(d, v[2]) }}
		}, x)
}

// Downsample is ResNet's shortcut of option A (He 2015, 3.3): every stride-th pixel of x [rows channels height width],
// and channels of zeros on both sides, filters in all.
func (o *Ops) Downsample(x *gorgonia.Node, filters, stride int) (*gorgonia.Node, error) {
	const op = "downsample"
	if err := check(op, x, 4); err != nil {
		return nil, err
	}
	s := x.Shape()
	if filters < s[1] || stride < 1 {
		return nil, refuse(op, "%d channels to %d, every %d pixels", s[1], filters, stride)
	}
	out := tensor.Shape{s[0], filters, (s[2] + stride - 1) / stride, (s[3] + stride - 1) / stride}
	first := (filters - s[1]) / 2
	each := func(f func(from, to int)) {
		for i := range s[0] * s[1] * out[2] * out[3] {
			v, h := i%out[3], i/out[3]%out[2]
			c, n := i/(out[3]*out[2])%s[1], i/(out[3]*out[2]*s[1])
			f(((n*s[1]+c)*s[2]+h*stride)*s[3]+v*stride, ((n*filters+first+c)*out[2]+h)*out[3]+v)
		}
	}
	return o.apply(op, out,
		func(y []float32, v [][]float32) {
			clear(y)
			each(func(from, to int) { y[to] = v[0][from] })
		},
		func() []compute {
			return []compute{func(d []float32, v [][]float32) {
				clear(d)
				each(func(from, to int) { d[from] = v[2][to] })
			}}
		}, x)
}

// Flatten makes vectors of images. It copies: gorgonia's Reshape is a view, through which an operation that works in
// place overwrites what the gradient of the one before needs.
func (o *Ops) Flatten(x *gorgonia.Node) (*gorgonia.Node, error) {
	const op = "flatten"
	if err := check(op, x, 2, 4); err != nil {
		return nil, err
	}
	rows := x.Shape()[0]
	return o.apply(op, tensor.Shape{rows, x.Shape().TotalSize() / rows},
		func(y []float32, v [][]float32) { copy(y, v[0]) },
		func() []compute {
			return []compute{func(d []float32, v [][]float32) { copy(d, v[2]) }}
		}, x)
}

// only is a softmax of one output or its logarithm, 1 or 0 whatever the output is: gorgonia's goes over the rows then.
func (o *Ops) only(x *gorgonia.Node, value float32) (*gorgonia.Node, error) {
	return o.apply("softmax of one", x.Shape().Clone(),
		func(y []float32, _ [][]float32) {
			for i := range y {
				y[i] = value
			}
		},
		func() []compute {
			return []compute{func(d []float32, _ [][]float32) { clear(d) }}
		}, x)
}

// logOdds are log p - log(1-p) of a row's softmax p, computed from its inputs, so that no p is rounded to 0 or 1.
func (o *Ops) logOdds(x *gorgonia.Node) (*gorgonia.Node, error) {
	const op = "logarithms of odds"
	if err := check(op, x, 2); err != nil {
		return nil, err
	}
	n := x.Shape()[1]
	return o.apply(op, x.Shape().Clone(),
		func(y []float32, v [][]float32) {
			for at := 0; at < len(y); at += n {
				row := v[0][at:][:n]
				for k, rest := range othersLogs(row) {
					y[at+k] = float32(float64(row[k]) - rest)
				}
			}
		},
		func() []compute {
			return []compute{func(d []float32, v [][]float32) {
				for at := 0; at < len(d); at += n {
					logOddsBack(d[at:][:n], v[0][at:][:n], v[2][at:][:n])
				}
			}}
		}, x)
}

// othersLogs are, for each value of a row, the logarithm of the sum of the exponentials of all others.
func othersLogs(row []float32) []float64 {
	best, next := largest(row), math.Inf(-1)
	for k, v := range row {
		if k != best {
			next = math.Max(next, float64(v))
		}
	}
	top, sum, others := float64(row[best]), 0.0, 0.0
	for k, v := range row {
		sum += math.Exp(float64(v) - top)
		if k != best {
			others += math.Exp(float64(v) - next)
		}
	}
	rest := make([]float64, len(row))
	for k, v := range row {
		rest[k] = top + math.Log(sum-math.Exp(float64(v)-top))
	}
	rest[best] = next + math.Log(others) // the difference would have lost its digits
	return rest
}

// logOddsBack sets d to the gradient by the row, of which slope is the gradient by the logarithms of odds.
func logOddsBack(d, row, slope []float32) {
	best, rest, all := largest(row), othersLogs(row), 0.0
	top := float64(row[best])
	share := func(k int) float64 { return float64(slope[k]) * math.Exp(top-rest[k]) }
	for k := range row {
		if k != best {
			all += share(k)
		}
	}
	for k, v := range row {
		others := all
		sum := float64(slope[k])
		if k != best {
			others -= share(k)
			sum -= float64(slope[best]) * math.Exp(float64(v)-rest[best])
		}
		d[k] = float32(sum - math.Exp(float64(v)-top)*others)
	}
}

func largest(row []float32) (best int) {
	for k, v := range row {
		if v > row[best] {
			best = k
		}
	}
	return best
}

// LogisticLoss is the binary cross-entropy of logits z against targets, both of one shape, value by value:
// -t log s(z) - (1-t) log(1-s(z)), computed as max(z, 0) - t z + log(1 + exp(-|z|)), which neither overflows nor loses
// digits.
func (o *Ops) LogisticLoss(z, target *gorgonia.Node) (*gorgonia.Node, error) {
	return o.against("logistic loss", z, target,
		func(z, t float64) float64 { return math.Max(z, 0) - t*z + math.Log1p(math.Exp(-math.Abs(z))) },
		func(z, t float64) float64 { return 1/(1+math.Exp(-z)) - t })
}

// BinaryCrossEntropy is -t log p - (1-t) log(1-p) of probabilities p against targets, both of one shape, value by
// value. p is kept 1e-7 away from 0 and 1, as Keras does. Of logits, LogisticLoss is the better one.
func (o *Ops) BinaryCrossEntropy(p, target *gorgonia.Node) (*gorgonia.Node, error) {
	inside := func(p float64) float64 {
		const edge = 1e-7
		return math.Min(math.Max(p, edge), 1-edge)
	}
	return o.against("binary cross-entropy", p, target,
		func(p, t float64) float64 { return -t*math.Log(inside(p)) - (1-t)*math.Log(1-inside(p)) },
		func(p, t float64) float64 { return (inside(p) - t) / (inside(p) * (1 - inside(p))) })
}

// against makes an operation on pairs of a value and its target, of which slope is the derivative by the value.
func (o *Ops) against(op string, x, target *gorgonia.Node, f, slope func(x, t float64) float64) (*gorgonia.Node,
	error,
) {
	if err := check(op, x, 1, 2, 4); err != nil {
		return nil, err
	}
	if !x.Shape().Eq(target.Shape()) {
		return nil, refuse(op, "values %v and targets %v", x.Shape(), target.Shape())
	}
	return o.apply(op, x.Shape().Clone(),
		func(y []float32, v [][]float32) {
			for i, x := range v[0] {
				y[i] = float32(f(float64(x), float64(v[1][i])))
			}
		},
		func() []compute {
			return []compute{func(d []float32, v [][]float32) {
				for i, x := range v[0] {
					d[i] = v[3][i] * float32(slope(float64(x), float64(v[1][i])))
				}
			}, nil}
		}, x, target)
}
