// Command disdel trains deep-learning models as serverless actions on Apache OpenWhisk.
//
// It is the only place that wires everything together: the command line, the embedded platform, store and history of a
// laptop, and the action runtime, which is the same binary started as `disdel runtime`.
package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
)

func main() {
	os.Exit(run(os.Args, os.Stdin, os.Stdout, os.Stderr))
}

// errInterrupted is the cause of a context that the user's Ctrl-C ended.
var errInterrupted = errors.New("interrupted")

// run is main with its surroundings as parameters; it returns the exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	aggregator.Quiet()
	ctx, stop := interruptible()
	defer stop()
	u := newUI(stdin, stdout, stderr)
	app := newApp(u)
	err := u.all(app.RunContext(ctx, normalize(app, args)))
	u.fail(err)
	return exitCode(ctx, err)
}

// interruptible returns a context that the first Ctrl-C or SIGTERM ends; a second one ends the process at once.
func interruptible() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			case <-signals:
				if n > 0 {
					os.Exit(exitInterrupted)
				}
				cancel(errInterrupted)
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel(nil)
	}
}

// Exit codes, as `disdel help exit-codes` prints them. 1 to 3 agree with wsk.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitUnreachable = 3
	exitDenied      = 4
	exitRefused     = 5
	exitConflict    = 6
	exitOOM         = 7
	exitCanceled    = 8
	exitTimeout     = 124
	exitInterrupted = 130
)

const exitCodes = `  0  success
  1  the job failed, or a general error
  2  usage, or an invalid file
  3  a back end cannot be reached
  4  not authenticated or not authorised
  5  refused: the estimate is over a limit, a quota is used up, or a disk is full
  6  idempotency conflict
  7  the job ran out of memory
  8  somebody cancelled the job
124  timed out
130  interrupted
`

var kindExit = map[disdel.Kind]int{
	disdel.Invalid: exitUsage, disdel.Unavailable: exitUnreachable, disdel.Denied: exitDenied,
	disdel.OverLimit: exitRefused, disdel.NoSpace: exitRefused, disdel.OOM: exitOOM, disdel.Canceled: exitCanceled, disdel.Timeout: exitTimeout,
}

// usageError marks what the command line's parser refused.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

func exitCode(ctx context.Context, err error) int {
	var usage usageError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(context.Cause(ctx), errInterrupted):
		return exitInterrupted
	case errors.As(err, &usage):
		return exitUsage
	}
	if code, ok := kindExit[disdel.KindOf(err)]; ok {
		return code
	}
	return exitFailed
}
