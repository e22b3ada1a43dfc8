package rig

import (
	"errors"
	"os/exec"
	"syscall"
	"time"

	"github.com/disdel/disdel"
)

// Use is what a process took.
type Use struct {
	Wall, CPU time.Duration
	Peak      disdel.Bytes // of resident memory
}

// Measure runs a command that was not started yet, and returns what it took.
func Measure(cmd *exec.Cmd) (Use, error) {
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return Use{}, err
	}
	wall := time.Since(began)
	use, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return Use{}, errors.New("the system does not say what a process used")
	}
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return Use{Wall: wall, CPU: cpu, Peak: disdel.Bytes(use.Maxrss) * disdel.KB}, nil
}
