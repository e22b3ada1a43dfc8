package main

import (
	"context"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
)

// wireBytes pushes one update of LeNet-5 in every format and compares what arrives.
func wireBytes(ctx context.Context, store *aggregator.Store, server *redisServer, like disdel.Weights) error {
	bytes := map[disdel.Wire]float64{}
	for _, wire := range disdel.Wires() {
		if _, err := store.Sweep(ctx, benchJob); err != nil {
			return err
		}
		if err := push(ctx, store, like, wire); err != nil {
			return err
		}
		n, err := server.updateBytes(ctx)
		if err != nil {
			return err
		}
		bytes[wire] = float64(n)
	}
	figure("int8_bytes_ratio", bytes[disdel.WireInt8]/bytes[disdel.WireFloat32], "x")
	figure("bfloat16_bytes_ratio", bytes[disdel.WireBfloat16]/bytes[disdel.WireFloat32], "x")
	return nil
}

// storeBytes pushes one update of the large network in every format and prints what the server takes for a byte of it.
func storeBytes(ctx context.Context, store *aggregator.Store, server *redisServer, like disdel.Weights) error {
	for _, wire := range disdel.Wires() {
		if _, err := store.Sweep(ctx, benchJob); err != nil {
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
	feedback, err := aggregator.NewFeedback(aggregator.Format{Wire: wire}, nil)
	if err != nil {
		return err
	}
	encoded, err := feedback.Encode(fill(like, 1), fill(like, 2))
	if err != nil {
		return err
	}
	return store.PushEncoded(ctx, u, encoded)
}
