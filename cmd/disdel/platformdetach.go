package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/disdel/disdel"
)

// detachedVariable tells the process in the background that it is it.
const detachedVariable = "DISDEL_PLATFORM_DETACHED"

// detachPlatform starts this program again with the same arguments, in a session of its own, and waits until it serves.
func (s *stack) detachPlatform(ctx context.Context, u *ui) error {
	if _, running := findPlatform(s.home); running {
		return s.announceRunning(ctx, u)
	}
	log, err := os.OpenFile(platformLog(s.home), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return &disdel.Error{Kind: disdel.Invalid, Op: "start platform", Err: err}
	}
	defer log.Close()
	begin, _ := log.Seek(0, io.SeekEnd)
	cmd, err := background(log)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	state, err := s.awaitPlatform(ctx, cmd, ended)
	if err != nil {
		return detachFailed(u, err, cmd, logTail(log, begin))
	}
	s.warnOfExposure(u, state.Address)
	return announce(u, s.home, state)
}

// announceRunning sets a shell up for the platform that runs already, which may still be starting.
func (s *stack) announceRunning(ctx context.Context, u *ui) error {
	for {
		state, running := findPlatform(s.home)
		switch {
		case !running:
			return &disdel.Error{Kind: disdel.Unavailable, Op: "start platform", Msg: "the platform that ran in " + s.home + " has just ended", Hint: "try again"}
		case state.Address != "":
			u.say("a platform runs in %s already (process %d): what this command asked for beyond it was not looked at", s.home, state.PID)
			return announce(u, s.home, state)
		}
		select {
		case <-ctx.Done():
			return &disdel.Error{Kind: disdel.Canceled, Op: "start platform", Err: context.Cause(ctx)}
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func background(log *os.File) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, &disdel.Error{Kind: disdel.Internal, Op: "find this program", Err: err}
	}
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Env = append(os.Environ(), detachedVariable+"=1")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, &disdel.Error{Kind: disdel.Unavailable, Op: "start platform", Err: err}
	}
	return cmd, nil
}

// awaitPlatform waits until the process serves or ends.
func (s *stack) awaitPlatform(ctx context.Context, cmd *exec.Cmd, ended <-chan error) (platformState, error) {
	for {
		if state, running := findPlatform(s.home); running && state.holder == cmd.Process.Pid && state.Address != "" {
			return state, nil
		}
		select {
		case err := <-ended:
			return platformState{}, &disdel.Error{Kind: disdel.Unavailable, Op: "start platform", Err: err}
		case <-ctx.Done():
			cmd.Process.Signal(syscall.SIGTERM) //nolint:errcheck // it may have ended
			<-ended
			return platformState{}, &disdel.Error{Kind: disdel.Canceled, Op: "start platform", Err: context.Cause(ctx)}
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// detachFailed relays what the process in the background said before it ended.
func detachFailed(u *ui, err error, cmd *exec.Cmd, said string) error {
	if said == "" {
		return err
	}
	io.WriteString(u.err, clean(said)) //nolint:errcheck // there is no better place to tell
	kind := disdel.KindOf(err)
	for k, code := range kindExit {
		if cmd.ProcessState.ExitCode() == code {
			kind = k
		}
	}
	return reported{&disdel.Error{Kind: kind, Op: "start platform in the background", Err: err}}
}

func platformLog(home string) string { return filepath.Join(home, "platform.log") }

// logTail is what was written to a log from an offset on.
func logTail(log *os.File, from int64) string {
	const most = 4 << 10
	data, _ := io.ReadAll(io.NewSectionReader(log, from, most)) // what can be read is told
	return string(data)
}
