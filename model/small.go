package model

import "fmt"

// classifier adds flatten and a dense layer.
func classifier(b *Builder, name string, classes int) {
	b.Flatten("flatten", b.Last())
	b.Dense(name, b.Last(), classes)
}

func softmaxRegression(b *Builder, classes int) { classifier(b, "fc", classes) }

// head adds dense layers with ReLU between them: fc1, fc2, ...
func head(b *Builder, units ...int) {
	for i, u := range units {
		b.Dense(fmt.Sprintf("fc%d", i+1), b.Last(), u)
		if i < len(units)-1 {
			b.Same(fmt.Sprintf("fc%d.relu", i+1), b.Last(), OpReLU)
		}
	}
}

func mlp(b *Builder, classes int) {
	b.Flatten("flatten", 0)
	head(b, 128, 64, classes)
}

func convReLU(b *Builder, name string, filters int, w Window) {
	b.Conv(name, b.Last(), filters, w, 1, true)
	b.Same(name+".relu", b.Last(), OpReLU)
}

func digitsCNN(b *Builder, classes int) {
	convReLU(b, "conv1", 16, Square(3, 1, 1))
	convReLU(b, "conv2", 32, Square(3, 1, 1))
	b.Pool("pool", b.Last(), OpMaxPool, Square(2, 2, 0))
	b.Flatten("flatten", b.Last())
	head(b, 64, classes)
}

func lenet(pad int) func(*Builder, int) {
	return func(b *Builder, classes int) {
		convReLU(b, "conv1", 6, Square(5, 1, pad))
		b.Pool("pool1", b.Last(), OpMaxPool, Square(2, 2, 0))
		convReLU(b, "conv2", 16, Square(5, 1, 0))
		b.Pool("pool2", b.Last(), OpMaxPool, Square(2, 2, 0))
		b.Flatten("flatten", b.Last())
		head(b, 120, 84, classes)
	}
}
