package expr

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/disdel/disdel/model"
)

// needsGrad tells whether anything trainable is below a node: the gradient of the data itself is nobody's.
func (c *compiler) needsGrad(n *gorgonia.Node) bool { return c.training && n != c.prog.x }

// orNil keeps a gradient only where it is needed.
func orNil(needed bool, f func() *kernelOp) func() *kernelOp {
	if needed {
		return f
	}
	return nil
}

func matrix(rows, cols int, data []float32) blas32.General {
	return blas32.General{Rows: rows, Cols: cols, Stride: cols, Data: data}
}

// addRows adds a row of biases to each row of y.
func addRows(y, bias []float32) {
	for r := 0; r < len(y); r += len(bias) {
		for i, b := range bias {
			y[r+i] += b
		}
	}
}

// dense is y = x W + b with W stored [in out].
func (c *compiler) dense(n *model.Node, x *gorgonia.Node) (*gorgonia.Node, error) {
	w, b := c.params[n.Name+".weight"], c.params[n.Name+".bias"]
	in := []tensor.Shape{x.Shape(), w.Shape(), b.Shape()}
	rows, from, to := x.Shape()[0], x.Shape()[1], n.Units
	out := tensor.Shape{rows, to}
	forward := func(y []float32, v [][]float32) {
		blas32.Gemm(blas.NoTrans, blas.NoTrans, 1, matrix(rows, from, v[0]), matrix(from, to, v[1]), 0, matrix(rows, to, y))
		addRows(y, v[2])
	}
	return gorgonia.ApplyOp(c.newOp("dense", out, in, forward,
		orNil(c.needsGrad(x), func() *kernelOp {
			return c.gradOp("denseX", in[0], in, out, func(d []float32, v [][]float32) {
				blas32.Gemm(blas.NoTrans, blas.Trans, 1, matrix(rows, to, v[4]), matrix(from, to, v[1]), 0, matrix(rows, from, d))
			})
		}),
		func() *kernelOp {
			return c.gradOp("denseW", in[1], in, out, func(d []float32, v [][]float32) {
				blas32.Gemm(blas.Trans, blas.NoTrans, 1, matrix(rows, from, v[0]), matrix(rows, to, v[4]), 0, matrix(from, to, d))
			})
		},
		func() *kernelOp {
			return c.gradOp("denseB", in[2], in, out, func(d []float32, v [][]float32) {
				clear(d)
				for r := 0; r < len(v[4]); r += to {
					for i := range d {
						d[i] += v[4][r+i]
					}
				}
			})
		}), x, w, b)
}

// relu is max(x, 0). Its gradient looks at the output: where that is above 0, so was the input.
func (c *compiler) relu(x *gorgonia.Node) (*gorgonia.Node, error) {
	in := []tensor.Shape{x.Shape()}
	return gorgonia.ApplyOp(c.newOp("relu", x.Shape(), in, func(y []float32, v [][]float32) {
		for i, a := range v[0] {
			bits := math.Float32bits(a)
			y[i] = math.Float32frombits(bits &^ uint32(int32(bits)>>31)) // nothing where the sign is set
		}
	}, orNil(c.needsGrad(x), func() *kernelOp {
		return c.gradOp("reluX", in[0], in, x.Shape(), func(d []float32, v [][]float32) {
			for i, y := range v[1] {
				// All ones where y is above 0: a branch would be mispredicted every other time.
				mask := uint32(-int32(math.Float32bits(y)) >> 31)
				d[i] = math.Float32frombits(math.Float32bits(v[2][i]) & mask)
			}
		})
	})), x)
}

// window is the geometry of a convolution or a pool over one image of one channel.
type window struct {
	h, w, oh, ow         int
	kernel, stride, step model.Sides // step is the dilation
	top, left            int
}

func windowOf(n *model.Node, x tensor.Shape) window {
	w := window{h: x[2], w: x[3], oh: n.Out[1], ow: n.Out[2], kernel: n.Kernel, stride: n.Stride, step: n.Dilation, top: n.Pad.Top, left: n.Pad.Left}
	if w.step == (model.Sides{}) {
		w.step = model.Sides{H: 1, W: 1}
	}
	return w
}

// unroll writes the columns of an image of channels: row (channel, i, j) of cols is what kernel place (i, j) sees at each
// output place, 0 in the padding (im2col).
func (g *window) unroll(cols, image []float32, channels int) {
	at := 0
	for ch := range channels {
		plane := image[ch*g.h*g.w : (ch+1)*g.h*g.w]
		for i := range g.kernel.H {
			for j := range g.kernel.W {
				for oy := range g.oh {
					row := cols[at : at+g.ow]
					at += g.ow
					y := oy*g.stride.H + i*g.step.H - g.top
					if y < 0 || y >= g.h {
						clear(row)
						continue
					}
					g.unrollRow(row, plane[y*g.w:(y+1)*g.w], j*g.step.W-g.left)
				}
			}
		}
	}
}

// unrollRow copies one line of pixels, shifted; the usual stride of 1 is one copy.
func (g *window) unrollRow(row, line []float32, shift int) {
	if g.stride.W == 1 {
		from, to := max(0, -shift), min(len(row), len(line)-shift)
		if to <= from {
			clear(row)
			return
		}
		clear(row[:from])
		copy(row[from:to], line[from+shift:])
		clear(row[to:])
		return
	}
	for ox := range row {
		row[ox] = 0
		if x := ox*g.stride.W + shift; x >= 0 && x < len(line) {
			row[ox] = line[x]
		}
	}
}

// fold adds columns back to the pixels they came from: unroll's transpose.
func (g *window) fold(image, cols []float32, channels int) {
	at := 0
	for ch := range channels {
		plane := image[ch*g.h*g.w : (ch+1)*g.h*g.w]
		for i := range g.kernel.H {
			for j := range g.kernel.W {
				for oy := range g.oh {
					row := cols[at : at+g.ow]
					at += g.ow
					y := oy*g.stride.H + i*g.step.H - g.top
					if y < 0 || y >= g.h {
						continue
					}
					g.foldRow(plane[y*g.w:(y+1)*g.w], row, j*g.step.W-g.left)
				}
			}
		}
	}
}

func (g *window) foldRow(line, row []float32, shift int) {
	if g.stride.W == 1 {
		from, to := max(0, -shift), min(len(row), len(line)-shift)
		if to <= from {
			return
		}
		target := line[from+shift : to+shift]
		for i, v := range row[from:to] {
			target[i] += v
		}
		return
	}
	for ox, v := range row {
		if x := ox*g.stride.W + shift; x >= 0 && x < len(line) {
			line[x] += v
		}
	}
}

// conv is a convolution by columns, one image at a time, so that the columns of one image are all it holds.
func (c *compiler) conv(n *model.Node, x *gorgonia.Node) (*gorgonia.Node, error) {
	w := c.params[n.Name+".weight"]
	inputs, in := []*gorgonia.Node{x, w}, []tensor.Shape{x.Shape(), w.Shape()}
	if n.Bias {
		b := c.params[n.Name+".bias"]
		inputs, in = append(inputs, b), append(in, b.Shape())
	}
	g := windowOf(n, x.Shape())
	images, channels := x.Shape()[0], x.Shape()[1]
	depth, places := channels*g.kernel.H*g.kernel.W, g.oh*g.ow
	k := convolution{g, images, channels, n.Filters, depth, places, make([]float32, depth*places)}
	out := tensor.Shape{images, n.Filters, g.oh, g.ow}
	dy := len(in) + 1 // place of the output's gradient among a gradient's inputs
	grads := []func() *kernelOp{
		orNil(c.needsGrad(x), func() *kernelOp {
			return c.gradOp("convX", in[0], in, out, func(d []float32, v [][]float32) { k.dataGradient(d, v[1], v[dy]) })
		}),
		func() *kernelOp {
			return c.gradOp("convW", in[1], in, out, func(d []float32, v [][]float32) { k.weightGradient(d, v[0], v[dy]) })
		},
	}
	if n.Bias {
		grads = append(grads, func() *kernelOp {
			return c.gradOp("convB", in[2], in, out, func(d []float32, v [][]float32) { k.biasGradient(d, v[dy]) })
		})
	}
	return gorgonia.ApplyOp(c.newOp("conv", out, in, func(y []float32, v [][]float32) {
		k.forward(y, v[0], v[1])
		if n.Bias {
			k.addBias(y, v[2])
		}
	}, grads...), inputs...)
}

// convolution is the sizes of one layer and the columns it works in.
type convolution struct {
	window
	images, channels, filters int
	depth, places             int // rows and columns of cols
	cols                      []float32
}

func (k *convolution) image(x []float32, n int) []float32 {
	size := k.channels * k.h * k.w
	return x[n*size : (n+1)*size]
}

func (k *convolution) output(y []float32, n int) blas32.General {
	size := k.filters * k.places
	return matrix(k.filters, k.places, y[n*size:(n+1)*size])
}

func (k *convolution) forward(y, x, w []float32) {
	for n := range k.images {
		k.unroll(k.cols, k.image(x, n), k.channels)
		blas32.Gemm(blas.NoTrans, blas.NoTrans, 1, matrix(k.filters, k.depth, w), matrix(k.depth, k.places, k.cols), 0, k.output(y, n))
	}
}

func (k *convolution) addBias(y, bias []float32) {
	for i := range k.images * k.filters {
		b := bias[i%k.filters]
		row := y[i*k.places : (i+1)*k.places]
		for j := range row {
			row[j] += b
		}
	}
}

func (k *convolution) dataGradient(dx, w, dy []float32) {
	clear(dx)
	for n := range k.images {
		blas32.Gemm(blas.Trans, blas.NoTrans, 1, matrix(k.filters, k.depth, w), k.output(dy, n), 0, matrix(k.depth, k.places, k.cols))
		k.fold(k.image(dx, n), k.cols, k.channels)
	}
}

func (k *convolution) weightGradient(dw, x, dy []float32) {
	clear(dw)
	for n := range k.images {
		k.unroll(k.cols, k.image(x, n), k.channels)
		blas32.Gemm(blas.NoTrans, blas.Trans, 1, k.output(dy, n), matrix(k.depth, k.places, k.cols), 1, matrix(k.filters, k.depth, dw))
	}
}

func (k *convolution) biasGradient(db, dy []float32) {
	clear(db)
	for i := range k.images * k.filters {
		var sum float32
		for _, v := range dy[i*k.places : (i+1)*k.places] {
			sum += v
		}
		db[i%k.filters] += sum
	}
}

// maxPool takes the largest value of each window; its gradient goes to the first place that had it.
func (c *compiler) maxPool(n *model.Node, x *gorgonia.Node) (*gorgonia.Node, error) {
	g := windowOf(n, x.Shape())
	in := []tensor.Shape{x.Shape()}
	planes := x.Shape()[0] * x.Shape()[1]
	out := tensor.Shape{x.Shape()[0], x.Shape()[1], g.oh, g.ow}
	from := make([]int32, out.TotalSize()) // where each output came from, within its plane
	return gorgonia.ApplyOp(c.newOp("maxPool", out, in, func(y []float32, v [][]float32) {
		for p := range planes {
			g.pool(y[p*g.oh*g.ow:(p+1)*g.oh*g.ow], from[p*g.oh*g.ow:], v[0][p*g.h*g.w:(p+1)*g.h*g.w])
		}
	}, orNil(c.needsGrad(x), func() *kernelOp {
		return c.gradOp("maxPoolX", in[0], in, out, func(d []float32, v [][]float32) {
			clear(d)
			for i, dy := range v[2] {
				d[i/(g.oh*g.ow)*g.h*g.w+int(from[i])] += dy
			}
		})
	})), x)
}

func (g *window) pool(y []float32, from []int32, x []float32) {
	for oy := range g.oh {
		for ox := range g.ow {
			best, at := float32(math.Inf(-1)), int32(0)
			for i := range g.kernel.H {
				row := oy*g.stride.H + i - g.top
				if row < 0 || row >= g.h {
					continue
				}
				for j := range g.kernel.W {
					col := ox*g.stride.W + j - g.left
					if col < 0 || col >= g.w {
						continue
					}
					if v := x[row*g.w+col]; v > best {
						best, at = v, int32(row*g.w+col)
					}
				}
			}
			y[oy*g.ow+ox], from[oy*g.ow+ox] = best, at
		}
	}
}
