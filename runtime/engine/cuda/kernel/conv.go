package kernel

import (
	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine/cuda/driver"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// Blocks of a convolution have fewRows or manyRows rows of the product, and blockColumns columns; blockDepth is what
// they add up at a time. They are what the sources have.
const (
	fewRows      = 16
	manyRows     = 64
	blockColumns = 128
	blockDepth   = 16
)

// A weights' gradient has few rows and columns and a long sum: it is divided into parts until there are partBlocks
// blocks, which keep a large GPU busy, unless a part would have fewer than partRuns runs of the sum, or all of them
// more than partValues values. They are guesses: nobody has measured them.
const (
	partBlocks = 256
	partRuns   = 8
	partValues = 8 << 20
)

// Conv is a convolution, or a dense layer as a convolution whose kernel is the whole image. Weights are [filters]
// [channels/groups][KH][KW].
type Conv struct {
	plan.Conv
	Control   driver.Pointer
	Precision Precision
}

// convolution is struct convolution.
type convolution struct {
	Out, X, Weights, Bias, Control       driver.Pointer
	C, H, W                              int32
	Filters, KH, KW, SH, SW, DH, DW      int32
	Top, Left, OutH, OutW, Groups, Lanes int32
	ReLU, Add, Parts                     int32
	_                                    int32
}

func (c Conv) args(out, x, weights driver.Pointer) convolution {
	return convolution{
		Out: out, X: x, Weights: weights, Control: c.Control,
		C: int32(c.In.C), H: int32(c.In.H), W: int32(c.In.W), Filters: int32(c.Filters), KH: int32(c.KH), KW: int32(c.KW),
		SH: int32(c.SH), SW: int32(c.SW), DH: int32(c.DH), DW: int32(c.DW), Top: int32(c.Top), Left: int32(c.Left),
		OutH: int32(c.OH), OutW: int32(c.OW), Groups: int32(c.Groups), Lanes: int32(c.In.Lanes), Parts: 1,
	}
}

// grid is the blocks of a product of so many rows and columns, and the kernel for its rows.
func (c Conv) grid(name string, rows, columns, depth int) (string, [3]int) {
	if rows <= fewRows {
		return name + "_16" + c.Precision.suffix(), [3]int{over(columns, blockColumns), 1, depth}
	}
	return name + "_64" + c.Precision.suffix(), [3]int{over(columns, blockColumns), over(rows, manyRows), depth}
}

// Forward computes out; bias may be 0.
func (c Conv) Forward(out, x, weights, bias driver.Pointer) driver.Launch {
	a := c.args(out, x, weights)
	a.Bias, a.ReLU = bias, flag(c.ReLU)
	name, blocks := c.grid("convolution_forward", c.Outer(), c.OH*c.OW*c.In.Lanes, c.Groups)
	return of(name, blocks, a)
}

// Data computes dx of the output's gradient dy, or adds to it.
func (c Conv) Data(dx, dy, weights driver.Pointer, add bool) driver.Launch {
	a := c.args(dx, dy, weights)
	a.Add = flag(add)
	name, blocks := c.grid("convolution_data", c.Inner(), c.In.H*c.In.W*c.In.Lanes, c.Groups)
	return of(name, blocks, a)
}

// parts is in how many the sum of a weights' gradient is divided.
func (c Conv) parts() int {
	_, blocks := c.grid("", c.Outer(), c.Inner()*c.Taps(), c.Groups)
	runs := c.OH * c.OW * c.In.Lanes / blockDepth
	n := partBlocks / (blocks[0] * blocks[1] * blocks[2])
	return max(1, min(n, runs/partRuns, partValues/c.weights()))
}

func (c Conv) weights() int { return c.Filters * c.Inner() * c.Taps() }

// Work is the memory that Weights needs beside its arguments.
func (c Conv) Work() disdel.Bytes {
	if n := c.parts(); n > 1 {
		return disdel.Bytes(4 * n * c.weights())
	}
	return 0
}

// Weights computes dw of the input x and the output's gradient dy. Lanes are a multiple of 16.
func (c Conv) Weights(dw, x, dy, work driver.Pointer) []driver.Launch {
	n := c.parts()
	a := c.args(work, x, dy)
	a.Parts = int32(n)
	if n == 1 {
		a.Out = dw
	}
	name, blocks := c.grid("convolution_weights", c.Outer(), c.Inner()*c.Taps(), c.Groups*n)
	out := []driver.Launch{of(name, blocks, a)}
	if n > 1 {
		out = append(out, one("sum_parts", c.weights(), struct {
			Out, X   driver.Pointer
			N        int64
			Count, _ int32
		}{Out: dw, X: work, N: int64(c.weights()), Count: int32(n)}))
	}
	return out
}
