package python

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/disdel/disdel"
	sources "github.com/disdel/disdel/clients/python"
)

// standardInterpreter is that of an action's image, unless the image names another one in pythonVariable.
const (
	standardInterpreter = "python3"
	pythonVariable      = "DISDEL_PYTHON"
)

// process is a Python process with the worker.
type process struct {
	cmd    *exec.Cmd
	conn   net.Conn
	home   string // a folder for its files
	stdout *output
	stderr *output
	code   string        // folder of the program
	limit  disdel.Bytes  // of the action's memory
	files  disdel.Bytes  // pages of files that it had mapped when its program was loaded
	before int           // processes that the kernel has killed for memory in this container, at the start
	ended  chan struct{} // closed once the process is reaped and its group killed
	pid    int
	handle int             // of a process that was forked from a template and is no child of this one; 0: it is a child
	status unix.WaitStatus // how it ended
	usage  unix.Rusage
}

// startProcess starts a worker that shares a file.
func (b Backend) startProcess(s *spec, file *shared) (p *process, err error) {
	defer func() {
		if err != nil && p != nil {
			p.release()
		}
	}()
	folder, err := sources.Install(os.TempDir())
	if err != nil {
		return nil, err
	}
	interpreter, err := findInterpreter(s.program.Interpreter)
	if err != nil {
		return nil, err
	}
	p = &process{ended: make(chan struct{}), limit: s.Memory, before: memoryKills()}
	if p.code, err = filepath.EvalSymlinks(s.Code); err != nil {
		return p, unavailable("find the program", err)
	}
	if p.home, err = os.MkdirTemp("", "disdel-program-"); err != nil {
		return p, unavailable("make a folder", err)
	}
	ours, theirs, err := socketPair(unix.SOCK_STREAM)
	if err != nil {
		return p, unavailable("open a socket", err)
	}
	defer theirs.Close()
	p.conn, err = net.FileConn(ours)
	ours.Close()
	if err != nil {
		return p, unavailable("open a socket", err)
	}
	p.cmd = exec.Command(interpreter, "-s", "-B", "-m", "disdel.worker") //nolint:gosec // the user's own interpreter
	p.cmd.Dir, p.cmd.Env = p.home, environment(s, p.home, folder)
	p.cmd.ExtraFiles = []*os.File{theirs, file.file}
	p.cmd.SysProcAttr = workerAttributes()
	return p, p.start(b, s)
}

// start starts the worker with its streams. A worker with PyTorch is forked from a template where there is one.
func (p *process) start(b Backend, s *spec) error {
	var ends [2]*os.File
	var streams [2]*os.File
	for i := range ends {
		from, to, err := os.Pipe()
		if err != nil {
			return unavailable("open a pipe", err)
		}
		defer to.Close()
		streams[i], ends[i] = from, to
	}
	p.cmd.Stdout, p.cmd.Stderr = ends[0], ends[1]
	if err := p.launch(s, ends[:]); err != nil {
		streams[0].Close()
		streams[1].Close()
		return err
	}
	p.stdout, p.stderr = newOutput(streams[0], b.Stdout), newOutput(streams[1], b.Stderr)
	return nil
}

// launch has the worker forked with its streams, or starts it as a new process.
func (p *process) launch(s *spec, streams []*os.File) error {
	if s.program.Versions["torch"] != "" {
		ctx := s.Context
		if ctx == nil {
			ctx = context.Background()
		}
		if done, err := p.fork(ctx, streams); done || err != nil {
			return err
		}
	}
	started := make(chan error, 1)
	go p.run(started)
	if err := <-started; err != nil {
		return unavailable("start "+p.cmd.Path, err)
	}
	return nil
}

// run starts the command, waits for its end and kills its process group. It keeps its thread meanwhile: the kernel
// kills the process when the thread that started it ends.
func (p *process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	hideMemory()
	if err := p.cmd.Start(); err != nil {
		close(p.ended)
		started <- err
		return
	}
	p.pid = p.cmd.Process.Pid
	started <- nil
	pid := p.pid
	for {
		err := waitForEnd(pid)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	p.kill() // what it has started, while its number cannot mean another process
	for {
		if _, err := unix.Wait4(pid, &p.status, 0, &p.usage); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	p.cmd.Process.Release() //nolint:errcheck // it is reaped
	close(p.ended)
}

// kill kills the process and what it has started.
func (p *process) kill() {
	if p.handle > 0 { // the group is that of the container
		signalHandle(p.handle, syscall.SIGKILL) //nolint:errcheck // it may be gone already
	} else {
		syscall.Kill(-p.pid, syscall.SIGKILL) //nolint:errcheck // as above
	}
	const rounds = 10 // a process may start another one while the list is read
	for range rounds {
		remaining := p.started()
		for _, child := range remaining {
			syscall.Kill(child, syscall.SIGKILL) //nolint:errcheck // as above
		}
		if len(remaining) == 0 {
			return
		}
	}
}

// started lists the processes that the program has started, even if they have left its process group: they inherit the
// name of its own folder.
func (p *process) started() (out []int) {
	mark := []byte("\x00HOME=" + p.home + "\x00")
	list, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is well-formed
	for _, file := range list {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		data, err := os.ReadFile(file) // of a zombie it is empty
		if err == nil && pid != p.pid && bytes.Contains(append([]byte{0}, data...), mark) {
			out = append(out, pid)
		}
	}
	return out
}

// alive tells whether the process has not been reaped.
func (p *process) alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// signal sends a signal to the process alone.
func (p *process) signal(s syscall.Signal) {
	switch {
	case p.handle > 0:
		signalHandle(p.handle, s) //nolint:errcheck // it may be gone already
	case p.alive():
		unix.Kill(p.pid, s) //nolint:errcheck // as above
	}
}

// streamWait is how long the streams of an ended process are read, in case somebody else holds them.
const streamWait = time.Second

// wait waits for the end of the process and of its streams.
func (p *process) wait() {
	<-p.ended
	for _, o := range []*output{p.stdout, p.stderr} {
		select {
		case <-o.done:
		case <-time.After(streamWait):
		}
	}
}

// release frees everything; the process must not be used afterwards.
func (p *process) release() {
	if p.pid > 0 {
		if p.alive() {
			p.kill()
		}
		<-p.ended
	}
	if p.handle > 0 {
		unix.Close(p.handle) //nolint:errcheck // it was only a name
		p.handle = 0
	}
	if p.conn != nil {
		p.conn.Close()
	}
	for _, o := range []*output{p.stdout, p.stderr} {
		if o == nil {
			continue
		}
		select {
		case <-o.done:
		case <-time.After(streamWait):
		}
		o.from.Close()
		o.end()
	}
	os.RemoveAll(p.home) //nolint:errcheck // the container's folder goes as a whole at its end
}

// findInterpreter finds the Python that a job names. An image for clusters has its own Python in place of one of the
// machine that submitted the job.
func findInterpreter(asked string) (string, error) {
	own := os.Getenv(pythonVariable)
	path, err := exec.LookPath(cmp.Or(asked, own, standardInterpreter))
	if err != nil && own != "" {
		path, err = exec.LookPath(own)
	}
	if err == nil {
		return path, nil
	}
	return "", &disdel.Error{
		Kind: disdel.Invalid, Op: "start program", Msg: cmp.Or(asked, standardInterpreter) + " is not here",
		Hint: "make an image with Python: disdel deploy image NAME:TAG --python requirements.txt; " +
			"or name an interpreter that is there: --python PATH",
	}
}

// packages is the variable with the folder of the package disdel.
const packages = "PYTHONPATH="

// environment is all that the program learns of where it runs.
func environment(s *spec, home, folder string) []string {
	threads := strconv.Itoa(max(1, s.Threads))
	env := []string{
		"PATH=" + cmp.Or(os.Getenv("PATH"), "/usr/local/bin:/usr/bin:/bin"), "HOME=" + home, "TMPDIR=" + os.TempDir(),
		packages + folder, "PYTHONHASHSEED=0", "PYTHONUNBUFFERED=1", "OMP_NUM_THREADS=" + threads,
		"MKL_NUM_THREADS=" + threads,
	}
	if library := jemalloc(); library != "" && s.program.Factor > 0 && s.program.Factor < standardFactor {
		env = append(env, "LD_PRELOAD="+library)
	}
	return env
}

// jemalloc is the allocator that holds less than glibc's, "" if it is not here.
func jemalloc() string {
	for _, pattern := range []string{
		"/usr/lib/*/libjemalloc.so.2", "/usr/lib64/libjemalloc.so.2", "/usr/lib/libjemalloc.so.2",
		"/usr/local/lib/libjemalloc.so.2",
	} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 { // the patterns are well-formed
			return found[0]
		}
	}
	return ""
}

func unavailable(what string, err error) error {
	return &disdel.Error{Kind: disdel.Unavailable, Op: "start program", Msg: "it failed to " + what, Err: err}
}

// limitData bounds how much the process's own memory may grow: beyond it, an allocation fails at the user's own line
// before the kernel kills anybody.
func (p *process) limitData(more disdel.Bytes) {
	if !p.alive() {
		return
	}
	maximum := uint64(statusField(p.pid, "VmData") + more)
	setDataLimit(p.pid, maximum) //nolint:errcheck // the watch is there
}

// statusField reads a size from /proc/PID/status, 0 where there is none.
func statusField(pid int, name string) disdel.Bytes {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // a process that has ended has none
	for line := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			n, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB"))
			return disdel.Bytes(n) * disdel.KB
		}
	}
	return 0
}

// lackedMemory tells whether the kernel has killed the process for memory, or whether that is likely because the action
// had reached a share of its limit.
func (p *process) lackedMemory(share float64) bool {
	if memoryKills() > p.before {
		return true
	}
	peak := disdel.Bytes(p.usage.Maxrss)*disdel.KB - p.files
	peak += statusField(os.Getpid(), "RssAnon")
	return p.limit > 0 && float64(peak) >= share*float64(p.limit)
}

// memoryKills is how many processes of this process's control group the kernel has killed for memory, as far as it can
// be known.
func memoryKills() (kills int) {
	groups, _ := os.ReadFile("/proc/self/cgroup") // "0::/path", or "4:memory:/path"
	for line := range strings.Lines(string(groups)) {
		number, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		kinds, path, _ := strings.Cut(rest, ":")
		file := ""
		switch {
		case number == "0" && kinds == "":
			file = filepath.Join("/sys/fs/cgroup", path, "memory.events")
		case slices.Contains(strings.Split(kinds, ","), "memory"):
			file = filepath.Join("/sys/fs/cgroup/memory", path, "memory.oom_control")
		}
		data, _ := os.ReadFile(file) // a group without memory has none
		for entry := range strings.Lines(string(data)) {
			if value, ok := strings.CutPrefix(entry, "oom_kill "); ok {
				n, _ := strconv.Atoi(strings.TrimSpace(value))
				kills = max(kills, n)
			}
		}
	}
	return kills
}
