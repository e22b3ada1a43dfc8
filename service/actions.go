package service

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/actions/serve"
	"github.com/disdel/disdel/internal/files"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/runtime/engine/backends"
)

// ServeActions serves actions until ctx ends, if the embedded platform started this process as a container; the caller
// then returns. A program that opens a Service without Config.Program calls it first, with os.Args. served is false if
// the process is no container.
func ServeActions(ctx context.Context, args []string) (served bool, err error) {
	at := slices.Index(args, "--listen")
	if len(args) < 2 || args[1] != "runtime" || at < 0 || at+1 >= len(args) {
		return false, nil
	}
	return true, ServeAt(ctx, args[at+1])
}

// ServeAt runs the action runtime with the standard backends at an address (:PORT, tcp:HOST:PORT or unix:/PATH) until
// ctx ends.
func ServeAt(ctx context.Context, address string) error {
	return serve.Serve(ctx, address, serve.NewHost(backends.Standard(nil)))
}

// FindProgram returns the path of the program of a custom action. It returns Invalid if there is none.
func FindProgram(name string) (string, error) {
	path, err := filepath.Abs(name)
	if err == nil {
		path, err = exec.LookPath(path)
	}
	if err != nil {
		return "", &disdel.Error{
			Kind: disdel.Invalid, Op: "find action " + name, Err: plainExecError(err),
			Hint: "build it first: go build -o FILE",
		}
	}
	return path, nil
}

func plainExecError(err error) error {
	var e *exec.Error
	if errors.As(err, &e) {
		return files.Plain(e.Err)
	}
	return err
}

// Bounds of a description: a program that is no action must not delay the job.
const (
	describeTimeout = 30 * time.Second
	maxDescription  = 1 << 20
)

// Describe asks the program of a custom action for its network, for Job.Model.Description. It returns Invalid for a
// program that is no action.
func Describe(ctx context.Context, program string) (*disdel.CustomNetwork, error) {
	path, err := FindProgram(program)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithTimeout(ctx, describeTimeout)
	defer stop()
	var out, errs limited
	cmd := exec.CommandContext(ctx, path, "describe")
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &errs, time.Second
	bad := func(err error) error {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "describe " + program, Msg: terminal.Clean(strings.TrimSpace(errs.String())), Err: err,
			Hint: "an action with a network of its own is built with actions/custom; see examples/gorgonia",
		}
	}
	if err := cmd.Run(); err != nil {
		return nil, bad(err)
	}
	var d disdel.CustomNetwork
	if err := json.Unmarshal(out.Bytes(), &d); err != nil {
		return nil, bad(fmt.Errorf("its answer is no description: %w", err))
	}
	return &d, nil
}

// limited keeps the beginning of what is written.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if space := maxDescription - l.Len(); space > 0 {
		l.Buffer.Write(p[:min(len(p), space)])
	}
	return len(p), nil
}
