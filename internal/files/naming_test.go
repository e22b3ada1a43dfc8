package files

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/disdel/disdel"
)

// Where a file system has no links a draft gets its name all the same, unless another one has it.
func TestADraftIsNamedWithoutLinks(t *testing.T) {
	dir := t.TempDir()
	own, name := filepath.Join(dir, "own"), filepath.Join(dir, "name")
	none := func(string, string) error { return &os.LinkError{Op: "link", Err: syscall.EPERM} }
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(own, "whole")
	if err := named(own, name, none); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(name); string(text) != "whole" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	write(own, "another")
	if err := named(own, name, none); !errors.Is(err, fs.ErrExist) {
		t.Errorf("one is there: %v", err)
	}
	if text, err := os.ReadFile(name); string(text) != "whole" || err != nil {
		t.Errorf("the one that was there is %q, %v", text, err)
	}
	if err := named(own, filepath.Join(dir, "no", "folder"), none); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no such folder: %v", err)
	}
	d := Draft{path: filepath.Join(dir, "third")}
	file, err := os.OpenFile(own, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	d.file, d.buffer = file, bufio.NewWriter(file)
	if err := os.Remove(own); err != nil { // as after a rename
		t.Fatal(err)
	}
	if err := d.Finish(); !errors.Is(err, disdel.Internal) {
		t.Errorf("somebody removed it: %v", err)
	}
}

// A full disk is told as one, by the first write that it fails or by the end, and nothing stays.
func TestADraftOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"while it is written": "longer than the buffer", "at its end": "short"} {
		own := filepath.Join(dir, "own")
		if err := os.Symlink("/dev/full", own); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(own, os.O_WRONLY, 0)
		if err != nil {
			t.Skip(err)
		}
		d := Draft{buffer: bufio.NewWriterSize(f, 16), file: f, path: filepath.Join(dir, "said.csv")}
		_, err = d.Write([]byte(text))
		if len(text) > 16 != errors.Is(err, disdel.NoSpace) {
			t.Errorf("%s: %v", name, err)
		}
		if err := d.Finish(); !errors.Is(err, disdel.NoSpace) {
			t.Errorf("%s: %v at its end", name, err)
		}
		if left, err := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("%s: %v is left, %v", name, left, err)
		}
	}
}

// Who lets nobody else read his files lets nobody read these.
func TestADraftHasTheUsersPermissions(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	path := filepath.Join(t.TempDir(), "said.csv")
	d, err := NewDraft(path)
	if err == nil {
		err = d.Finish()
	}
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}
