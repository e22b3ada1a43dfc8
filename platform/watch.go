package platform

import (
	"time"

	"github.com/disdel/disdel"
)

// watchEvery is the time between looks at a container's memory while it works; the slower looks come every so many of
// them. One that is stopped does nothing that a look could find, but for a process that left its group: it gets every
// look at once, and long after one another, so that warm containers cost nothing.
const (
	watchEvery   = 10 * time.Millisecond
	membersEvery = 10
	folderEvery  = 25
	stoppedEvery = 30 * time.Second
	// exactly is how many of these times pass between looks where the kernel keeps the limit: there a look only finds out
	// that the kernel ended one process of several.
	exactly = 5
)

// watch enforces what the kernel does not: the bound on the working folder, and that of memory where nothing counts it,
// or where the kernel killed one process of a container and left the others.
func (c *container) watch(folder disdel.Bytes) {
	defer c.watched.Done()
	step := 1
	if c.fence.exact() {
		step = exactly
	}
	next := time.NewTimer(watchEvery)
	defer next.Stop()
	var members []int
	for n := step; ; n += step {
		select {
		case <-c.exited.c:
			return
		case <-c.stirred:
		case <-next.C:
		}
		stopped := c.stopped.Load()
		if !c.fence.exact() && (stopped || n%membersEvery == 0) {
			members = membersOf(c.cmd.Process.Pid)
		}
		if c.overruns(members) {
			c.abort(&c.overrun)
		} else if folder > 0 && (stopped || n%folderEvery == 0) && spaceOf(c.dir) > folder {
			c.abort(&c.spilled)
		}
		if stopped {
			next.Reset(stoppedEvery)
		} else {
			next.Reset(time.Duration(step) * watchEvery)
		}
	}
}

// stir tells the watch that the container was stopped or goes on.
func (c *container) stir(stopped bool) {
	c.stopped.Store(stopped)
	select {
	case c.stirred <- struct{}{}:
	default: // it is told already, and looks
	}
}

// overruns looks at the container's memory, that of its first process and of the others in its group.
func (c *container) overruns(members []int) bool {
	if c.fence.exact() {
		return c.fence.killed()
	}
	resident, peak := residentOf(c.cmd.Process.Pid)
	sum := resident
	for _, pid := range members {
		more, _ := residentOf(pid)
		sum += more
	}
	c.raise(max(peak, sum))
	return sum > c.memory
}

// abort notes the reason and kills the container.
func (c *container) abort(reason *bool) {
	c.mu.Lock()
	*reason = true
	c.mu.Unlock()
	c.signal()
}

// overflowed tells whether the container was killed for its folder.
func (c *container) overflowed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spilled
}

func (c *container) raise(peak disdel.Bytes) {
	c.mu.Lock()
	c.top = max(c.top, peak)
	c.mu.Unlock()
}

// peak is the most memory that the container had: what the kernel counted for all of it, without the cache of files,
// which it counts for who reads a file first; else the resident memory that was seen. How much is cache costs more to
// ask than all else after a short activation: it is asked when the mark has risen.
func (c *container) peak() disdel.Bytes {
	if mark := c.fence.mark(); mark > 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		if mark != c.mark {
			c.mark, c.top = mark, max(1, mark-c.fence.cache())
		}
		return c.top
	}
	_, peak := residentOf(c.cmd.Process.Pid)
	c.raise(peak)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.top
}
