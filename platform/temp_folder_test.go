package platform

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A platform that was killed leaves its folder; the next one on the machine removes it, and nothing that is the user's,
// is another user's, or is a living platform's, whatever it is called and in whatever namespace its process is.
func TestLeftoversOfKilledPlatformsGoAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	keep := []string{
		"disdel-999999999-my-thesis", "disdel-notes", "disdel-999999999-copy", "disdel-999999999-link",
		"disdel-999999999-empty", "disdel-999999999-theirs",
	}
	for _, name := range keep {
		if name == "disdel-999999999-link" {
			continue
		}
		if err := os.MkdirAll(filepath.Join(dir, name, "c-1"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	killed, err := newTempFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	killed.marker.Close() // as the end of its process does
	marker, _ := os.ReadFile(filepath.Join(killed.dir, markerName))
	write := func(name string, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, name, markerName), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("disdel-999999999-copy", marker) // of a folder of another name
	write("disdel-999999999-empty", nil)
	write("disdel-999999999-theirs", []byte("disdel-999999999-theirs"))
	if os.Geteuid() == 0 {
		if err := os.Chown(filepath.Join(dir, "disdel-999999999-theirs"), 12345, 12345); err != nil {
			t.Fatal(err)
		}
	} else {
		os.Remove(filepath.Join(dir, "disdel-999999999-theirs", markerName))
	}
	elsewhere := t.TempDir()
	left, _ := newTempFolder(elsewhere)
	left.marker.Close()
	if err := os.Symlink(left.dir, filepath.Join(dir, "disdel-999999999-link")); err != nil {
		t.Fatal(err)
	}
	alive, err := newTempFolder(dir) // removes what was killed
	if err != nil {
		t.Fatal(err)
	}
	second, err := newTempFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := append(slices.Clone(keep), filepath.Base(alive.dir), filepath.Base(second.dir))
	slices.Sort(want)
	if got := namesIn(t, dir); !slices.Equal(got, want) {
		t.Errorf("left: %v, want %v", got, want)
	}
	if got := namesIn(t, left.dir); len(got) == 0 {
		t.Error("what a link leads to was removed")
	}
	for _, r := range []*tempFolder{alive, second} {
		if err := r.remove(); err != nil {
			t.Error(err)
		}
	}
}

func namesIn(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// The folder of a platform in another namespace of processes, where its number means something else, stays.
func TestAPlatformOfAnotherNamespaceKeepsItsFolder(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command("unshare", "--pid", "--fork", "--mount-proc", "--kill-child", os.Args[0], "hold", dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Skipf("no unshare here: %v", err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.Contains(line, "child") {
		t.Skipf("no namespace of processes can be made here: %q, %v", line, err)
	}
	before := namesIn(t, dir)
	groups, _ := filepath.Glob("/sys/fs/cgroup/*/disdel-*")
	next, err := newTempFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := next.remove(); err != nil {
		t.Error(err)
	}
	fencer := newLimiter() // looks for groups that were left
	fencer.close()
	if got := namesIn(t, dir); !slices.Equal(got, before) || len(got) != 1 {
		t.Errorf("of %v there is left %v", before, got)
	}
	for _, g := range groups {
		if _, err := os.Stat(g); err != nil && !strings.Contains(g, fmt.Sprintf("disdel-%d-", os.Getpid())) {
			t.Errorf("the group %s is gone", g)
		}
	}
}
