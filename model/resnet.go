package model

import "fmt"

// convBN adds a convolution and its batch norm.
func convBN(b *Builder, conv, bn string, in, filters int, w Window, bias bool) int {
	return b.BatchNorm(bn, b.Conv(conv, in, filters, w, 1, bias))
}

// imageNetStem is conv 7x7/2, batch norm, ReLU, max pool 3x3/2.
func imageNetStem(b *Builder, bias bool) {
	convBN(b, "conv1", "bn1", 0, 64, Square(7, 2, 3), bias)
	b.Same("relu", b.Last(), OpReLU)
	b.Pool("maxpool", b.Last(), OpMaxPool, Square(3, 2, 1))
}

// basicBlock is two 3x3 convolutions beside a shortcut; project makes the shortcut where shapes differ.
func basicBlock(b *Builder, name string, filters, stride int, project func(in int) int) {
	in := b.Last()
	convBN(b, name+".conv1", name+".bn1", in, filters, Square(3, stride, 1), false)
	b.Same(name+".relu1", b.Last(), OpReLU)
	out := convBN(b, name+".conv2", name+".bn2", b.Last(), filters, Square(3, 1, 1), false)
	short := in
	if stride > 1 || b.Out(in)[0] != filters {
		short = project(in)
	}
	b.Add(name+".add", out, short)
	b.Same(name+".relu2", b.Last(), OpReLU)
}

func resnetBasic(blocks ...int) func(*Builder, int) {
	return func(b *Builder, classes int) {
		imageNetStem(b, false)
		for s, n := range blocks {
			for i := range n {
				name, stride := fmt.Sprintf("layer%d.%d", s+1, i), 1
				if i == 0 && s > 0 {
					stride = 2
				}
				basicBlock(b, name, 64<<s, stride, func(in int) int {
					return convBN(b, name+".downsample.0", name+".downsample.1", in, 64<<s, Square(1, stride, 0), false)
				})
			}
		}
		b.GlobalPool("avgpool", b.Last())
		classifier(b, "fc", classes)
	}
}

func resnetCIFAR(n int, project bool) func(*Builder, int) {
	return func(b *Builder, classes int) {
		convBN(b, "conv1", "bn1", 0, 16, Square(3, 1, 1), false)
		b.Same("relu", b.Last(), OpReLU)
		for s := range 3 {
			for i := range n {
				name, stride := fmt.Sprintf("layer%d.%d", s+1, i), 1
				if i == 0 && s > 0 {
					stride = 2
				}
				basicBlock(b, name, 16<<s, stride, func(in int) int {
					if project {
						return convBN(b, name+".downsample.0", name+".downsample.1", in, 16<<s, Square(1, stride, 0), false)
					}
					return b.Downsample(name+".downsample", in, 16<<s, stride)
				})
			}
		}
		b.GlobalPool("avgpool", b.Last())
		classifier(b, "fc", classes)
	}
}

// resnetKeras is version 1 of Keras Applications: biases everywhere, the stride in the first 1x1 convolution.
func resnetKeras(blocks ...int) func(*Builder, int) {
	return func(b *Builder, classes int) {
		imageNetStem(b, true)
		for s, n := range blocks {
			for i := range n {
				stride := 1
				if i == 0 && s > 0 {
					stride = 2
				}
				bottleneck(b, fmt.Sprintf("conv%d_block%d", s+2, i+1), 64<<s, stride, i == 0)
			}
		}
		b.GlobalPool("avg_pool", b.Last())
		classifier(b, "predictions", classes)
	}
}

func bottleneck(b *Builder, name string, filters, stride int, project bool) {
	in := b.Last()
	short := in
	if project {
		short = convBN(b, name+".0_conv", name+".0_bn", in, 4*filters, Square(1, stride, 0), true)
	}
	convBN(b, name+".1_conv", name+".1_bn", in, filters, Square(1, stride, 0), true)
	b.Same(name+".1_relu", b.Last(), OpReLU)
	convBN(b, name+".2_conv", name+".2_bn", b.Last(), filters, Square(3, 1, 1), true)
	b.Same(name+".2_relu", b.Last(), OpReLU)
	out := convBN(b, name+".3_conv", name+".3_bn", b.Last(), 4*filters, Square(1, 1, 0), true)
	b.Add(name+".add", short, out)
	b.Same(name+".out", b.Last(), OpReLU)
}
