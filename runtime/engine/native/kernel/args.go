package kernel

import "unsafe"

// The argument blocks of the kernels; the generator in gen has their offsets. Sizes and strides are in bytes.

// productArgs describes a tile of C = A B: for every outer, middle and inner step, row i of the tile gets
// A[i rs] times a vector of B, and A and B move on.
type productArgs struct {
	a, b, c unsafe.Pointer
	rs      int64 // from row to row of A
	ks, ldb int64 // inner step of A and of B
	k       int64 // inner steps
	middle  int64 // middle steps; then A and B move by am and bm more
	am, bm  int64
	outer   int64 // outer steps, likewise
	ao, bo  int64
	ldc     int64 // from row to row of C
	rows    int64 // rows that are stored
	mode    int64 // start from zero, from C, or from bias
	bias    unsafe.Pointer
	c2      int64 // from the first vector of a row of C to the second
	relu    int64 // not 0: store max(0, x)
}

// Values of productArgs.mode.
const (
	fromZero = iota
	fromC
	fromBias
)

type transposeArgs struct {
	dst, src unsafe.Pointer
	ds, ss   int64
}

type elementArgs struct {
	dst, a, b, c unsafe.Pointer
	n            int64
	s            [12]float32
}

type channelArgs struct {
	x, y, z        unsafe.Pointer
	p, q, r        unsafe.Pointer // one value a channel
	mask           unsafe.Pointer // one value a lane
	out            unsafe.Pointer // [channels][sums][16]
	channels       int64
	lanes          int64 // bytes of a row that count
	row            int64 // bytes of a row
	pixels         int64
	xPixel, yPixel int64
}

type tapArgs struct {
	x, y, dx unsafe.Pointer
	offs     unsafe.Pointer // int64 each
	count    int64
	bytes    int64 // of an output pixel
	scale    float32
	_        float32
	w        unsafe.Pointer
	woffs    unsafe.Pointer
	row      int64
	lanes    int64
	channels int64
	dy       unsafe.Pointer // maxPoolBack's gradient of y
}

// functions is one implementation of every kernel.
type functions struct {
	product   [9][3]func(*productArgs) // by rows and vectors of 16 values
	correlate func(*productArgs)
	transpose func(*transposeArgs)

	add, addRelu, relu, clamp, reluBack, clampBack, scale, squares, sgd, momentum, adam func(*elementArgs)

	affine, affineRelu, normBack                   func(*channelArgs)
	moments, normSums, normSumsRelu, rowSums, dots [2]func(*channelArgs) // for a block of channels, and for one

	maxPool, sumPool, maxPoolBack, sumPoolBack func(*tapArgs)
	depthwise                                  [2]func(*tapArgs) // for four channels, and for one
}
