package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/runtime/engine"
)

// aheadSteps is how many steps a comparison of bits is of.
const aheadSteps = 50

// stepsOn is a step on a batch, again and again. An engine that takes batches ahead has the next one on its way while
// it computes, as in actions.
func stepsOn(e engine.Engine, x dataset.Batch) func() error {
	a := e.Ahead()
	if a == nil {
		return func() error {
			_, err := e.Step(x)
			return err
		}
	}
	staged := false
	return func() error {
		if !staged {
			if err := a.Stage(x); err != nil {
				return err
			}
		}
		staged = true
		_, err := a.StepStaged(func() error { return a.Stage(x) })
		return err
	}
}

// sameBits trains on large batches one after another, then with each on its way while the one before is computed with,
// then again: losses and weights have to be the same bits.
func sameBits(out io.Writer, b engine.Backend) error {
	fmt.Fprintf(out, "\n## %d steps of LeNet-5, batch %d: in order, with batches ahead, and again\n\n", aheadSteps,
		measured[0].batch)
	s, err := lenet()
	if err != nil {
		return err
	}
	var want trained
	for i, ahead := range []bool{false, true, true} {
		got, err := train(b, s, ahead)
		switch {
		case err != nil:
			return err
		case i == 0:
			want = got
		case !slices.Equal(want.losses, got.losses) || !slices.EqualFunc(want.weights, got.weights, sameArray):
			return &disdel.Error{
				Kind: disdel.Internal, Op: "check", Msg: fmt.Sprintf("run %d has other bits: losses %v, and %v before", i+1,
					got.losses, want.losses),
			}
		}
	}
	fmt.Fprintf(out, "- the same bits; the loss went from %.4f to %.4f\n", want.losses[0], want.losses[aheadSteps-1])
	return nil
}

func sameArray(a, b disdel.Tensor) bool { return slices.Equal(a.Data, b.Data) }

// trained is what a training came to.
type trained struct {
	losses  []float64
	weights disdel.Weights
}

// train makes steps, each on another batch.
func train(b engine.Backend, s engine.Spec, ahead bool) (out trained, err error) {
	e, err := b.New(s)
	if err != nil {
		return out, err
	}
	defer func() {
		if closed := e.Close(); err == nil {
			err = closed
		}
	}()
	if err := e.Init(first); err != nil {
		return out, err
	}
	a := e.Ahead()
	next := func(i int) dataset.Batch { return random(s.Graph, s.BatchSize, uint64(i)) }
	for i := range aheadSteps {
		var m disdel.Metrics
		switch {
		case !ahead || a == nil:
			m, err = e.Step(next(i))
		case i == 0:
			if err = a.Stage(next(i)); err != nil {
				return out, err
			}
			fallthrough
		default:
			m, err = a.StepStaged(func() error { return a.Stage(next(i + 1)) })
		}
		if err != nil {
			return out, err
		}
		out.losses = append(out.losses, m.Loss)
	}
	out.weights = engine.Weights(e)
	return out, nil
}
