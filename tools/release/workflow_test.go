package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The files for a hosted forge run only what contributors run themselves: every target of theirs is one of the
// Makefile, and every action of others has a version. The files lack no step of a release.
func TestTheForgeRunsTheMakefile(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../.github/workflows/*.yml")
	if err != nil || len(files) != 2 {
		t.Fatalf("%v, %v: want a file for checks and one for releases", files, err)
	}
	target, used := regexp.MustCompile(`run: .*\bmake ([a-z-]+)`), regexp.MustCompile(`uses: (\S+)`)
	ran := map[string]bool{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range target.FindAllStringSubmatch(string(text), -1) {
			ran[m[1]] = true
			if !strings.Contains(string(makefile), "\n"+m[1]+": ") {
				t.Errorf("%s runs make %s, which the Makefile lacks", name, m[1])
			}
		}
		for _, m := range used.FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(m[1], "@v") {
				t.Errorf("%s uses %s without a version", name, m[1])
			}
		}
		if !strings.Contains(string(text), "permissions:\n  contents: read\n") {
			t.Errorf("%s may do more than read", name)
		}
	}
	for _, want := range []string{"check", "vulncheck", "release", "release-check"} {
		if !ran[want] {
			t.Errorf("no file runs make %s", want)
		}
	}
}
