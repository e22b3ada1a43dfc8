package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/disdel/disdel"
)

// signalPlatform sends a signal to the process of a platform, and to no other. A process's number alone does not name it:
// the home may be shared with a container or another machine, where numbers mean other processes, and zero and less mean
// groups of them to kill(2).
func signalPlatform(home string, s platformState, signal unix.Signal) error {
	refused := func(msg string) error {
		return &disdel.Error{
			Kind: disdel.Conflict, Op: "end platform", Msg: msg + "; nothing was signalled",
			Hint: "disdel platform down where it was started: the same container, machine and home",
		}
	}
	switch {
	case s.holder <= 0:
		return refused("the platform of " + home + " runs in another container or on another machine")
	case s.PID != s.holder:
		return refused(fmt.Sprintf("%s names process %d, but process %d has it locked", platformFile(home), s.PID, s.holder))
	}
	fd, err := unix.PidfdOpen(s.PID, 0) // from here on the number cannot come to mean another process
	if err != nil && !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EPERM) {
		return nothingThere(s.PID, err)
	}
	if err == nil {
		defer unix.Close(fd)
	}
	if !s.isOf(s.PID) {
		return refused(fmt.Sprintf("process %d is not the platform that %s tells of", s.PID, platformFile(home)))
	}
	if now, running := findPlatform(home); !running || now.holder != s.holder {
		return nil // it has ended meanwhile
	}
	if err == nil {
		err = unix.PidfdSendSignal(fd, signal, nil, 0)
	} else {
		err = unix.Kill(s.PID, signal) // a kernel before 5.3
	}
	return nothingThere(s.PID, err)
}

// nothingThere is the error of a signal, nil where the process is gone, as was wanted.
func nothingThere(pid int, err error) error {
	if err == nil || errors.Is(err, unix.ESRCH) {
		return nil
	}
	return &disdel.Error{Kind: disdel.Denied, Op: fmt.Sprintf("end process %d", pid), Err: err}
}

// isOf tells whether a process is the one that told the state: the same start on the same boot of a machine. A state of an
// older version, or of a process that starts, has no such marks; its command line must do.
func (s platformState) isOf(pid int) bool {
	if s.StartTicks != 0 {
		return s.Boot == bootID() && s.StartTicks == startTicks(pid)
	}
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	args := strings.Split(string(bytes.TrimRight(data, "\x00")), "\x00")
	at := slices.Index(args, "platform")
	return at > 0 && slices.Contains(args[at:], "up")
}

// bootID changes with every start of the machine; containers of one machine have the same.
func bootID() string {
	data, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // a system without it has "" each time
	return strings.TrimSpace(string(data))
}

// startTicks is when a process started, in the kernel's ticks since the machine's start; 0 where it cannot be told.
func startTicks(pid int) uint64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	const after = 19 // starttime is field 22, and the name, field 2, may have spaces: count behind it
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(fields) <= after {
		return 0
	}
	ticks, _ := strconv.ParseUint(fields[after], 10, 64)
	return ticks
}
