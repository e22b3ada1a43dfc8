// Command aggregator measures how updates become a model, against a redis-server of its own on loopback, and prints
// lines of the form
//
//	figure NAME VALUE UNIT
//
// It judges nothing. Started with -reduce it is the process whose memory is measured.
package main

import (
	"context"
	"errors"
	"flag"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/bench/rig"
	"github.com/disdel/disdel/model"
)

func main() {
	reduce := flag.String("reduce", "", "address of a Redis with updates: reduce them and print the bytes that took")
	members := flag.Int("members", 8, "updates to average")
	wide := flag.Int("wide", 32, "updates to average for aggregate_memory_ratio")
	runs := flag.Int("runs", 7, "measurements of each way, taken in turn; the median counts")
	network := flag.String("network", "resnet50",
		"network of the zoo, of 224 x 224 images, whose weights are averaged: 102 MB")
	program := flag.String("program", "bin/disdel",
		"the built program, for the figures of whole jobs; \"\" leaves them out")
	large := flag.String("fitting", "", "the built action runtime: only measure aggregations of a large model with it")
	flag.Parse()
	rig.Main(func() error {
		ctx := context.Background()
		like, err := shapes(disdel.Network{Name: *network, Input: []int{3, 224, 224}, Classes: 1000})
		switch {
		case err != nil:
			return err
		case *large != "":
			return fitting(ctx, *large)
		case *reduce != "":
			return child(ctx, *reduce, *members, like)
		}
		if err := bench(ctx, like, *network, *members, *wide, *runs); err != nil || *program == "" {
			return err
		}
		return rig.Folder(func(home string) error { return jobs(trainer{rig.Program{Path: *program, Home: home}}) })
	})
}

// lenet5 is the network of the figures of rounds.
var lenet5 = disdel.Network{Name: "lenet5", Input: []int{1, 28, 28}, Classes: 10}

// shapes is what an update of a network looks like, without its values.
func shapes(network disdel.Network) (disdel.Weights, error) {
	g, err := model.Build(network)
	if err != nil {
		return nil, err
	}
	var like disdel.Weights
	for _, p := range g.Params() {
		like = append(like, disdel.Tensor{Name: p.Name, Shape: p.Shape})
	}
	return like, nil
}

// fill gives like values that no two members share.
func fill(like disdel.Weights, seed uint64) disdel.Weights {
	out := make(disdel.Weights, len(like))
	x := seed*0x9e3779b97f4a7c15 + 1
	for i, t := range like {
		n := 1
		for _, side := range t.Shape {
			n *= side
		}
		t.Data = make([]float32, n)
		for k := range t.Data {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
			t.Data[k] = float32(int32(x>>32)) / (1 << 33)
		}
		out[i] = t
	}
	return out
}

const benchJob = disdel.JobID("job-bench")

func ids(members int) []disdel.UpdateID {
	out := make([]disdel.UpdateID, members)
	for m := range out {
		out[m] = disdel.UpdateID{Job: benchJob, Member: m}
	}
	return out
}

func bench(ctx context.Context, like disdel.Weights, network string, members, wide, runs int) error {
	server, err := startRedis()
	if err != nil {
		return err
	}
	defer server.stop()
	store, err := aggregator.Open(ctx, disdel.Store{URLs: []string{server.url}})
	if err != nil {
		return err
	}
	defer store.Close()
	size := 4 * fill(like, 0).Len()
	rig.Figure("update_bytes", float64(size), "B")
	for _, id := range ids(members) {
		w := fill(like, uint64(id.Member))
		if err := errors.Join(store.PushUpdate(ctx, disdel.Update{ID: id, Samples: float64(100 + id.Member), Weights: w}),
			server.putLayers(ctx, id, w)); err != nil {
			return err
		}
	}
	if err := (round{store, server, like, members, size}).compare(ctx, runs); err != nil {
		return err
	}
	if err := server.dropLayers(ctx); err != nil {
		return err
	}
	if _, err := store.Sweep(ctx, benchJob); err != nil { // the comparison ended the round
		return err
	}
	for _, id := range ids(wide) {
		if err := store.PushUpdate(ctx,
			disdel.Update{ID: id, Samples: 100, Weights: fill(like, uint64(id.Member))}); err != nil {
			return err
		}
	}
	held, err := measureChild(server.url, network, wide)
	if err != nil {
		return err
	}
	rig.Figure("aggregate_memory_ratio", held/float64(size), "x")
	lenet, err := shapes(lenet5)
	if err != nil {
		return err
	}
	return rounds(ctx, server.url, lenet)
}
