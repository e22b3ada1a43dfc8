package files

import (
	"os"

	"golang.org/x/sys/unix"
)

func allocate(f *os.File, size int64) error { return unix.Fallocate(int(f.Fd()), 0, 0, size) }

// lockFile locks an open file, and fails at once if another open file has the lock.
func lockFile(f *os.File) error {
	return unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
}

// Holder is the process that has a file locked, 0 or less if it is unknown; ok is false if the file is not locked.
func Holder(f *os.File) (pid int, locked bool) {
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	if unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &lock) != nil || lock.Type == unix.F_UNLCK {
		return 0, false
	}
	return int(lock.Pid), true
}

// ReadSoon has the kernel read a part of a file ahead. It is advice: nothing fails.
func ReadSoon(f *os.File, at, size int64) {
	_ = unix.Fadvise(int(f.Fd()), at, size, unix.FADV_WILLNEED)
}

// ReadAtRandom tells the kernel that a file is read at drawn places. It is advice: nothing fails.
func ReadAtRandom(f *os.File) { _ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_RANDOM) }
