package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// The least that a step of four workers takes: processes that do nothing but exchange.
const (
	floorMembers = 4
	floorSteps   = 400
	floorStream  = "floor"
)

// stepFloor is the time of a step of four processes that compute nothing and check nothing: each adds so many bytes to
// a stream and reads what is new, in one message, and then waits for what the others add. It is what of step_ms_p50 is
// the server's, the system's and the client library's.
func stepFloor(redis string, size int) error {
	own, err := os.Executable()
	if err != nil {
		return err
	}
	members := make([]*exec.Cmd, floorMembers)
	said := make([]bytes.Buffer, floorMembers)
	for m := range members {
		members[m] = exec.Command(own, "-floor", fmt.Sprintf("%s %d %d", redis, m, size))
		members[m].Stdout, members[m].Stderr = &said[m], os.Stderr
		if err := members[m].Start(); err != nil {
			return err
		}
	}
	var medians []float64
	for m, cmd := range members {
		if err := cmd.Wait(); err != nil {
			return err
		}
		ms, err := strconv.ParseFloat(strings.TrimSpace(said[m].String()), 64)
		if err != nil {
			return err
		}
		medians = append(medians, ms)
	}
	figure("step_ms_floor", mean(medians), "ms")
	return nil
}

// floorMember is one of the processes: it prints the median of its steps, ms.
func floorMember(ctx context.Context, what string) error {
	var address string
	var member, size int
	if _, err := fmt.Sscan(what, &address, &member, &size); err != nil {
		return err
	}
	options, err := redis.ParseURL(address)
	if err != nil {
		return err
	}
	f := follower{client: redis.NewClient(options), last: "0", of: map[int]int{}}
	defer f.client.Close()
	data := bytes.Repeat([]byte{byte(member)}, size)
	var took []float64
	for step := 1; step <= floorSteps; step++ {
		begun := time.Now()
		if err := f.step(ctx, step, data); err != nil {
			return err
		}
		took = append(took, float64(time.Since(begun))/float64(time.Millisecond))
	}
	slices.Sort(took)
	fmt.Println(took[len(took)/2])
	return nil
}

// follower follows the stream.
type follower struct {
	client *redis.Client
	last   string
	of     map[int]int // members that have sent a step
}

func (f *follower) step(ctx context.Context, step int, data []byte) error {
	var news *redis.XStreamSliceCmd
	_, err := f.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.XAdd(ctx, &redis.XAddArgs{
			Stream: floorStream, MaxLen: 16 * floorMembers, Approx: true, Values: []any{"step", step, "data", data},
		})
		news = f.read(ctx, p, -1)
		return nil
	})
	for err == nil || err == redis.Nil {
		f.take(news)
		if f.of[step] == floorMembers {
			delete(f.of, step)
			return nil
		}
		news = f.read(ctx, f.client, time.Second)
		err = news.Err()
	}
	return err
}

func (f *follower) read(ctx context.Context, by redis.StreamCmdable, wait time.Duration) *redis.XStreamSliceCmd {
	return by.XRead(ctx, &redis.XReadArgs{Streams: []string{floorStream, f.last}, Count: 3 * floorMembers, Block: wait})
}

func (f *follower) take(news *redis.XStreamSliceCmd) {
	for _, stream := range news.Val() {
		for _, m := range stream.Messages {
			step, _ := strconv.Atoi(fmt.Sprint(m.Values["step"]))
			f.last = m.ID
			f.of[step]++
		}
	}
}
