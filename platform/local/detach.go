package local

import (
	"context"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/disdel/disdel"
)

// DetachedVariable tells the process in the background that it is the detached one.
const DetachedVariable = "DISDEL_PLATFORM_DETACHED"

// lookEvery is the time between checks of another process.
const lookEvery = 10 * time.Millisecond

// Detach starts this program again with args in a session of its own, and waits until its platform serves. If the
// process ends instead, Ended has its output and exit code.
func Detach(ctx context.Context, home string, args []string) (State, *Ended, error) {
	log, err := os.OpenFile(Log(home), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return State{}, nil, &disdel.Error{Kind: disdel.Invalid, Op: "start platform", Err: err}
	}
	defer log.Close()
	begin, _ := log.Seek(0, io.SeekEnd)
	cmd, err := background(log, args)
	if err != nil {
		return State{}, nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	state, err := await(ctx, home, cmd, ended)
	if err != nil {
		return state, &Ended{Said: tail(log, begin), ExitCode: cmd.ProcessState.ExitCode()}, err
	}
	return state, nil, nil
}

// Ended is the output and the exit code of a background process that did not come to serve.
type Ended struct {
	Said     string
	ExitCode int
}

func background(log *os.File, args []string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, &disdel.Error{Kind: disdel.Internal, Op: "find this program", Err: err}
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), DetachedVariable+"=1")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, &disdel.Error{Kind: disdel.Unavailable, Op: "start platform", Err: err}
	}
	return cmd, nil
}

// await waits until the process serves or ends.
func await(ctx context.Context, home string, cmd *exec.Cmd, ended <-chan error) (State, error) {
	pid := cmd.Process.Pid
	for {
		// The process locks the file before it removes what a killed platform told there: the state must name it, too.
		if state, running := Find(home); running && state.Holder == pid && state.PID == pid && state.Address != "" {
			return state, nil
		}
		select {
		case err := <-ended:
			return State{}, &disdel.Error{Kind: disdel.Unavailable, Op: "start platform", Err: err}
		case <-ctx.Done():
			cmd.Process.Signal(syscall.SIGTERM) //nolint:errcheck // it may have ended
			<-ended
			return State{}, &disdel.Error{Kind: disdel.Canceled, Op: "start platform", Err: context.Cause(ctx)}
		case <-time.After(lookEvery):
		}
	}
}

// AwaitAddress waits for the address of the platform that runs in a home. It returns Unavailable if the platform ends.
func AwaitAddress(ctx context.Context, home string) (State, error) {
	for {
		state, running := Find(home)
		switch {
		case !running:
			return state, &disdel.Error{Kind: disdel.Unavailable, Op: "start platform", Msg: "the platform that ran in " + home +
				" has just ended", Hint: "try again"}
		case state.Address != "":
			return state, nil
		}
		select {
		case <-ctx.Done():
			return state, &disdel.Error{Kind: disdel.Canceled, Op: "start platform", Err: context.Cause(ctx)}
		case <-time.After(lookEvery):
		}
	}
}

// AwaitEnd waits until the platform of a process has released its home. It returns Timeout.
func AwaitEnd(ctx context.Context, home string, pid int) error {
	ctx, stop := context.WithTimeout(ctx, endWithin)
	defer stop()
	for {
		if s, running := Find(home); !running || s.PID != pid {
			return nil
		}
		select {
		case <-ctx.Done():
			return notEnded(ctx, pid)
		case <-time.After(lookEvery):
		}
	}
}

// tail is the text of a log from an offset on.
func tail(log *os.File, from int64) string {
	const maximum = 4 << 10
	data, _ := io.ReadAll(io.NewSectionReader(log, from, maximum)) // what can be read is told
	return string(data)
}
