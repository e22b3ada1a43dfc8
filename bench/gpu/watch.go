package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/disdel/disdel"
)

// afterKill is how long a process that was killed may take to end. One that waits in a driver for a device does not
// end; it is left behind.
const afterKill = 5 * time.Second

// watched runs a command and passes on what it prints. It returns Timeout for one that prints nothing for so long: it
// is killed, and not waited for if it does not end. Where the context ends, so does the command. What it has started
// ends with it, however it ends, and is no fault of one that has done its work. Of one that fails, what it complained
// of is in the error.
func watched(ctx context.Context, out io.Writer, cmd *exec.Cmd, silence time.Duration) error {
	heard := &ear{out: out, sounds: make(chan struct{}, 1)}
	defer heard.close()
	var complaints bytes.Buffer // read once the command has ended, since it is written until then
	cmd.Stdout, cmd.Stderr = heard, &complaints
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second // for what it started and left, with its output open
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	quiet := time.NewTimer(silence)
	defer quiet.Stop()
	for {
		select {
		case err := <-ended:
			kill(cmd)                              // what it has started and left: the next piece has the device for itself
			if errors.Is(err, exec.ErrWaitDelay) { // it ended well, and what it left had its output open
				return nil
			}
			if text := told(complaints.String()); err != nil && text != "" {
				return &disdel.Error{Kind: disdel.Internal, Msg: text}
			}
			return err
		case <-heard.sounds:
			quiet.Reset(silence)
		case <-ctx.Done():
			end(cmd, ended)
			return ctx.Err()
		case <-quiet.C:
			said := fmt.Sprintf("it printed nothing for %v, and was ended", silence)
			if end(cmd, ended) {
				if text := told(complaints.String()); text != "" {
					said += "; it had complained: " + text
				}
			}
			return &disdel.Error{
				Kind: disdel.Timeout, Msg: said, Hint: "nvidia-smi and dmesg (Xid) may say why; -silence waits longer",
			}
		}
	}
}

// kill kills what is there of a command and of all that it has started.
func kill(cmd *exec.Cmd) {
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // where nothing is there, nothing has to be done
}

// end kills a command with all that it has started, and waits for it. It tells whether it has ended.
func end(cmd *exec.Cmd, ended <-chan error) bool {
	kill(cmd)
	select {
	case <-ended:
		return true
	case <-time.After(afterKill):
		return false
	}
}

// mostOfComplaints is how much of the beginning, and of the end, of what a command complained of is told.
const mostOfComplaints = 2 << 10

// told is what a command complained of. A program that goes down says why before it lists where it was; others say it
// last.
func told(complaints string) string {
	text := strings.TrimPrefix(strings.TrimSpace(complaints), complaint)
	if n := len(text); n > 2*mostOfComplaints {
		text = text[:mostOfComplaints] + "\n...\n" + text[n-mostOfComplaints:]
	}
	return text
}

// ear passes on what is written to it, until it is closed, and tells that something was. It is safe for concurrent use.
type ear struct {
	mu     sync.Mutex
	out    io.Writer // nil: closed
	sounds chan struct{}
}

// Write implements io.Writer.
func (e *ear) Write(p []byte) (int, error) {
	select {
	case e.sounds <- struct{}{}:
	default: // it has been told, and nobody has heard yet
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.out == nil {
		return len(p), nil
	}
	return e.out.Write(p)
}

func (e *ear) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.out = nil
}
