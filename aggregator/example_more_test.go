package aggregator_test

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/alicebob/miniredis/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/aggregator/embedded"
)

// A program that prints its own errors keeps the client of Redis from printing them too.
func ExampleSilenceRedis() {
	aggregator.SilenceRedis()
	_, err := aggregator.Open(context.Background(), disdel.Store{URLs: []string{"redis://127.0.0.1:1/0?max_retries=-1"}})
	fmt.Println(errors.Is(err, disdel.Unavailable))
	// Output: true
}

// A store in this process that holds no more than so much, as Redis does at maxmemory.
func ExampleStore_Capacity() {
	ctx := context.Background()
	redis, err := embedded.StartWithin(disdel.MB)
	must(err)
	defer redis.Close()
	s, err := aggregator.Open(ctx, disdel.Store{URLs: []string{redis.URL()}})
	must(err)
	defer s.Close()
	servers, err := s.Capacity(ctx)
	must(err)
	fmt.Println(servers[0].Limit, "and it evicts nothing:", !servers[0].Evicts())
	err = s.PutReference(ctx, "job-1", 0, one(make([]float32, 1<<19)...))
	fmt.Println("2 MB are over the limit:", errors.Is(err, disdel.OverLimit))
	// Output:
	// 1.00 MB and it evicts nothing: true
	// 2 MB are over the limit: true
}

// Whoever runs tells how far it is, and is told when the job was cancelled.
func ExampleStore_Heartbeat() {
	ctx := context.Background()
	s, stop := open(ctx)
	defer stop()
	beat := disdel.Progress{Task: disdel.TaskTrain, Member: 1, Epoch: 1, Batch: 12, Batches: 50}
	cancelled, err := s.Heartbeat(ctx, "job-1", beat)
	must(err)
	fmt.Println("cancelled:", cancelled)
	all, err := s.Progress(ctx, "job-1")
	must(err)
	fmt.Printf("worker %d: %d of %d batches\n", all[0].Member, all[0].Batch, all[0].Batches)
	must(s.Cancel(ctx, "job-1"))
	cancelled, err = s.Heartbeat(ctx, "job-1", beat)
	must(err)
	fmt.Println("cancelled:", cancelled)
	// Output:
	// cancelled: false
	// worker 1: 12 of 50 batches
	// cancelled: true
}

// Who asks for a claim is told how it stands. Work that will not be done is given back, so that the next one need not
// wait for the lease to end.
func ExampleClaimState() {
	ctx := context.Background()
	s, stop := open(ctx)
	defer stop()
	id := disdel.UpdateID{Job: "job-1"}
	claim, state, err := s.Claim(ctx, id, "first", 1)
	must(err)
	fmt.Println("first:", state)
	_, err = s.Renew(ctx, claim) // Hold does so from time to time
	must(err)
	_, state, err = s.Claim(ctx, id, "second", 1)
	must(err)
	fmt.Println("second:", state)
	must(s.Release(ctx, claim))
	_, state, err = s.Claim(ctx, id, "second", 1)
	must(err)
	fmt.Println("second:", state)
	// Output:
	// first: claimed
	// second: busy
	// second: claimed
}

// A job leaves nothing behind; a round that is to be run in another way forgets what was pushed.
func ExampleStore_Sweep() {
	ctx := context.Background()
	s, stop := open(ctx)
	defer stop()
	id := disdel.UpdateID{Job: "job-1"}
	must(s.PushUpdate(ctx, disdel.Update{ID: id, Samples: 1, Weights: one(1)}))
	must(s.Forget(ctx, "job-1", 0))
	_, err := s.FetchUpdate(ctx, id, one(0))
	fmt.Println("forgotten:", errors.Is(err, disdel.NotFound))
	must(s.PutReference(ctx, "job-1", 0, one(1)))
	keys, err := s.Sweep(ctx, "job-1")
	must(err)
	fmt.Println("swept:", keys > 0)
	// Output:
	// forgotten: true
	// swept: true
}

// An update is read whole, or only what its producer says of it.
func ExampleStore_UpdateMeta() {
	ctx := context.Background()
	s, stop := open(ctx)
	defer stop()
	id := disdel.UpdateID{Job: "job-1", Member: 2}
	must(s.PushUpdate(ctx, disdel.Update{ID: id, Samples: 64, Weights: one(1, 2), Meta: map[string]string{"loss": "0.3"}}))
	about, err := s.UpdateMeta(ctx, id)
	must(err)
	fmt.Println(about.Samples, about.Meta["loss"], about.Weights == nil)
	whole, err := s.FetchUpdate(ctx, id, one(0, 0))
	must(err)
	fmt.Println(whole.Weights[0].Data)
	// Output:
	// 64 0.3 true
	// [1 2]
}

// A worker without room for a copy of its state writes it and reads it array by array.
func ExampleStore_WriteState() {
	ctx := context.Background()
	s, stop := open(ctx)
	defer stop()
	id := disdel.UpdateID{Job: "job-1", Round: 4}
	claim, _, err := s.Claim(ctx, id, "a", 1)
	must(err)
	arrays := [][]float32{{1, 2}, {3}}
	tensors := disdel.Weights{{Name: "a", Shape: []int{2}}, {Name: "b", Shape: []int{1}}}
	must(s.WriteState(ctx, id, claim, map[string]string{"batch": "17"},
		aggregator.StateSource{Tensors: tensors, Read: func(i int) []float32 { return arrays[i] }}))
	must(s.ReadState(ctx, id, func(meta map[string]string) (func(disdel.Tensor) error, error) {
		fmt.Println("at batch", meta["batch"])
		return func(t disdel.Tensor) error {
			fmt.Println(t.Name, t.Data)
			return nil
		}, nil
	}))
	// Output:
	// at batch 17
	// a [1 2]
	// b [3]
}

// What was refused of a job is counted: here an update that had been delivered before.
func ExampleStore_Counts() {
	ctx := context.Background()
	s, stop := open(ctx)
	defer stop()
	id := disdel.UpdateID{Job: "job-1"}
	claim, _, err := s.Claim(ctx, id, "a", 1)
	must(err)
	must(s.PushUpdate(ctx, disdel.Update{ID: id, Attempt: 1, Fence: claim.Fence, Samples: 1, Weights: one(1)}))
	_, state, err := s.Claim(ctx, id, "b", 2)
	must(err)
	counts, err := s.Counts(ctx, "job-1")
	fmt.Printf("%v, %+v, %v\n", state, counts, err)
	// Output: committed, {Duplicates:1 Stale:0 Damaged:0}, <nil>
}

// Workers that exchange updates inside a round send a delta of every step, and wait for those of all.
func ExampleDeltas() {
	ctx := context.Background()
	s, stop := open(ctx)
	defer stop()
	for member, text := range []string{"one", "two"} {
		claim, _, err := s.Claim(ctx, disdel.UpdateID{Job: "job-1", Member: member}, "worker", 1)
		must(err)
		must(s.CommitDelta(ctx, claim, 1, []byte(text)))
	}
	d := s.Deltas("job-1", 0, 2)
	must(d.Wait(ctx, 1, func() error { return nil }))
	all, err := d.Fetch(ctx, 1)
	must(err)
	fmt.Printf("%s\n", all)
	// Output: [one two]
}

// A Redis in the same process, behind a connection that a simulation makes.
func ExampleWithDialer() {
	server := miniredis.NewMiniRedis()
	defer server.Close()
	ctx := aggregator.WithDialer(context.Background(), func(context.Context, string, string) (net.Conn, error) {
		return server.Dial()
	})
	s, err := aggregator.Open(ctx, disdel.Store{URLs: []string{"redis://nowhere.test:6379/0"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	fmt.Println(s.Cancel(ctx, "job-1"), server.Keys())
	// Output: <nil> [disdel:{job-1}:cancel]
}

// Two aggregations average half of the columns each. The reference has the columns of both.
func ExampleStore_JoinShards() {
	ctx := context.Background()
	s, stop := open(ctx)
	defer stop()
	const values = 600_000 // three columns
	worker, weights := disdel.UpdateID{Job: "job-1"}, one(make([]float32, values)...)
	weights[0].Data[values-1] = 7
	must(s.PushUpdate(ctx, disdel.Update{ID: worker, Samples: 100, Weights: weights}))
	var shards []disdel.UpdateID
	for i := range 2 {
		id := disdel.UpdateID{Job: "job-1", Level: 1, Member: i}
		claim, _, err := s.Claim(ctx, id, "activation", 1)
		must(err)
		mean, err := s.Reduce(ctx, claim, aggregator.Reduction{
			Members: []disdel.UpdateID{worker}, Like: one(make([]float32, values)...),
			Shard: aggregator.Shard{Index: i, Count: 2}, Reference: true,
		})
		must(err)
		must(s.CommitMean(ctx, mean))
		shards = append(shards, id)
	}
	claim, _, err := s.Claim(ctx, disdel.UpdateID{Job: "job-1", Level: 2}, "activation", 1)
	must(err)
	mean, err := s.JoinShards(ctx, claim, shards, weights)
	must(err)
	must(s.CommitMean(ctx, mean))
	next, err := s.Reference(ctx, "job-1", 1, weights)
	must(err)
	fmt.Println(mean.Samples, "samples, last value", next[0].Data[values-1])
	// Output: 100 samples, last value 7
}

// A worker without room for a copy of its weights has them read where they are.
func ExampleStore_PushInBlocks() {
	ctx := context.Background()
	s, stop := open(ctx)
	defer stop()
	id := disdel.UpdateID{Job: "job-1"}
	weights := [][]float32{{1, 2}, {3}}
	u := disdel.Update{
		ID: id, Samples: 64, Weights: disdel.Weights{{Name: "a", Shape: []int{2}}, {Name: "b", Shape: []int{1}}},
	}
	must(s.PushInBlocks(ctx, u, func(dst []float32, tensor, from int) { copy(dst, weights[tensor][from:]) }))
	got, err := s.FetchUpdate(ctx, id, u.Weights)
	must(err)
	fmt.Println(got.Weights[0].Data, got.Weights[1].Data)
	// Output:
	// [1 2] [3]
}
