package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
)

var actionFlag = &cli.StringFlag{Name: "action", TakesFile: true, Usage: "`FILE`: a program with a network of its own, which runs as the job's actions (examples/gorgonia)"}

// actionBinary is the program that runs as the actions of the embedded platform, "" for this one.
func actionBinary(c *cli.Context) (string, error) {
	name := c.String("action")
	if name == "" {
		return "", nil
	}
	if c.String("apihost") != "" && c.String("image") == "" {
		return "", usageError{&disdel.Error{
			Kind: disdel.Invalid, Msg: "a cluster cannot run the program of --action", Hint: "build an image whose entry point it is, and name it too: --image IMAGE",
		}}
	}
	return actionPath(name)
}

// actionPath is where the program of --action is, "" for none.
func actionPath(name string) (string, error) {
	if name == "" {
		return "", nil
	}
	path, err := filepath.Abs(name)
	if err == nil {
		path, err = exec.LookPath(path)
	}
	if err != nil {
		return "", &disdel.Error{Kind: disdel.Invalid, Op: "find action " + name, Err: plainExecError(err), Hint: "build it first: go build -o FILE"}
	}
	return path, nil
}

func plainExecError(err error) error {
	var e *exec.Error
	if errors.As(err, &e) {
		return plainPathError(e.Err)
	}
	return err
}

// Bounds of what a description may take: a program that is no action must not hold the job up.
const (
	describeTimeout = 30 * time.Second
	maxDescription  = 1 << 20
)

// describe asks an action's program for its network, nil without a program.
func describe(c *cli.Context) (*disdel.CustomNetwork, error) {
	path, err := actionBinary(c)
	if err != nil || path == "" {
		return nil, err
	}
	ctx, stop := context.WithTimeout(c.Context, describeTimeout)
	defer stop()
	var out, errs limited
	cmd := exec.CommandContext(ctx, path, "describe")
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &errs, time.Second
	bad := func(err error) error {
		return &disdel.Error{Kind: disdel.Invalid, Op: "describe " + c.String("action"), Msg: clean(strings.TrimSpace(errs.String())), Err: err, Hint: "an action with a network of its own is built with actions/custom; see examples/gorgonia"}
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
