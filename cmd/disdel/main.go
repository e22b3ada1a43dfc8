// Command disdel trains deep-learning models as serverless actions on Apache OpenWhisk.
//
// It is the only place that wires everything together: the command line, the embedded platform, store and history of a
// laptop, and the action runtime, which is the same binary started as `disdel runtime`.
package main

import (
	"context"
	"errors"
	"fmt"
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
	u.exit = func(err error) int { return exitCode(ctx, err) }
	err := u.all(u.run(ctx, args))
	u.fail(err)
	return exitCode(ctx, err)
}

// run carries out one command line.
func (u *ui) run(ctx context.Context, args []string) error {
	app := newApp(u)
	asked := deal(app, args)
	u.args = args
	u.expect(asked.globals)
	switch {
	case asked.help:
		return u.help(app, asked.helpWanted(app))
	case asked.version:
		return u.version()
	}
	err := app.RunContext(ctx, normalize(app, args))
	if errors.Is(err, errWantsHelp) {
		return u.help(app, asked.path)
	}
	return err
}

// interruptible returns a context that the first Ctrl-C, SIGTERM or SIGHUP ends; a second one ends the process at once. A
// terminal that is gone must not end a program that was told to ignore that, as nohup does. Nor must a pipe that nobody
// reads end a job that runs: writing to it fails, and what was to be said is dropped.
func interruptible() (context.Context, func()) {
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
					os.Exit(exitInterrupted)
				}
				cancel(errInterrupted)
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
	exitPipe        = 141
)

// exitCodeDocument is one exit code as `disdel help exit-codes` shows it.
type exitCodeDocument struct {
	Code    int    `json:"code"`
	Meaning string `json:"meaning"`
}

var exitCodes = []exitCodeDocument{
	{exitOK, "success"},
	{exitFailed, "the job failed, or a general error"},
	{exitUsage, "usage, or an invalid file"},
	{exitUnreachable, "a back end cannot be reached"},
	{exitDenied, "not authenticated or not authorised"},
	{exitRefused, "refused: the estimate is over a limit, a quota or the budget is used up, or a disk is full"},
	{exitConflict, "conflict: somebody else is at it, as of a job that runs already, or what it builds on has changed"},
	{exitOOM, "the job ran out of memory"},
	{exitCanceled, "somebody cancelled the job"},
	{exitTimeout, "timed out, or past the deadline"},
	{exitInterrupted, "interrupted by Ctrl-C, SIGTERM or SIGHUP"},
	{exitPipe, "nobody reads standard output any more"},
}

func printExitCodes(w io.Writer) {
	for _, c := range exitCodes {
		fmt.Fprintf(w, "%3d  %s\n", c.Code, c.Meaning)
	}
}

var kindExit = map[disdel.Kind]int{
	disdel.Invalid: exitUsage, disdel.Unavailable: exitUnreachable, disdel.Denied: exitDenied,
	disdel.OverLimit: exitRefused, disdel.NoSpace: exitRefused, disdel.Conflict: exitConflict, disdel.OOM: exitOOM, disdel.Canceled: exitCanceled, disdel.Timeout: exitTimeout,
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
	case errors.Is(err, errPipe):
		return exitPipe
	}
	if code, ok := kindExit[disdel.KindOf(err)]; ok {
		return code
	}
	return exitFailed
}
