package files

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/disdel/disdel"
)

// A named pipe that nobody writes to is refused. One with a writer is read to its end, and so is a pipe without a name,
// as shells make for <(command) and for standard input.
func TestPipesWithAndWithoutAWriter(t *testing.T) {
	name := filepath.Join(t.TempDir(), "job.yaml")
	if err := unix.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := read(name, time.Millisecond); !errors.Is(err, disdel.Invalid) || !errors.Is(err, errNoWriter) {
		t.Errorf("a pipe without a writer: %v", err)
	}
	wrote := make(chan error, 1)
	go func() { wrote <- os.WriteFile(name, []byte("kind: TrainingJob"), 0o600) }() // waits for a reader
	data, err := read(name, time.Minute)
	if err := errors.Join(err, <-wrote); err != nil || string(data) != "kind: TrainingJob" {
		t.Errorf("a pipe with a writer: %q, %v", data, err)
	}
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	go func() {
		_, err := in.WriteString("kind: TrainingJob")
		wrote <- errors.Join(err, in.Close())
	}()
	data, err = Read(fmt.Sprintf("/dev/fd/%d", out.Fd()))
	if err := errors.Join(err, <-wrote); err != nil || string(data) != "kind: TrainingJob" {
		t.Errorf("a pipe without a name: %q, %v", data, err)
	}
}
