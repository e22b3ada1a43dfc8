package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/disdel/disdel"
)

// ErrInterrupted is the cause of a context that Ctrl-C or a signal ended.
var ErrInterrupted = errors.New("interrupted")

// ErrDiffers means that a deployment differs from its manifest.
var ErrDiffers = errors.New("the deployment differs from the manifest")

// ErrPaused means that the job was paused, which is neither a success nor a failure.
var ErrPaused = errors.New("the job is paused")

// Interruptible returns a context that the first Ctrl-C, SIGTERM or SIGHUP ends. A second one ends the process at once.
// A program that ignores SIGHUP, as under nohup, goes on without its terminal. A closed pipe does not end a running
// job: writes to it fail and are ignored.
func Interruptible() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	done := make(chan struct{})
	go func() {
		for n := 0; ; {
			select {
			case <-done:
				return
			case <-pipes:
			case <-signals:
				if n++; n > 1 {
					os.Exit(ExitInterrupted)
				}
				cancel(ErrInterrupted)
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		signal.Stop(pipes)
		close(done)
		cancel(nil)
	}
}

// Exit codes, as `disdel help exit-codes` prints them. 1 to 3 agree with wsk.
const (
	ExitOK          = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitUnreachable = 3
	ExitDenied      = 4
	ExitRefused     = 5
	ExitConflict    = 6
	ExitOOM         = 7
	ExitCanceled    = 8
	ExitDiffers     = 8 // of deploy status and deploy preview
	ExitPaused      = 9
	ExitTimeout     = 124
	ExitInterrupted = 130
	ExitPipe        = 141
)

// exitCode is one exit code as `disdel help exit-codes` shows it.
type exitCode struct {
	Code    int    `json:"code"`
	Meaning string `json:"meaning"`
}

// ExitCodes are all exit codes.
var ExitCodes = []exitCode{
	{ExitOK, "success"},
	{ExitFailed, "the job failed, or a general error"},
	{ExitUsage, "usage, or an invalid file"},
	{ExitUnreachable, "a back end cannot be reached"},
	{ExitDenied, "not authenticated or not authorised"},
	{ExitRefused, "refused: the estimate is over a limit, a quota or the budget is used up, or a disk is full"},
	{ExitConflict, "conflict: somebody else is at it, as of a job that runs already, or what it builds on has changed"},
	{ExitOOM, "the job ran out of memory"},
	{ExitCanceled, "somebody cancelled the job; of deploy status and deploy preview: something differs"},
	{ExitPaused, "the job is paused: a resume goes on with it"},
	{ExitTimeout, "timed out, or past the deadline"},
	{ExitInterrupted, "interrupted by Ctrl-C, SIGTERM or SIGHUP"},
	{ExitPipe, "nobody reads standard output any more"},
}

// PrintExitCodes writes the list of exit codes.
func PrintExitCodes(w io.Writer) {
	for _, c := range ExitCodes {
		fmt.Fprintf(w, "%3d  %s\n", c.Code, c.Meaning)
	}
}

var kindExit = map[disdel.Kind]int{
	disdel.Invalid: ExitUsage, disdel.Unavailable: ExitUnreachable, disdel.Denied: ExitDenied,
	disdel.OverLimit: ExitRefused, disdel.NoSpace: ExitRefused, disdel.Conflict: ExitConflict, disdel.OOM: ExitOOM,
	disdel.Canceled: ExitCanceled, disdel.Timeout: ExitTimeout,
}

// KindOf is the kind of error of an exit code, or otherwise if the code has none.
func KindOf(code int, otherwise disdel.Kind) disdel.Kind {
	kind := otherwise
	for k, c := range kindExit {
		if c == code {
			kind = k
		}
	}
	return kind
}

// ExitCode is the exit code for an error. ctx says whether the program was interrupted.
func ExitCode(ctx context.Context, err error) int {
	switch {
	case err == nil:
		return ExitOK
	case errors.Is(context.Cause(ctx), ErrInterrupted):
		return ExitInterrupted
	case errors.Is(err, ErrPipe):
		return ExitPipe
	case errors.Is(err, ErrPaused):
		return ExitPaused
	case errors.Is(err, ErrDiffers):
		return ExitDiffers
	}
	if code, ok := kindExit[disdel.KindOf(err)]; ok {
		return code
	}
	return ExitFailed
}
