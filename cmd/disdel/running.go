package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/disdel/disdel"
)

// runningFile is what the process that runs a job keeps locked for as long as it lives: a record that says running proves
// nothing after a kill -9. The lock is the open file's, not the process's: looking at the file does not release it, and two runs
// of one job in one process shut each other out. In it stands the number of the process.
func runningFile(home string, id disdel.JobID) string {
	return filepath.Join(home, "running", url.PathEscape(string(id)))
}

// hold marks a job as run by this process until the stack ends, and sets aside the room for its record. It returns Conflict if it is
// run already, and NoSpace.
func (s *stack) hold(id disdel.JobID) error {
	path := runningFile(s.home, id)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return holdError(id, err)
	}
	s.tidy()
	f, err := lockNamed(path)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return s.heldAlready(id)
	}
	if err != nil {
		return holdError(id, err)
	}
	s.atEnd(func() error { return unlock(f) })
	if err = f.Truncate(0); err == nil {
		_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0)
	}
	if err != nil {
		return holdError(id, err)
	}
	return s.reserve(id)
}

// lockNamed makes and locks the file at path. Its former owner may remove it between the two: a lock on a file without a name
// keeps nobody out, and another one is made.
func lockNamed(path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}); err != nil {
			f.Close()
			return nil, err
		}
		if named(f, path) {
			return f, nil
		}
		f.Close()
	}
}

// unlock removes a locked file while it is still locked.
func unlock(f *os.File) error { return errors.Join(os.Remove(f.Name()), f.Close()) }

func (s *stack) heldAlready(id disdel.JobID) error {
	who := "another process"
	switch pid, _ := runner(s.home, id); {
	case pid == os.Getpid():
		who = "this process"
	case pid > 0:
		who = fmt.Sprintf("process %d", pid)
	}
	return &disdel.Error{
		Kind: disdel.Conflict, Op: "run job", Job: id, Msg: fmt.Sprintf("%s runs %s already", who, id),
		Hint: "wait for it, or stop it with Ctrl-C or kill first",
	}
}

func holdError(id disdel.JobID, err error) error {
	e := &disdel.Error{Kind: disdel.Invalid, Op: "mark job as running", Job: id, Err: err, Hint: "name a folder you can write to with --home"}
	if diskFull(err) {
		e.Kind, e.Hint = disdel.NoSpace, "free some space, or name a folder on another disk with --home"
	}
	return e
}

// runner is the process of this home that runs a job, 0 if its number is not known; false if none does.
func runner(home string, id disdel.JobID) (pid int, runs bool) {
	f, err := os.Open(runningFile(home, id))
	if err != nil {
		return 0, false
	}
	defer f.Close()
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	if unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &lock) != nil || lock.Type == unix.F_UNLCK {
		return 0, false
	}
	if lock.Pid > 0 { // of an earlier version, whose locks are the process's
		return int(lock.Pid), true
	}
	text, _ := io.ReadAll(io.LimitReader(f, 20))
	pid, _ = strconv.Atoi(string(text))
	return max(pid, 0), true
}

// tidy removes what processes that were killed left behind.
func (s *stack) tidy() {
	list, _ := os.ReadDir(filepath.Join(s.home, "running")) // there is nothing to tidy
	for _, e := range list {
		if f, err := lockNamed(filepath.Join(s.home, "running", e.Name())); err == nil {
			unlock(f) //nolint:errcheck // the next one does it
		}
	}
	list, _ = os.ReadDir(s.unsavedFolder())
	for _, e := range list {
		if name, ok := strings.CutSuffix(e.Name(), reserveSuffix); ok && e.Type() == fs.FileMode(0) {
			if id, err := url.PathUnescape(name); err == nil {
				s.dropReserve(disdel.JobID(id))
			}
		}
	}
}

// dropReserve removes the reserve of a job that nobody runs.
func (s *stack) dropReserve(id disdel.JobID) {
	f, err := lockNamed(runningFile(s.home, id))
	if err != nil {
		return
	}
	defer unlock(f)              //nolint:errcheck // as above
	os.Remove(s.reserveFile(id)) //nolint:errcheck // as above
}
