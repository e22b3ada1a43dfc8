package local

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/files"
	"github.com/disdel/disdel/internal/process"
)

// State is what a running `disdel platform up` writes to platform.json in the home folder. The process keeps the file
// locked, so that there is one platform a home, and a killed process's state does not count.
type State struct {
	PID        int       `json:"pid"`
	Address    string    `json:"address"`
	Started    time.Time `json:"started"`
	Properties string    `json:"wskprops"`
	Data       string    `json:"dataDir"`
	Boot       string    `json:"boot,omitempty"`       // of the machine that PID is a number of
	StartTicks uint64    `json:"startTicks,omitempty"` // of the process: no other one has its number and this

	// the process that the kernel says has the file locked; 0 or less for one of another namespace or machine
	Holder int `json:"-"`
}

// File is the file with the state of a home's platform.
func File(home string) string { return filepath.Join(home, "platform.json") }

// Claim takes the home for this process. It returns Conflict if another platform has it.
func Claim(home string) (*os.File, error) {
	path := File(home)
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, &disdel.Error{
				Kind: disdel.Invalid, Op: "start platform", Err: err,
				Hint: "name a folder you can write to with --home",
			}
		}
		if err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}); err != nil {
			f.Close()
			return nil, claimed(home, err)
		}
		if files.Named(f, path) {
			return f, forget(f)
		}
		f.Close() // its former owner removed it meanwhile: a lock on it keeps nobody out
	}
}

// forget empties a claimed file, because the state of a killed platform would be taken for the new one's.
func forget(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		f.Close()
		return &disdel.Error{Kind: disdel.Unavailable, Op: "write " + f.Name(), Err: err}
	}
	return nil
}

func claimed(home string, err error) error {
	if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EACCES) {
		return &disdel.Error{Kind: disdel.Unavailable, Op: "lock " + File(home), Err: err}
	}
	msg := "a platform runs in " + home + " already"
	if s, ok := Find(home); ok && s.Address != "" {
		msg = fmt.Sprintf("a platform runs in %s already, at %s (process %d)", home, s.Address, s.PID)
	}
	return &disdel.Error{
		Kind: disdel.Conflict, Op: "start platform", Msg: msg,
		Hint: "disdel platform down ends it; --home names another folder",
	}
}

// Log is the log file of a platform in the background.
func Log(home string) string { return filepath.Join(home, "platform.log") }

// Tell writes the state into a claimed file.
func Tell(f *os.File, s State) error {
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

// Unclaim releases the home.
func Unclaim(f *os.File) error {
	return errors.Join(os.Remove(f.Name()), f.Close())
}

// Find is the state of the platform that runs in a home. It has no address before the platform is ready.
func Find(home string) (s State, running bool) {
	f, err := os.OpenFile(File(home), os.O_RDWR, 0)
	if err != nil {
		return s, false
	}
	defer f.Close()
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	if unix.FcntlFlock(f.Fd(), unix.F_GETLK, &lock) != nil || lock.Type == unix.F_UNLCK {
		return s, false
	}
	if data, err := io.ReadAll(f); err != nil || json.Unmarshal(data, &s) != nil {
		s = State{}
	}
	s.Holder = int(lock.Pid)
	if s.PID == 0 {
		s.PID = s.Holder // it starts, and has told nothing yet
	}
	return s, true
}

// Signal sends a signal to the process of a platform. It checks the process first, because its number may mean another
// process: the home may be shared with a container or another machine, and numbers up to zero mean process groups.
func Signal(home string, s State, signal unix.Signal) error {
	refused := func(msg string) error {
		return &disdel.Error{
			Kind: disdel.Conflict, Op: "end platform", Msg: msg + "; nothing was signalled",
			Hint: "disdel platform down where it was started: the same container, machine and home",
		}
	}
	switch {
	case s.Holder <= 0:
		return refused("the platform of " + home + " runs in another container or on another machine")
	case s.PID != s.Holder:
		return refused(fmt.Sprintf("%s names process %d, but process %d has it locked", File(home), s.PID, s.Holder))
	}
	fd, err := openHandle(s.PID) // from here on the number cannot come to mean another process
	if err != nil && !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EPERM) {
		return nothingThere(s.PID, err)
	}
	if err == nil {
		defer unix.Close(fd)
	}
	if !s.isOf(s.PID) {
		return refused(fmt.Sprintf("process %d is not the platform that %s tells of", s.PID, File(home)))
	}
	if now, running := Find(home); !running || now.Holder != s.Holder {
		return nil // it has ended meanwhile
	}
	if err == nil {
		err = signalHandle(fd, signal)
	} else {
		err = unix.Kill(s.PID, signal) // a kernel before 5.3
	}
	return nothingThere(s.PID, err)
}

// nothingThere is the error of a signal, nil if the process is gone.
func nothingThere(pid int, err error) error {
	if err == nil || errors.Is(err, unix.ESRCH) {
		return nil
	}
	return &disdel.Error{Kind: disdel.Denied, Op: fmt.Sprintf("end process %d", pid), Err: err}
}

// isOf says whether a process wrote the state: the same start time and boot. A state of an older version or of a
// starting process has neither; then the command line decides.
func (s State) isOf(pid int) bool {
	if s.StartTicks != 0 {
		return s.Boot == process.BootID() && s.StartTicks == process.StartTicks(pid)
	}
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	args := strings.Split(string(bytes.TrimRight(data, "\x00")), "\x00")
	at := slices.Index(args, "platform")
	return at > 0 && slices.Contains(args[at:], "up")
}

// endWithin is how long a platform may take to end. It gives requests ten seconds.
const endWithin = 20 * time.Second

func notEnded(ctx context.Context, pid int) error {
	return &disdel.Error{
		Kind: disdel.Timeout, Op: "end platform", Msg: fmt.Sprintf("process %d still runs", pid), Err: context.Cause(ctx),
		Hint: fmt.Sprintf("kill -KILL %d; the next platform removes what it leaves", pid),
	}
}
