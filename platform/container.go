package platform

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/disdel/disdel"
)

// container is one child process that serves an action.
type container struct {
	size
	action      *action // nil while prewarmed
	part        part    // of a device
	dir         string  // working folder, with the socket
	cmd         *exec.Cmd
	most        int64 // of an answer that is read: one byte more than counts
	door        door
	logs        *logs
	fence       fence
	guard       *guard
	gone        func() // takes it from the platform's list
	initialized bool
	paused      bool // under the pool's lock, as what follows
	lastUsed    time.Time
	seats       []*seat // of the activations that are in it
	spent       bool    // takes no more: it failed one
	mixed       bool    // several activations were in it at once
	exited      *once   // closed when the process has ended and was waited for
	watched     sync.WaitGroup
	stopped     atomic.Bool   // as paused, for the watch
	stirred     chan struct{} // signals that stopped changed

	mu      sync.Mutex
	talks   []*talk      // connections that nobody uses, the last used last
	top     disdel.Bytes // the most memory that it had
	mark    disdel.Bytes // the kernel's mark that top was made of
	overrun bool         // the watch killed it for memory
	spilled bool         // the watch killed it for its folder
}

// startContainer starts a container and logs why it could not.
func (p *Platform) startContainer(s size) (*container, error) { return p.startWith(s, part{}) }

// startWith starts a container with a part of a device.
func (p *Platform) startWith(s size, of part) (*container, error) {
	c, err := p.launch(s, of)
	if err != nil {
		p.cfg.Logger.WithError(err).WithField("kind", s.kind).Error("a container could not be started")
	}
	return c, err
}

func (p *Platform) launch(s size, of part) (*container, error) {
	if err := p.refusal(s.kind); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(p.root.dir, "c-")
	if err != nil {
		return nil, err
	}
	c := &container{
		size: s, part: of, dir: dir, most: int64(p.cfg.Limits.Payload) + 1, logs: newLogs(), exited: newOnce(),
		lastUsed: time.Now(), stirred: make(chan struct{}, 1),
	}
	if c.door, err = openDoor(dir); err != nil {
		c.undo()
		return nil, err
	}
	kind := p.cfg.Kinds[s.kind]
	args := make([]string, len(kind.Command))
	for i, arg := range kind.Command {
		args[i] = strings.ReplaceAll(arg, "{listen}", "unix:"+c.door.listen)
	}
	c.cmd = exec.Command(args[0], args[1:]...) //nolint:gosec // the platform's own configuration
	c.cmd.Dir = dir
	c.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, "__OW_API_HOST=" +
		p.apiHost()}, kind.Env...)
	c.cmd.Env = append(c.cmd.Env, p.pool.devices.environment(of)...)
	if err := c.logs.attach(c.cmd); err != nil {
		c.undo()
		return nil, err
	}
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	user := p.userFor(kind)
	if user != 0 {
		c.cmd.SysProcAttr.Credential = &syscall.Credential{Uid: user, Gid: user}
		if err := os.Chown(dir, int(user), int(user)); err != nil {
			c.undo()
			return nil, err
		}
	}
	c.fence = p.fences.fence(filepath.Base(dir), s.memory, p.cfg.processingOf(s.memory))
	if c.cmd, err = p.spawner.start(c.cmd, c.fence, user != 0); err != nil {
		c.fence.remove()
		c.undo()
		return nil, err
	}
	c.logs.read()
	if user != 0 { // a bound on the user's processes is one on the container's
		setLimit(c.cmd.Process.Pid, unix.RLIMIT_NPROC, maxProcesses) //nolint:errcheck // the group has one too
	}
	setLimit(c.cmd.Process.Pid, unix.RLIMIT_NOFILE, maxDescriptors) //nolint:errcheck // it may be gone: /init says so
	c.guard = p.guard
	c.guard.tell("+", c.cmd.Process.Pid)
	p.lives(c)
	c.watched.Add(2)
	go c.reap()
	go c.watch(disdel.Bytes(p.cfg.FolderMB) * disdel.MB)
	return c, nil
}

// undo takes back what a container that did not come to be had.
func (c *container) undo() {
	c.logs.detach()
	c.door.close()
	os.RemoveAll(c.dir) //nolint:errcheck // the platform's root goes as a whole at the end
}

func (p *Platform) apiHost() string {
	if p.listener == nil {
		return ""
	}
	return p.URL()
}

// reap waits for the process and for what it has printed.
func (c *container) reap() {
	defer c.watched.Done()
	c.cmd.Wait() //nolint:errcheck // how it ended is in ProcessState
	c.logs.close(lastWords)
	c.exited.close()
}

// lastWords is how long the output of a process that ended is read while others, which it has started, may still write.
const lastWords = time.Second

// exhausted tells whether the process died for memory: by the watch, by the kernel, or by its own failed allocation.
func (c *container) exhausted() bool {
	select {
	case <-c.exited.c:
	case <-time.After(2 * time.Second): // as DockerContainer.isOomKilled waits
	}
	c.mu.Lock()
	over := c.overrun
	c.mu.Unlock()
	return over || c.fence.killed() || c.logs.saw("runtime: out of memory", "runtime: cannot allocate memory")
}

func (c *container) alive() bool {
	select {
	case <-c.exited.c:
		return false
	default:
		return true
	}
}

// signal kills the container's process group.
func (c *container) signal() {
	syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL) //nolint:errcheck // it may be gone already
}

// pause stops an idle container, so that it uses no processor; resume lets it go on. The pool's lock is held.
func (c *container) pause() {
	if !c.paused {
		c.paused = true
		c.forgetTalks()                                   // they would cost descriptors, and are too old when it goes on
		syscall.Kill(-c.cmd.Process.Pid, syscall.SIGSTOP) //nolint:errcheck // it may be gone: the pool buries it
		c.stir(true)
	}
}

func (c *container) resume() {
	if c.paused {
		c.paused = false
		c.stir(false)
		syscall.Kill(-c.cmd.Process.Pid, syscall.SIGCONT) //nolint:errcheck // it may be gone: /run says so
	}
}

// kill ends the container and waits until nothing of it is left.
func (c *container) kill() {
	if c.alive() {
		c.signal()
	}
	c.watched.Wait()
	c.forgetTalks()
	c.signal() // children that outlived their parent
	if !c.fence.exact() {
		for _, pid := range straysOf(c.dir) {
			syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it may be gone already
		}
	}
	c.guard.tell("-", c.cmd.Process.Pid)
	if c.gone != nil {
		c.gone()
	}
	c.door.close()
	c.fence.remove()
	os.RemoveAll(c.dir) //nolint:errcheck // the platform's root goes as a whole at the end
}

// post is ask with a body that is JSON of a value.
func (c *container) post(ctx context.Context, path string, body any, limit time.Duration) (reply, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return reply{}, err
	}
	return c.ask(ctx, path, data, limit)
}

// door is a container's unix socket: the path that it listens on and the one that reaches it.
type door struct {
	listen, dial string
	folder       *os.File // of the socket, where its path is too long; else nil
}

// longestSocket is what sun_path holds, less the final zero.
const longestSocket = 107

// openDoor names the socket in dir. One whose path is too long for the kernel is named from the container's working
// folder on one side, and through the platform's descriptor of that folder on the other.
func openDoor(dir string) (door, error) {
	path := filepath.Join(dir, "s")
	if len(path) <= longestSocket {
		return door{listen: path, dial: path}, nil
	}
	folder, err := os.Open(dir)
	if err != nil {
		return door{}, err
	}
	return door{listen: "s", dial: fmt.Sprintf("/proc/self/fd/%d/s", folder.Fd()), folder: folder}, nil
}

func (d door) close() {
	if d.folder != nil {
		d.folder.Close()
	}
}

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

// spaceOf is what a folder's files take on disk, as du counts: blocks, so that a sparse file is no more than it holds.
func spaceOf(dir string) disdel.Bytes {
	const block = 512
	var sum disdel.Bytes
	filepath.WalkDir(dir, func(_ string, entry fs.DirEntry,
		err error,
	) error { //nolint:errcheck // what vanished meanwhile takes nothing
		if err != nil {
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return nil
		}
		if s, ok := info.Sys().(*syscall.Stat_t); ok && entry.Type().IsRegular() {
			sum += disdel.Bytes(s.Blocks) * block
		}
		return nil
	})
	return sum
}
