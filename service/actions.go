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

// ServeActions makes this process a container of the embedded platform, if that is what it was started as: it serves
// actions until ctx ends, and the caller then ends too. A program that opens a Service and names no Program calls it
// first, with os.Args; false means that it was started as itself.
func ServeActions(ctx context.Context, args []string) (served bool, err error) {
	at := slices.Index(args, "--listen")
	if len(args) < 2 || args[1] != "runtime" || at < 0 || at+1 >= len(args) {
		return false, nil
	}
	return true, ServeAt(ctx, args[at+1])
}

// ServeAt is the action runtime with the standard backends at an address (:PORT, tcp:HOST:PORT or unix:/PATH), until
// ctx ends.
func ServeAt(ctx context.Context, address string) error {
	return serve.Serve(ctx, address, serve.NewHost(backends.Standard(nil)))
}

// FindProgram is where the program of an action with a network of its own is. It returns Invalid where it is not.
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

// Bounds of what a description may take: a program that is no action must not hold the job up.
const (
	describeTimeout = 30 * time.Second
	maxDescription  = 1 << 20
)

// Describe asks the program of an action for its network, as Job.Model.Description has it. It returns Invalid for one
// that is no action.
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

// limited keeps the start of what is written.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if room := maxDescription - l.Len(); room > 0 {
		l.Buffer.Write(p[:min(len(p), room)])
	}
	return len(p), nil
}
