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

// A gradient of weights has few rows and columns and a long sum. It is divided into parts until there are partBlocks
// blocks, which keep a large GPU busy. A part has at least partRuns runs of the sum, and all parts have at most
// partValues values. The three are guesses that nobody has measured.
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
	return launchOf(name, blocks, a)
}

// Data computes dx of the output's gradient dy, or adds to it.
func (c Conv) Data(dx, dy, weights driver.Pointer, add bool) driver.Launch {
	a := c.args(dx, dy, weights)
	a.Add = flag(add)
	name, blocks := c.grid("convolution_data", c.Inner(), c.In.H*c.In.W*c.In.Lanes, c.Groups)
	return launchOf(name, blocks, a)
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
	out := []driver.Launch{launchOf(name, blocks, a)}
	if n > 1 {
		out = append(out, one("sum_parts", c.weights(), struct {
			Out, X   driver.Pointer
			N        int64
			Count, _ int32
		}{Out: dw, X: work, N: int64(c.weights()), Count: int32(n)}))
	}
	return out
}

// libraryLeast is the least number of channels and filters of a product that a library computes: of smaller ones what
// our kernels save by their epilogue is more than what a library gains. It is a guess: nobody has measured it.
const libraryLeast = 64

// Plain tells whether the convolution is a plain product, which a library of products can compute: a dense layer or one
// of 1 x 1, whose image is its own matrix, pixel by pixel. BF16 is not: a library would have both sides in that.
func (c Conv) Plain() bool {
	return c.Groups == 1 && c.KH == 1 && c.KW == 1 && c.SH == 1 && c.SW == 1 && c.Top == 0 && c.Left == 0 &&
		c.OH == c.In.H && c.OW == c.In.W && min(c.In.C, c.Filters) >= libraryLeast && c.Precision != BF16
}

// product is one of matrices [channels][lanes], or of all pixels' together.
func (c Conv) product(batch int) *driver.Product {
	return &driver.Product{
		M: c.In.Lanes, LDA: c.In.Lanes, LDB: c.In.C, LDC: c.In.Lanes, Batch: batch, TF32: c.Precision == TF32,
	}
}

// LibraryForward is Forward by a library: out is the weights times x, and what is fused with it comes after.
func (c Conv) LibraryForward(out, x, weights, bias driver.Pointer) []driver.Launch {
	p := c.product(c.OH * c.OW)
	p.A, p.B, p.C, p.N, p.K = x, weights, out, c.Filters, c.In.C
	p.StrideA, p.StrideC = c.In.C*c.In.Lanes, c.Filters*c.In.Lanes
	launches := []driver.Launch{{Product: p}}
	if bias == 0 && !c.ReLU {
		return launches
	}
	n := c.Out().Len()
	return append(launches, each("bias_forward", n, struct {
		Out, Bias                driver.Pointer
		N                        int64
		Channels, Lanes, ReLU, _ int32
	}{Out: out, Bias: bias, N: int64(n), Channels: int32(c.Filters), Lanes: int32(c.In.Lanes), ReLU: flag(c.ReLU)}))
}

// LibraryData is Data by a library: dx is the weights, transposed, times dy.
func (c Conv) LibraryData(dx, dy, weights driver.Pointer, add bool) driver.Launch {
	p := c.product(c.OH * c.OW)
	p.A, p.B, p.C, p.N, p.K, p.TransB, p.Add = dy, weights, dx, c.In.C, c.Filters, true, add
	p.StrideA, p.StrideC = c.Filters*c.In.Lanes, c.In.C*c.In.Lanes
	return driver.Launch{Product: p}
}

// LibraryWeights is Weights by a library, of a dense layer: dw is dy times x transposed, over all lanes, of which those
// without a row are zero in dy. A sum over pixels is no product of one batch: ok is false there.
func (c Conv) LibraryWeights(dw, x, dy driver.Pointer) (l driver.Launch, ok bool) {
	if c.OH*c.OW > 1 {
		return l, false
	}
	return driver.Launch{Product: &driver.Product{
		A: x, B: dy, C: dw, M: c.In.C, N: c.Filters, K: c.In.Lanes, LDA: c.In.Lanes, LDB: c.In.Lanes, LDC: c.In.C,
		TransA: true, Batch: 1, TF32: c.Precision == TF32,
	}}, true
}

// Precision is what products multiply. Sums are float32 whatever it is.
type Precision uint8

// The precisions. TF32 and BF16 take a device's matrix units, which compute capability 8.0 brought.
const (
	Float32 Precision = iota
	TF32              // float32 with ten bits of the fraction
	BF16              // bfloat16: float32 with seven
)

// MatrixCapability is the least compute capability of devices that have TF32 and BF16.
const MatrixCapability = 8

// String is the word that a job file has for it.
func (p Precision) String() string {
	switch p {
	case TF32:
		return "tf32"
	case BF16:
		return "bf16"
	default:
		return "float32"
	}
}

// suffix ends the names of the kernels that multiply so.
func (p Precision) suffix() string {
	if p == Float32 {
		return ""
	}
	return "_" + p.String()
}
