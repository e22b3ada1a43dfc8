package model

import "fmt"

// convBN adds a convolution without bias and its batch norm.
func convBN(b *Builder, conv, bn string, in, filters int, w Window) int {
	return b.BatchNorm(bn, b.Conv(conv, in, filters, w, 1, false))
}

// imageNetStem is conv 7x7/2, batch norm, ReLU, max pool 3x3/2.
func imageNetStem(b *Builder) {
	convBN(b, "conv1", "bn1", 0, 64, Square(7, 2, 3))
	b.Same("relu", b.Last(), OpReLU)
	b.Pool("maxpool", b.Last(), OpMaxPool, Square(3, 2, 1))
}

// basicBlock is two 3x3 convolutions beside a shortcut; project makes the shortcut where shapes differ.
func basicBlock(b *Builder, name string, filters, stride int, project func(in int) int) {
	in := b.Last()
	convBN(b, name+".conv1", name+".bn1", in, filters, Square(3, stride, 1))
	b.Same(name+".relu1", b.Last(), OpReLU)
	out := convBN(b, name+".conv2", name+".bn2", b.Last(), filters, Square(3, 1, 1))
	short := in
	if stride > 1 || b.Out(in)[0] != filters {
		short = project(in)
	}
	b.Add(name+".add", out, short)
	b.Same(name+".relu2", b.Last(), OpReLU)
}

// stages calls block for every block of a network, in order; all stages but the first start with stride 2.
func stages(blocks []int, block func(stage, i, stride int)) {
	for s, n := range blocks {
		for i := range n {
			stride := 1
			if i == 0 && s > 0 {
				stride = 2
			}
			block(s, i, stride)
		}
	}
}

// shortcut is torchvision's: a 1x1 convolution and its batch norm.
func shortcut(b *Builder, name string, filters, stride int) func(in int) int {
	return func(in int) int {
		return convBN(b, name+".downsample.0", name+".downsample.1", in, filters, Square(1, stride, 0))
	}
}

// resnetBasic is torchvision's ResNet of basic blocks (He 2015, table 1).
func resnetBasic(blocks ...int) func(*Builder, int) {
	return func(b *Builder, classes int) {
		imageNetStem(b)
		stages(blocks, func(s, i, stride int) {
			name := fmt.Sprintf("layer%d.%d", s+1, i)
			basicBlock(b, name, 64<<s, stride, shortcut(b, name, 64<<s, stride))
		})
		b.GlobalPool("avgpool", b.Last())
		classifier(b, "fc", classes)
	}
}

// resnetBottleneck is torchvision's ResNet of bottlenecks, with the stride in the 3x3 convolution ("V1.5"): He's paper
// and Keras have it in the first 1x1. Source: torchvision/models/resnet.py.
func resnetBottleneck(blocks ...int) func(*Builder, int) {
	return func(b *Builder, classes int) {
		imageNetStem(b)
		stages(blocks, func(s, i, stride int) {
			bottleneck(b, fmt.Sprintf("layer%d.%d", s+1, i), 64<<s, stride)
		})
		b.GlobalPool("avgpool", b.Last())
		classifier(b, "fc", classes)
	}
}

func bottleneck(b *Builder, name string, filters, stride int) {
	in := b.Last()
	convBN(b, name+".conv1", name+".bn1", in, filters, Square(1, 1, 0))
	b.Same(name+".relu1", b.Last(), OpReLU)
	convBN(b, name+".conv2", name+".bn2", b.Last(), filters, Square(3, stride, 1))
	b.Same(name+".relu2", b.Last(), OpReLU)
	out := convBN(b, name+".conv3", name+".bn3", b.Last(), 4*filters, Square(1, 1, 0))
	short := in
	if stride > 1 || b.Out(in)[0] != 4*filters {
		short = shortcut(b, name, 4*filters, stride)(in)
	}
	b.Add(name+".add", out, short)
	b.Same(name+".relu3", b.Last(), OpReLU)
}

// resnetCIFAR has 6n+2 layers on 16, 32 and 64 channels (He 2015, section 4.2); project takes shortcuts of option B.
func resnetCIFAR(n int, project bool) func(*Builder, int) {
	return func(b *Builder, classes int) {
		convBN(b, "conv1", "bn1", 0, 16, Square(3, 1, 1))
		b.Same("relu", b.Last(), OpReLU)
		stages([]int{n, n, n}, func(s, i, stride int) {
			name := fmt.Sprintf("layer%d.%d", s+1, i)
			short := shortcut(b, name, 16<<s, stride)
			if !project {
				short = func(in int) int { return b.Downsample(name+".downsample", in, 16<<s, stride) }
			}
			basicBlock(b, name, 16<<s, stride, short)
		})
		b.GlobalPool("avgpool", b.Last())
		classifier(b, "fc", classes)
	}
}

// resnetNorm is the batch norm of Keras' ResNets.
var resnetNorm = Norm{Eps: 1.001e-5, Momentum: 0.01}

// resnetKeras is version 1 of Keras Applications (keras/src/applications/resnet.py): biases everywhere, the stride in
// the first 1x1 convolution.
func resnetKeras(blocks ...int) func(*Builder, int) {
	return func(b *Builder, classes int) {
		normKeras(b, "conv1_conv", "conv1_bn", 0, 64, Square(7, 2, 3))
		b.Same("conv1_relu", b.Last(), OpReLU)
		b.Pool("pool1_pool", b.Last(), OpMaxPool, Square(3, 2, 1)) // after ReLU, Keras' zeros are no larger than any pixel
		stages(blocks, func(s, i, stride int) {
			bottleneckKeras(b, fmt.Sprintf("conv%d_block%d", s+2, i+1), 64<<s, stride, i == 0)
		})
		b.GlobalPool("avg_pool", b.Last())
		classifier(b, "predictions", classes)
	}
}

func normKeras(b *Builder, conv, bn string, in, filters int, w Window) int {
	return b.Norm(bn, b.Conv(conv, in, filters, w, 1, true), resnetNorm)
}

func bottleneckKeras(b *Builder, name string, filters, stride int, project bool) {
	in := b.Last()
	short := in
	if project {
		short = normKeras(b, name+"_0_conv", name+"_0_bn", in, 4*filters, Square(1, stride, 0))
	}
	normKeras(b, name+"_1_conv", name+"_1_bn", in, filters, Square(1, stride, 0))
	b.Same(name+"_1_relu", b.Last(), OpReLU)
	normKeras(b, name+"_2_conv", name+"_2_bn", b.Last(), filters, Square(3, 1, 1))
	b.Same(name+"_2_relu", b.Last(), OpReLU)
	out := normKeras(b, name+"_3_conv", name+"_3_bn", b.Last(), 4*filters, Square(1, 1, 0))
	b.Add(name+"_add", short, out)
	b.Same(name+"_out", b.Last(), OpReLU)
}
