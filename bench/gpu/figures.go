package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/footprint"
)

// measured are the networks whose speed is asked for.
var measured = []struct {
	network disdel.Network
	batch   int
}{
	{disdel.Network{Name: "lenet5", Input: []int{1, 28, 28}, Classes: 10}, 512},
	{disdel.Network{Name: "resnet18", Input: []int{3, 32, 32}, Classes: 10}, 128},
	{disdel.Network{Name: "resnet50", Input: []int{3, 32, 32}, Classes: 10}, 128},
}

// figures are lines of the form: figure NAME VALUE UNIT. PyTorch, where there is one for GPUs, computes in float32 too.
func figures(out io.Writer, b [2]engine.Backend) error {
	fmt.Fprint(out, "\n## Figures: medians of 5 runs of 2 s, float32\n\n")
	for _, m := range measured {
		g, err := model.Build(m.network)
		if err != nil {
			return err
		}
		s := engine.Spec{
			Graph: g, BatchSize: m.batch, Training: true, Threads: runtime.NumCPU(),
			Optimizer: disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.01, Momentum: 0.9}},
		}
		var speed [2]float64
		for i, backend := range b {
			began := time.Now()
			var first time.Duration
			if speed[i], first, err = stepping(backend, s, began); err != nil {
				return err
			}
			name := fmt.Sprintf("%s/%d/%s", m.network.Name, m.batch, backend.Name())
			fmt.Fprintf(out, "figure %s %.0f samples/s\n", name, speed[i])
			fmt.Fprintf(out, "figure %s/first %.2f s\n", name, first.Seconds())
		}
		fmt.Fprintf(out, "figure %s/%d/ratio %.2f x\n", m.network.Name, m.batch, speed[1]/speed[0])
		if perSecond, why := torch(m.network, m.batch); why == "" {
			fmt.Fprintf(out, "figure %s/%d/torch %.0f samples/s\n", m.network.Name, m.batch, perSecond)
			fmt.Fprintf(out, "figure %s/%d/over-torch %.2f x\n", m.network.Name, m.batch, speed[1]/perSecond)
		} else {
			fmt.Fprintf(out, "no figure of PyTorch on this GPU: %s\n", why)
		}
		f, err := b[1].Footprint(s)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "figure %s/%d/device %d bytes\n", m.network.Name, m.batch, int64(f.In(footprint.Device)))
	}
	return nil
}

// stepping is how many samples a second an engine trains on, and how long after began its first step had ended.
func stepping(b engine.Backend, s engine.Spec, began time.Time) (perSecond float64, first time.Duration, err error) {
	e, err := b.New(s)
	if err != nil {
		return 0, 0, err
	}
	defer func() {
		if closed := e.Close(); err == nil {
			err = closed
		}
	}()
	if err := e.Init(disdel.Init{Seed: 1}); err != nil {
		return 0, 0, err
	}
	x := random(s.Graph, s.BatchSize, 1)
	if _, err := e.Step(x); err != nil {
		return 0, 0, err
	}
	first = time.Since(began)
	var runs []float64
	for range 5 {
		n, from := 0, time.Now()
		for time.Since(from) < 2*time.Second {
			if _, err := e.Step(x); err != nil {
				return 0, 0, err
			}
			n += s.BatchSize
		}
		runs = append(runs, float64(n)/time.Since(from).Seconds())
	}
	slices.Sort(runs)
	return runs[len(runs)/2], first, nil
}
