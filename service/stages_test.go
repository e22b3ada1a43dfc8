package service

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/wait"
)

// chained is a job of two stages that pass 4 MB in each step.
func chained(t *testing.T, sets ...string) disdel.Job {
	t.Helper()
	job := small(t, append([]string{
		"distribution.workers=1", "distribution.stages=2", "training.batchSize=512", "training.microBatch=64",
	}, sets...)...)
	conv := disdel.Layer{Kind: "conv", Filters: 32, Kernel: 3, Padding: 1, Activation: "relu"}
	job.Model = disdel.Model{Layers: []disdel.Layer{
		conv, conv, conv, conv, {Kind: "globalAvgPool"}, {Kind: "dense", Units: 10, Activation: "softmax"},
	}}
	return job
}

// If Redis is full while stages pass values, the job ends and says how much they need.
func TestStagesSayWhatAFullRedisNeeds(t *testing.T) {
	t.Parallel()
	address := redisServer(t)
	s, err := Open(t.Context(), Config{Program: testProgram, Home: t.TempDir(), Redis: []string{address}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := s.AddDigits(t.Context()); err != nil {
		t.Fatal(err)
	}
	options, err := redis.ParseURL(address)
	if err != nil {
		t.Fatal(err)
	}
	server := redis.NewClient(options)
	defer server.Close()
	run := submit(t, s, chained(t, "training.epochs=1000"))
	wait.Until(t, "values of a stage", func() bool {
		keys, err := server.Keys(t.Context(), "*:forward*").Result()
		return err == nil && len(keys) > 0
	})
	if err := server.ConfigSet(t.Context(), "maxmemory", "1mb").Err(); err != nil {
		t.Fatal(err)
	}
	rec, err := run.Wait(t.Context())
	if err != nil || rec.Status != disdel.StatusFailed || rec.Failure.Kind != disdel.OverLimit ||
		!strings.Contains(rec.Failure.Error(), "no room for 512 KB") {
		t.Errorf("%v: %v, %v", rec.Status, rec.Failure, err)
	}
}

// limitedFiles is a program that serves actions, none of whose files can be larger than 1 MB.
func limitedFiles(t *testing.T) string {
	t.Helper()
	own := testProgram
	if own == "" {
		var err error
		if own, err = os.Executable(); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "limited")
	script := fmt.Sprintf("#!/bin/sh\nulimit -f 2048\nexec '%s' \"$@\"\n", own)
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// If moments do not fit the disk of an action, the job ends and says what space they need. With stages, the others end,
// too.
func TestMomentsOnAFullDiskEndTheJob(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), Config{Program: limitedFiles(t), Home: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := s.AddDigits(t.Context()); err != nil {
		t.Fatal(err)
	}
	for stages, need := range map[int]string{1: "4.40 MB", 2: "4.14 MB"} {
		job := small(t, "distribution.workers=1", fmt.Sprintf("distribution.stages=%d", stages),
			"training.optimizerState=paged")
		job.Model = disdel.Model{Layers: []disdel.Layer{
			{Kind: "flatten"},
			{Kind: "dense", Units: 512, Activation: "relu"},
			{Kind: "dense", Units: 1024, Activation: "relu"},
			{Kind: "dense", Units: 10, Activation: "softmax"},
		}}
		rec, err := submit(t, s, job).Wait(t.Context())
		if err != nil || rec.Status != disdel.StatusFailed {
			t.Fatalf("%d stages: %v, %v", stages, rec.Status, err)
		}
		why := rec.Failure.Error()
		if rec.Failure.Kind != disdel.NoSpace || !strings.Contains(why, "the moments take "+need+" of disk in") ||
			strings.Contains(why, "the checkpoint of") {
			t.Errorf("%d stages: %s", stages, why)
		}
	}
}
