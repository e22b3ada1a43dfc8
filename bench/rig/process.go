package rig

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/disdel/disdel"
)

// Folder runs f with a new folder, which is removed afterwards.
func Folder(f func(folder string) error) error {
	folder, err := os.MkdirTemp("", "disdel-bench-")
	if err != nil {
		return err
	}
	return errors.Join(f(folder), os.RemoveAll(folder))
}

// Kill ends a process that was started and waits for its end.
func Kill(cmd *exec.Cmd) {
	cmd.Process.Kill() //nolint:errcheck // it may have ended
	cmd.Wait()         //nolint:errcheck // killed
}

// Memory returns sizes of /proc/PID/status, such as VmRSS and VmHWM. A pid of 0 is this process.
func Memory(pid int, names ...string) ([]disdel.Bytes, error) {
	if pid == 0 {
		pid = os.Getpid()
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return nil, err
	}
	out := make([]disdel.Bytes, len(names))
	for i, name := range names {
		_, rest, found := strings.Cut(string(text), "\n"+name+":")
		var kib int64
		if _, err := fmt.Sscan(rest, &kib); !found || err != nil {
			return nil, fmt.Errorf("process %d has no %s", pid, name)
		}
		out[i] = disdel.Bytes(kib) * disdel.KB
	}
	return out, nil
}

// StartRedis starts a redis-server that keeps nothing on disk, with a folder of its own, and returns its URL.
func StartRedis(folder string) (url string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	address := l.Addr().String()
	l.Close()
	_, port, _ := net.SplitHostPort(address)
	cmd := exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", folder)
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	for range 250 {
		if c, err := net.Dial("tcp", address); err == nil {
			c.Close()
			return "redis://" + address + "/0", func() { Kill(cmd) }, nil
		}
		time.Sleep(20 * time.Millisecond) // another process, which has not opened its port yet
	}
	Kill(cmd)
	return "", nil, errors.New("redis-server does not answer")
}
