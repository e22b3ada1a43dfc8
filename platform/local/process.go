package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/process"
)

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
	fd, err := unix.PidfdOpen(s.PID, 0) // from here on the number cannot come to mean another process
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
		err = unix.PidfdSendSignal(fd, signal, nil, 0)
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
