package aggregator_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/aggregator/embedded"
)

// one is weights of a single array.
func one(values ...float32) disdel.Weights {
	return disdel.Weights{{Name: "w", Shape: []int{len(values)}, Data: values}}
}

// must ends an example at its first error.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// open is a store on a Redis of its own, in this process.
func open(ctx context.Context) (s *aggregator.Store, stop func()) {
	redis, err := embedded.Start()
	must(err)
	s, err = aggregator.Open(ctx, disdel.Store{URLs: []string{redis.URL()}})
	must(err)
	return s, func() {
		s.Close()
		redis.Close()
	}
}

// A round: every worker claims its update, holds the claim while it works, and pushes, which commits; then the
// aggregation does the same with the mean, which becomes the next round's reference.
func Example() {
	ctx := context.Background()
	s, stop := open(ctx)
	defer stop()
	const job = disdel.JobID("job-1")
	must(s.PutReference(ctx, job, 0, one(0, 0)))

	var members []disdel.UpdateID
	for worker, weights := range []disdel.Weights{one(1, 2), one(3, 6)} {
		id := disdel.UpdateID{Job: job, Round: 0, Member: worker}
		claim, state, err := s.Claim(ctx, id, "activation", 1)
		must(err)
		held, release := s.Hold(ctx, claim) // ends when another attempt takes over
		must(s.PushUpdate(held, disdel.Update{
			ID: id, Attempt: claim.Attempt, Fence: claim.Fence, Samples: 100, Weights: weights,
		}))
		release()
		fmt.Println(worker, state)
		members = append(members, id)
	}

	claim, _, err := s.Claim(ctx, disdel.UpdateID{Job: job, Round: 0, Level: 1}, "aggregation", 1)
	must(err)
	held, release := s.Hold(ctx, claim)
	mean, err := s.Reduce(held, claim, aggregator.Reduction{Members: members, Like: one(0, 0), Reference: true})
	must(err)
	must(s.CommitMean(held, mean))
	release()
	must(s.DropRound(ctx, job, 0))

	next, err := s.Reference(ctx, job, 1, one(0, 0))
	must(err)
	fmt.Println(next[0].Data, mean.Samples)
	// Output:
	// 0 claimed
	// 1 claimed
	// [2 4] 200
}

// What was committed once is not made again, and a higher attempt takes a claim over.
func ExampleStore_Claim() {
	ctx := context.Background()
	s, stop := open(ctx)
	defer stop()
	id := disdel.UpdateID{Job: "job-1", Member: 3}
	old, state, err := s.Claim(ctx, id, "first", 1)
	must(err)
	fmt.Println("attempt 1:", state)
	_, state, err = s.Claim(ctx, id, "beside", 1)
	must(err)
	fmt.Println("beside it:", state)
	young, state, err := s.Claim(ctx, id, "second", 2)
	must(err)
	fmt.Println("attempt 2:", state)

	push := func(c aggregator.Claim) error {
		return s.PushUpdate(ctx, disdel.Update{ID: id, Attempt: c.Attempt, Fence: c.Fence, Samples: 1, Weights: one(1)})
	}
	fmt.Println("the first one's push is a conflict:", errors.Is(push(old), disdel.Conflict))
	must(push(young))
	_, state, err = s.Claim(ctx, id, "third", 3)
	must(err)
	fmt.Println("attempt 3:", state)
	// Output:
	// attempt 1: claimed
	// beside it: busy
	// attempt 2: claimed
	// the first one's push is a conflict: true
	// attempt 3: committed
}

// Workers may start from a reference that is not the newest any more, as far as the slack goes.
func ExampleStore_WithSlack() {
	ctx := context.Background()
	s, stop := open(ctx)
	defer stop()
	for version := range 3 { // 2 is the newest
		must(s.PutReference(ctx, "job-1", version, one(float32(version))))
	}
	for version := range 3 {
		_, barrier, err := s.Claim(ctx, disdel.UpdateID{Job: "job-1", Round: version}, "a", 1)
		must(err)
		_, lax, err := s.WithSlack(1).Claim(ctx, disdel.UpdateID{Job: "job-1", Round: version}, "a", 1)
		must(err)
		fmt.Printf("from version %d: %v, with a slack of 1 %v\n", version, barrier, lax)
	}
	// Output:
	// from version 0: committed, with a slack of 1 committed
	// from version 1: committed, with a slack of 1 claimed
	// from version 2: claimed, with a slack of 1 claimed
}

// A worker's state goes from one leg or round to the next, under a claim.
func ExampleStore_PutState() {
	ctx := context.Background()
	s, stop := open(ctx)
	defer stop()
	id := disdel.UpdateID{Job: "job-1", Round: 4}
	claim, _, err := s.Claim(ctx, id, "a", 1)
	must(err)
	must(s.PutState(ctx, id, claim, map[string]string{"batch": "17"}, one(1, 2)))
	meta, tensors, err := s.State(ctx, id, nil)
	must(err)
	fmt.Println(meta["batch"], tensors[0].Data)
	// Output: 17 [1 2]
}

// Only what has changed by more than half of its weight is sent; the rest waits, and goes when it has added up.
func ExampleFeedback() {
	format := aggregator.Format{Wire: disdel.WireSignificant, Threshold: 0.5}
	feedback, err := aggregator.NewFeedback(format, nil)
	must(err)
	reference := one(1, 1, 0, 8)
	for range 2 {
		encoded, err := feedback.Encode(one(1.375, 3, 0.125, 8), reference)
		must(err)
		fmt.Println(encoded.Bytes(), "sent, kept", feedback.Residual()[0].Data)
	}
	// Output:
	// 11 B sent, kept [0.375 0 0 0]
	// 16 B sent, kept [0 0 0 0]
}

// What is pushed encoded stands for the round's reference plus what it says.
func ExampleEncoded() {
	ctx := context.Background()
	s, stop := open(ctx)
	defer stop()
	reference := one(10, 20)
	must(s.PutReference(ctx, "job-1", 0, reference))
	feedback, err := aggregator.NewFeedback(aggregator.Format{Wire: disdel.WireBfloat16}, nil)
	must(err)
	encoded, err := feedback.Encode(one(10.5, 19), reference)
	must(err)
	id := disdel.UpdateID{Job: "job-1"}
	must(s.PushEncoded(ctx, disdel.Update{ID: id, Samples: 1}, encoded))
	mean, err := s.Reduce(ctx, aggregator.Claim{ID: disdel.UpdateID{Job: "job-1", Level: 1}},
		aggregator.Reduction{Members: []disdel.UpdateID{id}, Like: reference, Reference: true})
	must(err)
	must(s.CommitMean(ctx, mean))
	next, err := s.Reference(ctx, "job-1", 1, reference)
	must(err)
	fmt.Println(next[0].Data)
	// Output: [10.5 19]
}

// The bytes are an upper bound where they depend on the values.
func ExampleWireBytes() {
	shapes := disdel.Weights{{Name: "w", Shape: []int{1000, 1000}}}
	for _, wire := range disdel.Wires() {
		fmt.Println(wire, int64(aggregator.WireBytes(shapes, wire)))
	}
	// Output:
	// float32 4000000
	// bfloat16 2000000
	// int8 1015628
	// significant 5000012
}

// Before a job: does what it keeps in the store fit?
func ExampleNeed_Fits() {
	need := aggregator.Need{Workers: 8, Update: 100 * disdel.MB, Reference: 100 * disdel.MB}
	err := need.Fits([]aggregator.Capacity{{Server: "redis:6379", Known: true, Limit: 1000 * disdel.MB}})
	fmt.Println(errors.Is(err, disdel.OverLimit))
	fmt.Println(need.Fits([]aggregator.Capacity{{Server: "redis:6379", Known: true, Limit: 2000 * disdel.MB}}))
	// Output:
	// true
	// <nil>
}

// The rights of a tenant, for ACL SETUSER.
func ExampleACL() {
	rule, _, _ := strings.Cut(aggregator.ACL("acme"), " +")
	fmt.Println(rule)
	// Output: resetkeys resetchannels ~acme:* -@all
}
