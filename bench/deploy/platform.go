package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/bench/rig"
)

// coldRuns is how many containers are started, of which the median counts.
const coldRuns = 31

// cold measures what a cluster's containers took when they were the whole program, and take now: an action's first
// invocation, to the end of a run without parameters, which evaluate refuses at once.
func cold(ctx context.Context, program, runtime string) error {
	runtime, err := filepath.Abs(runtime)
	if err != nil {
		return err
	}
	for _, of := range []struct {
		name string
		args []string
	}{{"cold_start_whole_p50_ms", nil}, {"cold_start_p50_ms", []string{"--action", runtime}}} {
		if err := coldOf(ctx, of.name, program, of.args...); err != nil {
			return err
		}
	}
	return nil
}

func coldOf(ctx context.Context, name, program string, args ...string) (err error) {
	p, err := rig.StartPlatform(program, append(args, "--pool-memory", "64GB", "--per-minute", "100000")...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	var times []float64
	for i := range coldRuns {
		action := fmt.Sprintf("actions/cold%d", i)
		body := fmt.Sprintf(`{"exec":{"kind":%q,"main":%q,"code":"bench"},"limits":{"memory":128}}`, disdel.RuntimeKind,
			disdel.TaskEvaluate)
		status, err := p.Send(ctx, http.DefaultClient, http.MethodPut, action, body)
		if err != nil || status != http.StatusOK {
			return errors.Join(fmt.Errorf("create an action: status %d", status), err)
		}
		begun := time.Now()
		status, err = p.Send(ctx, http.DefaultClient, http.MethodPost, action+"?blocking=true", "{}")
		if err != nil || status != http.StatusBadGateway {
			return errors.Join(fmt.Errorf("a cold start: status %d", status), err)
		}
		times = append(times, rig.Since(begun))
	}
	rig.Figure(name, rig.Median(times), "ms")
	return nil
}
