package kernel

import (
	"github.com/disdel/disdel/runtime/engine/cuda/driver"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// Window is a pool or a depthwise convolution. Of an adaptive pool the image and the output's sides alone count.
// Weights are [C][KH][KW].
type Window struct {
	plan.Pool
	Control driver.Pointer
}

// window is struct window.
type window struct {
	Out, X, Y, DY, Weights, Bias, Control      driver.Pointer
	C, H, W, KH, KW, SH, SW, DH, DW, Top, Left int32
	OutH, OutW, Lanes, CountPad, Add           int32
}

// launch runs a kernel with a thread for every value of an image of so many pixels.
func (w Window) launch(name string, pixels int, a window) driver.Launch {
	return one(name, pixels*w.In.Pixel(), w.complete(a))
}

func (w Window) complete(a window) window {
	a.Control = w.Control
	a.C, a.H, a.W, a.Lanes = int32(w.In.C), int32(w.In.H), int32(w.In.W), int32(w.In.Lanes)
	a.KH, a.KW, a.SH, a.SW, a.DH, a.DW = int32(w.KH), int32(w.KW), int32(w.SH), int32(w.SW), int32(w.DH), int32(w.DW)
	a.Top, a.Left, a.OutH, a.OutW = int32(w.Top), int32(w.Left), int32(w.OH), int32(w.OW)
	a.CountPad = flag(w.CountPad)
	return a
}

func (w Window) forward(name string, a window) driver.Launch { return w.launch(name, w.OH*w.OW, a) }

func (w Window) back(name string, a window, add bool) driver.Launch {
	a.Add = flag(add)
	return w.launch(name, w.In.H*w.In.W, a)
}

// MaxPool computes out; one that only padding reaches is minus infinity.
func (w Window) MaxPool(out, x driver.Pointer) driver.Launch {
	return w.forward("max_pool", window{Out: out, X: x})
}

// MaxPoolBack computes dx, or adds to it; of equal inputs of a window the first gets the gradient.
func (w Window) MaxPoolBack(dx, x, y, dy driver.Pointer, add bool) driver.Launch {
	return w.back("max_pool_back", window{Out: dx, X: x, Y: y, DY: dy}, add)
}

// AvgPool computes out: the mean over the window's pixels that are in the image, or over all where CountPad is set.
func (w Window) AvgPool(out, x driver.Pointer) driver.Launch {
	return w.forward("average_pool", window{Out: out, X: x})
}

// AvgPoolBack computes dx, or adds to it.
func (w Window) AvgPoolBack(dx, dy driver.Pointer, add bool) driver.Launch {
	return w.back("average_pool_back", window{Out: dx, DY: dy}, add)
}

// Adaptive averages to OH x OW pixels.
func (w Window) Adaptive(out, x driver.Pointer) driver.Launch {
	return w.forward("adaptive_pool", window{Out: out, X: x})
}

// AdaptiveBack computes dx, or adds to it.
func (w Window) AdaptiveBack(dx, dy driver.Pointer, add bool) driver.Launch {
	return w.back("adaptive_pool_back", window{Out: dx, DY: dy}, add)
}

// Depthwise computes a depthwise convolution; bias may be 0.
func (w Window) Depthwise(out, x, weights, bias driver.Pointer) driver.Launch {
	return w.forward("depthwise_forward", window{Out: out, X: x, Weights: weights, Bias: bias})
}

// DepthwiseData computes dx, or adds to it.
func (w Window) DepthwiseData(dx, dy, weights driver.Pointer, add bool) driver.Launch {
	return w.back("depthwise_data", window{Out: dx, DY: dy, Weights: weights}, add)
}

// DepthwiseWeights computes dw.
func (w Window) DepthwiseWeights(dw, x, dy driver.Pointer) driver.Launch {
	return launchOf("depthwise_weights", [3]int{w.In.C, w.KH * w.KW, 1}, w.complete(window{Out: dw, X: x, DY: dy}))
}
