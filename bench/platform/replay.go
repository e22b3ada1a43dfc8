package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/bench/rig"
	"github.com/disdel/disdel/internal/test/transcripts"
	"github.com/disdel/disdel/platform"
)

// replay sends a platform of this process the recorded requests of an Apache OpenWhisk. It counts the answers that
// differ, and those without a known reason. It has the kinds, images and limits of the one that was recorded.
func replay(program, noop string) (err error) {
	list, err := transcripts.Load()
	if err != nil {
		return err
	}
	cfg := likeTheRecorded(program, noop)
	if len(cfg.Kinds) < 4 {
		fmt.Fprintln(os.Stderr, "bench: transcript_differences is missing: this machine lacks Python or Node.js")
		return nil
	}
	p, err := platform.New(cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close(context.Background())) }()
	if err := p.Start(); err != nil {
		return err
	}
	r := transcripts.Replayer{URL: p.URL(), Key: p.AuthKey()}
	differ, unexplained := 0, 0
	for i := range list {
		diff, err := r.Send(context.Background(), &list[i])
		if err != nil {
			return err
		}
		if diff == "" {
			continue
		}
		differ++
		if transcripts.Stays[list[i].Name] == "" {
			unexplained++
			fmt.Fprintf(os.Stderr, "bench: %s\n%s\n", list[i].Name, diff)
		}
	}
	rig.Figure("transcript_differences", float64(differ), "requests")
	rig.Figure("transcript_unexplained", float64(unexplained), "requests")
	return nil
}

func likeTheRecorded(program, noop string) platform.Config {
	cfg := platform.DefaultConfig()
	cfg.Kinds = map[string]platform.Kind{}
	for name, kind := range platform.DefaultKinds(program) {
		switch family, _, _ := strings.Cut(name, ":"); family {
		case "python":
			cfg.Kinds["python:3"] = kind
		case "nodejs":
			cfg.Kinds["nodejs:20"] = kind
		default:
			cfg.Kinds[name] = kind
		}
	}
	cfg.Kinds["bench:1"] = platform.Kind{Command: []string{noop, "runtime", "--listen", "{listen}"}}
	cfg.Images = map[string]string{"x/python:1": "python:3", "x/disdel:1": disdel.RuntimeKind}
	cfg.Limits.InvocationsPerMinute, cfg.Limits.FiresPerMinute, cfg.Limits.ConcurrentInvocations = 100_000, 100_000, 1000
	return cfg
}
