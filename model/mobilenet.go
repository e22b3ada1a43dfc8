package model

import "fmt"

// kerasNorm is Keras' BatchNormalization as its layer's own defaults have it: epsilon 1e-3, momentum 0.99, which counts
// the old statistics where ours counts the new ones.
var kerasNorm = Norm{Eps: 1e-3, Momentum: 0.01}

// afterZeros is a square window of stride 2 behind Keras' ZeroPadding2D(((0, 1), (0, 1))): zeros below and right only.
func afterZeros(kernel int) Window {
	return Window{Kernel: Sides{kernel, kernel}, Stride: Sides{2, 2}, Pad: Padding{Bottom: 1, Right: 1}}
}

// mobileNetV1 is keras/src/applications/mobilenet.py with alpha and depth_multiplier 1 (Howard 2017, table 1).
func mobileNetV1(b *Builder, classes int) {
	normReLU6 := func(conv int, name string) {
		b.Norm(name+"_bn", conv, kerasNorm)
		b.Same(name+"_relu", b.Last(), OpReLU6)
	}
	normReLU6(b.Conv("conv1", 0, 32, afterZeros(3), 1, false), "conv1")
	for i, block := range []struct{ filters, stride int }{
		{64, 1},
		{128, 2},
		{128, 1},
		{256, 2},
		{256, 1},
		{512, 2},
		{512, 1},
		{512, 1},
		{512, 1},
		{512, 1},
		{512, 1},
		{1024, 2},
		{1024, 1},
	} {
		deep, point := fmt.Sprintf("conv_dw_%d", i+1), fmt.Sprintf("conv_pw_%d", i+1)
		in, w := b.Last(), Square(3, 1, 1)
		if block.stride == 2 {
			w = afterZeros(3)
		}
		c := b.Out(in)[0]
		normReLU6(b.Conv(deep, in, c, w, c, false), deep)
		normReLU6(b.Conv(point, b.Last(), block.filters, Square(1, 1, 0), 1, false), point)
	}
	b.GlobalPool("global_average_pooling2d", b.Last())
	b.Dropout("dropout", b.Last(), 1e-3)
	b.Conv("conv_preds", b.Last(), classes, Square(1, 1, 0), 1, true)
	b.Flatten("reshape_2", b.Last())
}
