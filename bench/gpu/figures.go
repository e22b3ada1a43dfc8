package main

import (
	"errors"
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

// measurement is a network whose speed is asked for.
type measurement struct {
	network disdel.Network
	batch   int
}

// name is what its figures begin with.
func (m measurement) name() string { return fmt.Sprintf("%s/%d", m.network.Name, m.batch) }

var measured = []measurement{
	{disdel.Network{Name: "lenet5", Input: []int{1, 28, 28}, Classes: 10}, 512},
	{disdel.Network{Name: "resnet18", Input: []int{3, 32, 32}, Classes: 10}, 128},
	{disdel.Network{Name: "resnet50", Input: []int{3, 32, 32}, Classes: 10}, 128},
}

// figures of a network are lines of the form: figure NAME VALUE UNIT. PyTorch, where there is one for GPUs, computes in
// the same precision.
func figures(out io.Writer, b [2]engine.Backend, python string, m measurement) error {
	name, network, batch := m.name(), m.network, m.batch
	fmt.Fprintf(out, "\n## Figures of %s: medians of 5 runs of 2 s\n\n", name)
	g, err := model.Build(network)
	if err != nil {
		return err
	}
	s := engine.Spec{
		Graph: g, BatchSize: batch, Training: true, Threads: runtime.NumCPU(),
		Optimizer: disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.01, Momentum: 0.9}},
	}
	processor, err := figure(out, name+"/"+b[0].Name(), b[0], s)
	if err != nil {
		return err
	}
	for _, precision := range []disdel.Precision{disdel.PrecisionFloat32, disdel.PrecisionTF32, disdel.PrecisionBF16} {
		s.Precision = precision
		at := name + "/" + string(precision)
		gpu, err := figure(out, at+"/"+b[1].Name(), b[1], s)
		if errors.Is(err, disdel.Unavailable) && precision != disdel.PrecisionFloat32 {
			fmt.Fprintf(out, "no figure in %s: %v\n", precision, err)
			continue
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "figure %s/ratio %.2f x\n", at, gpu/processor)
		if precision == disdel.PrecisionBF16 {
			continue // autocast is another thing
		}
		if perSecond, why := torch(python, network, batch, precision == disdel.PrecisionTF32); why == "" {
			fmt.Fprintf(out, "figure %s/torch %.0f samples/s\n", at, perSecond)
			fmt.Fprintf(out, "figure %s/over-torch %.2f x\n", at, gpu/perSecond)
		} else {
			fmt.Fprintf(out, "no figure of PyTorch on this GPU: %s\n", why)
		}
	}
	f, err := b[1].Footprint(s)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "figure %s/planned %d bytes of the device, with its guess of a context\n",
		name, int64(f.In(footprint.Device)))
	return nil
}

// figure writes how fast a backend trains, and how soon its first step has ended.
func figure(out io.Writer, name string, b engine.Backend, s engine.Spec) (perSecond float64, err error) {
	perSecond, first, err := stepping(b, s, time.Now())
	if err != nil {
		return 0, err
	}
	fmt.Fprintf(out, "figure %s %.0f samples/s\n", name, perSecond)
	fmt.Fprintf(out, "figure %s/first %.2f s\n", name, first.Seconds())
	return perSecond, nil
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
	step := stepsOn(e, random(s.Graph, s.BatchSize, 1))
	if err := step(); err != nil {
		return 0, 0, err
	}
	first = time.Since(began)
	var runs []float64
	for range 5 {
		n, from := 0, time.Now()
		for time.Since(from) < 2*time.Second {
			if err := step(); err != nil {
				return 0, 0, err
			}
			n += s.BatchSize
		}
		runs = append(runs, float64(n)/time.Since(from).Seconds())
	}
	slices.Sort(runs)
	return runs[len(runs)/2], first, nil
}
