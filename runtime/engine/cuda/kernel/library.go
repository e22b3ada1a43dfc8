package kernel

import (
	"github.com/disdel/disdel/runtime/engine/cuda/driver"
)

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
