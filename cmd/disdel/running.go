package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/disdel/disdel"
)

// runningFile is what the process that runs a job keeps locked for as long as it lives: a record that says running proves
// nothing after a kill -9.
func runningFile(home string, id disdel.JobID) string {
	return filepath.Join(home, "running", url.PathEscape(string(id)))
}

// hold marks a job as run by this process until the stack ends. It returns Conflict if another process of this home runs it.
func (s *stack) hold(id disdel.JobID) error {
	path := runningFile(s.home, id)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err != nil {
		return holdError(id, err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return holdError(id, err)
	}
	if err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}); err != nil {
		f.Close()
		if pid, held := runner(s.home, id); held {
			return &disdel.Error{
				Kind: disdel.Conflict, Op: "run job", Job: id, Msg: fmt.Sprintf("process %d runs %s already", pid, id),
				Hint: "wait for it, or stop it with Ctrl-C or kill first",
			}
		}
		return holdError(id, err)
	}
	s.atEnd(func() error { return errors.Join(os.Remove(path), f.Close()) })
	return nil
}

func holdError(id disdel.JobID, err error) error {
	return &disdel.Error{Kind: disdel.Invalid, Op: "mark job as running", Job: id, Err: err, Hint: "name a folder you can write to with --home"}
}

// runner is the process of this home that runs a job; false if none does.
func runner(home string, id disdel.JobID) (pid int, runs bool) {
	f, err := os.OpenFile(runningFile(home, id), os.O_RDWR, 0)
	if err != nil {
		return 0, false
	}
	defer f.Close()
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	if unix.FcntlFlock(f.Fd(), unix.F_GETLK, &lock) != nil || lock.Type == unix.F_UNLCK {
		return 0, false
	}
	return int(lock.Pid), true
}
