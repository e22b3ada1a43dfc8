package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/redis/go-redis/v9"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/bench/rig"
)

// redisServer is a redis-server of the bench's own.
type redisServer struct {
	url    string
	client *redis.Client
	stop   func()
}

func startRedis() (*redisServer, error) {
	dir, err := os.MkdirTemp("", "disdel-bench-")
	if err != nil {
		return nil, err
	}
	url, stop, err := rig.StartRedis(dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	options, err := redis.ParseURL(url)
	if err != nil {
		return nil, err
	}
	options.DisableIdentity = true
	client := redis.NewClient(options)
	return &redisServer{url: url, client: client, stop: func() {
		client.Close()
		stop()
		os.RemoveAll(dir)
	}}, nil
}

// updateKeys is every key that holds bytes of an update, and the longest value.
func (r *redisServer) updateKeys(ctx context.Context) (keys []string, longest int, err error) {
	it := r.client.Scan(ctx, 0, "disdel:*:update:*", 1000).Iterator()
	for it.Next(ctx) {
		n, err := r.client.StrLen(ctx, it.Val()).Result()
		if err != nil {
			return nil, 0, err
		}
		keys, longest = append(keys, it.Val()), max(longest, int(n))
	}
	return keys, longest, it.Err()
}

func (r *redisServer) dropLayers(ctx context.Context) error {
	it := r.client.Scan(ctx, 0, "kubeml:*", 1000).Iterator()
	for it.Next(ctx) {
		if err := r.client.Unlink(ctx, it.Val()).Err(); err != nil {
			return err
		}
	}
	return it.Err()
}

// child reduces the updates in a Redis and publishes the mean, as an aggregate action does. It prints by how many bytes
// the process grew.
func child(ctx context.Context, url string, members int, like disdel.Weights) error {
	before, err := rig.Memory(0, "VmRSS")
	if err != nil {
		return err
	}
	store, err := aggregator.Open(ctx, disdel.Store{URLs: []string{url}})
	if err != nil {
		return err
	}
	defer store.Close()
	if err := reduce(ctx, store, aggregator.Claim{ID: top}, ids(members), like); err != nil {
		return err
	}
	after, err := rig.Memory(0, "VmHWM")
	if err != nil {
		return err
	}
	fmt.Println(int64(after[0] - before[0]))
	return nil
}

// top is the aggregation of the bench's round.
var top = disdel.UpdateID{Job: benchJob, Level: 1}

// reduce computes a mean and publishes it as the next reference.
func reduce(ctx context.Context, s *aggregator.Store, c aggregator.Claim, members []disdel.UpdateID, like disdel.Weights,
) error {
	mean, err := s.Reduce(ctx, c, aggregator.Reduction{Members: members, Like: like, Reference: true})
	if err != nil {
		return err
	}
	return s.CommitMean(ctx, mean)
}

// measureChild runs child in a process of its own.
func measureChild(url, network string, members int) (float64, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(self, "-reduce", url, "-members", fmt.Sprint(members), "-network", network)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return 0, err
	}
	var held float64
	_, err = fmt.Sscan(string(out), &held)
	return held, err
}
