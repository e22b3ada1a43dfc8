package cuda

import (
	"errors"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
)

// An optimiser without a kernel is refused when a job is planned.
func TestOptimizersWithoutKernelsAreRefused(t *testing.T) {
	g, err := model.Build(disdel.Network{Name: "lenet5", Input: []int{1, 28, 28}, Classes: 10})
	if err != nil {
		t.Fatal(err)
	}
	o := disdel.Optimizer{Adagrad: &disdel.Adagrad{LearningRate: 1}}
	_, err = Backend{}.Footprint(engine.Spec{Graph: g, BatchSize: 4, Optimizer: o, Training: true})
	if !errors.Is(err, disdel.Invalid) || !strings.Contains(err.Error(), "optimiser adagrad") {
		t.Error(err)
	}
}

// A network with a layer that has no kernels here is refused by name, and never made.
func TestLayersWithoutKernelsAreRefused(t *testing.T) {
	g, err := model.Build(disdel.Network{Input: []int{1, 1, 5}, Layers: []disdel.Layer{
		{Kind: "embedding", Vocabulary: 9, Width: 6}, {Kind: "takePosition", Take: model.TakeLast},
	}})
	if err != nil {
		t.Fatal(err)
	}
	err = Backend{}.Supports(g)
	if !errors.Is(err, disdel.Invalid) || !strings.Contains(err.Error(), "kind embedding") {
		t.Error(err)
	}
}
