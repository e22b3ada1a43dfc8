package actions

import (
	"context"
	"encoding/json"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/backends"
	"github.com/disdel/disdel/runtime/engine/native"
)

// sgd keeps one moment, adam two and a count of steps: what a leg forgets shows in the bits.
var optimizers = map[string]disdel.Optimizer{
	"sgd":  {SGD: &disdel.SGD{LearningRate: 0.05, Momentum: 0.9}},
	"adam": {Adam: &disdel.Adam{LearningRate: 0.005}},
}

// fetch reads what worker 0 delivered for a round.
func (b *bench) fetch(round int, h *Host) disdel.Update {
	b.t.Helper()
	u, err := b.board.FetchUpdate(b.t.Context(), disdel.UpdateID{Job: "job-1", Round: round},
		engine.Weights(h.built.engine))
	if err != nil {
		b.t.Fatal(err)
	}
	u.Fence, u.Attempt = 0, 0
	return u
}

// leg runs a train action that has so much time left, on a clock that moves by one millisecond with every look at it.
func (b *bench) leg(h *Host, req disdel.TrainRequest, limit time.Duration) disdel.TrainResult {
	b.t.Helper()
	end := time.Now().Add(2 * time.Hour)
	ctx, stop := context.WithDeadline(b.t.Context(), end)
	defer stop()
	begun, looks := end.Add(-limit), atomic.Int64{} // an aggregation's heartbeats look at it too
	h.now = func() time.Time { return begun.Add(time.Duration(looks.Add(1)) * time.Millisecond) }
	params, err := json.Marshal(req)
	if err != nil {
		b.t.Fatal(err)
	}
	res, err := h.Handlers()[disdel.TaskTrain](ctx, params)
	if err != nil {
		b.t.Fatal(err)
	}
	return res.(disdel.TrainResult)
}

// A round that is divided into legs, each in a process of its own, comes to the bits of one that is not.
func TestLegsComeToTheSameBits(t *testing.T) {
	for name, o := range optimizers {
		t.Run(name, func(t *testing.T) {
			b := setUp(t)
			whole := NewHost(probe, backends.Standard(nil))
			defer whole.Close()
			req := b.train(0)
			req.Epochs, req.Optimizer = 4, o
			want := b.leg(whole, req, time.Hour)
			wantUpdate := b.fetch(0, whole)
			b.forget()

			legs := 0
			for {
				h := NewHost(probe, backends.Standard(nil))
				req.Leg = legs
				res := b.leg(h, req, 40*time.Millisecond)
				legs++
				if res.Paused {
					if res.BatchesDone == 0 || legs > 100 {
						t.Fatalf("leg %d came to batch %d", legs, res.BatchesDone)
					}
					h.Close()
					continue
				}
				if legs < 3 {
					t.Errorf("it took %d legs: nothing was divided", legs)
				}
				if diff := cmp.Diff(want.Losses, res.Losses); diff != "" {
					t.Errorf("losses (-whole +legs):\n%s", diff)
				}
				if diff := cmp.Diff(want.Accuracies, res.Accuracies); diff != "" || len(res.Accuracies) != 4 {
					t.Errorf("accuracies (-whole +legs):\n%s", diff)
				}
				if diff := weightsDiff(wantUpdate.Weights, b.fetch(0, h).Weights); diff != "" {
					t.Errorf("weights differ:\n%.300s", diff)
				}
				h.Close()
				return
			}
		})
	}
}

// A later attempt goes on from the state that the one before stored, and comes to the same bits.
func TestALaterAttemptGoesOn(t *testing.T) {
	b := setUp(t)
	h := NewHost(probe, backends.Standard(nil))
	defer h.Close()
	req := b.train(0)
	req.Epochs = 4
	want := b.leg(h, req, time.Hour)
	wantUpdate := b.fetch(0, h)
	b.forget()
	if res := b.leg(h, req, 60*time.Millisecond); !res.Paused {
		t.Fatalf("%+v did not pause", res)
	}
	req.Attempt = 2
	res := b.leg(h, req, time.Hour)
	if res.Rows >= want.Rows {
		t.Errorf("it trained %d rows of %d: from the start", res.Rows, want.Rows)
	}
	if diff := weightsDiff(wantUpdate.Weights, b.fetch(0, h).Weights); diff != "" {
		t.Errorf("weights differ:\n%.300s", diff)
	}
	b.forget()
	req.Attempt, req.BatchSize = 3, 20
	if res := b.leg(h, req, time.Hour); res.Rows != 400 {
		t.Errorf("state of another batch was gone on from: %d rows", res.Rows)
	}
}

// slowly is a backend whose engines take long to store their state: reading it moves the bench's clock.
type slowly struct {
	native.Backend
	stored func()
}

func (slowly) Name() string { return "slow" }

func (s slowly) New(spec engine.Spec) (engine.Engine, error) {
	e, err := s.Backend.New(spec)
	return slowEngine{e, s.stored}, err
}

type slowEngine struct {
	engine.Engine
	stored func()
}

// State has a count of steps that takes long to read: it is read when all is stored.
func (e slowEngine) State() []engine.Array {
	all := e.Engine.State()
	for i, a := range all {
		if a.Name == engine.StepCount {
			all[i] = engine.NewArray(a.Name, a.Shape, a.Role, slowValues{a, e.stored})
		}
	}
	return all
}

// slowValues is an array that takes long to read.
type slowValues struct {
	of   engine.Array
	read func()
}

func (v slowValues) ReadAt(dst []float32, at int) {
	v.read()
	v.of.ReadAt(dst, at) //nolint:errcheck // the caller has checked the range
}

func (v slowValues) WriteAt(src []float32, at int) {
	v.of.WriteAt(src, at) //nolint:errcheck // the caller has checked the range
}

// A worker whose state takes longer to store than lies between two times of storing it still trains most of the time.
func TestAStateThatIsSlowToStoreIsStoredLessOften(t *testing.T) {
	b := setUp(t)
	h := NewHost(probe, backends.Standard(nil))
	defer h.Close()
	var took time.Duration
	saves := 0
	h.built.backends.Backends = []engine.Backend{slowly{stored: func() { saves++; took += 30 * time.Second }}}
	start := time.Now()
	now := start
	h.now = func() time.Time { now = now.Add(time.Second); return now.Add(took) }
	req := b.train(0)
	req.Backend, req.Epochs, req.SaveEvery = "slow", 8, disdel.Millis(20*time.Second)
	if _, err := ask[disdel.TrainResult](t, h, disdel.TaskTrain, req); err != nil {
		t.Fatal(err)
	}
	if trained := now.Sub(start); saves == 0 || took > trained/2 {
		t.Errorf("stored %d times, which took %v, beside %v of training", saves, took, trained)
	}
}

// Time to store the state is kept free before the deadline once it is known what that takes.
func TestALegEndsWhileItsStateCanStillBeStored(t *testing.T) {
	b := setUp(t)
	h := NewHost(probe, backends.Standard(nil))
	defer h.Close()
	var took time.Duration
	h.built.backends.Backends = []engine.Backend{slowly{stored: func() { took += 30 * time.Second }}}
	end := time.Now().Add(2 * time.Hour)
	ctx, stop := context.WithDeadline(t.Context(), end)
	defer stop()
	now := end.Add(-4 * time.Minute)
	h.now = func() time.Time { now = now.Add(time.Second); return now.Add(took) }
	req := b.train(0)
	req.Backend, req.Epochs, req.SaveEvery = "slow", 100, disdel.Millis(20*time.Second)
	params, err := json.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	res, err := h.Handlers()[disdel.TaskTrain](ctx, params)
	if err != nil || !res.(disdel.TrainResult).Paused {
		t.Fatalf("%+v, %v", res, err)
	}
	if at := now.Add(took); !at.Before(end) {
		t.Errorf("its state was stored %v after the deadline", at.Sub(end))
	}
}

// A second delivery of work that is done changes nothing and answers what the first one did.
func TestADuplicateAnswersWhatTheFirstDid(t *testing.T) {
	b := setUp(t)
	h := NewHost(probe, backends.Standard(nil))
	defer h.Close()
	first, err := ask[disdel.TrainResult](t, h, disdel.TaskTrain, b.train(0))
	if err != nil {
		t.Fatal(err)
	}
	again, err := ask[disdel.TrainResult](t, h, disdel.TaskTrain, b.train(0))
	if err != nil || !again.Duplicate {
		t.Fatalf("%+v, %v", again, err)
	}
	again.Duplicate, again.Usage, first.Usage = false, disdel.Usage{}, disdel.Usage{}
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("(-first +again):\n%s", diff)
	}
}

// Rounds of K batches cut an epoch: with one worker, whose mean is itself, and an optimiser whose state goes on, they
// come to the bits of whole epochs, whichever process runs which.
func TestRoundsOfBatchesCutAnEpoch(t *testing.T) {
	for _, upkeep := range []disdel.StatePolicy{disdel.StateAverage, disdel.StateKeep} {
		t.Run(string(upkeep), func(t *testing.T) {
			b := setUp(t)
			// without dropout
			b.net = disdel.Network{Name: "mlp", Input: []int{1, 8, 8}, Classes: 10, Init: disdel.Init{Seed: 3, Scheme: "glorot"}}
			whole := NewHost(probe, backends.Standard(nil))
			defer whole.Close()
			req := b.train(0)
			req.Epochs = 1
			b.leg(whole, req, time.Hour)
			want := b.fetch(0, whole)
			b.forget()

			var h *Host
			req.OptimizerState = upkeep
			for round := range 3 { // 7 batches: 2, 2 and the rest
				h = NewHost(probe, backends.Standard(nil))
				defer h.Close()
				req.Round, req.Batch, req.Batches = round, 2*round, 2
				if round == 2 {
					req.Batches = 0
				}
				res := b.leg(h, req, time.Hour)
				if rows := []int{32, 32, 36}[round]; res.Samples != rows {
					t.Errorf("round %d: %d samples, want %d", round, res.Samples, rows)
				}
				if round == 2 {
					break
				}
				agg := disdel.AggregateRequest{
					Job: "job-1", Round: round, Level: 1, Attempt: 1,
					Members: []disdel.UpdateID{{Job: "job-1", Round: round}}, Top: true, Store: b.store, Network: b.net,
				}
				if upkeep == disdel.StateAverage {
					agg.Averaged = &req.Optimizer
				}
				if _, err := ask[disdel.AggregateResult](t, h, disdel.TaskAggregate, agg); err != nil {
					t.Fatal(err)
				}
			}
			got, err := b.board.FetchUpdate(t.Context(), disdel.UpdateID{Job: "job-1", Round: 2}, nil)
			if err != nil {
				t.Fatal(err)
			}
			weights, _, _ := split(got.Weights)
			if diff := weightsDiff(want.Weights, weights); diff != "" {
				t.Errorf("weights differ:\n%.300s", diff)
			}
		})
	}
}

// Without upkeep the optimiser starts anew, and that shows.
func TestAResetOptimizerStartsAnew(t *testing.T) {
	b := setUp(t)
	state := func(upkeep disdel.StatePolicy) float32 {
		h := NewHost(probe, backends.Standard(nil))
		defer h.Close()
		b.forget()
		req := b.train(0)
		req.OptimizerState = upkeep
		b.leg(h, req, time.Hour)
		agg := disdel.AggregateRequest{
			Job: "job-1", Level: 1, Attempt: 1, Members: []disdel.UpdateID{{Job: "job-1"}},
			Top: true, Store: b.store, Network: b.net,
		}
		if upkeep == disdel.StateAverage {
			agg.Averaged = &req.Optimizer
		}
		if _, err := ask[disdel.AggregateResult](t, h, disdel.TaskAggregate, agg); err != nil {
			t.Fatal(err)
		}
		req.Round = 1
		b.leg(h, req, time.Hour)
		steps := engine.Moments(h.built.engine)[0].Data[0]
		if _, err := b.board.Sweep(t.Context(), "job-1"); err != nil {
			t.Fatal(err)
		}
		return steps
	}
	if reset, kept := state(disdel.StateReset), state(disdel.StateAverage); reset != 14 || kept != 28 {
		t.Errorf("%g steps with reset, %g with average", reset, kept)
	}
}

// A narrow wire loses nothing for good: what a first round's update lacks of the weights is what its worker keeps for
// the next round, which starts from it in another process, divided into legs or not.
func TestNarrowWiresKeepWhatTheyRoundAway(t *testing.T) {
	for _, wire := range []disdel.Wire{disdel.WireInt8, disdel.WireBfloat16} {
		t.Run(string(wire), func(t *testing.T) {
			b := setUp(t)
			req := b.train(0)
			h := NewHost(probe, backends.Standard(nil))
			defer h.Close()
			b.leg(h, req, time.Hour)
			exact := b.fetch(0, h)
			b.forget()

			req.Wire = wire
			b.leg(h, req, time.Hour)
			sent := b.fetch(0, h)
			_, kept, err := b.board.State(t.Context(), disdel.UpdateID{Job: "job-1", Round: 1}, nil)
			if err != nil || len(kept) != len(sent.Weights) {
				t.Fatalf("%d tensors kept, %v", len(kept), err)
			}
			lost := 0.0
			for i, v := range exact.Weights {
				for k, x := range v.Data {
					lost = max(lost, math.Abs(float64(kept[i].Data[k])))
					if got := sent.Weights[i].Data[k] + kept[i].Data[k]; math.Abs(float64(got-x)) > 1e-6 {
						t.Fatalf("%s[%d]: %g sent and kept, of %g", v.Name, k, got, x)
					}
				}
			}
			if lost == 0 {
				t.Error("nothing was rounded away")
			}
			agg := disdel.AggregateRequest{
				Job: "job-1", Level: 1, Attempt: 1, Members: []disdel.UpdateID{{Job: "job-1"}},
				Top: true, Store: b.store, Network: b.net, Wire: wire,
			}
			if _, err := ask[disdel.AggregateResult](t, h, disdel.TaskAggregate, agg); err != nil {
				t.Fatal(err)
			}
			req.Round = 1
			legs := 0
			for paused := true; paused && legs < 100; legs++ {
				other := NewHost(probe, backends.Standard(nil))
				req.Leg = legs
				paused = b.leg(other, req, 40*time.Millisecond).Paused
				other.Close()
			}
			if _, err := b.board.UpdateMeta(t.Context(), disdel.UpdateID{Job: "job-1", Round: 1}); err != nil || legs < 2 {
				t.Errorf("after %d legs: %v", legs, err)
			}
		})
	}
}
