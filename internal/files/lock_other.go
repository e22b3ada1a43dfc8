//go:build !linux

package files

import (
	"os"

	"golang.org/x/sys/unix"
)

// allocate has the caller write zeros.
func allocate(*os.File, int64) error { return unix.EOPNOTSUPP }

// lockFile locks an open file, and fails at once if another open file has the lock.
func lockFile(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }

// Holder says whether another open file has the lock. No call says which process it is: pid is 0.
func Holder(f *os.File) (pid int, locked bool) {
	if lockFile(f) != nil {
		return 0, true
	}
	return 0, unix.Flock(int(f.Fd()), unix.LOCK_UN) != nil
}

// ReadSoon does nothing: only Linux takes this advice.
func ReadSoon(*os.File, int64, int64) {}

// ReadAtRandom does nothing: only Linux takes this advice.
func ReadAtRandom(*os.File) {}
