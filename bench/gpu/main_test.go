package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine/backends"
)

// Without a GPU the report is there all the same and says so, and nothing passes for checked.
func TestNoGPUIsSaid(t *testing.T) {
	if _, err := backends.GPUs(); err == nil {
		t.Skip("this machine has a GPU")
	}
	file := filepath.Join(t.TempDir(), "report.md")
	if err := run([]string{"-report", file}, io.Discard); !errors.Is(err, disdel.Unavailable) {
		t.Errorf("%v, want Unavailable", err)
	}
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), "failed: find a GPU: there is none to check: ") {
		t.Errorf("%v: %s", err, text)
	}
}
