package actions

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/backends"
)

// chain is a worker's request for a network that can be cut into four stages, with dropout and batch norm.
func (b *bench) chain() disdel.TrainRequest {
	conv := func(filters int) disdel.Layer {
		return disdel.Layer{Kind: "conv", Filters: filters, Kernel: 3, Padding: 1, Stride: 1, Activation: "relu"}
	}
	b.net = disdel.Network{
		Input: []int{1, 8, 8}, Classes: 10, Init: disdel.Init{Seed: 3},
		Layers: []disdel.Layer{
			conv(6), conv(9),
			{Kind: "batchNorm"},
			conv(5),
			{Kind: "dropout", Rate: 0.2},
			conv(4),
			{Kind: "flatten"},
			{Kind: "dense", Units: 10, Activation: "softmax"},
		},
	}
	req := b.train(0)
	req.MicroBatch = 5
	return req
}

// staged is the requests of the stages of a worker.
func (b *bench) staged(req disdel.TrainRequest, n int) (all []disdel.TrainRequest) {
	g := mustBuild(b.t, req.Network)
	cuts := g.Cuts()
	ends := append([]int{1}, append(cuts[:n-1:n-1], len(g.Nodes))...)
	for i := range n {
		r := req
		r.Pipeline = &disdel.PipelineStage{Stage: i, Stages: n, From: ends[i], To: ends[i+1]}
		all = append(all, r)
	}
	return all
}

// through runs stages at once, each in a host of its own, as the controller does: what was killed is tried again, what
// paused goes on, and if an update is lost the round begins again. kill says after which time an attempt of a stage is
// killed; 0: it is not. It returns the update of the network that the stages come to.
func (b *bench) through(all []disdel.TrainRequest, kill func(stage int) time.Duration, clock func(stage int, h *Host) (
	end time.Time),
) disdel.Weights {
	b.t.Helper()
	ctx, stop := context.WithTimeout(b.t.Context(), time.Minute)
	defer stop()
	for lost := true; lost; {
		var stages sync.WaitGroup
		var again atomic.Bool
		for i := range all {
			stages.Go(func() {
				for b.attempt(ctx, &all[i], kill(i), clock, &again) {
					if again.Load() {
						return
					}
				}
			})
		}
		stages.Wait()
		if lost = again.Load(); lost {
			b.forget()
			for i := range all {
				all[i].Attempt, all[i].Leg = all[i].Attempt+1, 0
			}
		}
	}
	return b.come(all)
}

// come is the update of the network that stages have come to.
func (b *bench) come(all []disdel.TrainRequest) (out disdel.Weights) {
	b.t.Helper()
	for _, r := range all {
		g, err := mustBuild(b.t, r.Network).Sliced(r.Pipeline.From, r.Pipeline.To)
		if err != nil {
			b.t.Fatal(err)
		}
		out = append(out, b.delivered(r, shapes(g))...)
	}
	return out
}

// attempt runs one activation of a stage, and tells whether another one has to follow.
func (b *bench) attempt(ctx context.Context, req *disdel.TrainRequest, after time.Duration,
	clock func(int, *Host) time.Time, again *atomic.Bool,
) bool {
	h := NewHost(probe, backends.Standard(nil))
	defer h.Close()
	attempt, end := context.WithCancel(ctx)
	defer end()
	if clock != nil {
		attempt, end = context.WithDeadline(attempt, clock(req.Pipeline.Stage, h))
		defer end()
	}
	if after > 0 {
		defer time.AfterFunc(after, end).Stop()
	}
	params, err := json.Marshal(req)
	if err != nil {
		b.t.Error(err)
	}
	res, err := h.Handlers()[disdel.TaskTrain](attempt, params)
	switch {
	case err == nil && res.(disdel.TrainResult).Paused:
		req.Leg++
		return true
	case err == nil:
		return false
	case disdel.AsError(err).Code == disdel.CodeLostUpdate:
		again.Store(true)
		return false
	case attempt.Err() != nil && ctx.Err() == nil:
		req.Attempt, req.Leg = req.Attempt+1, 0
		return true
	}
	b.t.Errorf("stage %d: %v", req.Pipeline.Stage, err)
	return false
}

func unharmed(int) time.Duration { return 0 }

// whole is the update of one action with the whole network.
func (b *bench) whole(req disdel.TrainRequest) disdel.Weights {
	b.t.Helper()
	h := NewHost(probe, backends.Standard(nil))
	defer h.Close()
	if _, err := ask[disdel.TrainResult](b.t, h, disdel.TaskTrain, req); err != nil {
		b.t.Fatal(err)
	}
	out := b.delivered(req, engine.Weights(h.built.engine))
	b.forget()
	return out
}

// Stages come to the bits of one action with the same micro-batches, however many they are and whichever is killed at
// whatever moment.
func TestStagesComeToTheBitsOfOneAction(t *testing.T) {
	for name, o := range optimizers {
		t.Run(name, func(t *testing.T) {
			b := setUp(t)
			req := b.chain()
			req.Optimizer = o
			want := b.whole(req)
			rng := rand.New(rand.NewPCG(1, 2))
			for n := 1; n <= 4; n++ {
				if got := b.through(b.staged(req, n), unharmed, nil); !equal(got, want) {
					t.Errorf("%d stages come to other weights", n)
				}
				b.forget()
			}
			killed, kills := rng.IntN(3), atomic.Int32{}
			moment := time.Duration(rng.IntN(300)+1) * time.Millisecond
			got := b.through(b.staged(req, 3), func(stage int) time.Duration {
				if stage == killed && kills.Add(1) < 3 {
					return moment
				}
				return 0
			}, nil)
			if !equal(got, want) {
				t.Errorf("stage %d, killed after %v, comes to other weights", killed, moment)
			}
		})
	}
}

// If the time of the first stage is nearly over, all stages store their state of the same step and go on in another
// leg, with the same bits.
func TestStagesPauseTogether(t *testing.T) {
	b := setUp(t)
	req := b.chain()
	req.Epochs = 3
	want := b.whole(req)
	var legs atomic.Int32
	clock := nearlyOver()
	got := b.through(b.staged(req, 2), unharmed, func(stage int, h *Host) time.Time {
		if stage == 0 {
			legs.Add(1)
		}
		return clock(stage, h)
	})
	if !equal(got, want) {
		t.Error("the legs come to other weights")
	}
	if n := legs.Load(); n < 2 || n > 100 {
		t.Errorf("%d legs", n)
	}
}

// nearlyOver gives the first stage a clock that moves by a millisecond with every look, and little time.
func nearlyOver() func(stage int, h *Host) time.Time {
	return func(stage int, h *Host) time.Time {
		end := time.Now().Add(30 * time.Second) // before that of the test
		if stage == 0 {
			begun, looks := end.Add(-600*time.Millisecond), atomic.Int64{}
			h.now = func() time.Time { return begun.Add(time.Duration(looks.Add(1)) * time.Millisecond) }
		}
		return end
	}
}

// Stages leave the state of an action with the whole network, which was killed or paused before there were stages, and
// train the round from its beginning.
func TestStagesLeaveTheStateOfOneAction(t *testing.T) {
	other := setUp(t)
	req := other.chain()
	req.Epochs, req.OptimizerState = 3, disdel.StateKeep
	want := other.whole(req)
	b := setUp(t)
	mine := b.chain()
	mine.Epochs, mine.OptimizerState = req.Epochs, req.OptimizerState
	h := NewHost(probe, backends.Standard(nil))
	defer h.Close()
	if res := b.leg(h, mine, 60*time.Millisecond); !res.Paused {
		t.Fatalf("%+v", res)
	}
	all := b.staged(mine, 2)
	for i := range all {
		all[i].Attempt++
	}
	if got := b.through(all, unharmed, nil); !equal(got, want) {
		t.Error("the stages come to other weights")
	}
}

// A stage whose partner has delivered and is gone does not wait for it: the round begins again.
func TestAStageAloneEndsTheRound(t *testing.T) {
	b := setUp(t)
	all := b.staged(b.chain(), 2)
	b.through(all, unharmed, nil)
	id := all[0].ID()
	if err := b.board.Forget(t.Context(), "job-1", 0); err != nil {
		t.Fatal(err)
	}
	last := all[1]
	last.Attempt++
	again := b.train(0) // as the first stage
	again.Network, again.Attempt = all[0].Network, all[0].Attempt+1
	if _, err := ask[disdel.TrainResult](t, NewHost(probe, backends.Standard(nil)), disdel.TaskTrain, again); err != nil {
		t.Fatal(err)
	}
	_, err := ask[disdel.TrainResult](t, NewHost(probe, backends.Standard(nil)), disdel.TaskTrain, last)
	if e := disdel.AsError(err); err == nil || e.Code != disdel.CodeLostUpdate || *e.Subject != id {
		t.Errorf("%v", err)
	}
	if !errors.Is(err, disdel.NotFound) {
		t.Errorf("%v", err)
	}
}

// A stage that comes late changes no bits, and the record of the other says how long it waited.
func TestAStageWaitsForALateOne(t *testing.T) {
	b := setUp(t)
	req := b.chain()
	want := b.whole(req)
	const late = 400 * time.Millisecond
	all := b.staged(req, 2)
	var phases [2]map[string]disdel.Millis
	var stages sync.WaitGroup
	for i := range all {
		stages.Go(func() {
			time.Sleep(time.Duration(i) * late)
			h := NewHost(probe, backends.Standard(nil))
			defer h.Close()
			res, err := ask[disdel.TrainResult](t, h, disdel.TaskTrain, all[i])
			if err != nil {
				t.Error(err)
			}
			phases[i] = res.Usage.Phases
		})
	}
	stages.Wait()
	if got := b.come(all); !equal(got, want) {
		t.Error("the stages come to other weights")
	}
	if w := phases[0]["wait"]; time.Duration(w) < late/2 || w > phases[0]["compute"] {
		t.Errorf("the first stage waited %v of %v", w, phases[0]["compute"])
	}
	if phases[1]["wait"] <= 0 {
		t.Error("the second stage never waited")
	}
}

// A stage that would begin inside a residual block is refused before it trains. Cuts are between the blocks.
func TestAStageIsNoPartOfAResidualBlock(t *testing.T) {
	b := setUp(t)
	req := b.chain()
	req.Network = disdel.Network{Name: "resnet18", Input: []int{3, 32, 32}, Classes: 10}
	g := mustBuild(t, req.Network)
	inside, cuts := 0, g.Cuts()
	h := NewHost(probe, backends.Standard(nil))
	defer h.Close()
	for at, n := range g.Nodes {
		if !strings.HasPrefix(n.Name, "layer2.1.") || slices.Contains(cuts, at) {
			continue
		}
		inside++
		req.Pipeline = &disdel.PipelineStage{Stage: 1, Stages: 2, From: at, To: len(g.Nodes)}
		if _, err := ask[disdel.TrainResult](t, h, disdel.TaskTrain, req); !errors.Is(err, disdel.Invalid) {
			t.Errorf("a stage from %s on: %v", n.Name, err)
		}
	}
	if inside < 3 || len(cuts) < 4 {
		t.Errorf("%d nodes are inside a block of two layers, and there are %d cuts", inside, len(cuts))
	}
}
