package platform

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// spawner starts processes from one thread that lives as long as the platform. The kernel sends a child its death
// signal when the thread that started it ends, not when the process ends. Children inherit the restrictions of the
// thread.
type spawner struct {
	confined confinement
	orders   chan func()
	ready    chan struct{}
	done     chan struct{}
}

func newSpawner(hidden []string, n neededPaths) *spawner {
	s := &spawner{
		confined: confinement{hidden: hidden, paths: n}, orders: make(chan func()), ready: make(chan struct{}),
		done: make(chan struct{}),
	}
	go s.serve()
	<-s.ready
	return s
}

// serve runs work on a thread that it never unlocks, so the thread ends with it. The first thread of a process cannot
// end so; if the goroutine gets that one, it holds it until another goroutine has locked another thread.
func (s *spawner) serve() {
	runtime.LockOSThread()
	if threadID() == os.Getpid() {
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

// start starts a process inside a limit. With own it starts in the mount namespace of containers that have their own
// users. It returns the command that was started: cmd or a copy.
func (s *spawner) start(cmd *exec.Cmd, f processLimit, own bool) (*exec.Cmd, error) {
	err := make(chan error, 1)
	s.orders <- func() {
		closeInheritedOnExec()
		s.confined.hide(s.confined.masked)
		if own {
			if e := s.confined.own.enter(); e != nil {
				err <- e
				return
			}
			defer s.confined.own.leave()
			s.confined.hide(s.confined.own.masked)
		}
		thread, leave := threadID(), func() {}
		onFreshThread(func() { leave = f.enter(cmd.SysProcAttr, thread) })
		defer onFreshThread(func() { leave() }) // delays only the next start
		e := cmd.Start()
		if e != nil && startsInGroup(cmd.SysProcAttr) { // a kernel or sandbox without clone3: started moves the process
			cmd = withoutCgroupFD(cmd)
			e = cmd.Start()
		}
		if e == nil {
			onFreshThread(func() { f.started(cmd.Process.Pid) })
		}
		err <- e
	}
	e := <-err
	return cmd, e
}

// onFreshThread runs f on a thread without the restrictions of the spawner's thread.
func onFreshThread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

func (s *spawner) close() {
	close(s.orders)
	<-s.done
}

// closeInheritedOnExec marks descriptors that this process inherited as close-on-exec. Go marks its own files.
func closeInheritedOnExec() {
	const first = 3
	if closeRangeOnExec(first) == nil {
		return
	}
	open, _ := os.ReadDir("/proc/self/fd") // before Linux 5.11
	for _, entry := range open {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd >= first {
			unix.CloseOnExec(fd)
		}
	}
}

// guard is a shell process that outlives the platform by a moment. If the platform dies, the kernel kills the
// containers but not their children. The guard knows the process groups, and kills the rest of them when its input
// ends.
type guard struct {
	cmd   *exec.Cmd
	input *os.File
}

// guardScript reads "+ GROUP" and "- GROUP" lines. Its arguments are folders of control groups, which also contain
// processes that left their group.
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

// newGuard starts a guard. Without a shell it returns nil, and only the containers' own death signal is left.
func newGuard(folders []string) *guard {
	closeInheritedOnExec()
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
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // a signal to the platform's group must not end the guard
	if err := g.cmd.Start(); err != nil {
		out.Close()
		return nil
	}
	return g
}

func (g *guard) send(what string, group int) {
	if g != nil {
		fmt.Fprintln(g.input, what, group) //nolint:errcheck // the guard may have been killed
	}
}

func (g *guard) close() {
	if g != nil {
		g.input.Close()
		g.cmd.Wait() //nolint:errcheck // its exit status tells nothing
	}
}

// readAhead is how many bytes the kernel is asked to read at once.
const readAhead = 128 << 10

// preload has the kernel read the programs of the kinds. The kernel counts a file's pages for the control group that
// reads them first: without this, the first container pays for a program that all share, and a cold start waits for the
// disk.
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
			for at := int64(0); at < info.Size(); at += readAhead {
				adviseRead(f, at, readAhead) // the kernel reads only the start of larger ranges
			}
		}
		f.Close()
	}
}
