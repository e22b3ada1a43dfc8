package python

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// createMemoryFile makes a file without a name in memory.
func createMemoryFile() (fd int, err error) {
	return unix.MemfdCreate("disdel-program", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
}

// sealSize fixes the size of a file in memory.
func sealSize(fd int) error {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	return err
}

// workerAttributes has a worker in its own process group, and dead when the thread that started it ends.
func workerAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// waitForEnd waits for the end of a child, and leaves it to be reaped.
func waitForEnd(pid int) error {
	return unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
}

// openHandle names a process, also after its number means another one.
func openHandle(pid int) (int, error) { return unix.PidfdOpen(pid, 0) }

func signalHandle(handle int, s syscall.Signal) error { return unix.PidfdSendSignal(handle, s, nil, 0) }

// unreadBytes is how much of a pipe nobody has read yet.
func unreadBytes(fd int) (int, error) { return unix.IoctlGetInt(fd, unix.TIOCINQ) }

func setDataLimit(pid int, maximum uint64) error {
	return unix.Prlimit(pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: maximum, Max: unix.RLIM_INFINITY}, nil)
}

// hideMemory keeps processes of the same user from reading the memory and the environment of this one, which have the
// passwords of the stores.
func hideMemory() {
	unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) //nolint:errcheck // a kernel without it has no better way
}

func socketPair(kind int) (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(fds[0]), "control"), os.NewFile(uintptr(fds[1]), "control"), nil
}
