package platform

import (
	"math"
	"os"
	"os/exec"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// spawner starts processes from one thread that lives as long as the platform: the kernel sends a child its death
// signal when the thread that made it ends, not the process.
//
// What the thread gives up, its children lack.
type spawner struct {
	confined confinement
	orders   chan func()
	ready    chan struct{}
	done     chan struct{}
}

func newSpawner(hidden []string, n needs) *spawner {
	s := &spawner{
		confined: confinement{hidden: hidden, needs: n}, orders: make(chan func()), ready: make(chan struct{}),
		done: make(chan struct{}),
	}
	go s.serve()
	<-s.ready
	return s
}

// serve works on a thread that it never unlocks, so that the thread ends with it: fences may have moved it. The first
// thread of a process does not end so; if it gets that one, it holds it until another goroutine has another.
func (s *spawner) serve() {
	runtime.LockOSThread()
	if unix.Gettid() == os.Getpid() {
		locked := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(locked)
			s.work()
		}()
		<-locked
		runtime.UnlockOSThread()
		return
	}
	s.work()
}

func (s *spawner) work() {
	defer close(s.done)
	s.confined.enter()
	s.confined.openView()
	defer s.confined.own.close()
	close(s.ready)
	for f := range s.orders {
		f()
	}
}

// start starts a process inside a fence, and in the view of containers with users of their own where own says so. It
// returns what was started: cmd, or its copy.
func (s *spawner) start(cmd *exec.Cmd, f fence, own bool) (*exec.Cmd, error) {
	err := make(chan error, 1)
	s.orders <- func() {
		keepDescriptors()
		s.confined.hide(s.confined.masked)
		if own {
			if e := s.confined.own.enter(); e != nil {
				err <- e
				return
			}
			defer s.confined.own.leave()
			s.confined.hide(s.confined.own.masked)
		}
		thread, leave := unix.Gettid(), func() {}
		outside(func() { leave = f.enter(cmd.SysProcAttr, thread) })
		defer outside(func() { leave() }) // nobody waits for it but the next to be started
		e := cmd.Start()
		if e != nil && cmd.SysProcAttr.UseCgroupFD { // a kernel or a sandbox without clone3: took moves it
			cmd = again(cmd)
			e = cmd.Start()
		}
		if e == nil {
			outside(func() { f.took(cmd.Process.Pid) })
		}
		err <- e
	}
	e := <-err
	return cmd, e
}

// outside runs f on a thread that has given nothing up.
func outside(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

// again copies a command that could not be started inside a group.
func again(cmd *exec.Cmd) *exec.Cmd {
	attr := *cmd.SysProcAttr
	attr.UseCgroupFD = false
	return &exec.Cmd{
		Path: cmd.Path, Args: cmd.Args, Env: cmd.Env, Dir: cmd.Dir, Stdout: cmd.Stdout, Stderr: cmd.Stderr,
		SysProcAttr: &attr,
	}
}

func (s *spawner) close() {
	close(s.orders)
	<-s.done
}

// keepDescriptors marks what this process inherited to be closed in its children. Go opens its own files so; only those
// that came with the process, or that C code opened, are not.
func keepDescriptors() {
	const first = 3
	if unix.CloseRange(first, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	open, _ := os.ReadDir("/proc/self/fd") // before Linux 5.11
	for _, entry := range open {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd >= first {
			unix.CloseOnExec(fd)
		}
	}
}
