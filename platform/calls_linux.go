package platform

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/disdel/disdel"
)

// supported returns why this system cannot run containers; nil on Linux. calls_other.go answers for other systems.
func supported() *disdel.Error { return nil }

// Flags of mount, as isolation uses them.
const (
	mountBind     = unix.MS_BIND
	mountCover    = unix.MS_NOSUID | unix.MS_NODEV
	mountClosed   = unix.MS_RDONLY
	mountReadOnly = unix.MS_REMOUNT | unix.MS_BIND | unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV
	mountNoExec   = unix.MS_NOEXEC
	mountSlave    = unix.MS_REC | unix.MS_SLAVE
)

// Capabilities and file systems.
const (
	capSetUID, capSetGID, capChown = unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_CHOWN
	cgroup1Magic, cgroup2Magic     = unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC
)

func mount(source, target, kind string, flags uintptr, data string) error {
	return unix.Mount(source, target, kind, flags, data)
}

// unshareMounts gives the thread a mount namespace.
func unshareMounts() error { return unix.Unshare(unix.CLONE_NEWNS) }

// enterMounts moves the thread into a mount namespace.
func enterMounts(namespace int) error { return unix.Setns(namespace, unix.CLONE_NEWNS) }

// openPath returns a descriptor that names a path and cannot be read.
func openPath(path string) (int, error) {
	return unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}

func setNoNewPrivileges() error { return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }

func threadID() int { return unix.Gettid() }

// containerAttributes has a container in its own process group, and dead when the thread that started it ends.
func containerAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// startInGroup starts the process in the control group of a folder (clone3).
func startInGroup(attr *syscall.SysProcAttr, dir *os.File) {
	attr.UseCgroupFD, attr.CgroupFD = true, int(dir.Fd())
}

func startsInGroup(attr *syscall.SysProcAttr) bool { return attr.UseCgroupFD }

// withoutCgroupFD copies a command that could not be started inside a control group.
func withoutCgroupFD(cmd *exec.Cmd) *exec.Cmd {
	attr := *cmd.SysProcAttr
	attr.UseCgroupFD = false
	return &exec.Cmd{
		Path: cmd.Path, Args: cmd.Args, Env: cmd.Env, Dir: cmd.Dir, Stdout: cmd.Stdout, Stderr: cmd.Stderr,
		SysProcAttr: &attr, ExtraFiles: cmd.ExtraFiles,
	}
}

// closeRangeOnExec marks the descriptors from first on as close-on-exec. It fails before Linux 5.11.
func closeRangeOnExec(first uint) error {
	return unix.CloseRange(first, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
}

// adviseRead has the kernel read a part of a file.
func adviseRead(f *os.File, at, size int64) {
	_ = unix.Fadvise(int(f.Fd()), at, size, unix.FADV_WILLNEED) // it is advice
}

// socketPair is two ends of a socket that keeps the bounds of messages.
func socketPair() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(fds[0]), "forks"), os.NewFile(uintptr(fds[1]), "forks"), nil
}

// setLimit sets a resource limit of a process. Root without CAP_SYS_RESOURCE may only limit processes with its own real
// user, so a thread takes on the process's user for the call.
func setLimit(pid, resource int, maximum uint64) error {
	limit := &unix.Rlimit{Cur: maximum, Max: maximum}
	err := unix.Prlimit(pid, resource, limit, nil)
	if !errors.Is(err, unix.EPERM) {
		return err
	}
	var s unix.Stat_t
	if err := unix.Stat(fmt.Sprintf("/proc/%d", pid), &s); err != nil {
		return err
	}
	onFreshThread(func() {
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

// setRealIDs sets the real user and group of the calling thread. Its effective user, and so its permissions, stay.
func setRealIDs(uid, gid int) error {
	const same = ^uintptr(0)
	_, _, group := unix.RawSyscall(unix.SYS_SETRESGID, uintptr(gid), same, same)
	_, _, user := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), same, same)
	if group != 0 || user != 0 {
		return errors.Join(group, user)
	}
	return nil
}
