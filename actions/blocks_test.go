package actions

import (
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/race"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/backends"
)

// A worker with moments in a file reads and sends weights in blocks, stores large arrays in parts, and changes large
// dense layers part by part. It comes to the bits of one that does not: in legs, with a later round's reference, from
// the state that the round before kept, and in stages, which pause too.
func TestWeightsThatComeAndGoInBlocksKeepTheBits(t *testing.T) {
	race.SkipSequential(t)
	t.Setenv("TMPDIR", t.TempDir())
	type updating func(*bench, disdel.TrainRequest) disdel.Weights
	run := func(format disdel.StateFormat, update updating) (w disdel.Weights) {
		b := setUp(t)
		b.net = wideNetwork()
		for round := range 2 {
			req := b.train(0)
			req.Shard.End, req.Epochs, req.Round, req.StateFormat = 60, 1, round, format
			req.OptimizerState, req.Statistics = disdel.StateKeep, disdel.StateKeep
			w = update(b, req)
			if err := b.board.PutReference(t.Context(), "job-1", round+1, w); err != nil {
				t.Fatal(err)
			}
		}
		return w
	}
	want := run("", (*bench).inLegs)
	if got := run(disdel.StatePaged, (*bench).inLegs); !equal(got, want) {
		t.Error("one action comes to other weights")
	}
	got := run(disdel.StatePaged, func(b *bench, req disdel.TrainRequest) disdel.Weights {
		return b.through(b.staged(req, 2), unharmed, nearlyOver())
	})
	if !equal(got, want) {
		t.Error("two stages come to other weights")
	}
}

// wideNetwork has a dense layer whose gradient is computed in parts, and stored in parts.
func wideNetwork() disdel.Network {
	return disdel.Network{
		Input: []int{1, 8, 8}, Classes: 10, Init: disdel.Init{Seed: 3},
		Layers: []disdel.Layer{
			{Kind: "conv", Filters: 3, Kernel: 3, Padding: 1},
			{Kind: "batchNorm"},
			{Kind: "flatten"},
			{Kind: "dense", Units: 2000, Activation: "relu"},
			{Kind: "dense", Units: 1100, Activation: "relu"},
			{Kind: "dense", Units: 10, Activation: "softmax"},
		},
	}
}

// inLegs is the update of an action that pauses after each few batches.
func (b *bench) inLegs(req disdel.TrainRequest) disdel.Weights {
	b.t.Helper()
	for ; req.Leg < 50; req.Leg++ {
		h := NewHost(probe, backends.Standard(nil))
		res := b.leg(h, req, 30*time.Millisecond)
		if !res.Paused {
			defer h.Close()
			if req.Leg == 0 {
				b.t.Error("it took one leg")
			}
			return b.delivered(req, engine.Weights(h.built.engine))
		}
		h.Close()
	}
	b.t.Fatal("it takes more than 50 legs")
	return nil
}

// Large arrays are stored in parts of whole rows that cover them.
func TestLargeArraysAreStoredInParts(t *testing.T) {
	for _, shape := range [][]int{
		{7}, {}, {3, storedValues - 1}, {3, storedValues + 1}, {2*storedValues + 5}, {5000, 777, 1},
	} {
		a := engine.NewArray("a", shape, engine.Weight, nil)
		next := 0
		for _, p := range partsOf(a) {
			if p.at != next || p.values() > max(storedValues, a.Len()/shape0(shape)) {
				t.Errorf("%v: a part of %v at %d, want one at %d", shape, p.Shape, p.at, next)
			}
			next += p.values()
		}
		if next != a.Len() {
			t.Errorf("%v: parts of %d values", shape, next)
		}
	}
}

func shape0(shape []int) int {
	if len(shape) == 0 {
		return 1
	}
	return shape[0]
}
