package main

import (
	"context"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
)

// int8Bytes pushes one update of LeNet-5 in both formats and compares what arrives.
func int8Bytes(ctx context.Context, store *aggregator.Store, server *redisServer) error {
	like, err := shapes(disdel.Network{Name: "lenet5", Input: []int{1, 28, 28}, Classes: 10})
	if err != nil {
		return err
	}
	var bytes [2]int
	for i, wire := range []disdel.Wire{disdel.WireFloat32, disdel.WireInt8} {
		if _, err := store.Sweep(ctx, job); err != nil {
			return err
		}
		if err := push(ctx, store, like, wire); err != nil {
			return err
		}
		if bytes[i], err = server.updateBytes(ctx); err != nil {
			return err
		}
	}
	figure("int8_bytes_ratio", float64(bytes[1])/float64(bytes[0]), "x")
	return nil
}

// storeBytes pushes one update of the large network in every format and prints what the server takes for a byte of it.
func storeBytes(ctx context.Context, store *aggregator.Store, server *redisServer, like disdel.Weights) error {
	for _, wire := range []disdel.Wire{disdel.WireFloat32, disdel.WireBfloat16, disdel.WireInt8} {
		if _, err := store.Sweep(ctx, job); err != nil {
			return err
		}
		before, err := server.used(ctx)
		if err != nil {
			return err
		}
		if err := push(ctx, store, like, wire); err != nil {
			return err
		}
		after, err := server.used(ctx)
		if err != nil {
			return err
		}
		figure("store_overhead_"+string(wire), float64(after-before)/float64(aggregator.WireBytes(like, wire)), "x")
	}
	return nil
}

func push(ctx context.Context, store *aggregator.Store, like disdel.Weights, wire disdel.Wire) error {
	u := disdel.Update{ID: ids(1)[0], Samples: 1}
	if wire == disdel.WireFloat32 {
		u.Weights = fill(like, 1)
		return store.PushUpdate(ctx, u)
	}
	feedback, err := aggregator.NewFeedback(wire, nil)
	if err != nil {
		return err
	}
	encoded, err := feedback.Encode(fill(like, 1), fill(like, 2))
	if err != nil {
		return err
	}
	return store.PushEncoded(ctx, u, encoded)
}
