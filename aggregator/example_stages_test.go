package aggregator_test

import (
	"context"
	"fmt"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
)

// Two stages of a network find each other. The first one sends the outputs of a micro-batch to the second.
func ExampleStore_Pipeline() {
	ctx := context.Background()
	s, stop := open(ctx)
	defer stop()
	none := func() error { return nil }
	stage := func(number int) *aggregator.Pipeline {
		id := disdel.UpdateID{Job: "job-1", Member: number}
		return s.Pipeline(aggregator.Claim{ID: id, Fence: 1}, aggregator.Place{Stage: number, Stages: 2})
	}
	sent := make(chan error)
	go func() {
		first := stage(0)
		_, err := first.Join(ctx, aggregator.Joined{}, none)
		if err == nil {
			err = first.Send(ctx, true, aggregator.Values{1, 2, 3})
		}
		if err == nil {
			err = first.End(ctx, none)
		}
		sent <- err
	}()
	second, values := stage(1), make(aggregator.Values, 3)
	_, err := second.Join(ctx, aggregator.Joined{}, none)
	must(err)
	must(second.Receive(ctx, true, values, none))
	must(second.End(ctx, none))
	must(<-sent)
	fmt.Println(values)
	// Output: [1 2 3]
}

// The updates of two stages become that of the whole network.
func ExampleStore_Join() {
	ctx := context.Background()
	s, stop := open(ctx)
	defer stop()
	parts := disdel.Weights{
		{Name: "a", Shape: []int{2}, Data: []float32{1, 2}}, {Name: "b", Shape: []int{1}, Data: []float32{3}},
	}
	var members []disdel.UpdateID
	for i, t := range parts {
		id := disdel.UpdateID{Job: "job-1", Member: i}
		must(s.PushUpdate(ctx, disdel.Update{ID: id, Samples: 10, Weights: disdel.Weights{t}}))
		members = append(members, id)
	}
	claim, _, err := s.Claim(ctx, disdel.UpdateID{Job: "job-1", Level: 1}, "me", 1)
	must(err)
	mean, err := s.Join(ctx, claim, aggregator.Reduction{Members: members, Like: parts})
	must(err)
	must(s.CommitMean(ctx, mean))
	u, err := s.FetchUpdate(ctx, claim.ID, parts)
	must(err)
	fmt.Println(u.Samples, u.Weights[0].Data, u.Weights[1].Data)
	// Output: 10 [1 2] [3]
}
