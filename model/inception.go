package model

import "fmt"

// inception builds keras/src/applications/inception_v3.py (Szegedy 2015, figures 5 to 7). Its layers have the names
// that Keras gives them in a new session: conv2d, conv2d_1, ...
type inception struct {
	*Builder
	convs, pools int
}

// numbered is Keras' name of the n-th layer of a kind, from 0.
func numbered(kind string, n int) string {
	if n == 0 {
		return kind
	}
	return fmt.Sprintf("%s_%d", kind, n)
}

// conv is Keras' conv2d_bn: a convolution without bias, a batch norm without scale, ReLU.
func (k *inception) conv(in, filters, height, width, stride int, same bool) int {
	n := k.convs
	k.convs++
	w := Window{Kernel: Sides{height, width}, Stride: Sides{stride, stride}}
	if same {
		w = w.SamePad(k.Out(in)[1], k.Out(in)[2])
	}
	out := k.Conv(numbered("conv2d", n), in, filters, w, 1, false)
	norm := kerasNorm
	norm.NoScale = true
	out = k.Norm(numbered("batch_normalization", n), out, norm)
	return k.Same(numbered("activation", n), out, OpReLU)
}

// same is a convolution of stride 1 that keeps the size.
func (k *inception) same(in, filters, height, width int) int {
	return k.conv(in, filters, height, width, 1, true)
}

func (k *inception) maxPool(in, n int) int {
	return k.Pool(numbered("max_pooling2d", n), in, OpMaxPool, Square(3, 2, 0))
}

// average is the pool that every block without stride has; TensorFlow does not count the padding.
func (k *inception) average(in int) int {
	n := k.pools
	k.pools++
	return k.Pool(numbered("average_pooling2d", n), in, OpAvgPool, Square(3, 1, 1))
}

// inceptionV3 needs 75x75 pixels, as Keras does: below, the last valid window does not fit.
func inceptionV3(b *Builder, classes int) {
	k := &inception{Builder: b}
	x := k.conv(0, 32, 3, 3, 2, false)
	x = k.conv(x, 32, 3, 3, 1, false)
	x = k.maxPool(k.same(x, 64, 3, 3), 0)
	x = k.conv(x, 80, 1, 1, 1, false)
	x = k.maxPool(k.conv(x, 192, 3, 3, 1, false), 1)
	for i, pooled := range []int{32, 64, 64} {
		x = k.blockA(fmt.Sprintf("mixed%d", i), x, pooled)
	}
	x = k.reduceA("mixed3", x)
	for i, inner := range []int{128, 160, 160, 192} {
		x = k.blockB(fmt.Sprintf("mixed%d", i+4), x, inner)
	}
	x = k.reduceB("mixed8", x)
	for i := range 2 {
		x = k.blockC(i, x)
	}
	b.Flatten("avg_pool.flatten", b.GlobalPool("avg_pool", x))
	b.Dense("predictions", b.Last(), classes)
}

// blockA has branches of 1x1, 5x5, double 3x3 and a pool: 35x35 pixels at the standard input.
func (k *inception) blockA(name string, x, pooled int) int {
	one := k.same(x, 64, 1, 1)
	five := k.same(k.same(x, 48, 1, 1), 64, 5, 5)
	double := k.same(k.same(k.same(x, 64, 1, 1), 96, 3, 3), 96, 3, 3)
	pool := k.same(k.average(x), pooled, 1, 1)
	return k.Concat(name, one, five, double, pool)
}

func (k *inception) reduceA(name string, x int) int {
	three := k.conv(x, 384, 3, 3, 2, false)
	double := k.conv(k.same(k.same(x, 64, 1, 1), 96, 3, 3), 96, 3, 3, 2, false)
	return k.Concat(name, three, double, k.maxPool(x, 2))
}

// blockB has branches of 1x7 and 7x1: 17x17 pixels.
func (k *inception) blockB(name string, x, inner int) int {
	one := k.same(x, 192, 1, 1)
	seven := k.same(k.same(k.same(x, inner, 1, 1), inner, 1, 7), 192, 7, 1)
	double := k.same(k.same(k.same(x, inner, 1, 1), inner, 7, 1), inner, 1, 7)
	double = k.same(k.same(double, inner, 7, 1), 192, 1, 7)
	pool := k.same(k.average(x), 192, 1, 1)
	return k.Concat(name, one, seven, double, pool)
}

func (k *inception) reduceB(name string, x int) int {
	three := k.conv(k.same(x, 192, 1, 1), 320, 3, 3, 2, false)
	seven := k.same(k.same(k.same(x, 192, 1, 1), 192, 1, 7), 192, 7, 1)
	seven = k.conv(seven, 192, 3, 3, 2, false)
	return k.Concat(name, three, seven, k.maxPool(x, 3))
}

// blockC forks within its branches: 8x8 pixels.
func (k *inception) blockC(i, x int) int {
	fork := func(name string, in int) int {
		return k.Concat(name, k.same(in, 384, 1, 3), k.same(in, 384, 3, 1))
	}
	one := k.same(x, 320, 1, 1)
	three := fork(fmt.Sprintf("mixed9_%d", i), k.same(x, 384, 1, 1))
	double := fork(numbered("concatenate", i), k.same(k.same(x, 448, 1, 1), 384, 3, 3))
	pool := k.same(k.average(x), 192, 1, 1)
	return k.Concat(fmt.Sprintf("mixed%d", 9+i), one, three, double, pool)
}
