package python

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// An installed package has every source file and nothing else, whoever installs it at the same time.
func TestInstallWritesTheWholePackageOnce(t *testing.T) {
	below := t.TempDir()
	dirs := make([]string, 8)
	var group sync.WaitGroup
	for i := range dirs {
		group.Go(func() {
			dir, err := Install(below)
			if err != nil {
				t.Error(err)
			}
			dirs[i] = dir
		})
	}
	group.Wait()
	if len(slices.Compact(dirs)) != 1 {
		t.Errorf("folders %v, want one", dirs)
	}
	want, got := files(t, "src"), files(t, dirs[0])
	if len(want) == 0 || !slices.Equal(want, got) {
		t.Errorf("installed %v, want %v", got, want)
	}
	if entries, _ := os.ReadDir(below); len(entries) != 1 {
		t.Errorf("%d folders are left, want 1", len(entries))
	}
}

// A folder that others can write to is refused: they would choose the code that runs.
func TestInstallRefusesAFolderOfOthers(t *testing.T) {
	below := t.TempDir()
	dir, err := Install(below)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Install(below); err == nil || !strings.Contains(err.Error(), "others can write") {
		t.Errorf("error %v, want one that says that others can write to the folder", err)
	}
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if d.IsDir() && d.Name() == "__pycache__" {
			return fs.SkipDir
		}
		name, _ := filepath.Rel(dir, path)
		if err == nil && !d.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
