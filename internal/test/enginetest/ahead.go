package enginetest

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
)

// staging: steps on batches that were staged during the step before give the same bits as Step. It does not matter what
// the caller does with a batch after the engine took it, nor what is evaluated in between. Engines without Ahead
// promise nothing.
func staging(t *testing.T, b engine.Backend) {
	g := dropping(t)
	s := engine.Spec{Graph: g, Optimizer: adam, Training: true, Seed: 3}
	e := fresh(t, b, s)
	ahead := e.Ahead()
	if ahead == nil {
		return
	}
	plain := fresh(t, b, s)
	if _, err := ahead.StepStaged(nil); !errors.Is(err, disdel.Invalid) {
		t.Errorf("a step on no batch returns %v", err)
	}
	const n = 7
	staged(t, ahead, batch(g, rows, 77)) // which the next one has forgotten
	staged(t, ahead, batch(g, sized(0), 0))
	for i := range n {
		want, err := plain.Step(batch(g, sized(i), uint64(i)))
		if err != nil {
			t.Fatal(err)
		}
		got, err := ahead.StepStaged(func() error { return stages(ahead, batch(g, sized(i+1), uint64(i+1))) })
		if err != nil || got.Loss != want.Loss || got.Rows != want.Rows || got.Correct != want.Correct {
			t.Fatalf("step %d: %+v, %v; want %+v", i, got, err, want)
		}
		if i%2 == 0 {
			undisturbed(t, g, plain, e, uint64(100+i))
		}
	}
	same(t, "staged", everything(plain), everything(e))
	stagedOdd(t, g, plain, e)
}

// sized is how many rows step i has: every third one is short.
func sized(i int) int {
	if i%3 == 2 {
		return rows / 2
	}
	return rows
}

// stages hands a batch over, which is the caller's again: it is overwritten.
func stages(e engine.Ahead, x dataset.Batch) error {
	err := e.Stage(x)
	for i := range x.Input.Values {
		x.Input.Values[i] = 1e6
	}
	clear(x.Target.Classes)
	return err
}

func staged(t *testing.T, e engine.Ahead, x dataset.Batch) {
	t.Helper()
	if err := stages(e, x); err != nil {
		t.Fatal(err)
	}
}

// undisturbed evaluates on both engines, of which one has a batch on its way.
func undisturbed(t *testing.T, g *model.Graph, plain, e engine.Engine, seed uint64) {
	t.Helper()
	want, err := plain.Evaluate(batch(g, rows, seed))
	if err != nil {
		t.Fatal(err)
	}
	got, err := e.Evaluate(batch(g, rows, seed))
	if err != nil || got.Loss != want.Loss || !slices.Equal(got.Classes, want.Classes) {
		t.Errorf("an evaluation beside a staged batch: %+v, %v; want %+v", got, err, want)
	}
}

// stagedOdd: a refused batch leaves the one before staged. A batch that is not finite changes no weight, and the batch
// behind it is trained on. The error that during returns comes back after the step was made.
func stagedOdd(t *testing.T, g *model.Graph, plain, e engine.Engine) {
	t.Helper()
	a := e.Ahead()
	if err := a.Stage(batch(g, rows+1, 1)); !errors.Is(err, disdel.Invalid) {
		t.Errorf("too many rows are staged: %v", err)
	}
	odd := batch(g, rows, 8)
	odd.Input.Values[3] = float32(math.NaN())
	staged(t, a, odd)
	before := engine.Copies(engine.Of(e.State(), engine.Weight))
	_, err := a.StepStaged(func() error { return stages(a, batch(g, rows, 9)) })
	if !errors.Is(err, disdel.Diverged) {
		t.Errorf("a batch that is not finite: %v", err)
	}
	same(t, "after a batch that is not finite", before, engine.Copies(engine.Of(e.State(), engine.Weight)))
	odd = batch(g, rows, 8)
	odd.Input.Values[3] = float32(math.Inf(1))
	if _, err := plain.Step(odd); !errors.Is(err, disdel.Diverged) {
		t.Errorf("a batch that is not finite: %v", err)
	}
	want, err := plain.Step(batch(g, rows, 9))
	if err != nil {
		t.Fatal(err)
	}
	mine := errors.New("of the caller")
	if got, err := a.StepStaged(func() error { return mine }); !errors.Is(err, mine) || got.Loss != want.Loss {
		t.Errorf("%+v, %v; want %+v and what the caller returned", got, err, want)
	}
	same(t, "after odd batches", everything(plain), everything(e))
	stagedOnce(t, g, plain, e)
}

// stagedOnce: no batch is trained on twice, and one that was staged before a Step is forgotten.
func stagedOnce(t *testing.T, g *model.Graph, plain, e engine.Engine) {
	t.Helper()
	a := e.Ahead()
	if _, err := a.StepStaged(nil); !errors.Is(err, disdel.Invalid) {
		t.Errorf("a second step on a batch: %v", err)
	}
	staged(t, a, batch(g, rows, 10))
	for _, on := range []engine.Engine{plain, e} {
		if _, err := on.Step(batch(g, rows/2, 11)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.StepStaged(nil); !errors.Is(err, disdel.Invalid) {
		t.Errorf("a step on a batch that was staged before another step: %v", err)
	}
	same(t, "after a batch that was forgotten", everything(plain), everything(e))
}
