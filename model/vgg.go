package model

import "fmt"

// vgg16 has torchvision's head on 7x7 features, or one on what is left of a small image.
func vgg16(adaptive bool) func(*Builder, int) {
	return func(b *Builder, classes int) {
		for s, filters := range []int{64, 128, 256, 512, 512} {
			for i := range []int{2, 2, 3, 3, 3}[s] {
				convReLU(b, fmt.Sprintf("conv%d_%d", s+1, i+1), filters, Square(3, 1, 1))
			}
			b.Pool(fmt.Sprintf("pool%d", s+1), b.Last(), OpMaxPool, Square(2, 2, 0))
		}
		if s := b.Out(b.Last()); adaptive && (s[1] != 7 || s[2] != 7) {
			b.AdaptivePool("avgpool", b.Last(), 7)
		}
		b.Flatten("flatten", b.Last())
		for i := range 2 {
			b.Dense(fmt.Sprintf("fc%d", i+1), b.Last(), 4096)
			b.Same(fmt.Sprintf("fc%d.relu", i+1), b.Last(), OpReLU)
			b.Dropout(fmt.Sprintf("fc%d.dropout", i+1), b.Last(), 0.5)
		}
		b.Dense("fc3", b.Last(), classes)
	}
}
