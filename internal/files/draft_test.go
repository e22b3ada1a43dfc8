package files_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/files"
)

// A file is there when it is whole, and not before; one that is given up leaves nothing, and one that is there already
// is left as it is, whenever it came.
func TestADraftIsThereWhenItIsWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.csv")
	begin := func() *files.Draft {
		t.Helper()
		d, err := files.NewDraft(path)
		if err == nil {
			_, err = io.WriteString(d, "all of it")
		}
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	left := func() (names []string) {
		list, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			names = append(names, e.Name())
		}
		return names
	}
	d := begin()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("before it is whole: %v", err)
	}
	if err := d.Abandon(); err != nil || len(left()) > 0 {
		t.Errorf("given up: %v is left, %v", left(), err)
	}
	late := begin()
	if err := begin().Finish(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "all of it" {
		t.Errorf("%q, %v", text, err)
	}
	if err := late.Finish(); !errors.Is(err, disdel.Conflict) {
		t.Errorf("another one came first: %v", err)
	}
	if _, err := files.NewDraft(path); !errors.Is(err, disdel.Conflict) {
		t.Errorf("one is there: %v", err)
	}
	if names := left(); len(names) != 1 {
		t.Errorf("%v is left", names)
	}
	if _, err := files.NewDraft(filepath.Join(dir, "none", "a.csv")); !errors.Is(err, disdel.Invalid) {
		t.Errorf("no such folder: %v", err)
	}
}
