package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"runtime"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
)

// bounds are how far losses may be apart after the steps of a check, as a share: in float32 both engines add up in
// another order, in the others what is multiplied is rounded too.
var bounds = []struct {
	precision disdel.Precision
	apart     float64
}{{disdel.PrecisionFloat32, 2e-3}, {disdel.PrecisionTF32, 2e-2}, {disdel.PrecisionBF16, 1e-1}}

const (
	checkBatch    = 8
	checkSteps    = 5
	checkRate     = 0.01
	checkMomentum = 0.9
	checkSide     = 64 // images larger than this are made smaller, where the network allows it
)

// first is what all weights of a check are drawn by.
var first = disdel.Init{Seed: 1}

// checked is how a network is trained for a check.
func checked(g *model.Graph) engine.Spec {
	return engine.Spec{
		Graph: g, BatchSize: checkBatch, Training: true, Threads: runtime.NumCPU(), Seed: 1,
		Optimizer: disdel.Optimizer{SGD: &disdel.SGD{LearningRate: checkRate, Momentum: checkMomentum}},
	}
}

// near tells that a loss is no farther from another than it may be.
func near(got, want, apart float64) bool { return math.Abs(got-want) <= apart*(1+math.Abs(want)) }

// check trains networks for some steps on both engines, with the same weights and batches.
func check(out io.Writer, b [2]engine.Backend, networks []model.Entry) error {
	fmt.Fprintf(out, "\n## Losses of %d steps, batch %d: processor, GPU\n\n", checkSteps, checkBatch)
	wrong := 0
	for _, e := range networks {
		g, err := smaller(e)
		if err != nil {
			return err
		}
		s := checked(g)
		want, err := losses(b[0], s)
		if err != nil {
			return err
		}
		for _, p := range bounds {
			s.Precision = p.precision
			got, err := losses(b[1], s)
			if errors.Is(err, disdel.Unavailable) && p.precision != disdel.PrecisionFloat32 {
				continue // an older device
			}
			if err != nil {
				return err
			}
			verdict := "ok"
			if i := firstApart(want, got, p.apart); i >= 0 {
				verdict = fmt.Sprintf("APART at step %d", i)
				wrong++
			}
			fmt.Fprintf(out, "- %s %v, %s: %.5f and %.5f: %s\n", e.Name, []int(g.Input()), p.precision, want, got, verdict)
		}
	}
	if wrong > 0 {
		return &disdel.Error{Kind: disdel.Internal, Op: "check", Msg: fmt.Sprintf("%d networks differ", wrong)}
	}
	return nil
}

// smaller is a network for smaller images than its own, where it can be had.
func smaller(e model.Entry) (*model.Graph, error) {
	n := disdel.Network{Name: e.Name, Input: e.Input, Classes: e.Classes}
	if len(e.Input) == 3 && e.Input[1] > checkSide {
		n.Input = []int{e.Input[0], checkSide, checkSide}
		if g, err := model.Build(n); err == nil {
			return g, nil
		}
		n.Input = e.Input
	}
	return model.Build(n)
}

func losses(b engine.Backend, s engine.Spec) (out []float64, err error) {
	e, err := b.New(s)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closed := e.Close(); err == nil {
			err = closed
		}
	}()
	if err := e.Init(first); err != nil {
		return nil, err
	}
	for i := range checkSteps {
		m, err := e.Step(random(s.Graph, s.BatchSize, uint64(i)))
		if err != nil {
			return nil, err
		}
		out = append(out, m.Loss)
	}
	return out, nil
}

// random is a batch by a seed.
func random(g *model.Graph, rows int, seed uint64) dataset.Batch {
	rng := rand.New(rand.NewPCG(seed, 1))
	b := dataset.Dense(rows, make([]float32, rows*g.Input().Len()), make([]int32, rows))
	for i := range b.Input.Values {
		b.Input.Values[i] = float32(rng.NormFloat64())
	}
	for i := range b.Target.Classes {
		b.Target.Classes[i] = rng.Int32N(int32(g.Output().Len()))
	}
	return b
}
