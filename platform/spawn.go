package platform

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"

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

// guard is a process that outlives the platform by a moment: the kernel ends a container when the platform dies, but
// not what the container started. The guard knows the process groups and, when its input ends, kills what is left of
// them.
type guard struct {
	cmd   *exec.Cmd
	input *os.File
}

// guardScript uses nothing but the shell. It is told "+ group" and "- group"; its arguments are folders of control
// groups, which also hold what left its process group.
const guardScript = `trap '' HUP INT TERM
groups=" "
while read -r what n; do
	case $what in
	+) groups="$groups$n " ;;
	-) groups="${groups%%" $n "*} ${groups#*" $n "}" ;;
	esac
done
for n in $groups; do kill -s KILL -- "-$n"; done
for dir in "$@"; do
	for f in "$dir"/c-*/cgroup.procs; do
		[ -e "$f" ] || continue
		while read -r n; do kill -s KILL "$n"; done <"$f"
	done
done 2>/dev/null
`

// newGuard starts a guard; where there is no shell, the death signal of the containers themselves must do.
func newGuard(folders []string) *guard {
	keepDescriptors()
	in, out, err := os.Pipe()
	if err != nil {
		return nil
	}
	defer in.Close()
	g := &guard{
		cmd:   exec.Command("/bin/sh", append([]string{"-c", guardScript, "guard"}, folders...)...),
		input: out,
	} //nolint:gosec // our own script
	g.cmd.Stdin, g.cmd.Env, g.cmd.Dir = in, []string{}, "/"
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // what ends the platform's group shall not end the guard
	if err := g.cmd.Start(); err != nil {
		out.Close()
		return nil
	}
	return g
}

func (g *guard) tell(what string, group int) {
	if g != nil {
		fmt.Fprintln(g.input, what, group) //nolint:errcheck // a guard that was killed guards no more
	}
}

func (g *guard) close() {
	if g != nil {
		g.input.Close()
		g.cmd.Wait() //nolint:errcheck // there is nothing to learn from it
	}
}

// hint is how much the kernel is asked to read at once.
const hint = 128 << 10

// preload has the kernel read the kinds' programs. The pages of a file are counted for the group that first asks for
// them, so without this the first container would be charged for a whole program that the others use for nothing; and a
// cold start would wait for the disk. What cannot be read is told when a container starts.
func preload(kinds map[string]Kind) {
	for _, k := range kinds {
		if len(k.Command) == 0 {
			continue
		}
		name, err := exec.LookPath(k.Command[0])
		if err != nil {
			continue
		}
		f, err := os.Open(name)
		if err != nil {
			continue
		}
		if info, err := f.Stat(); err == nil {
			for at := int64(0); at < info.Size(); at += hint {
				_ = unix.Fadvise(int(f.Fd()), at, hint, unix.FADV_WILLNEED) // of more at once only the start is read
			}
		}
		f.Close()
	}
}

// setLimit bounds a resource of a process. Root without CAP_SYS_RESOURCE may bound only processes of its own real user.
// In that case a thread takes on the process' user as its real user for the call.
func setLimit(pid, resource int, most uint64) error {
	limit := &unix.Rlimit{Cur: most, Max: most}
	err := unix.Prlimit(pid, resource, limit, nil)
	if !errors.Is(err, unix.EPERM) {
		return err
	}
	var s unix.Stat_t
	if err := unix.Stat(fmt.Sprintf("/proc/%d", pid), &s); err != nil {
		return err
	}
	outside(func() {
		runtime.LockOSThread()
		uid, gid := unix.Getuid(), unix.Getgid()
		err = setRealIDs(int(s.Uid), int(s.Gid))
		if err == nil {
			err = unix.Prlimit(pid, resource, limit, nil)
		}
		if setRealIDs(uid, gid) == nil { // else the thread ends with its goroutine
			runtime.UnlockOSThread()
		}
	})
	return err
}

// setRealIDs sets the real user and group of only the calling thread. Its effective ones stay, and with them its
// permissions.
func setRealIDs(uid, gid int) error {
	const same = ^uintptr(0)
	_, _, group := unix.RawSyscall(unix.SYS_SETRESGID, uintptr(gid), same, same)
	_, _, user := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), same, same)
	if group != 0 || user != 0 {
		return errors.Join(group, user)
	}
	return nil
}
