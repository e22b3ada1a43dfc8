package main

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/bench/rig"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/python"
	"github.com/disdel/disdel/service/program"
)

// exchange prints how long the weights of ResNet-18 take into a worker at the begin of a round and out of it at the
// end, and how many times as long as two memory copies of the same bytes. The ratio is that of the shortest times,
// because other programs make some rounds longer. The way to the store is not part of it, but one reading of all
// weights is, as the store's encoder reads them.
func (b *bencher) exchange() error {
	e, err := b.worker("resnet18.py", []int{3, 64, 64})
	if err != nil {
		return err
	}
	defer e.Close() //nolint:errcheck // nothing of it is kept
	weights, scratch := engine.Trained(e), engine.Trained(e)
	const rounds = 100
	var ours, copies []float64
	for range rounds {
		began := time.Now()
		for range 2 {
			for i, w := range weights {
				copy(scratch[i].Data, w.Data)
			}
		}
		copied := time.Now()
		if err := engine.SetTrained(e, weights); err != nil {
			return err
		}
		if err := e.Listener().EndRound(); err != nil {
			return err
		}
		for i, w := range engine.TrainedViews(e) {
			copy(weights[i].Data, w.Data)
		}
		copies = append(copies, float64(copied.Sub(began))/1e6)
		ours = append(ours, float64(time.Since(copied))/1e6)
	}
	rig.MedianFigure("function_exchange_ms", ours, "ms")
	rig.MedianFigure("function_copies_ms", copies, "ms")
	rig.Figure("function_exchange_ratio", slices.Min(ours)/slices.Min(copies), "ratio")
	return nil
}

// worker starts the worker of a program with new weights, as an action does.
func (b *bencher) worker(file string, input []int) (engine.Engine, error) {
	sgd := disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.01, Momentum: 0.9}}
	described, _, err := program.Describe(context.Background(), program.Options{
		Python: disdel.Python{File: file, Entry: "Net"}, Dir: b.programs, Input: input, Classes: 10, Batches: []int{1},
		Loss: "crossEntropy", Optimizer: sgd, Interpreter: b.python, Cache: filepath.Join(b.Home, "python"),
	})
	if err != nil {
		return nil, err
	}
	g, err := model.Build(disdel.Network{Custom: described.Network, Input: input, Classes: 10})
	if err != nil {
		return nil, err
	}
	e, err := python.Backend{}.New(engine.Spec{
		Graph: g, Code: b.programs, BatchSize: 1, Optimizer: sgd, Loss: "crossEntropy", Threads: 1, Training: true,
	})
	if err != nil {
		return nil, err
	}
	return e, e.Init(disdel.Init{Seed: 1})
}
