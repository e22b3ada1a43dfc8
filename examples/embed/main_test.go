package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The example trains two jobs at once: each tells of itself from its plan to its end, and the second has begun before
// the first ends.
func TestTwoJobsAtOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and trains")
	}
	program := filepath.Join(t.TempDir(), "embed")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	out, err := cmd.Output()
	text := string(out)
	if err != nil || strings.Count(text, ": finished: succeeded") != 2 || strings.Count(text, ": planned: ") != 2 {
		t.Fatalf("%v\n%s", err, text)
	}
	jobs := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^(job-\w{26}) \d+: `).FindAllStringSubmatch(text, -1) {
		jobs[m[1]] = true
	}
	if len(jobs) != 2 || strings.Count(text, ": round 3: ") != 2 {
		t.Errorf("%d jobs\n%s", len(jobs), text)
	}
	if strings.LastIndex(text, ": planned: ") > strings.Index(text, ": finished: ") {
		t.Errorf("one after the other:\n%s", text)
	}
	if left, _ := os.ReadDir(strings.TrimPrefix(cmd.Env[len(cmd.Env)-1], "TMPDIR=")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
