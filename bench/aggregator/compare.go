package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/bench/rig"
)

// way is one way to bring the updates' bytes in, measured beside the others.
type way struct {
	name string
	run  func() error
	took []float64 // seconds
}

// round is the updates of one round, which all ways bring in.
type round struct {
	store   *aggregator.Store
	server  *redisServer
	like    disdel.Weights
	members int
	size    int // bytes of an update
}

// compare measures all ways in turn, so often, so that what disturbs the machine disturbs them alike.
func (r round) compare(ctx context.Context, runs int) error {
	store, server, like, members, size := r.store, r.server, r.like, r.members, r.size
	keys, longest, err := server.updateKeys(ctx)
	if err != nil {
		return err
	}
	var theirs disdel.Weights
	ways := []*way{
		{name: "reduce", run: func() error {
			_, err := store.Reduce(ctx, aggregator.Claim{ID: top}, aggregator.Reduction{Members: ids(members), Like: like})
			return err
		}},
		{name: "get", run: func() error { return server.getAll(ctx, keys) }},
		{name: "get_into_buffer", run: func() error { return server.getIntoBuffer(ctx, keys, longest) }},
		{name: "kubeml", run: func() (err error) {
			theirs, err = server.kubeml(ctx, like, members)
			return err
		}},
	}
	for range runs {
		for _, w := range ways {
			theirs = nil
			runtime.GC()
			start := time.Now()
			if err := w.run(); err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			w.took = append(w.took, time.Since(start).Seconds())
			if err := server.dropMeans(ctx); err != nil {
				return err
			}
		}
	}
	ours, err := reduced(ctx, store, like, members)
	if err != nil {
		return err
	}
	if theirs, err = server.kubeml(ctx, like, members); err != nil {
		return err
	}
	if err := alike(ours, theirs); err != nil {
		return err
	}
	median := map[string]float64{}
	for _, w := range ways {
		median[w.name] = rig.Median(w.took)
		rig.Figure(w.name+"_mb_per_s", float64(members*size)/1e6/median[w.name], "MB/s")
	}
	rig.Figure("get_ratio", median["get"]/median["reduce"], "x")
	rig.Figure("get_into_buffer_ratio", median["get_into_buffer"]/median["reduce"], "x")
	rig.Figure("vs_kubeml", median["kubeml"]/median["reduce"], "x")
	return nil
}

func reduced(ctx context.Context, store *aggregator.Store, like disdel.Weights, members int) (disdel.Weights, error) {
	if err := reduce(ctx, store, aggregator.Claim{ID: top}, ids(members), like); err != nil {
		return nil, err
	}
	return store.Reference(ctx, benchJob, 1, like)
}

// alike says whether both ways came to about the same: KubeML's mean is not weighted, ours nearly not.
func alike(a, b disdel.Weights) error {
	for i, t := range a {
		for k, v := range t.Data {
			if math.Abs(float64(v-b[i].Data[k])) > 0.02 {
				return fmt.Errorf("%s[%d]: %g and %g", t.Name, k, v, b[i].Data[k])
			}
		}
	}
	return nil
}

// getAll is plain GETs of the updates' bytes, one after another, that do nothing with them.
func (r *redisServer) getAll(ctx context.Context, keys []string) error {
	for _, key := range keys {
		if _, err := r.client.Get(ctx, key).Bytes(); err != nil {
			return err
		}
	}
	return nil
}

// getIntoBuffer is the same without memory for each reply.
func (r *redisServer) getIntoBuffer(ctx context.Context, keys []string, longest int) error {
	buf := make([]byte, longest+2)
	for _, key := range keys {
		if err := r.client.GetToBuffer(ctx, key, buf).Err(); err != nil {
			return err
		}
	}
	return nil
}

func layerKey(id disdel.UpdateID, name string) string {
	return fmt.Sprintf("kubeml:%d:%s", id.Member, name)
}

// putLayers stores an update as KubeML does: a key for each layer.
func (r *redisServer) putLayers(ctx context.Context, id disdel.UpdateID, w disdel.Weights) error {
	var all error
	for _, t := range w {
		var b bytes.Buffer
		all = errors.Join(all, binary.Write(&b, binary.LittleEndian, t.Data),
			r.client.Set(ctx, layerKey(id, t.Name), b.Bytes(), 0).Err())
	}
	return all
}

// kubeml averages as KubeML does (section 3.5): fetch every layer of every worker, a key each, then add up and divide.
func (r *redisServer) kubeml(ctx context.Context, like disdel.Weights, members int) (disdel.Weights, error) {
	all := make([]disdel.Weights, members)
	for m, id := range ids(members) {
		for _, t := range like {
			blob, err := r.client.Get(ctx, layerKey(id, t.Name)).Bytes()
			if err != nil {
				return nil, err
			}
			t.Data = make([]float32, len(blob)/4)
			if err := binary.Read(bytes.NewReader(blob), binary.LittleEndian, t.Data); err != nil {
				return nil, err
			}
			all[m] = append(all[m], t)
		}
	}
	sum := all[0]
	for _, w := range all[1:] {
		for i, t := range w {
			for k, v := range t.Data {
				sum[i].Data[k] += v
			}
		}
	}
	for _, t := range sum {
		for k := range t.Data {
			t.Data[k] /= float32(members)
		}
	}
	return sum, nil
}
