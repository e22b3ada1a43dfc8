// Package process identifies processes. A process number alone is not enough: numbers are reused, and they mean another
// process in another container or on another machine.
//
// On systems without /proc a Mark has fewer fields, and no process counts as dead.
package process

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Mark identifies a process: no other process has the same mark.
type Mark struct {
	PID       int    `json:"pid"`
	Boot      string `json:"boot,omitempty"`       // of the machine that PID is a number of
	Namespace string `json:"namespace,omitempty"`  // of process numbers: a container has its own
	Start     uint64 `json:"startTicks,omitempty"` // of the process, see StartTicks
}

// Self is the mark of this process.
func Self() Mark {
	pid := os.Getpid()
	return Mark{PID: pid, Boot: BootID(), Namespace: namespace(), Start: StartTicks(pid)}
}

// Gone says whether a process of this machine has ended. It is false for a process that cannot be seen from here.
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

// BootID changes with every start of the machine. Containers of one machine have the same.
func BootID() string {
	data, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // a system without it has "" each time
	return strings.TrimSpace(string(data))
}

// StartTicks is the start time of a process in the kernel's ticks since the machine's start; 0 if unknown.
func StartTicks(pid int) uint64 {
	fields := stat(pid)
	const starttime = 19
	if len(fields) <= starttime {
		return 0
	}
	ticks, _ := strconv.ParseUint(fields[starttime], 10, 64)
	return ticks
}

// ended says whether a process has ended and only waits for its parent.
func ended(pid int) bool {
	fields := stat(pid)
	return len(fields) > 0 && (fields[0] == "Z" || fields[0] == "X")
}

// stat is the fields of /proc/PID/stat after the name, which is field 2 and may contain spaces: the first is field 3,
// the state.
func stat(pid int) []string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	return strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
}

// Resident is the memory of a process in bytes; ok is false if it is unknown.
func Resident(pid int) (bytes int64, ok bool) {
	fields := stat(pid)
	const rss = 21
	if len(fields) <= rss {
		return 0, false
	}
	pages, err := strconv.ParseInt(fields[rss], 10, 64)
	return pages * int64(os.Getpagesize()), err == nil
}
