package platform

import (
	"context"
	"encoding/json"
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
