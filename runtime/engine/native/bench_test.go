package native

import (
	"fmt"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/enginetest"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
)

// benched are networks of the zoo, at the sizes of `make bench-engine` where that measures them and their peers, and
// the recurrent one of `make bench-sequences`.
var benched = []struct {
	name  string
	input []int
	batch int
}{
	{"lenet5", []int{1, 28, 28}, 64},
	{"resnet18", []int{3, 32, 32}, 32},
	{"resnet20-cifar", []int{3, 32, 32}, 32},
	{"vgg16-cifar", []int{3, 32, 32}, 32},
	{"resnet50", []int{3, 32, 32}, 32},
	{"mobilenetv1", []int{3, 32, 32}, 32},
	{"inceptionv3", []int{3, 96, 96}, 32},
	{"lstm", []int{1, 1, 128}, 16},
}

// benchedGraph is one of them.
func benchedGraph(b *testing.B, name string, input []int) *model.Graph {
	b.Helper()
	n := disdel.Network{Name: name, Input: input, Classes: 10}
	if name == "lstm" {
		n.Name, n.Layers = "", []disdel.Layer{
			{Kind: "embedding", Vocabulary: 20000, Width: 128, Padded: new(true)},
			{Kind: "lstm", Units: 256},
			{Kind: "takePosition", Take: "last"},
			{Kind: "dense", Units: n.Classes},
		}
	}
	g, err := model.Build(n)
	if err != nil {
		b.Fatal(err)
	}
	return g
}

// benchedEngine is an engine with its first weights, and a batch for it.
func benchedEngine(b *testing.B, g *model.Graph, cfg engine.Spec) (e *Engine, x []float32, y []int32) {
	b.Helper()
	e = newEngine(b, g, cfg)
	if err := e.Init(disdel.Init{Scheme: "he"}); err != nil {
		b.Fatal(err)
	}
	x, y = batch(g, cfg.BatchSize, 1)
	return e, x, y
}

// training is how they are trained.
func training(batch, threads int) engine.Spec {
	return engine.Spec{
		BatchSize: batch, Threads: threads, Training: true,
		Optimizer: disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.01, Momentum: 0.9}},
	}
}

// BenchmarkStep trains on one thread and on two.
func BenchmarkStep(b *testing.B) {
	for _, n := range benched {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/%d", n.name, threads), func(b *testing.B) {
				e, x, y := benchedEngine(b, benchedGraph(b, n.name, n.input), training(n.batch, threads))
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
