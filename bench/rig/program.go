package rig

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/disdel/disdel"
)

// stopWithin is the time that a run has to end which was asked to.
const stopWithin = 20 * time.Second

// Program is the built command line with a home of its own.
type Program struct {
	Path, Home string
	Longest    time.Duration // that a run may take; 0: as long as it likes
}

// Run runs it with so much on standard input, and returns what it prints on standard output. An error says what it
// said. What takes longer than it may is asked to stop, and killed where it does not.
func (p Program) Run(in []byte, args ...string) ([]byte, error) {
	ctx := context.Background()
	if p.Longest > 0 {
		within, stop := context.WithTimeout(ctx, p.Longest)
		defer stop()
		ctx = within
	}
	cmd := exec.CommandContext(ctx, p.Path, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = stopWithin
	cmd.Env = append(os.Environ(), "DISDEL_HOME="+p.Home)
	cmd.Stdin = bytes.NewReader(in)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%s %v: not done after %v: %s", filepath.Base(p.Path), args, p.Longest,
			bytes.TrimSpace(said.Bytes()))
	}
	if err != nil {
		return nil, fmt.Errorf("%s %v: %w: %s", filepath.Base(p.Path), args, err, bytes.TrimSpace(said.Bytes()))
	}
	return out, nil
}

// Job runs a command that ends with a record, and returns the record.
func (p Program) Job(in []byte, args ...string) (rec disdel.Record, err error) {
	out, err := p.Run(in, append(args, "-o", "json", "-q")...)
	if err == nil {
		err = json.Unmarshal(out, &rec)
	}
	return rec, err
}
