// Package process tells processes apart: a number alone names none, since it is given again, and means another process
// in another container or on another machine.
//
// Where a system does not tell what it takes, as one without /proc, a Mark has less in it, and nobody is taken for
// dead.
package process

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Mark is what a process is known by: no other one has all of it.
type Mark struct {
	PID       int    `json:"pid"`
	Boot      string `json:"boot,omitempty"`       // of the machine that PID is a number of
	Namespace string `json:"namespace,omitempty"`  // of process numbers: a container has its own
	Start     uint64 `json:"startTicks,omitempty"` // of the process, see StartTicks
}

// Self is this process.
func Self() Mark {
	pid := os.Getpid()
	return Mark{PID: pid, Boot: BootID(), Namespace: namespace(), Start: StartTicks(pid)}
}

// Gone tells whether a process of this machine, seen from here, is no more. Of one that cannot be seen from here it
// says false.
func (m Mark) Gone() bool {
	if m.PID <= 0 || m.Boot == "" || m.Start == 0 || m.Namespace == "" {
		return false
	}
	if m.Boot != BootID() || m.Namespace != namespace() {
		return false
	}
	return StartTicks(m.PID) != m.Start || ended(m.PID)
}

// namespace names the numbering of processes that this one sees.
func namespace() string {
	name, _ := os.Readlink("/proc/self/ns/pid") // a system without it has "" each time
	return name
}

// BootID changes with every start of the machine; containers of one machine have the same.
func BootID() string {
	data, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // a system without it has "" each time
	return strings.TrimSpace(string(data))
}

// StartTicks is when a process started, in the kernel's ticks since the machine's start; 0 where it cannot be told.
func StartTicks(pid int) uint64 {
	fields := stat(pid)
	const starttime = 19
	if len(fields) <= starttime {
		return 0
	}
	ticks, _ := strconv.ParseUint(fields[starttime], 10, 64)
	return ticks
}

// ended tells whether a process has ended and only waits for its parent to ask how.
func ended(pid int) bool {
	fields := stat(pid)
	return len(fields) > 0 && (fields[0] == "Z" || fields[0] == "X")
}

// stat is what the kernel tells of a process behind its name, which is field 2 and may have spaces: the state, field 3,
// is the first.
func stat(pid int) []string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	return strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
}

// Resident is the memory that a process has in bytes; false where it cannot be told.
func Resident(pid int) (bytes int64, ok bool) {
	fields := stat(pid)
	const rss = 21
	if len(fields) <= rss {
		return 0, false
	}
	pages, err := strconv.ParseInt(fields[rss], 10, 64)
	return pages * int64(os.Getpagesize()), err == nil
}
