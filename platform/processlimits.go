package platform

import (
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

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
