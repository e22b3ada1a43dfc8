package modelstore

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// nobody is known by name.
func nobody(string) bool { return false }

// Who waits is known by name, with what he has said and since when; a note that cannot be read hides no other one.
func TestWaiting(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(t.Context(), "file://"+dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"b", "c"} {
		if err := s.AddQuestion(t.Context(), name, []byte("who "+name)); err != nil {
			t.Fatal(err)
		}
	}
	loop := filepath.Join(dir, waitingFolder, "a")
	if err := os.Symlink("a", loop); err != nil {
		t.Skip(err)
	}
	all, err := s.PendingQuestions(t.Context(), nobody)
	if len(all) != 2 || all[0].Name != "b" || string(all[1].Who) != "who c" || time.Since(all[0].Since) > time.Hour {
		t.Errorf("%+v", all)
	}
	if err == nil {
		t.Error("a note that cannot be read is not told")
	}
	for range 2 {
		if err := s.RemoveQuestion(t.Context(), "b"); err != nil {
			t.Error(err)
		}
	}
	if all, _ := s.PendingQuestions(t.Context(), nobody); len(all) != 1 {
		t.Errorf("%+v wait", all)
	}
	isA := func(name string) bool { return name == "a" }
	if all, err := s.PendingQuestions(t.Context(), isA); len(all) != 1 || err != nil {
		t.Errorf("%+v, %v: a note that is known is read", all, err)
	}
}
