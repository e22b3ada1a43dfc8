//go:build !linux

package python

import (
	"errors"
	"os"
	"syscall"
)

// errNotLinux is the reason of New, which makes the file in memory first. Nothing else below is called.
var errNotLinux = errors.New("Python programs run only in actions on Linux")

func createMemoryFile() (fd int, err error) { return -1, errNotLinux }

func sealSize(int) error { return errNotLinux }

func workerAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func waitForEnd(int) error { return errNotLinux }

func openHandle(int) (int, error) { return 0, errNotLinux }

func signalHandle(int, syscall.Signal) error { return errNotLinux }

func unreadBytes(int) (int, error) { return 0, errNotLinux }

func setDataLimit(int, uint64) error { return errNotLinux }

func hideMemory() {}

func socketPair(int) (ours, theirs *os.File, err error) { return nil, nil, errNotLinux }
