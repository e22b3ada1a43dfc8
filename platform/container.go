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

// container is a child process that runs activations of one action.
type container struct {
	size
	action      *action // nil for a prewarmed container
	part        part    // its share of a device
	dir         string  // working folder, with the socket
	cmd         *exec.Cmd
	most        int64 // bytes read of an answer: one more than the limit
	door        door
	logs        *logs
	fence       fence
	guard       *guard
	gone        func() // removes it from the platform's list
	initialized bool
	paused      bool // guarded by the pool's lock, like the fields up to wasShared
	lastUsed    time.Time
	seats       []*seat // of the activations that run in it
	spent       bool    // an activation failed in it, so it takes no more
	mixed       bool    // several activations ran in it at once
	exited      *once   // closed once the process has ended
	watched     sync.WaitGroup
	stopped     atomic.Bool   // paused, for the watch
	stirred     chan struct{} // signals that stopped changed

	mu      sync.Mutex
	talks   []*talk      // idle connections, last used last
	top     disdel.Bytes // the most memory that was seen
	mark    disdel.Bytes // the kernel's peak when peakMemory was computed
	overrun bool         // the watch killed it for memory
	spilled bool         // the watch killed it for its folder
}

// startContainer starts a container and logs an error.
func (p *Platform) startContainer(s size) (*container, error) { return p.startWith(s, part{}) }

// startOnDevice starts a container with a share of a device and logs an error.
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
	if user != 0 { // the user has no other processes than this container's
		setLimit(c.cmd.Process.Pid, unix.RLIMIT_NPROC, maxProcesses) //nolint:errcheck // the control group has the same limit
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

// cleanUp removes what a container left that could not be started.
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

// reap waits for the process and reads its output to the end.
func (c *container) reap() {
	defer c.watched.Done()
	c.cmd.Wait() //nolint:errcheck // how it ended is in ProcessState
	c.logs.close(lastWords)
	c.exited.close()
}

// outputWait is how long the output of an ended process is read if its children still hold the streams.
const lastWords = time.Second

// diedOfMemory tells whether the process died for memory: killed by the watch or the kernel, or after a failed
// allocation.
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

// killGroup kills the container's process group.
func (c *container) signal() {
	syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL) //nolint:errcheck // it may be gone already
}

// pause stops an idle container, so that it uses no processor; resume continues it. The caller holds the pool's lock.
func (c *container) pause() {
	if !c.paused {
		c.paused = true
		c.forgetTalks()                                   // they cost descriptors and would be too old later
		syscall.Kill(-c.cmd.Process.Pid, syscall.SIGSTOP) //nolint:errcheck // it may be gone: the pool removes it
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

// kill ends the container and waits until all of its processes are gone.
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

// postJSON is request with a value that is encoded as JSON.
func (c *container) post(ctx context.Context, path string, body any, limit time.Duration) (reply, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return reply{}, err
	}
	return c.ask(ctx, path, data, limit)
}

// socketPath is a container's unix socket: the path where it listens and the path that reaches it.
type door struct {
	listen, dial string
	folder       *os.File // of the socket, if its path is too long; else nil
}

// longestSocket is the size of sun_path without the final zero.
const longestSocket = 107

// newSocketPath names the socket in dir. If the path is too long for the kernel, the container uses a relative path and
// the platform goes through its descriptor of the folder.
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

// watchInterval is the time between two checks of a working container's memory. Slower checks run once in so many
// intervals. A paused container can only change by processes that left its group, so it is checked rarely.
const (
	watchEvery   = 10 * time.Millisecond
	membersEvery = 10
	folderEvery  = 25
	stoppedEvery = 30 * time.Second
	// kernelSteps is the number of intervals between two checks if the kernel enforces the limit. A check then only finds
	// out that the kernel killed one process of several.
	exactly = 5
)

// watch enforces what the kernel does not: the bound on the working folder, and the memory limit if the kernel does not
// count memory or killed only one process of a container.
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

// notifyPaused tells the watch that the container was paused or resumed.
func (c *container) stir(stopped bool) {
	c.stopped.Store(stopped)
	select {
	case c.stirred <- struct{}{}:
	default: // a signal is pending
	}
}

// checkMemory tells whether the container is over its memory limit. members are the other processes of its group.
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

// abort sets the reason and kills the container.
func (c *container) abort(reason *bool) {
	c.mu.Lock()
	*reason = true
	c.mu.Unlock()
	c.signal()
}

// isOverDisk tells whether the watch killed the container because its folder was too large.
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

// peak is the most memory that the container had: what the kernel counted without the file cache, or else the resident
// memory that was seen. Asking for the cache takes longer than everything else after a short activation, so it is asked
// only when the kernel's peak has risen.
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

// diskUsage is the disk space of a folder's files, in blocks as du counts them, so a sparse file counts only its
// blocks.
func spaceOf(dir string) disdel.Bytes {
	const block = 512
	var sum disdel.Bytes
	filepath.WalkDir(dir, func(_ string, entry fs.DirEntry,
		err error,
	) error { //nolint:errcheck // files may vanish meanwhile
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
