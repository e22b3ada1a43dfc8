package modelstore

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/disdel/disdel"
)

// The archive of a program comes back as it was written, or not at all.
func TestProgramsComeBackOrAreRefused(t *testing.T) {
	s, dir := open(t)
	archive := []byte("an archive")
	code, err := s.WriteProgram(ctx, archive)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := s.WriteProgram(ctx, archive); err != nil || again != code {
		t.Errorf("written again: %q, %v", again, err)
	}
	if got, err := s.ReadProgram(ctx, code); err != nil || !bytes.Equal(got, archive) {
		t.Errorf("read %q, %v", got, err)
	}
	if err := s.FindProgram(ctx, code); err != nil || !s.HasPrograms(ctx) {
		t.Errorf("a program that is there: %v", err)
	}
	other := "sha256:" + strings.Repeat("0", 64)
	if _, err := s.ReadProgram(ctx, other); !errors.Is(err, disdel.NotFound) {
		t.Errorf("a program that is not there: %v", err)
	}
	for _, bad := range []string{"", "sha256:12", "../" + code, "sha256:" + strings.Repeat("/", 64)} {
		if _, err := s.ReadProgram(ctx, bad); !errors.Is(err, disdel.Invalid) {
			t.Errorf("digest %q: %v", bad, err)
		}
	}
	if _, err := s.WriteProgram(ctx, make([]byte, MaxProgram+1)); !errors.Is(err, disdel.OverLimit) {
		t.Errorf("a large archive: %v", err)
	}
	file := filepath.Join(dir, "code", strings.TrimPrefix(code, "sha256:")+".zip")
	if err := os.WriteFile(file, []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ReadProgram(ctx, code); !errors.Is(err, disdel.Corrupt) {
		t.Errorf("a damaged archive: %v", err)
	}
}

// A program that was removed is gone, and removing it again says so.
func TestProgramsAreRemoved(t *testing.T) {
	s, _ := open(t)
	code, err := s.WriteProgram(ctx, []byte("an archive"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.RemoveProgram(ctx, code); err != nil || s.HasPrograms(ctx) {
		t.Errorf("removed: %v", err)
	}
	if err := s.RemoveProgram(ctx, code); !errors.Is(err, disdel.NotFound) {
		t.Errorf("removed twice: %v", err)
	}
}
