package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
)

// redisServer is a redis-server of the bench's own.
type redisServer struct {
	url    string
	client *redis.Client
	stop   func()
}

func startRedis(ctx context.Context) (*redisServer, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := l.Addr().String()
	l.Close()
	_, port, _ := net.SplitHostPort(address)
	dir, err := os.MkdirTemp("", "disdel-bench")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", dir)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	r := &redisServer{
		url:    "redis://" + address + "/0",
		client: redis.NewClient(&redis.Options{Addr: address, DisableIdentity: true}),
	}
	r.stop = func() {
		r.client.Close()
		cmd.Process.Kill()
		cmd.Wait()
		os.RemoveAll(dir)
	}
	for range 250 {
		if err = r.client.Ping(ctx).Err(); err == nil {
			return r, nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	r.stop()
	return nil, err
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

// child reduces what lies in a Redis, publishes the mean as an aggregate action does, and prints by how many bytes that
// made the process larger than it was before.
func child(url string, members int, like disdel.Weights) error {
	ctx := context.Background()
	before, err := memory("VmRSS:")
	if err != nil {
		return err
	}
	store, err := aggregator.Open(ctx, disdel.Store{URLs: []string{url}})
	if err != nil {
		return err
	}
	defer store.Close()
	u, err := store.Reduce(ctx, ids(members), like)
	if err != nil {
		return err
	}
	if err := store.PutReference(ctx, benchJob, 1, u.Weights); err != nil {
		return err
	}
	after, err := memory("VmHWM:")
	fmt.Println(after - before)
	return err
}

// memory is a line of the process's own status, in bytes.
func memory(name string) (int, error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), name)
	var kib int
	_, err = fmt.Sscan(rest, &kib)
	return kib * 1024, err
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
