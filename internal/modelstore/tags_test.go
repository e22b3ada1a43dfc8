package modelstore

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/disdel/disdel"
)

// A tag means a version until it is given to another one; neither pruning nor removing takes that away, and lists say
// it.
func TestTags(t *testing.T) {
	s, dir := open(t)
	for i, accuracy := range []float64{0.5, 0.9, 0.4, 0.3} {
		commit(t, s, i, accuracy)
	}
	means := func(ref string, version int) {
		t.Helper()
		if m, err := s.Get(ctx, ref); err != nil || m.Version != version {
			t.Errorf("%s is v%d: %v", ref, m.Version, err)
		}
	}
	if _, err := s.Get(ctx, "m:prod"); !errors.Is(err, disdel.NotFound) {
		t.Error(err)
	}
	for _, ref := range []string{"none", "none:prod", "none:best", "none:v1"} {
		if _, err := s.Get(ctx, ref); err == nil || !strings.Contains(err.Error(), `no trained model "none"`) {
			t.Errorf("%s: %v", ref, err)
		}
	}
	for _, ref := range []string{"m:v3", "m:v1"} {
		if _, err := s.Tag(ctx, ref, "prod"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Tag(ctx, "m:prod", "old"); err != nil {
		t.Fatal(err)
	}
	means("m:prod", 1)
	means("m:old", 1)
	means("m:best", 2)
	means("m", 4)
	_, err := s.Remove(ctx, "m:v1")
	if !errors.Is(err, disdel.Conflict) || !strings.Contains(err.Error(), "old and prod") {
		t.Error(err)
	}
	if _, err := s.Prune(ctx, "m", 1); err != nil {
		t.Fatal(err)
	}
	list, err := s.List(ctx)
	var got strings.Builder
	for i := range list {
		got.WriteString(list[i].Ref() + " " + strings.Join(list[i].Tags, ",") + ";")
	}
	if want := "m:v4 ;m:v2 ;m:v1 old,prod;"; got.String() != want || err != nil {
		t.Errorf("%s, not %s: %v", got.String(), want, err)
	}
	m := list[0]
	m.Tags = []string{"never"}
	if err := s.UpdateDescription(ctx, m); err != nil {
		t.Fatal(err)
	}
	if m, err := s.Get(ctx, "m:v4"); err != nil || len(m.Tags) > 0 {
		t.Errorf("%q is in the description: %v", m.Tags, err)
	}
	if _, err := s.Remove(ctx, "m:best"); err != nil {
		t.Error(err)
	}
	if _, err := s.Get(ctx, "m:v2"); !errors.Is(err, disdel.NotFound) {
		t.Error(err)
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "weights", "m", "*")); len(files) != 2 {
		t.Errorf("%q", files)
	}
	means("m:best", 1)
	if err := os.WriteFile(filepath.Join(dir, "models", "m", "tags", "prod"), []byte("v-1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(ctx, "m:prod"); !errors.Is(err, disdel.Corrupt) {
		t.Error(err)
	}
}

// The number of a version that was removed is not given to another one.
func TestNumbersAreGivenOnce(t *testing.T) {
	s, _ := open(t)
	for i, want := range []int{1, 2, 3} {
		m := commit(t, s, i, 0.5)
		if m.Version != want {
			t.Errorf("v%d, not v%d", m.Version, want)
		}
		if _, err := s.Remove(ctx, m.Ref()); err != nil {
			t.Fatal(err)
		}
	}
}

// Words that could be taken for something else are no tags.
func TestWhatIsNoTag(t *testing.T) {
	s, dir := open(t)
	commit(t, s, 1, 0.5)
	for _, tag := range []string{"", "v3", "3", "best", "Prod", "a/b", "..", "a b", strings.Repeat("a", 40)} {
		if _, err := s.Tag(ctx, "m:v1", tag); !errors.Is(err, disdel.Invalid) {
			t.Errorf("%q: %v", tag, err)
		}
	}
	for _, ref := range []string{"m:", "m:v0", "m:..", "m:A", ":prod", "m:v99999999999999999999"} {
		if _, err := s.Get(ctx, ref); !errors.Is(err, disdel.Invalid) {
			t.Errorf("%q: %v", ref, err)
		}
	}
	if _, err := s.Tag(ctx, "m:v7", "prod"); !errors.Is(err, disdel.NotFound) {
		t.Error(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "models", "m", "tags", "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	list, err := s.Versions(ctx, "m")
	if err != nil || slices.ContainsFunc(list, func(m Model) bool { return len(m.Tags) > 0 }) {
		t.Errorf("%+v, %v", list, err)
	}
}
