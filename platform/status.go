package platform

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/disdel/disdel"
)

// Status is the state of the container pool at one moment.
type Status struct {
	Running   int          // containers that serve an activation or start for one
	Ready     int          // idle containers
	Paused    int          // paused containers
	Prewarmed int          // prewarmed containers
	Queued    int          // activations that wait for a container
	Used      disdel.Bytes // memory limits of all containers
	Resident  disdel.Bytes // memory that containers hold now
	Busy      disdel.Bytes // part of Used that belongs to running containers
	Memory    disdel.Bytes // size of the pool

	Devices []DeviceStatus // accelerators
}

// DeviceStatus is an accelerator and its use.
type DeviceStatus struct {
	Device
	Used       disdel.Bytes
	Containers int
}

// Status returns the state of the container pool.
func (p *Platform) Status() Status {
	s := p.pool.status()
	s.Resident = p.resident()
	return s
}

func (p *pool) status() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Status{
		Running: p.busy, Prewarmed: len(p.prewarmed), Queued: len(p.queue), Used: p.used, Busy: p.used, Memory: p.total,
	}
	s.Devices = p.devices.status()
	for _, c := range p.prewarmed {
		s.Busy -= c.memory
	}
	for size, n := range p.starting {
		s.Busy -= disdel.Bytes(n) * size.memory
	}
	for _, c := range p.free {
		s.Busy -= c.memory
		if c.paused {
			s.Paused++
		} else {
			s.Ready++
		}
	}
	return s
}

// Sample is a Status with its time.
type Sample struct {
	At time.Time
	Status
}

// Follow calls f with a sample now and then every interval until ctx ends. It blocks and calls f from this goroutine.
func (p *Platform) Follow(ctx context.Context, every time.Duration, f func(Sample)) {
	next := time.NewTicker(every)
	defer next.Stop()
	for {
		f(Sample{At: time.Now(), Status: p.Status()})
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
	}
}

// resident is the memory that all containers hold now.
func (p *Platform) resident() (sum disdel.Bytes) {
	p.containersMu.Lock()
	all := slices.Collect(maps.Keys(p.containers))
	p.containersMu.Unlock()
	for _, c := range all {
		sum += c.resident()
	}
	return sum
}

// track adds a started container to the list until it is gone.
func (p *Platform) track(c *container) {
	p.containersMu.Lock()
	defer p.containersMu.Unlock()
	p.containers[c] = true
	c.onRemoved = func() {
		p.containersMu.Lock()
		defer p.containersMu.Unlock()
		delete(p.containers, c)
		p.templates.release(p, c)
	}
}

// resident is the memory that a container holds: what the kernel counts without the file cache, or else the sum over
// its processes.
func (c *container) resident() disdel.Bytes {
	if !c.alive() {
		return 0
	}
	if n := c.limit.usage(); n > 0 {
		return max(0, n-c.limit.fileCache())
	}
	pid := c.cmd.Process.Pid
	return sumOfMemory(pid, processesOf(pid))
}

func (f cgroup) usage() disdel.Bytes {
	if n := numbersIn(f.dirs[0] + "/" + f.current); len(n) == 1 {
		return disdel.Bytes(n[0])
	}
	return 0
}

func (rlimit) usage() disdel.Bytes { return 0 }

// counters count what a platform did since its start.
type counters struct {
	ended map[string]*atomic.Int64 // by an activation's status
	cold  atomic.Int64             // cold starts
}

// statuses are the statuses of activations in the order of their codes.
var statuses = [...]string{statusSuccess, statusApplication, statusDeveloper, statusInternal}

func newCounters() *counters {
	c := &counters{ended: map[string]*atomic.Int64{}}
	for _, status := range statuses {
		c.ended[status] = &atomic.Int64{}
	}
	return c
}

// count counts an ended activation. Activations of triggers are not counted.
func (c *counters) count(a *activation) {
	if n := c.ended[a.Response.Status]; n != nil {
		n.Add(1)
	}
	for _, note := range a.Annotations {
		if note.Key == "initTime" {
			c.cold.Add(1)
		}
	}
}

// metrics answers in Prometheus' text format, with OpenWhisk's names for metrics that it has too. It needs no key,
// because it names nobody.
func (p *Platform) metrics(*request) (int, any, error) {
	var out strings.Builder
	family := func(name, kind, help string) {
		fmt.Fprintf(&out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
	}
	total := int64(0)
	family("openwhisk_action_status_total", "counter", "Activations that ended, by status.")
	for _, status := range statuses {
		n := p.counters.ended[status].Load()
		total += n
		fmt.Fprintf(&out, "openwhisk_action_status_total{status=%q} %d\n", strings.ReplaceAll(status, " ", "_"), n)
	}
	family("openwhisk_action_activations_total", "counter", "Activations that ended.")
	fmt.Fprintf(&out, "openwhisk_action_activations_total %d\n", total)
	family("openwhisk_action_coldStarts_total", "counter", "Activations that had to initialise a container.")
	fmt.Fprintf(&out, "openwhisk_action_coldStarts_total %d\n", p.counters.cold.Load())
	s := p.Status()
	family("disdel_platform_containers", "gauge", "Containers by state.")
	for _, state := range []struct {
		name string
		n    int
	}{{"running", s.Running}, {"ready", s.Ready}, {"paused", s.Paused}, {"prewarmed", s.Prewarmed}} {
		fmt.Fprintf(&out, "disdel_platform_containers{state=%q} %d\n", state.name, state.n)
	}
	family("disdel_platform_queued", "gauge", "Activations that wait for a container.")
	fmt.Fprintf(&out, "disdel_platform_queued %d\n", s.Queued)
	family("disdel_platform_pool_bytes", "gauge", "Memory of the pool.")
	fmt.Fprintf(&out, "disdel_platform_pool_bytes %d\n", s.Memory)
	family("disdel_platform_pool_used_bytes", "gauge", "Memory of the pool that containers have.")
	fmt.Fprintf(&out, "disdel_platform_pool_used_bytes %d\n", s.Used)
	return httpDone, textBody(out.String()), nil
}
