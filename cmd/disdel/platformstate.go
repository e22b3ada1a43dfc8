package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/disdel/disdel"
)

// platformState is what a running `disdel platform up` tells in the home folder's platform.json. The file is locked for as
// long as the process lives, so that the state of one that was killed is not believed, and is the only one of its home.
type platformState struct {
	PID        int       `json:"pid"`
	Address    string    `json:"address"`
	Started    time.Time `json:"started"`
	Properties string    `json:"wskprops"`
	Data       string    `json:"dataDir"`
	Boot       string    `json:"boot,omitempty"`       // of the machine that PID is a number of
	StartTicks uint64    `json:"startTicks,omitempty"` // of the process: no other one has its number and this

	holder int // the process that the kernel says has the file locked; 0 or less for one of another namespace or machine
}

func platformFile(home string) string { return filepath.Join(home, "platform.json") }

// claim takes the home for this process. It returns Conflict if another platform has it.
func claim(home string) (*os.File, error) {
	path := platformFile(home)
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, &disdel.Error{Kind: disdel.Invalid, Op: "start platform", Err: err, Hint: "name a folder you can write to with --home"}
		}
		if err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}); err != nil {
			f.Close()
			return nil, claimed(home, err)
		}
		if named(f, path) {
			return f, forget(f)
		}
		f.Close() // its former owner removed it meanwhile: a lock on it keeps nobody out
	}
}

// forget empties a claimed file: what a platform told that was killed is no longer so, and would be taken for the new one's.
func forget(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		f.Close()
		return &disdel.Error{Kind: disdel.Unavailable, Op: "write " + f.Name(), Err: err}
	}
	return nil
}

func claimed(home string, err error) error {
	if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EACCES) {
		return &disdel.Error{Kind: disdel.Unavailable, Op: "lock " + platformFile(home), Err: err}
	}
	msg := "a platform runs in " + home + " already"
	if s, ok := findPlatform(home); ok && s.Address != "" {
		msg = fmt.Sprintf("a platform runs in %s already, at %s (process %d)", home, s.Address, s.PID)
	}
	return &disdel.Error{Kind: disdel.Conflict, Op: "start platform", Msg: msg, Hint: "disdel platform down ends it; --home names another folder"}
}

// named tells whether path still names the open file.
func named(f *os.File, path string) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(open, there)
}

// tell writes the state into a claimed file.
func tell(f *os.File, s platformState) error {
	data, err := json.Marshal(s)
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteAt(data, 0)
	}
	if err != nil {
		return &disdel.Error{Kind: disdel.Unavailable, Op: "write " + f.Name(), Err: err}
	}
	return nil
}

// unclaim gives the home back.
func unclaim(f *os.File) error {
	return errors.Join(os.Remove(f.Name()), f.Close())
}

// findPlatform is the platform that runs in a home. Between its start and its readiness it has no address.
func findPlatform(home string) (s platformState, running bool) {
	f, err := os.OpenFile(platformFile(home), os.O_RDWR, 0)
	if err != nil {
		return s, false
	}
	defer f.Close()
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	if unix.FcntlFlock(f.Fd(), unix.F_GETLK, &lock) != nil || lock.Type == unix.F_UNLCK {
		return s, false
	}
	if data, err := io.ReadAll(f); err != nil || json.Unmarshal(data, &s) != nil {
		s = platformState{}
	}
	s.holder = int(lock.Pid)
	if s.PID == 0 {
		s.PID = s.holder // it starts, and has told nothing yet
	}
	return s, true
}
