package modelstore

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
)

func checkpoint(t *testing.T, s *Store, round string, v float32) string {
	t.Helper()
	key := "checkpoints/job-1/" + round + "/reference.safetensors"
	w := disdel.Weights{{Name: "fc.weight", Shape: []int{2}, Data: []float32{v, -v}}}
	if _, _, err := s.WriteCheckpoint(ctx, key, "at "+round, w, valuesOf(w)); err != nil {
		t.Fatal(err)
	}
	return key
}

// A job is taken up where its newest whole checkpoint is: a damaged one is named and passed over, one that was never
// finished is not there.
func TestTheNewestWholeCheckpointIsFound(t *testing.T) {
	s, dir := open(t)
	if _, _, err := s.NewestCheckpoint(ctx, "checkpoints/job-1"); !errors.Is(err, disdel.NotFound) {
		t.Fatalf("without any: %v", err)
	}
	checkpoint(t, s, "000001", 1)
	good := checkpoint(t, s, "000002", 2)
	damaged := checkpoint(t, s, "000010", 10)
	unfinished := checkpoint(t, s, "000011", 11)
	flip(t, filepath.Join(dir, damaged))
	if err := os.Remove(filepath.Join(dir, unfinished+".sha256")); err != nil {
		t.Fatal(err)
	}
	c, passed, err := s.NewestCheckpoint(ctx, "checkpoints/job-1")
	if err != nil || c.Round != 2 || c.Path != good || c.Size == 0 || c.Checksum == "" {
		t.Errorf("%+v, %v", c, err)
	}
	if diff := cmp.Diff([]string{damaged}, passed); diff != "" {
		t.Errorf("passed over (-want +got):\n%s", diff)
	}
	note, w, err := s.ReadCheckpoint(ctx, c.Path)
	if err != nil || note != "at 000002" || len(w) != 1 || w[0].Data[0] != 2 {
		t.Errorf("%q %v, %v", note, w, err)
	}
	if _, _, err := s.ReadCheckpoint(ctx, damaged); !errors.Is(err, disdel.Corrupt) {
		t.Errorf("damaged: %v", err)
	}
}

// A worker's own state is a part of the checkpoint; one that was never finished is of a worker that nobody waited for.
func TestACheckpointIsAsWholeAsItsWorkers(t *testing.T) {
	s, dir := open(t)
	w := disdel.Weights{{Name: "fc.weight", Shape: []int{1}, Data: []float32{1}}}
	for _, round := range []string{"000001", "000002"} {
		checkpoint(t, s, round, 1)
		for _, name := range []string{"/worker-0.safetensors", "/worker-1.safetensors"} {
			if _, _, err := s.WriteCheckpoint(ctx, "checkpoints/job-1/"+round+name, "", w, valuesOf(w)); err != nil {
				t.Fatal(err)
			}
		}
	}
	damaged := "checkpoints/job-1/000002/worker-1.safetensors"
	flip(t, filepath.Join(dir, damaged))
	if err := os.Remove(filepath.Join(dir, "checkpoints/job-1/000001/worker-0.safetensors.sha256")); err != nil {
		t.Fatal(err)
	}
	c, passed, err := s.NewestCheckpoint(ctx, "checkpoints/job-1")
	if err != nil || c.Round != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	if diff := cmp.Diff([]string{damaged}, passed); diff != "" {
		t.Errorf("passed over (-want +got):\n%s", diff)
	}
}

func flip(t *testing.T, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-1] ^= 1
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestOldCheckpointsGo(t *testing.T) {
	s, dir := open(t)
	for _, r := range []string{"000001", "000002", "000003", "000004"} {
		checkpoint(t, s, r, 1)
	}
	if err := s.PruneCheckpoints(ctx, "checkpoints/job-1", 2, false); err != nil {
		t.Fatal(err)
	}
	left, _ := filepath.Glob(dir + "/checkpoints/job-1/*/*.safetensors")
	if len(left) != 2 || filepath.Base(filepath.Dir(left[0])) != "000003" {
		t.Errorf("%v are left", left)
	}
	checkpoint(t, s, "000000", 1)
	if err := s.PruneCheckpoints(ctx, "checkpoints/job-1", 1, true); err != nil {
		t.Fatal(err)
	}
	left, _ = filepath.Glob(dir + "/checkpoints/job-1/*/*.safetensors")
	if len(left) != 2 || filepath.Base(filepath.Dir(left[0])) != "000000" {
		t.Errorf("with given weights, %v are left", left)
	}
	if err := s.Discard(ctx, "checkpoints/job-1"); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(dir + "/checkpoints/job-1/*/*"); len(left) != 0 {
		t.Errorf("%v are left", left)
	}
}
