package controller

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
)

// reworded is an error as another version might say it: the same kind, code and subject, and no word in common.
func reworded(err *disdel.Error) *disdel.Error {
	if err == nil {
		return nil
	}
	out := *err
	out.Op, out.Msg, out.Hint, out.Err = "zzz", "zzz", "zzz", errors.New("zzz")
	return &out
}

// quoted is what a transcript has of messages.
var quoted = regexp.MustCompile(`"[^"]*"`)

// Every script of the manager comes to the same orders when all that actions say is worded otherwise.
func TestRewordingEveryMessageChangesNoOrder(t *testing.T) {
	files, err := filepath.Glob("testdata/manager/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		script, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want := quoted.ReplaceAllString(string(script), "…")
		got := quoted.ReplaceAllString(playWorded(t, string(script), reworded), "…")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s with other words (-as said +otherwise):\n%s", file, diff)
		}
	}
}
