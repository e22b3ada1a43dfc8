package actions

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/runtime/engine/backends"
)

// aggregateAlone is an aggregate action in a process of its own.
func aggregateAlone(ctx context.Context, req disdel.AggregateRequest) (res disdel.AggregateResult, err error) {
	h := NewHost(probe, backends.Standard(nil))
	defer h.Close()
	params, err := json.Marshal(req)
	if err != nil {
		return res, err
	}
	out, err := h.Handlers()[disdel.TaskAggregate](ctx, params)
	if err != nil {
		return res, err
	}
	return out.(disdel.AggregateResult), nil
}

// aggregated runs the last aggregation of a round of three members, deals each attempt its blow, and returns the result
// of the first attempt that ends, and how many commands that one gave.
func (b *bench) aggregated(req disdel.AggregateRequest, blows ...blow) (disdel.AggregateResult, int) {
	b.t.Helper()
	req.Members = b.pushedAnew(req)
	return b.underBlows(req, blows...)
}

// pushedAnew empties the store and pushes the updates of three members of a round.
func (b *bench) pushedAnew(req disdel.AggregateRequest) (members []disdel.UpdateID) {
	b.t.Helper()
	ctx := b.t.Context()
	if _, err := b.board.Sweep(ctx, req.Job); err != nil {
		b.t.Fatal(err)
	}
	g := mustBuild(b.t, b.net)
	for m := range 3 {
		w := withOptimizer(shapes(g), g, req.Averaged)
		rng := rand.New(rand.NewPCG(uint64(m), 5))
		for i, v := range w {
			n := 1
			for _, side := range v.Shape {
				n *= side
			}
			w[i].Data = make([]float32, n)
			for k := range w[i].Data {
				w[i].Data[k] = rng.Float32()
			}
		}
		id := disdel.UpdateID{Job: req.Job, Member: m}
		if err := b.board.PushUpdate(ctx, disdel.Update{ID: id, Samples: float64(10 + m), Weights: w}); err != nil {
			b.t.Fatal(err)
		}
		members = append(members, id)
	}
	return members
}

// underBlows runs an aggregation, deals each attempt its blow, and returns what aggregated returns.
func (b *bench) underBlows(req disdel.AggregateRequest, blows ...blow) (disdel.AggregateResult, int) {
	b.t.Helper()
	ctx := b.t.Context()
	type answer struct {
		res disdel.AggregateResult
		err error
	}
	for attempt := 1; ; attempt++ {
		var next blow
		if len(blows) >= attempt {
			next = blows[attempt-1]
		}
		line := newLifeline(b.t, b.store, next)
		done := make(chan answer, 1)
		alive, kill := context.WithCancel(ctx)
		own := req
		own.Attempt, own.Store = attempt, line.store
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			defer line.close()
			res, err := aggregateAlone(alive, own)
			done <- answer{res, err}
		}()
		select {
		case got := <-done:
			kill()
			<-ended
			if got.err != nil {
				b.t.Errorf("%v: attempt %d: %v", blows, attempt, got.err)
			}
			return got.res, line.seen
		case <-line.struck:
		}
		if next.how == held { // it goes on beside its successors, and ends before the test does
			defer func() { <-ended }()
			defer kill()
			time.AfterFunc(10*time.Millisecond, func() { close(line.released) })
			continue
		}
		kill()
		<-ended
	}
}

// Whatever command of an aggregation is the last one that the store sees, or the first one that it sees late, after
// another attempt has taken over: the next reference, its checkpoint and the model's file have the same bits, of a mean
// of one column and of several.
func TestAnAggregationComesToTheSameBitsWhateverCommandIsItsLast(t *testing.T) {
	aggregator.SilenceRedis()
	for name, units := range map[string]int{"one column": 40, "three columns": 3000} {
		t.Run(name, func(t *testing.T) {
			b := setUp(t)
			b.net = disdel.Network{Input: []int{1, 8, 8}, Classes: 10, Layers: []disdel.Layer{
				{Kind: "flatten"}, {Kind: "dense", Units: units}, {Kind: "dense", Units: 10},
			}}
			req := disdel.AggregateRequest{
				Job: "job-1", Level: 1, Top: true, Network: b.net, Models: "file://" + t.TempDir(), WeightsKey: "w.safetensors",
				NextCheckpoint: "checkpoints/job-1/000001/reference.safetensors",
				Averaged:       &disdel.Optimizer{AdamW: &disdel.Adam{LearningRate: 0.1}},
			}
			want, commands := b.aggregated(req)
			if want.Saved == nil || want.Checksum == "" || want.Weight != 33 {
				t.Fatalf("%+v", want)
			}
			rng := rand.New(rand.NewPCG(1, 7))
			most := 14
			switch {
			case testing.Short():
				most = 20
			case os.Getenv("DISDEL_TEST_EVERY_CALL") != "":
				most = 1
			}
			for command := 1; command <= commands; command += 1 + rng.IntN(most) {
				blows := []blow{
					{command, fate(rng.IntN(int(fates)))}, {1 + rng.IntN(commands), fate(rng.IntN(int(fates)))},
				}
				got, _ := b.aggregated(req, blows...)
				if got.Saved == nil || got.Saved.Checksum != want.Saved.Checksum || got.Checksum != want.Checksum {
					t.Errorf("%v: other bits than undisturbed: %+v", blows, got)
				}
			}
		})
	}
}

// The weights are cut into shards, and an attempt at each of them, or at their join, ends at a drawn command: the
// reference, its checkpoint and the model's file have the bits of one aggregation of all, and each shard counts once.
func TestShardsComeToTheBitsOfOneAggregationWhateverCommandIsTheirLast(t *testing.T) {
	aggregator.SilenceRedis()
	b := setUp(t)
	b.net = disdel.Network{Input: []int{1, 8, 8}, Classes: 10, Layers: []disdel.Layer{
		{Kind: "flatten"}, {Kind: "dense", Units: 12000}, {Kind: "dense", Units: 10},
	}}
	top := disdel.AggregateRequest{
		Job: "job-1", Level: 1, Top: true, Network: b.net, Models: "file://" + t.TempDir(), WeightsKey: "w.safetensors",
		NextCheckpoint: "checkpoints/job-1/000001/reference.safetensors",
	}
	want, _ := b.aggregated(top)
	rng := rand.New(rand.NewPCG(3, 35))
	for _, shards := range []int{2, 3, 4} {
		members := b.pushedAnew(top)
		join := top
		join.Level, join.JoinShards = 2, true
		killed := rng.IntN(shards + 1) // the last is the join
		for s := range shards {
			req := disdel.AggregateRequest{
				Job: "job-1", Level: 1, Cluster: s, Shard: s, Shards: shards, Next: true, Members: members, Network: b.net,
			}
			var blows []blow
			if s == killed {
				blows = []blow{{1 + rng.IntN(12), fate(rng.IntN(int(fates)))}, {1 + rng.IntN(12), fate(rng.IntN(int(fates)))}}
			}
			if res, _ := b.underBlows(req, blows...); !res.Duplicate && res.Weight != 33 {
				t.Errorf("%v: shard %d of %d: %+v", blows, s, shards, res)
			}
			again, _ := b.underBlows(req)
			if !again.Duplicate {
				t.Errorf("shard %d of %d counts twice", s, shards)
			}
			join.Members = append(join.Members, disdel.UpdateID{Job: "job-1", Level: 1, Member: s})
		}
		var blows []blow
		if killed == shards {
			blows = []blow{{1 + rng.IntN(12), fate(rng.IntN(int(fates)))}}
		}
		got, _ := b.underBlows(join, blows...)
		if got.Saved == nil || got.Saved.Checksum != want.Saved.Checksum || got.Checksum != want.Checksum {
			t.Errorf("%d shards, %d killed by %v: other bits than one aggregation: %+v", shards, killed, blows, got)
		}
	}
}
