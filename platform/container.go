package platform

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
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
	action       *action     // nil for a prewarmed container
	device       deviceShare // its share of a device
	dir          string      // working folder, with the socket
	cmd          *exec.Cmd
	maxReply     int64 // bytes read of an answer: one more than the limit
	socket       socketPath
	logs         *logs
	limit        processLimit
	guard        *guard
	forks        *net.UnixConn // requests for forks of templates; nil: its kind has none
	onRemoved    func()        // removes it from the platform's list
	initialized  bool
	paused       bool  // guarded by the pool's lock, like the fields up to wasShared
	children     []int // processes that the leader had started when the container was paused
	lastUsed     time.Time
	slots        []*containerSlot // of the activations that run in it
	failed       bool             // an activation failed in it, so it takes no more
	wasShared    bool             // several activations ran in it at once
	exited       *closeOnce       // closed once the process has ended
	watched      sync.WaitGroup
	isStopped    atomic.Bool   // paused, for the watch
	pauseChanged chan struct{} // signals that stopped changed

	mu         sync.Mutex
	idleConns  []*runtimeConn // idle connections, last used last
	peakMemory disdel.Bytes   // the most memory that was seen
	kernelPeak disdel.Bytes   // the kernel's peak when peakMemory was computed
	overMemory bool           // the watch killed it for memory
	overDisk   bool           // the watch killed it for its folder
}

// startContainer starts a container and logs an error.
func (p *Platform) startContainer(s size) (*container, error) {
	return p.startOnDevice(s, deviceShare{})
}

// startOnDevice starts a container with a share of a device and logs an error.
func (p *Platform) startOnDevice(s size, device deviceShare) (*container, error) {
	c, err := p.launch(s, device)
	if err != nil {
		p.cfg.Logger.WithError(err).WithField("kind", s.kind).Error("a container could not be started")
	}
	return c, err
}

func (p *Platform) launch(s size, device deviceShare) (*container, error) {
	if err := p.refusal(s.kind); err != nil {
		return nil, err
	}
	c, err := p.newContainer(s)
	if err != nil {
		return nil, err
	}
	c.device = device
	kind := p.cfg.Kinds[s.kind]
	args := make([]string, len(kind.Command))
	for i, arg := range kind.Command {
		args[i] = strings.ReplaceAll(arg, "{listen}", "unix:"+c.socket.listen)
	}
	c.setCommand(args)
	c.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + c.dir, "TMPDIR=" + c.dir, "__OW_API_HOST=" +
		p.apiHost()}, kind.Env...)
	c.cmd.Env = append(c.cmd.Env, p.pool.devices.environment(device)...)
	if kind.Forks {
		if err := p.openForks(c); err != nil {
			c.cleanUp()
			return nil, err
		}
	}
	if err := p.startProcess(c, p.userFor(kind)); err != nil {
		return nil, err
	}
	p.track(c)
	if c.forks != nil {
		c.watched.Add(1)
		go p.serveForks(c)
	}
	return c, nil
}

// newContainer makes the folder of a container, which has no process yet.
func (p *Platform) newContainer(s size) (*container, error) {
	dir, err := os.MkdirTemp(p.temp.dir, "c-")
	if err != nil {
		return nil, err
	}
	c := &container{
		size: s, dir: dir, maxReply: int64(p.cfg.Limits.Payload) + 1, logs: newLogs(), exited: newOnce(),
		lastUsed: time.Now(), pauseChanged: make(chan struct{}, 1),
	}
	if c.socket, err = newSocketPath(dir); err != nil {
		c.cleanUp()
		return nil, err
	}
	return c, nil
}

func (c *container) setCommand(args []string) {
	c.cmd = exec.Command(args[0], args[1:]...) //nolint:gosec // the platform's own configuration, or its runtime's
	c.cmd.Dir = c.dir
}

// startProcess starts the container's process, as a user of its own unless user is 0. After an error, nothing is left of the
// container.
func (p *Platform) startProcess(c *container, user uint32) (err error) {
	defer func() {
		for _, f := range c.cmd.ExtraFiles {
			f.Close()
		}
		if err != nil {
			c.cleanUp()
		}
	}()
	if err := c.logs.attach(c.cmd); err != nil {
		return err
	}
	c.cmd.SysProcAttr = containerAttributes()
	if user != 0 {
		c.cmd.SysProcAttr.Credential = &syscall.Credential{Uid: user, Gid: user}
		if err := os.Chown(c.dir, int(user), int(user)); err != nil {
			return err
		}
	}
	c.limit = p.limiter.newLimit(filepath.Base(c.dir), c.memory, p.cfg.cpuLimitOf(c.memory))
	cmd, err := p.spawner.start(c.cmd, c.limit, user != 0)
	if err != nil {
		c.limit.remove()
		return err
	}
	c.cmd = cmd
	c.logs.read()
	if user != 0 { // the user has no other processes than this container's
		setLimit(c.cmd.Process.Pid, unix.RLIMIT_NPROC, maxProcesses) //nolint:errcheck // the control group has the same limit
	}
	setLimit(c.cmd.Process.Pid, unix.RLIMIT_NOFILE, maxDescriptors) //nolint:errcheck // it may be gone: /init says so
	c.guard = p.guard
	c.guard.send("+", c.cmd.Process.Pid)
	c.watched.Add(2)
	go c.reap()
	go c.watch(disdel.Bytes(p.cfg.FolderMB) * disdel.MB)
	return nil
}

// cleanUp removes what a container left that could not be started.
func (c *container) cleanUp() {
	c.logs.detach()
	c.closeForks()
	c.socket.close()
	os.RemoveAll(c.dir) //nolint:errcheck // the platform's root goes as a whole at the end
}

func (c *container) closeForks() {
	if c.forks != nil {
		c.forks.Close()
	}
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
	c.logs.close(outputWait)
	c.exited.close()
}

// outputWait is how long the output of an ended process is read if its children still hold the streams.
const outputWait = time.Second

// diedOfMemory tells whether the process died for memory: killed by the watch or the kernel, or after a failed
// allocation.
func (c *container) diedOfMemory() bool {
	select {
	case <-c.exited.c:
	case <-time.After(2 * time.Second): // as DockerContainer.isOomKilled waits
	}
	c.mu.Lock()
	over := c.overMemory
	c.mu.Unlock()
	return over || c.limit.oomKilled() || c.logs.contains("runtime: out of memory", "runtime: cannot allocate memory")
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
func (c *container) killGroup() {
	syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL) //nolint:errcheck // it may be gone already
}

// pause stops an idle container, so that it uses no processor; resume continues it. The caller holds the pool's lock.
func (c *container) pause() {
	if !c.paused {
		c.paused = true
		c.closeIdleConns() // they cost descriptors and would be too old later
		c.children = childrenOfProcess(c.cmd.Process.Pid)
		c.signalAll(syscall.SIGSTOP)
		c.notifyPaused(true)
	}
}

func (c *container) resume() {
	if c.paused {
		c.paused = false
		c.notifyPaused(false)
		c.signalAll(syscall.SIGCONT)
	}
}

// signalAll sends a signal to the container's process group and to other processes of the container.
func (c *container) signalAll(s syscall.Signal) {
	syscall.Kill(-c.cmd.Process.Pid, s) //nolint:errcheck // it may be gone: the pool removes it, and /run says so
	for _, pid := range c.children {
		syscall.Kill(pid, s) //nolint:errcheck // as above
	}
}

// kill ends the container and waits until all of its processes are gone.
func (c *container) kill() {
	if c.alive() {
		c.killGroup()
	}
	c.closeForks()
	c.watched.Wait()
	c.closeIdleConns()
	c.killGroup() // children that outlived their parent
	if !c.limit.enforcedByKernel() {
		for _, pid := range processesOfFolder(c.dir) {
			syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it may be gone already
		}
	}
	c.guard.send("-", c.cmd.Process.Pid)
	if c.onRemoved != nil {
		c.onRemoved()
	}
	c.socket.close()
	c.limit.remove()
	os.RemoveAll(c.dir) //nolint:errcheck // the platform's root goes as a whole at the end
}

// postJSON is request with a value that is encoded as JSON.
func (c *container) postJSON(ctx context.Context, path string, body any, limit time.Duration) (runtimeReply, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return runtimeReply{}, err
	}
	return c.request(ctx, path, data, limit)
}

// socketPath is a container's unix socket: the path where it listens and the path that reaches it.
type socketPath struct {
	listen, dial string
	folder       *os.File // of the socket, if its path is too long; else nil
}

// longestSocket is the size of sun_path without the final zero.
const longestSocket = 107

// newSocketPath names the socket in dir. If the path is too long for the kernel, the container uses a relative path and
// the platform goes through its descriptor of the folder.
func newSocketPath(dir string) (socketPath, error) {
	path := filepath.Join(dir, "s")
	if len(path) <= longestSocket {
		return socketPath{listen: path, dial: path}, nil
	}
	folder, err := os.Open(dir)
	if err != nil {
		return socketPath{}, err
	}
	return socketPath{listen: "s", dial: fmt.Sprintf("/proc/self/fd/%d/s", folder.Fd()), folder: folder}, nil
}

func (d socketPath) close() {
	if d.folder != nil {
		d.folder.Close()
	}
}

// watchInterval is the time between two checks of a working container's memory. Slower checks run once in so many
// intervals. A paused container can only change by processes that left its group, so it is checked rarely.
const (
	watchInterval = 10 * time.Millisecond
	membersEvery  = 10
	folderEvery   = 25
	stoppedEvery  = 30 * time.Second
	// kernelSteps is the number of intervals between two checks if the kernel enforces the limit. A check then only finds
	// out that the kernel killed one process of several.
	kernelSteps = 5
)

// watch enforces what the kernel does not: the bound on the working folder, and the memory limit if the kernel does not
// count memory or killed only one process of a container.
func (c *container) watch(folder disdel.Bytes) {
	defer c.watched.Done()
	step := 1
	if c.limit.enforcedByKernel() {
		step = kernelSteps
	}
	next := time.NewTimer(watchInterval)
	defer next.Stop()
	var members []int
	for n := step; ; n += step {
		select {
		case <-c.exited.c:
			return
		case <-c.pauseChanged:
		case <-next.C:
		}
		stopped := c.isStopped.Load()
		if !c.limit.enforcedByKernel() && (stopped || n%membersEvery == 0) {
			members = processesOf(c.cmd.Process.Pid)
		}
		if c.checkMemory(members) {
			c.abort(&c.overMemory)
		} else if folder > 0 && (stopped || n%folderEvery == 0) && diskUsage(c.dir) > folder {
			c.abort(&c.overDisk)
		}
		if stopped {
			next.Reset(stoppedEvery)
		} else {
			next.Reset(time.Duration(step) * watchInterval)
		}
	}
}

// notifyPaused tells the watch that the container was paused or resumed.
func (c *container) notifyPaused(stopped bool) {
	c.isStopped.Store(stopped)
	select {
	case c.pauseChanged <- struct{}{}:
	default: // a signal is pending
	}
}

// checkMemory tells whether the container is over its memory limit. members are its other processes.
func (c *container) checkMemory(members []int) bool {
	if c.limit.enforcedByKernel() {
		return c.limit.oomKilled()
	}
	_, peak := residentMemory(c.cmd.Process.Pid)
	sum := sumOfMemory(c.cmd.Process.Pid, members)
	c.raisePeak(max(peak, sum))
	return sum > c.memory
}

// abort sets the reason and kills the container.
func (c *container) abort(reason *bool) {
	c.mu.Lock()
	*reason = true
	c.mu.Unlock()
	c.killGroup()
}

// isOverDisk tells whether the watch killed the container because its folder was too large.
func (c *container) isOverDisk() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.overDisk
}

func (c *container) raisePeak(peak disdel.Bytes) {
	c.mu.Lock()
	c.peakMemory = max(c.peakMemory, peak)
	c.mu.Unlock()
}

// peak is the most memory that the container had: what the kernel counted without the file cache, or else the resident
// memory that was seen. Asking for the cache takes longer than everything else after a short activation, so it is asked
// only when the kernel's peak has risen.
func (c *container) peak() disdel.Bytes {
	if mark := c.limit.peak(); mark > 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		if mark != c.kernelPeak {
			c.kernelPeak, c.peakMemory = mark, max(1, mark-c.limit.fileCache())
		}
		return c.peakMemory
	}
	_, peak := residentMemory(c.cmd.Process.Pid)
	c.raisePeak(peak)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.peakMemory
}

// diskUsage is the disk space of a folder's files, in blocks as du counts them, so a sparse file counts only its
// blocks.
func diskUsage(dir string) disdel.Bytes {
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
