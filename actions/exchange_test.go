package actions

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/dataset/sparse"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/backends"
)

// films makes the bench's data set ratings, and its network a factorisation of them.
func (b *bench) films() disdel.TrainRequest { return b.ratings(4) }

// ratings is films of a rank.
func (b *bench) ratings(rank int) disdel.TrainRequest {
	b.t.Helper()
	sets, err := dataset.OpenStore(b.t.Context(), b.data.URL)
	if err != nil {
		b.t.Fatal(err)
	}
	defer sets.Close()
	in, err := sparse.MadeRatings{Users: 30, Items: 20, Ratings: 290, Seed: 1}.Input("films")
	if err != nil {
		b.t.Fatal(err)
	}
	m, err := sets.AddSparse(b.t.Context(), in, true)
	if err != nil {
		b.t.Fatal(err)
	}
	b.data.Name, b.data.Checksum = "films", m.Checksum()
	pmf, _ := model.FindSparse("pmf")
	b.net = pmf.Describe(m.Info(b.data.Split), rank, disdel.Init{Seed: 3})
	return disdel.TrainRequest{
		Job: "job-1", Attempt: 1, Network: b.net, Data: b.data, TrainRange: disdel.TrainRange{Epochs: 2}, BatchSize: 8,
		Threads:   1,
		Optimizer: disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.2, Momentum: 0.8, Nesterov: true}}, Store: b.store,
	}
}

// gang is a worker's requests for so many members, whose shards are not of one size.
func gang(req disdel.TrainRequest, members int, x disdel.Exchange) (all []disdel.TrainRequest) {
	at := 0
	for m := range members {
		r := req
		r.Worker, r.Members = m, members
		r.Shard = disdel.RowRange{Start: at, End: at + 40 + 9*m}
		r.Exchange = &x
		at = r.Shard.End
		all = append(all, r)
		steps := 2 * ((r.Shard.Len() + r.BatchSize - 1) / r.BatchSize)
		for i := range all {
			all[i].Steps = max(all[i].Steps, steps)
			r.Steps = max(r.Steps, all[i].Steps)
		}
		all[m].Steps = r.Steps
	}
	return all
}

// strike is the killing of a member once everybody has sent a step.
type strike struct{ member, step int }

// together runs the members at once, each in a host of its own, strikes them, tries again what was killed, and returns
// what each delivered.
func (b *bench) together(all []disdel.TrainRequest, strikes ...strike) []disdel.Weights {
	b.t.Helper()
	ctx, stop := context.WithTimeout(b.t.Context(), time.Minute)
	defer stop()
	var members sync.WaitGroup
	like := engine.InitWeights(mustBuild(b.t, b.net), b.net.Init)
	out := make([]disdel.Weights, len(all))
	for _, req := range all {
		var mine []int
		for _, s := range strikes {
			if s.member == req.Worker {
				mine = append(mine, s.step)
			}
		}
		slices.Sort(mine)
		members.Go(func() {
			for {
				h := NewHost(probe, backends.Standard(nil))
				attempt, kill := context.WithCancel(ctx)
				var watch sync.WaitGroup
				if len(mine) > 0 {
					step := mine[0]
					watch.Go(func() {
						d := b.board.Deltas(req.Job, req.Round, req.Members)
						if d.Wait(attempt, step, func() error { return nil }) == nil {
							kill()
						}
					})
				}
				params, err := json.Marshal(req)
				if err == nil {
					_, err = h.Handlers()[disdel.TaskTrain](attempt, params)
				}
				struck := attempt.Err() != nil && ctx.Err() == nil
				kill()
				watch.Wait()
				if err == nil {
					out[req.Worker] = b.delivered(req, like)
				}
				h.Close()
				if err == nil || !struck {
					if err != nil {
						b.t.Errorf("member %d: %v", req.Worker, err)
						stop()
					}
					return
				}
				req.Attempt++
				mine = mine[1:]
			}
		})
	}
	members.Wait()
	return out
}

func (b *bench) delivered(req disdel.TrainRequest, like disdel.Weights) disdel.Weights {
	u, err := b.board.FetchUpdate(b.t.Context(), req.ID(), like)
	if err != nil {
		b.t.Errorf("member %d: %v", req.Worker, err)
	}
	return u.Weights
}

// weightsDiff tells how weights differ, or "". cmp takes 20 times as long to see that they are equal.
func weightsDiff(a, b disdel.Weights) string {
	if slices.EqualFunc(a, b, func(x, y disdel.Tensor) bool {
		return x.Name == y.Name && slices.Equal(x.Shape, y.Shape) && slices.Equal(x.Data, y.Data)
	}) {
		return ""
	}
	return cmp.Diff(a, b)
}

func equal(a, b disdel.Weights) bool {
	return slices.EqualFunc(a, b, func(x, y disdel.Tensor) bool { return slices.Equal(x.Data, y.Data) })
}

// Members of a round end with the same bits, which are those of any other run, whoever is killed, whenever, however
// often: in lock-step, with the filter, and apart by a slack.
func TestMembersThatAreKilledComeToTheSameBits(t *testing.T) {
	b := setUp(t)
	req := b.films()
	for name, x := range map[string]disdel.Exchange{
		"BSP": {Combine: disdel.CombineMean}, "ISP": {Threshold: 0.7, Combine: disdel.CombineSum},
		"SSP": {Slack: 2, Combine: disdel.CombineMean}, "SSP with the filter": {Slack: 1, Threshold: 0.3, Combine: disdel.CombineSum},
		"ISP of int8": {Threshold: 0.7, Combine: disdel.CombineSum, Values: disdel.WireInt8},
	} {
		t.Run(name, func(t *testing.T) {
			all := gang(req, 3, x)
			want := b.together(all)
			for m, w := range want {
				if !equal(w, want[0]) {
					t.Errorf("member %d delivers other weights than member 0", m)
				}
			}
			seeds := 2
			if testing.Short() {
				seeds = 1
			}
			for seed := range seeds {
				b.forget()
				rng := rand.New(rand.NewPCG(uint64(seed), 7))
				var strikes []strike
				for range 1 + rng.IntN(4) {
					strikes = append(strikes, strike{rng.IntN(3), 1 + rng.IntN(all[0].Steps)})
				}
				for m, w := range b.together(all, strikes...) {
					if !equal(w, want[m]) {
						t.Errorf("seed %d, %v: member %d delivers other weights", seed, strikes, m)
					}
				}
			}
			b.forget()
		})
	}
}

// Eager members end with the same bits, and one that is killed makes its steps again as it made them: two runs differ,
// and no run breaks.
func TestEagerMembersThatAreKilledEndEqual(t *testing.T) {
	b := setUp(t)
	req := b.films()
	all := gang(req, 3, disdel.Exchange{Slack: 2, Threshold: 0.3, Order: disdel.OrderEager, Combine: disdel.CombineMean})
	for seed := range 3 {
		rng := rand.New(rand.NewPCG(uint64(seed), 8))
		var strikes []strike
		for range seed {
			strikes = append(strikes, strike{rng.IntN(3), 1 + rng.IntN(all[0].Steps)})
		}
		got := b.together(all, strikes...)
		for m, w := range got {
			if !equal(w, got[0]) {
				t.Errorf("seed %d, %v: member %d delivers other weights than member 0", seed, strikes, m)
			}
		}
		b.forget()
	}
}

// One member alone is plain training, to the bit, and v = 0 without slack is the same for mean of one's own batches.
func TestOneMemberExchangesNothing(t *testing.T) {
	b := setUp(t)
	req := b.films()
	req.Shard = disdel.RowRange{End: 50}
	plain := b.together([]disdel.TrainRequest{req})
	b.forget()
	alone := gang(req, 1, disdel.Exchange{Threshold: 0.7, Slack: 3, Combine: disdel.CombineSum})
	alone[0].Shard = req.Shard
	if got := b.together(alone); !equal(got[0], plain[0]) {
		t.Error("other weights")
	}
}

// A network of layers exchanges as well, and a gang of it learns as one batch would: the mean of the workers' steps.
func TestNetworksExchange(t *testing.T) {
	b := setUp(t)
	req := b.train(0)
	req.Optimizer = disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.1}}
	var all []disdel.TrainRequest
	for m := range 2 {
		r := req
		r.Worker, r.Members, r.Steps = m, 2, 14
		r.Shard = disdel.RowRange{Start: 100 * m, End: 100*m + 100}
		r.Exchange = &disdel.Exchange{Combine: disdel.CombineMean}
		all = append(all, r)
	}
	got := b.together(all)
	if !equal(got[0], got[1]) {
		t.Error("the members' weights differ")
	}
	if equal(got[0], engine.InitWeights(mustBuild(t, b.net), b.net.Init)) {
		t.Error("nothing was learned")
	}
}

func mustBuild(t *testing.T, n disdel.Network) *model.Graph {
	t.Helper()
	g, err := model.Build(n)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// A member whose deadline comes while it waits for another stores its state, and its next leg goes on.
func TestAMemberPausesWhileItWaits(t *testing.T) {
	b := setUp(t)
	req := b.films()
	all := gang(req, 2, disdel.Exchange{Slack: 1, Threshold: 0.5, Combine: disdel.CombineMean})
	want := b.together(all)
	b.forget()
	h := NewHost(probe, backends.Standard(nil))
	defer h.Close()
	h.now = func() time.Time { return time.Now().Add(time.Minute) } // also a slow machine pauses in time
	params, err := json.Marshal(all[0])
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute+3*time.Second) // nobody else is there
	defer stop()
	res, err := h.Handlers()[disdel.TaskTrain](ctx, params)
	if err != nil || !res.(disdel.TrainResult).Paused {
		t.Fatalf("%+v, %v", res, err)
	}
	all[0].Leg = 1
	for m, w := range b.together(all) {
		if !equal(w, want[m]) {
			t.Errorf("member %d delivers other weights", m)
		}
	}
}
