package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/platform"
	"github.com/disdel/disdel/platform/local"
	"github.com/disdel/disdel/service"
)

// bounds are those of the platform of an experiment.
type bounds struct {
	pool    disdel.Bytes
	timeout time.Duration // the longest of an action; 0: patient
	slots   int           // thousandths of a processor of each container, as a quota; 0: none
	every   time.Duration // between looks at the pool; 0: sampleEvery
}

// testbed is everything that the jobs of an experiment need: a platform in this process whose containers are this
// program, and a service that uses it as one of the user's. The pool is sampled all the time.
type testbed struct {
	home     string
	bounds   bounds
	platform *platform.Platform
	service  *service.Service
	parts    service.Parts
	sources  *sources
	python   string // kind of the actions of TensorFlow; "": there is none
	jobs     int
	limits   map[string]disdel.Bytes // that tries of jobs have found

	began    time.Time
	stop     context.CancelFunc
	sampling sync.WaitGroup
	mu       sync.Mutex // guards what follows
	samples  []sample
	watched  map[int]bool // processes without a container
}

// sampleEvery is the time between looks at the pool, where an experiment says no other.
const sampleEvery = 50 * time.Millisecond

// newTestbed starts a platform. It returns Unavailable where quotas are asked for that this machine cannot keep.
func newTestbed(ctx context.Context, s *sources, b bounds, python string) (*testbed, error) {
	home, err := os.MkdirTemp("", "disdel-bench-")
	if err != nil {
		return nil, err
	}
	r := &testbed{
		home: home, bounds: b, sources: s, began: time.Now(), watched: map[int]bool{}, limits: map[string]disdel.Bytes{},
	}
	if err := r.open(ctx, python); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

func (r *testbed) open(ctx context.Context, python string) error {
	cfg, err := r.config(python)
	if err != nil {
		return err
	}
	if r.platform, err = platform.New(cfg); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	r.platform.Serve(l, &local.Front{API: r.platform.Handler(), Platform: r.platform, Started: time.Now()})
	r.service, err = service.Open(ctx, service.Config{
		Home: r.home, Log: quiet(), OpenWhisk: service.OpenWhisk{Host: r.platform.URL(), Key: r.platform.AuthKey()},
	})
	if err != nil {
		return err
	}
	if r.parts, err = r.service.Parts(ctx); err != nil {
		return err
	}
	life, stop := context.WithCancel(ctx)
	r.stop = stop
	r.sampling.Go(func() { r.platform.Follow(life, cmp.Or(r.bounds.every, sampleEvery), r.sampled) })
	return nil
}

// config is the platform's.
func (r *testbed) config(python string) (platform.Config, error) {
	cfg, err := local.Config(local.Settings{
		Home: r.home, Pool: r.bounds.pool, ActionMemory: r.bounds.pool, ActionTimeout: cmp.Or(r.bounds.timeout, patient),
		Log: quiet(),
	})
	if err != nil {
		return cfg, err
	}
	cfg.Limits.Memory.Min = leastAction
	cfg.Limits.InvocationsPerMinute, cfg.Limits.ConcurrentInvocations = 100_000, 1000
	cfg.DataDir, cfg.FolderMB = filepath.Join(r.home, "platform"), 0
	if r.bounds.slots > 0 {
		cfg.CPU = platform.CPUScaling{Millicpus: r.bounds.slots, Memory: disdel.MB, Max: r.bounds.slots}
	}
	r.python = addPython(&cfg, python)
	return cfg, nil
}

// addPython adds a kind whose actions an interpreter with TensorFlow runs, and names it; "" where there is none.
func addPython(cfg *platform.Config, interpreter string) string {
	path, err := filepath.Abs(interpreter) // as it is called, not where its link leads: that finds its packages
	if _, bad := os.Stat(path); interpreter == "" || err != nil || bad != nil {
		return ""
	}
	kind, ok := platform.DefaultKinds("")["python:3"]
	if !ok {
		return ""
	}
	kind.Command = append([]string{path}, kind.Command[1:]...)
	kind.OwnUser, kind.Default = false, true
	cfg.Kinds["python:3"] = kind
	return "python:3"
}

func quiet() *logrus.Logger {
	l := logrus.New()
	l.SetLevel(logrus.ErrorLevel)
	return l
}

// sampled notes what the pool holds, and what processes beside it do.
func (r *testbed) sampled(at platform.Sample) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := sample{
		At: at.At.Sub(r.began).Seconds(), Reserved: at.Used, Resident: at.Resident, Running: at.Running, Queued: at.Queued,
	}
	for pid := range r.watched {
		now, _ := residentOf(pid)
		s.Bare += now
	}
	r.samples = append(r.samples, s)
}

// since is the samples from a time on, whose times are after it.
func (r *testbed) since(from time.Time) (out []sample) {
	r.mu.Lock()
	defer r.mu.Unlock()
	begin := from.Sub(r.began).Seconds()
	for _, s := range r.samples {
		if s.At >= begin {
			s.At -= begin
			out = append(out, s)
		}
	}
	return out
}

// watch has the samples count a process without a container, until the function that it returns is called.
func (r *testbed) watch(pid int) (end func()) {
	set := func(on bool) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if delete(r.watched, pid); on {
			r.watched[pid] = true
		}
	}
	set(true)
	return func() { set(false) }
}

func (r *testbed) close() error {
	var err error
	if r.stop != nil {
		r.stop()
		r.sampling.Wait()
	}
	if r.service != nil {
		err = r.service.Close()
	}
	if r.platform != nil {
		err = errors.Join(err, local.End(r.platform))
	}
	return errors.Join(err, os.RemoveAll(r.home))
}

// url is a folder of the home as a blob URL.
func (r *testbed) url(folder string) string {
	return (&url.URL{Scheme: "file", Path: filepath.Join(r.home, folder)}).String()
}

// next is an id of a job that no service gave.
func (r *testbed) next() disdel.JobID {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.jobs++
	return disdel.JobID(fmt.Sprintf("job-%026d", r.jobs))
}

// threads are those that one container or process computes with: all processors there are.
func threads() int { return local.Processors() }
