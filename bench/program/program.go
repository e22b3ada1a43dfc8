// Package program runs the built command line as a person would, for benches that measure real jobs.
package program

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Program is the built command line with a home of its own.
type Program struct{ Path, Home string }

// Run runs it with so much on standard input, and returns what it prints on standard output. An error says what it
// said.
func (p Program) Run(in []byte, args ...string) ([]byte, error) {
	cmd := exec.Command(p.Path, args...)
	cmd.Env = append(os.Environ(), "DISDEL_HOME="+p.Home)
	cmd.Stdin = bytes.NewReader(in)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %v: %w: %s", filepath.Base(p.Path), args, err, bytes.TrimSpace(said.Bytes()))
	}
	return out, nil
}
