package files

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Named says whether path still names the open file.
func Named(f *os.File, path string) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(open, there)
}

// Lock creates and locks the file at path. The lock belongs to the open file, not to the process: two locks in one
// process exclude each other. A former owner may remove the file between creation and lock; then Lock creates another
// one.
func Lock(path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}); err != nil {
			f.Close()
			return nil, err
		}
		if Named(f, path) {
			return f, nil
		}
		f.Close()
	}
}

// Unlock removes a locked file while it is still locked.
func Unlock(f *os.File) error {
	err := os.Remove(f.Name())
	if errors.Is(err, os.ErrNotExist) { // it has another name by now
		err = nil
	}
	return errors.Join(err, f.Close())
}

// Holder is the process that has a file locked, 0 or less if it is unknown; ok is false if the file is not locked.
func Holder(f *os.File) (pid int, locked bool) {
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	if unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &lock) != nil || lock.Type == unix.F_UNLCK {
		return 0, false
	}
	return int(lock.Pid), true
}

// Held says whether Lock failed because another process has the lock.
func Held(err error) bool { return errors.Is(err, unix.EAGAIN) }
