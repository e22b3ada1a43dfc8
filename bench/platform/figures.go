package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/disdel/disdel"
)

const (
	warmRuns  = 2000
	coldRuns  = 21
	clients   = 8
	sustained = 5 * time.Second
)

func bench(program, only string, activations int) error {
	program, err := filepath.Abs(program)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	list := func(s *server) error { return s.list(activations) }
	for _, part := range []struct {
		name string
		take func() error
	}{
		{"idle", func() error { return with(program, "", (*server).idle, (*server).cold) }},
		{"crowd", func() error { return crowd(program, self) }},
		{"replay", func() error { return replay(program, self) }},
		{"speed", func() error { return with(program, self, (*server).warm, (*server).throughput, list) }},
	} {
		if only != "" && only != part.name {
			continue
		}
		if err := part.take(); err != nil {
			return err
		}
	}
	return nil
}

// with takes figures of one platform.
func with(program, action string, figures ...func(*server) error) (err error) {
	s, err := start(program, action)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.end()) }()
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
	b, err := s.resident()
	if err == nil {
		figure("idle_rss_mb", float64(b)/float64(disdel.MB), "MB")
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
		times = append(times, ms(begin))
	}
	figure("cold_start_p50_ms", quantile(times, 0.5), "ms")
	return nil
}

// warm is one blocking invocation after the other.
func (s *server) warm() error {
	c, err := s.client()
	if err == nil {
		err = create(c, "noop", "noop")
	}
	if err != nil {
		return err
	}
	times, err := s.times()
	if err != nil {
		return err
	}
	figure("noop_warm_p50_ms", quantile(times, 0.5), "ms")
	figure("noop_warm_p99_ms", quantile(times, 0.99), "ms")
	return nil
}

// times are what invocations of the action noop take one after the other, a first hundred left out.
func (s *server) times() (times []float64, err error) {
	c, err := s.client()
	if err != nil {
		return nil, err
	}
	for i := range warmRuns + 100 {
		begin := time.Now()
		if _, _, err := c.Actions.Invoke("noop", map[string]any{}, true, true); err != nil {
			return nil, err
		}
		if i >= 100 {
			times = append(times, ms(begin))
		}
	}
	return times, nil
}

// throughput is what several clients get through together.
func (s *server) throughput() error {
	rate, err := s.rate()
	if err == nil {
		figure("warm_per_s", rate, "1/s")
	}
	return err
}

// rate is how many invocations of the action noop several clients get through in a second, one of warm-up left out.
func (s *server) rate() (float64, error) {
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
	return float64(done.Load()) / sustained.Seconds(), err
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

func ms(since time.Time) float64 { return float64(time.Since(since)) / float64(time.Millisecond) }

func quantile(v []float64, q float64) float64 {
	slices.Sort(v)
	return v[int(q*float64(len(v)-1))]
}
