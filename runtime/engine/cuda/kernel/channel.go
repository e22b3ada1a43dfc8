package kernel

import (
	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine/cuda/driver"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// What channel_sums adds up, in the order of the sources.
const (
	biasSums int32 = iota
	momentSums
	normBackSums
)

// A channel's sum is divided into parts of sumValues values, and at most maxParts.
const (
	sumValues = Threads * 32
	maxParts  = 64
)

func sumParts(im plan.Image) int {
	return max(1, min(im.H*im.W*im.Lanes/sumValues, im.H*im.W, maxParts))
}

// SumWork is the memory that sums over the channels of an image need.
func SumWork(im plan.Image) disdel.Bytes { return disdel.Bytes(16 * im.C * sumParts(im)) }

// sums is struct sums.
type sums struct {
	Out, X, Y, DY, Mean, Control driver.Pointer
	C, Pixels, Lanes, Parts, Op  int32
	_                            int32
}

func (s sums) launch(im plan.Image) driver.Launch {
	s.C, s.Pixels, s.Lanes, s.Parts = int32(im.C), int32(im.H*im.W), int32(im.Lanes), int32(sumParts(im))
	return launchOf("channel_sums", [3]int{im.C, sumParts(im), 1}, s)
}

// BiasBack computes the gradient of a bias by channel: the sums of dy over pixels and rows.
func BiasBack(out, dy, control, work driver.Pointer, im plan.Image) []driver.Launch {
	return []driver.Launch{
		sums{Out: work, X: dy, Control: control, Op: biasSums}.launch(im),
		one("bias_back", im.C, struct {
			Out, Sums driver.Pointer
			C, Parts  int32
		}{out, work, int32(im.C), int32(sumParts(im))}),
	}
}

// Norm is a batch norm over channels. All arrays but Work have a value a channel; Gamma and Beta with their gradients
// may be 0.
type Norm struct {
	Image                      plan.Image
	Epsilon, Momentum          float64
	ReLU                       bool // the one that follows
	RunningMean, RunningVar    driver.Pointer
	Gamma, Beta, DGamma, DBeta driver.Pointer
	Mean, Inverse              driver.Pointer // kept from Forward to Back
	Scale, Offset, Third, Work driver.Pointer
	Control, Result            driver.Pointer
}

func (n Norm) launch(name string, x driver.Pointer) driver.Launch {
	return one(name, n.Image.C, struct {
		RunningMean, RunningVar, Gamma, Beta, Mean, Inverse, Scale, Offset, Third, DGamma, DBeta driver.Pointer
		Sums, X, Control, Result                                                                 driver.Pointer
		Epsilon, Momentum                                                                        float64
		C, Pixels, Lanes, Parts                                                                  int32
	}{
		n.RunningMean, n.RunningVar, n.Gamma, n.Beta, n.Mean, n.Inverse, n.Scale, n.Offset, n.Third, n.DGamma, n.DBeta,
		n.Work, x, n.Control, n.Result, n.Epsilon, n.Momentum,
		int32(n.Image.C), int32(n.Image.H * n.Image.W), int32(n.Image.Lanes), int32(sumParts(n.Image)),
	})
}

func (n Norm) affine(name string, out, x, y driver.Pointer) driver.Launch {
	return each(name, n.Image.Len(), struct {
		Out, X, Y, Scale, Offset, Third, Control driver.Pointer
		N                                        int64
		C, Lanes, ReLU                           int32
		_                                        int32
	}{
		Out: out, X: x, Y: y, Scale: n.Scale, Offset: n.Offset, Third: n.Third, Control: n.Control, N: int64(n.Image.Len()),
		C: int32(n.Image.C), Lanes: int32(n.Image.Lanes), ReLU: flag(n.ReLU),
	})
}

// Forward computes out by the batch's mean and variance, and moves the running ones.
func (n Norm) Forward(out, x driver.Pointer) []driver.Launch {
	return []driver.Launch{
		sums{Out: n.Work, X: x, Control: n.Control, Op: momentSums}.launch(n.Image),
		n.launch("norm_forward", x), n.affine("affine_forward", out, x, 0),
	}
}

// Infer computes out by the running mean and variance; out may be x.
func (n Norm) Infer(out, x driver.Pointer) []driver.Launch {
	return []driver.Launch{n.launch("norm_infer", x), n.affine("affine_forward", out, x, 0)}
}

// Back turns dy, the gradient of the output, into that of x, in place, and computes those of gamma and beta. x and y
// are what Forward took and gave.
func (n Norm) Back(dy, x, y driver.Pointer) []driver.Launch {
	if !n.ReLU {
		y = 0
	}
	return []driver.Launch{
		sums{Out: n.Work, X: x, Y: y, DY: dy, Mean: n.Mean, Control: n.Control, Op: normBackSums}.launch(n.Image),
		n.launch("norm_back", x), n.affine("affine_back", dy, x, y),
	}
}
