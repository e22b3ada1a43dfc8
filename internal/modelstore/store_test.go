package modelstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
)

var ctx = context.Background()

func open(t *testing.T) (*Store, string) {
	t.Helper()
	dir := t.TempDir()
	s, err := Open(ctx, "file://"+dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, dir
}

func write(t testing.TB, s *Store, job disdel.JobID) Model {
	t.Helper()
	w := disdel.Weights{{Name: "fc.weight", Shape: []int{2}, Data: []float32{1, -2}}}
	key := WeightsPath("m", job)
	sum, size, err := s.WriteWeights(ctx, key, w, map[string]string{"format": "pt"}, valuesOf(w))
	if err != nil {
		t.Fatal(err)
	}
	return Model{
		ModelRef: disdel.ModelRef{Name: "m", Path: key, Checksum: sum, Size: size}, Job: job,
		Network: disdel.Network{Name: "mlp", Input: []int{1, 8, 8}, Classes: 10},
	}
}

func TestVersionsCountUpAndOldOnesGo(t *testing.T) {
	s, dir := open(t)
	for i := range 5 {
		m, err := s.Commit(ctx, write(t, s, disdel.JobID(fmt.Sprintf("job-%d", i))))
		if err != nil || m.Version != i+1 {
			t.Fatalf("version %d, %v", m.Version, err)
		}
		if _, err := s.Prune(ctx, "m", 3); err != nil {
			t.Fatal(err)
		}
	}
	list, err := s.List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var refs []string
	for i := range list {
		refs = append(refs, list[i].Ref())
	}
	if diff := cmp.Diff([]string{"m:v5", "m:v4", "m:v3"}, refs); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if files, _ := filepath.Glob(dir + "/weights/m/*"); len(files) != 3 {
		t.Errorf("weights: %v", files)
	}
	if m, err := s.Get(ctx, "m"); err != nil || m.Version != 5 {
		t.Errorf("newest: %d, %v", m.Version, err)
	}
	if m, err := s.Get(ctx, "m:v4"); err != nil || m.Job != "job-3" {
		t.Errorf("v4: %s, %v", m.Job, err)
	}
	for _, ref := range []string{"m:v1", "x", "m:v9"} {
		if _, err := s.Get(ctx, ref); !errors.Is(err, disdel.NotFound) {
			t.Errorf("%s: %v, want NotFound", ref, err)
		}
	}
	for _, ref := range []string{"", "m:", "m:v0", "../m", "m:vx", ":v1"} {
		if _, err := s.Get(ctx, ref); !errors.Is(err, disdel.Invalid) {
			t.Errorf("%q: %v, want Invalid", ref, err)
		}
	}
}

// Two jobs that end at once get two versions.
func TestConcurrentCommitsGetVersionsOfTheirOwn(t *testing.T) {
	s, _ := open(t)
	var all sync.WaitGroup
	seen := make(chan int, 8)
	for i := range 8 {
		m := write(t, s, disdel.JobID(fmt.Sprintf("job-%d", i)))
		all.Go(func() {
			got, err := s.Commit(ctx, m)
			if err != nil {
				t.Error(err)
			}
			seen <- got.Version
		})
	}
	all.Wait()
	close(seen)
	versions := map[int]bool{}
	for v := range seen {
		versions[v] = true
	}
	if len(versions) != 8 {
		t.Errorf("%d versions of 8", len(versions))
	}
}

func TestWeightsComeBackOrAreRefused(t *testing.T) {
	s, dir := open(t)
	m := write(t, s, "job-1")
	w, err := s.ReadWeights(ctx, m.Path, m.Checksum)
	if err != nil || len(w) != 1 || w[0].Data[1] != -2 {
		t.Fatalf("%v, %v", w, err)
	}
	name := filepath.Join(dir, m.Path)
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-1] ^= 1
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ReadWeights(ctx, m.Path, m.Checksum); !errors.Is(err, disdel.Corrupt) {
		t.Errorf("changed: %v, want Corrupt", err)
	}
	if _, err := s.ReadWeights(ctx, "weights/none", m.Checksum); !errors.Is(err, disdel.NotFound) {
		t.Errorf("missing: %v, want NotFound", err)
	}
}
