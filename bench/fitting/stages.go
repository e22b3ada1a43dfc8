package main

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/bench/rig"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/native"
)

// The batch and micro-batches of stages.
const (
	stagedRows  = 32
	stagedMicro = 8
)

// stages compares steps of ResNet-50 in stages with those of one engine with the same micro-batches: the arrays that
// differ, and how fast two stages of a thread each are beside one engine of two threads. The stages are goroutines of
// this process, and pass values over channels: Redis and the start of actions are not in the figure.
func stages(side int) error {
	g, err := model.Build(disdel.Network{Name: "resnet50", Input: []int{3, side, side}, Classes: 10})
	if err != nil {
		return err
	}
	whole, err := chainOf(g, 1, 2)
	if err != nil {
		return err
	}
	defer whole.close()
	want, err := whole.train(2)
	if err != nil {
		return err
	}
	differ := 0
	for n := 2; n <= 4; n++ {
		all, err := chainOf(g, n, 1)
		if err != nil {
			return err
		}
		got, err := all.train(2)
		if err != nil {
			return err
		}
		for i := range want {
			if !slices.Equal(want[i].Data, got[i].Data) {
				differ++
			}
		}
		all.close()
	}
	rig.Figure("stages_bits", float64(differ), fmt.Sprintf("arrays that differ, of %d in 2, 3 and 4 stages", 3*len(want)))
	two, err := chainOf(g, 2, 1)
	if err != nil {
		return err
	}
	defer two.close()
	took := [2]time.Duration{1 << 62, 1 << 62}
	for range 4 { // in turns, so that both meet the same machine
		for i, c := range []*chain{whole, two} {
			begun := time.Now()
			if _, err := c.train(1); err != nil {
				return err
			}
			took[i] = min(took[i], time.Since(begun))
		}
	}
	rig.Figure("stages_throughput", took[0].Seconds()/took[1].Seconds(),
		"2 stages of a thread over one engine of 2, without Redis")
	return nil
}

// chain is a network's stages, one after another; a single one is the whole network.
type chain struct {
	whole   *model.Graph
	engines []engine.Engine
}

// chainOf makes engines for n stages with about as many cuts each.
func chainOf(g *model.Graph, n, threads int) (*chain, error) {
	c, cuts := &chain{whole: g}, g.Cuts()
	ends := []int{1}
	for k := 1; k < n; k++ {
		ends = append(ends, cuts[len(cuts)*k/n])
	}
	ends = append(ends, len(g.Nodes))
	for i := range n {
		part := g
		if n > 1 {
			var err error
			if part, err = g.Sliced(ends[i], ends[i+1]); err != nil {
				return nil, err
			}
		}
		e, err := native.New(engine.Spec{
			Graph: part, BatchSize: stagedRows, Training: true, Optimizer: adam, Threads: threads,
			StepMemory: disdel.StepMemory{MicroBatch: stagedMicro},
		})
		if err != nil {
			return nil, err
		}
		if err := e.Init(disdel.Init{Scheme: "he"}); err != nil {
			return nil, err
		}
		c.engines = append(c.engines, e)
	}
	return c, nil
}

func (c *chain) close() {
	for _, e := range c.engines {
		e.Close()
	}
}

// train trains steps, and returns the weights.
func (c *chain) train(steps int) (disdel.Weights, error) {
	b := batch(c.whole, stagedRows)
	for range steps {
		if err := c.step(b); err != nil {
			return nil, err
		}
	}
	var out disdel.Weights
	for _, e := range c.engines {
		out = append(out, engine.Weights(e)...)
	}
	return out, nil
}

// step trains a batch, with each stage in a goroutine.
func (c *chain) step(b dataset.Batch) error {
	if len(c.engines) == 1 {
		_, err := c.engines[0].Step(b)
		return err
	}
	const parts = stagedRows / stagedMicro
	forth, back := make([]chan []float32, len(c.engines)+1), make([]chan []float32, len(c.engines)+1)
	for i := range forth {
		forth[i], back[i] = make(chan []float32, parts), make(chan []float32, parts)
	}
	row := c.whole.Input().Len()
	for k := range parts {
		forth[0] <- b.Input.Values[k*stagedMicro*row:][:stagedMicro*row]
	}
	var all sync.WaitGroup
	failures := make([]error, len(c.engines))
	for i, e := range c.engines {
		all.Go(func() {
			s := runner{e.Passes(), b, i == 0, i == len(c.engines)-1}
			failures[i] = s.through(forth[i], forth[i+1], back[i+1], back[i])
		})
	}
	all.Wait()
	for _, err := range failures {
		if err != nil {
			return err
		}
	}
	return nil
}

// runner is one stage of a step.
type runner struct {
	engine.Passes
	batch dataset.Batch
	first bool
	last  bool
}

// through computes all micro-batches forward, and then backward.
func (s runner) through(in, out, gradients, back chan []float32) error {
	var passes []engine.Pass
	for k := range stagedRows / stagedMicro {
		p := engine.Pass{Rows: stagedRows, First: k * stagedMicro}
		p.Input = dataset.Matrix{Rows: stagedMicro, Values: <-in}
		s.take(p)
		if s.last {
			p.Target = s.batch.Target
			if err := s.back(p, back); err != nil {
				return err
			}
			continue
		}
		y, err := s.Forward(p)
		if err != nil {
			return err
		}
		out <- copied(y)
		passes = append(passes, p)
	}
	for _, p := range passes {
		s.take(p)
		g, err := s.Recompute(p)
		if err != nil {
			return err
		}
		g.Set(0, <-gradients)
		if err := s.back(p, back); err != nil {
			return err
		}
	}
	return nil
}

// take gives the inputs of a micro-batch to a stage behind the first.
func (s runner) take(p engine.Pass) {
	if !s.first {
		s.Inputs(stagedMicro).Set(0, p.Input.Values)
	}
}

// back computes a micro-batch backward.
func (s runner) back(p engine.Pass, to chan []float32) error {
	g, _, err := s.Backward(p)
	if err != nil {
		return err
	}
	if s.first {
		to <- nil
	} else {
		to <- copied(g)
	}
	return nil
}

func copied(l engine.Lanes) []float32 { return slices.Clone(l.Block(0, l.Len())) }
