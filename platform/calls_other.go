//go:build !linux

package platform

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"github.com/disdel/disdel"
)

// supported returns why this system cannot run containers: New refuses, so nothing below is called.
func supported() *disdel.Error {
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "start the embedded platform",
		Msg:  "it runs actions in Linux containers, and this system is " + runtime.GOOS,
		Hint: "use a server (--server URL) or an OpenWhisk on Linux (--apihost URL)",
	}
}

const (
	mountBind = iota
	mountCover
	mountClosed
	mountReadOnly
	mountNoExec
	mountSlave
)

const (
	capSetUID = iota
	capSetGID
	capChown
	cgroup1Magic
	cgroup2Magic
)

var errNotLinux = errors.New("only Linux has this call")

func mount(string, string, string, uintptr, string) error { return errNotLinux }

func unshareMounts() error { return errNotLinux }

func enterMounts(int) error { return errNotLinux }

func openPath(string) (int, error) { return -1, errNotLinux }

func setNoNewPrivileges() error { return errNotLinux }

func threadID() int { return 0 }

func containerAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func startInGroup(*syscall.SysProcAttr, *os.File) {}

func startsInGroup(*syscall.SysProcAttr) bool { return false }

func withoutCgroupFD(cmd *exec.Cmd) *exec.Cmd { return cmd }

func closeRangeOnExec(uint) error { return errNotLinux }

func adviseRead(*os.File, int64, int64) {}

func socketPair() (ours, theirs *os.File, err error) { return nil, nil, errNotLinux }

func setLimit(int, int, uint64) error { return errNotLinux }
