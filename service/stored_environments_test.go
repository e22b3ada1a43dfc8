package service

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/disdel/disdel"
)

// An environment of a job that runs or may be resumed stays, and so does one that was used in the last hour. Only the
// others are deleted, whole.
func TestEnvironmentsThatNobodyNeedsAreDeleted(t *testing.T) {
	s, home := storedHome(t)
	needed := environment(t, home, "00aa", 2*startsWithin)
	environment(t, home, "00bb", 0)
	old := environment(t, home, "00cc", 2*startsWithin)
	h, err := s.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := disdel.Record{APIVersion: disdel.APIVersion, ID: pausedJob, Status: disdel.StatusPaused, Created: time.Now()}
	r.Job.Metadata.Name, r.Job.Data.Source = "paused", "dataset://digits"
	r.Job.Model.Python = &disdel.Python{File: "net.py", Interpreter: filepath.Join(needed, "bin", "python")}
	if err := h.Save(t.Context(), &r); err != nil {
		t.Fatal(err)
	}
	items, err := s.Stored(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string]string{}
	for _, item := range items {
		if item.Kind == StoredEnvironments {
			kept[item.Name] = item.Kept
			if item.Size != 14 {
				t.Errorf("%s has %v, want the 14 bytes of its files", item.Name, item.Size)
			}
		}
	}
	want := map[string]string{
		"00aa": "the paused job " + pausedJob + " needs it", "00cc": "",
		"00bb": "it was used in the last hour, and a job may be starting",
	}
	for name, why := range want {
		if got, ok := kept[name]; !ok || got != why {
			t.Errorf("%s is kept because of %q, want %q", name, got, why)
		}
	}
	item := StoredItem{Kind: StoredEnvironments, Name: "00aa"}
	if err := s.RemoveStored(t.Context(), item); disdel.KindOf(err) != disdel.Conflict {
		t.Errorf("the environment of a paused job: %v", err)
	}
	item.Name, item.Written = "00cc", time.Now().Add(-2*startsWithin)
	if err := s.RemoveStored(t.Context(), item); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(old); err == nil {
		t.Error("the deleted environment is still there")
	}
	if _, err := os.Stat(needed); err != nil {
		t.Error(err)
	}
}

// environment makes a folder like that of a virtual environment, which was used so long ago.
func environment(t *testing.T, home, name string, ago time.Duration) string {
	t.Helper()
	dir := filepath.Join(home, "python", "environments", name)
	if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"pyvenv.cfg", "bin/python"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte("content"), 0o400); err != nil {
			t.Fatal(err)
		}
	}
	used := time.Now().Add(-ago)
	if err := os.Chtimes(dir, used, used); err != nil {
		t.Fatal(err)
	}
	return dir
}
