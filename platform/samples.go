package platform

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/disdel/disdel"
)

// Sample is what the container pool held at a moment.
type Sample struct {
	At time.Time
	Status
}

// Follow tells f what the pool holds, at once and then every so often, until ctx ends. It blocks, and calls f from this
// goroutine alone.
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

// resident is the memory that all containers hold now, those without work too: what is reserved for them is Used.
func (p *Platform) resident() (sum disdel.Bytes) {
	p.livingMu.Lock()
	all := slices.Collect(maps.Keys(p.living))
	p.livingMu.Unlock()
	for _, c := range all {
		sum += c.resident()
	}
	return sum
}

// lives notes a container that was started, until it is gone.
func (p *Platform) lives(c *container) {
	p.livingMu.Lock()
	defer p.livingMu.Unlock()
	p.living[c] = true
	c.gone = func() {
		p.livingMu.Lock()
		defer p.livingMu.Unlock()
		delete(p.living, c)
	}
}

// resident is the memory that a container holds: what the kernel counts for it, without the cache of files, or else
// what
// its processes say.
func (c *container) resident() disdel.Bytes {
	if !c.alive() {
		return 0
	}
	if n := c.fence.now(); n > 0 {
		return max(0, n-c.fence.cache())
	}
	pid := c.cmd.Process.Pid
	sum, _ := residentOf(pid)
	for _, other := range membersOf(pid) {
		more, _ := residentOf(other)
		sum += more
	}
	return sum
}

// now is the memory that the kernel counts for the group.
func (f group) now() disdel.Bytes {
	if n := numbersIn(f.dirs[0] + "/" + f.current); len(n) == 1 {
		return disdel.Bytes(n[0])
	}
	return 0
}

func (rlimit) now() disdel.Bytes { return 0 }
