package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/bench/rig"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/model"
)

// What the figures of fitting are measured on: VGG-16 has 138 million weights, 553 MB.
const (
	fittingMembers = 4
	fittingRuns    = 5
	fittingShards  = 4
)

// fitting measures aggregate actions of a model that is far larger than they are: real ones, in processes of the action
// runtime. It prints
//
//	aggregate_mb           peak of the last aggregation, which also writes a checkpoint and the model's file
//	aggregate_estimate_mb  what the estimate expects
//	aggregate_ratio        time of an aggregation over reading its members' bytes once from Redis into a buffer
//	shards_speedup         time of an aggregation over that of the slowest of four shards. They run one after another,
//	                       so that the figure does not depend on the machine's cores; Redis serves one at a time
func fitting(ctx context.Context, program string) error {
	network := disdel.Network{Name: "vgg16", Input: []int{3, 224, 224}, Classes: 1000}
	g, err := model.Build(network)
	if err != nil {
		return err
	}
	like, err := shapes(network)
	if err != nil {
		return err
	}
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
	for _, id := range ids(fittingMembers) {
		u := disdel.Update{ID: id, Samples: float64(100 + id.Member), Weights: fill(like, uint64(id.Member))}
		if err := store.PushUpdate(ctx, u); err != nil {
			return err
		}
	}
	e := estimator.Planned(nil).Aggregate(estimator.Input{Graph: g, Members: fittingMembers, Epochs: 1})
	rig.Figure("aggregate_estimate_mb", float64(e.Likely)/float64(disdel.MB), "MB")
	req := disdel.AggregateRequest{
		Job: benchJob, Level: 1, Attempt: 1, Members: ids(fittingMembers), Network: network,
		Store: disdel.Store{URLs: []string{server.url}}, Memory: e.Total, Estimate: e.Total - e.Margin,
	}
	if err := server.timeAggregations(ctx, program, req); err != nil {
		return err
	}
	return rig.Folder(func(folder string) error {
		req.Top, req.Cluster, req.Models = true, fittingRuns, "file://"+folder
		req.WeightsKey, req.NextCheckpoint = "weights/vgg16.safetensors", "checkpoints/bench/000001/reference.safetensors"
		res, err := aggregateAlone(ctx, program, req)
		if err != nil {
			return err
		}
		rig.Figure("aggregate_mb", float64(res.Usage.Peak)/float64(disdel.MB), "MB")
		return nil
	})
}

// timeAggregations measures reads and aggregations in turn.
func (r *redisServer) timeAggregations(ctx context.Context, program string, req disdel.AggregateRequest) error {
	keys, longest, err := r.updateKeys(ctx)
	if err != nil {
		return err
	}
	var ratios, took, speedups []float64
	for run := range fittingRuns {
		begun := time.Now()
		if err := r.getIntoBuffer(ctx, keys, longest); err != nil {
			return err
		}
		read := rig.Since(begun)
		req.Cluster = run
		res, err := aggregateAlone(ctx, program, req)
		if err != nil {
			return err
		}
		one := workOf(res)
		slowest, err := slowestShard(ctx, program, req)
		if err != nil {
			return err
		}
		speedups = append(speedups, one/slowest)
		ratios, took = append(ratios, one/read), append(took, one)
		if err := r.dropMeans(ctx); err != nil {
			return err
		}
	}
	rig.MedianFigure("aggregate_ratio", ratios, "x")
	rig.MedianFigure("aggregate_ms", took, "ms")
	rig.MedianFigure("shards_speedup", speedups, "x, by the slowest of four shards that ran one after another")
	return nil
}

// workOf is how long an aggregation worked, in ms, without its start.
func workOf(res disdel.AggregateResult) float64 {
	return float64(res.Usage.Phases["compute"]+res.Usage.Phases["push"]) / float64(time.Millisecond)
}

// slowestShard runs the shards of an aggregation one after another, and returns the longest time in ms.
func slowestShard(ctx context.Context, program string, req disdel.AggregateRequest) (longest float64, err error) {
	cluster := fittingRuns + 1 + req.Cluster*fittingShards
	for s := range fittingShards {
		req.Cluster, req.Shard, req.Shards = cluster+s, s, fittingShards
		res, err := aggregateAlone(ctx, program, req)
		if err != nil {
			return 0, err
		}
		longest = max(longest, workOf(res))
	}
	return longest, nil
}

// dropMeans deletes the means of the first level, so that the server keeps its size.
func (r *redisServer) dropMeans(ctx context.Context) error {
	it := r.client.Scan(ctx, 0, fmt.Sprintf("disdel:{%s}:update:0:1:*", benchJob), 1000).Iterator()
	for it.Next(ctx) {
		if err := r.client.Unlink(ctx, it.Val()).Err(); err != nil {
			return err
		}
	}
	return it.Err()
}

// aggregateAlone runs an aggregate action in a process of its own, as OpenWhisk does.
func aggregateAlone(ctx context.Context, program string, req disdel.AggregateRequest) (
	res disdel.AggregateResult, err error,
) {
	err = rig.Folder(func(folder string) error {
		socket := filepath.Join(folder, "runtime")
		cmd := exec.CommandContext(ctx, program, "--listen", "unix:"+socket)
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			return err
		}
		defer rig.Kill(cmd)
		client := &http.Client{Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "unix", socket)
			},
		}}
		defer client.CloseIdleConnections()
		for range 250 {
			if _, err = os.Stat(socket); err == nil {
				break
			}
			time.Sleep(20 * time.Millisecond) // another process, which does not listen yet
		}
		// of no lines between the activations of its log
		started := map[string]any{"name": "a", "main": disdel.TaskAggregate, "code": "x", "sentinels": false}
		return errors.Join(err, post(ctx, client, "/init", started, nil), post(ctx, client, "/run", req, &res))
	})
	return res, err
}

// post sends a value to a runtime and reads the answer.
func post(ctx context.Context, client *http.Client, path string, value, answer any) error {
	body, err := json.Marshal(map[string]any{"value": value})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://runtime"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	got, err := client.Do(req)
	if err != nil {
		return err
	}
	defer got.Body.Close()
	var text json.RawMessage
	if err := json.NewDecoder(got.Body).Decode(&text); err != nil {
		return err
	}
	if got.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", path, got.Status, text)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(text, answer)
}
