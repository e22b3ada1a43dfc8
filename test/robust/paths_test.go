package robust

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// hostileNames leave a folder where somebody joins them to its path without a look, or are no names at all.
var hostileNames = []string{
	"../watched", "..", "../../etc/passwd", "..\\watched", "%2e%2e%2fwatched", "%252e%252e%252fwatched", "/etc/passwd",
	"watched/../../watched",
	"a/../../watched", "./../watched", "\u2025/watched", "\uff0e\uff0e/watched", "..%c0%afwatched", "link", "link/secret",
	"a\nb", "a\x1b[2Jb", "-rf", " ", "",
}

// pathsThatLeave gives every command that takes a name such ones, in a home that has links to a folder outside: that
// folder and what lies beside the home stay as they were, nothing of them is printed, and no command ends with a stack
// trace.
func pathsThatLeave(c *trial) {
	t, d := c.t, newHome(c.t)
	watched := filepath.Join(filepath.Dir(d.home), "watched")
	secret := "CANARY-that-nobody-may-read"
	err := errors.Join(os.MkdirAll(filepath.Join(watched, "inner"), 0o700),
		os.WriteFile(filepath.Join(watched, "secret"), []byte(secret), 0o600),
		os.WriteFile(filepath.Join(watched, "manifest.json"), []byte(`{"name":"link","chunks":["`+secret+`"]}`), 0o600))
	for _, folder := range []string{"datasets", "models/models", "models/weights", "models/checkpoints"} {
		at := filepath.Join(d.home, folder)
		err = errors.Join(err, os.MkdirAll(at, 0o700), os.Symlink(watched, filepath.Join(at, "link")))
	}
	if err != nil {
		t.Fatal(err)
	}
	before := treeOf(t, watched)
	row := filepath.Join(d.home, "row.json")
	if err := os.WriteFile(row, []byte(d.run(t, patience, "dataset", "sample", "digits").out), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range hostileNames {
		for _, args := range [][]string{
			{"dataset", "show", "--", name},
			{"dataset", "sample", "--", name},
			{"dataset", "remove", "--", name},
			{"model", "show", "--", name},
			{"model", "export", "--output", filepath.Join(d.home, "out.safetensors"), "--", name},
			{"infer", "--input", row, "--", name},
			{"history", "show", "--", name},
			{"report", "--", name},
			{"resume", "--", name},
			{"validate", d.job(t, "hostile", shortJob(1)), "--set", "output.model=" + name},
			{"validate", d.job(t, "hostile", shortJob(1)), "--set", "data.source=dataset://" + name},
		} {
			r := d.run(t, patience, args...)
			if text := r.out + r.err; strings.Contains(text, secret) || strings.Contains(text, "goroutine ") ||
				strings.ContainsRune(text, 0x1b) {
				t.Errorf("%q: %v", args, r)
			}
		}
	}
	if after := treeOf(t, watched); after != before {
		t.Errorf("the folder beside the home changed:\n%s\nit was\n%s", after, before)
	}
}

// treeOf lists a folder's files with what they hold.
func treeOf(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			fmt.Fprintln(&out, path)
			return err
		}
		data, err := os.ReadFile(path)
		sum := sha256.Sum256(data)
		fmt.Fprintln(&out, path, hex.EncodeToString(sum[:]))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}
