package native

import (
	"fmt"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/enginetest"
)

// BenchmarkStep trains networks of the zoo at the sizes of `make bench-engine`, which also measures its peers, on one
// thread and on two.
func BenchmarkStep(b *testing.B) {
	for _, n := range []struct {
		name  string
		input []int
		batch int
	}{
		{"lenet5", []int{1, 28, 28}, 64},
		{"resnet18", []int{3, 32, 32}, 32},
		{"vgg16-cifar", []int{3, 32, 32}, 32},
		{"resnet50", []int{3, 32, 32}, 32},
		{"mobilenetv1", []int{3, 32, 32}, 32},
		{"inceptionv3", []int{3, 96, 96}, 32},
	} {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/%d", n.name, threads), func(b *testing.B) {
				g, err := model.Build(disdel.Network{Name: n.name, Input: n.input, Classes: 10})
				if err != nil {
					b.Fatal(err)
				}
				e := newEngine(b, g, engine.Spec{
					BatchSize: n.batch, Threads: threads, Training: true,
					Optimizer: disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.01, Momentum: 0.9}},
				})
				if err := e.Init(disdel.Init{Scheme: "he"}); err != nil {
					b.Fatal(err)
				}
				x, y := batch(g, n.batch, 1)
				for b.Loop() {
					if _, err := enginetest.Train(e, x, y); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.N*n.batch)/b.Elapsed().Seconds(), "samples/s")
			})
		}
	}
}
