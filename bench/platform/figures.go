package main

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/bench/rig"
)

const (
	warmRuns  = 2000
	coldRuns  = 21
	clients   = 8
	sustained = 5 * time.Second
)

// parts are what can be measured.
func parts(program, self string, activations int) []rig.Part {
	list := func(s *server) error { return s.list(activations) }
	return []rig.Part{
		{Name: "idle", Run: func() error { return with(program, "", (*server).idle, (*server).cold) }},
		{Name: "crowd", Run: func() error { return crowd(program, self) }},
		{Name: "replay", Run: func() error { return replay(program, self) }},
		{Name: "speed", Run: func() error { return with(program, self, (*server).warm, (*server).throughput, list) }},
	}
}

// with takes figures of one platform.
func with(program, action string, figures ...func(*server) error) (err error) {
	s, err := start(program, action)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for _, f := range figures {
		if err := f(s); err != nil {
			return err
		}
	}
	return nil
}

// idle is the memory of a platform that nobody has used.
func (s *server) idle() error {
	time.Sleep(2 * time.Second)
	b, err := rig.Memory(s.PID, "VmRSS")
	if err == nil {
		rig.Figure("idle_rss_mb", float64(b[0])/float64(disdel.MB), "MB")
	}
	return err
}

// cold is the first invocation of an action that is new: the container's start, /init, and a /run without parameters,
// which evaluate refuses at once.
func (s *server) cold() error {
	c, err := s.client()
	if err != nil {
		return err
	}
	var times []float64
	for i := range coldRuns {
		name := fmt.Sprintf("cold%d", i)
		if err := create(c, name, string(disdel.TaskEvaluate)); err != nil {
			return err
		}
		begin := time.Now()
		_, res, err := c.Actions.Invoke(name, map[string]any{}, true, false)
		if res == nil || res.StatusCode != http.StatusBadGateway {
			return fmt.Errorf("cold start: %w", err)
		}
		times = append(times, rig.Since(begin))
	}
	rig.Figure("cold_start_p50_ms", rig.Median(times), "ms")
	return nil
}

// warm is one blocking invocation after the other, the first hundred left out.
func (s *server) warm() error {
	c, err := s.client()
	if err == nil {
		err = create(c, "noop", "noop")
	}
	if err != nil {
		return err
	}
	times, err := rig.Times(100+warmRuns, func() error {
		_, _, err := c.Actions.Invoke("noop", map[string]any{}, true, true)
		return err
	})
	if err != nil {
		return err
	}
	rig.Figure("noop_warm_p50_ms", rig.Median(times[100:]), "ms")
	rig.Figure("noop_warm_p99_ms", rig.Percentile(times[100:], 0.99), "ms")
	return nil
}

// throughput is how many invocations of the action noop several clients get through in a second, one of warm-up left
// out.
func (s *server) throughput() error {
	var done atomic.Int64
	stop := time.Now().Add(time.Second + sustained)
	measured := time.AfterFunc(time.Second, func() { done.Store(0) })
	defer measured.Stop()
	err := s.together(func(invoke func() error) error {
		for time.Now().Before(stop) {
			if err := invoke(); err != nil {
				return err
			}
			done.Add(1)
		}
		return nil
	})
	if err == nil {
		rig.Figure("warm_per_s", float64(done.Load())/sustained.Seconds(), "1/s")
	}
	return err
}

// together runs f in several clients.
func (s *server) together(f func(invoke func() error) error) error {
	var all sync.WaitGroup
	errs := make([]error, clients)
	for i := range clients {
		all.Go(func() {
			c, err := s.client()
			if err != nil {
				errs[i] = err
				return
			}
			errs[i] = f(func() error {
				_, _, err := c.Actions.Invoke("noop", map[string]any{}, true, true)
				return err
			})
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
