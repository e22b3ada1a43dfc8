package modelstore

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/faults"
)

// diskWork commits models and writes checkpoints. It names each that was acknowledged.
func diskWork(dir string, done func(string), failed func(error)) {
	s, err := Open(ctx, "file://"+dir)
	if err != nil {
		failed(err)
		return
	}
	for i := range 3 {
		w := disdel.Weights{{Name: "fc.weight", Shape: []int{600}, Data: make([]float32, 600)}}
		w[0].Data[0] = float32(i)
		id := disdel.JobID(fmt.Sprintf("job-%d", i))
		key := WeightsPath("m", id)
		sum, size, err := s.WriteWeights(ctx, key, w, map[string]string{"format": "pt"}, valuesOf(w))
		var m Model
		if err == nil {
			m, err = s.Commit(ctx, Model{
				ModelRef: disdel.ModelRef{Name: "m", Path: key, Checksum: sum, Size: size}, Job: id,
				Network: disdel.Network{Name: "mlp", Input: []int{1, 8, 8}, Classes: 10},
			})
		}
		if err != nil {
			failed(err)
		} else {
			done(fmt.Sprintf("m:v%d %s", m.Version, id))
		}
		round := fmt.Sprintf("%06d", i)
		_, _, err = s.WriteCheckpoint(ctx, "checkpoints/job/"+round+"/reference.safetensors", round, w, valuesOf(w))
		if err != nil {
			failed(err)
		} else {
			done("checkpoint " + round)
		}
	}
}

// Whatever call to the disk fails, a model or a checkpoint that was acknowledged can be read, under the version that
// its job was told. One that was not acknowledged is there whole, or not at all.
func TestAFailedCallToTheDiskLosesNoModel(t *testing.T) {
	faults.FailEveryDiskCall(t, diskWork, func(t *testing.T, dir string, done []string) {
		s, err := Open(ctx, "file://"+dir)
		if err != nil {
			t.Fatal(err)
		}
		list, err := s.List(ctx)
		if err != nil {
			t.Error(err)
		}
		jobs := map[string]string{}
		for i := range list {
			w, err := s.ReadWeights(ctx, list[i].Path, list[i].Checksum)
			if err != nil || fmt.Sprintf("job-%v", w[0].Data[0]) != string(list[i].Job) {
				t.Errorf("%s: %v", list[i].Ref(), err)
			}
			jobs[list[i].Ref()] = string(list[i].Job)
		}
		newest := ""
		for _, what := range done {
			ref, job, _ := strings.Cut(what, " ")
			if ref == "checkpoint" {
				newest = job
			} else if jobs[ref] != job {
				t.Errorf("%s was acknowledged to %s, and is of %q", ref, job, jobs[ref])
			}
		}
		c, _, err := s.NewestCheckpoint(ctx, "checkpoints/job")
		if newest != "" && (err != nil || fmt.Sprintf("%06d", c.Round) < newest) {
			t.Errorf("checkpoint %s was acknowledged; the newest is %d: %v", newest, c.Round, err)
		}
		if _, err := s.Commit(ctx, write(t, s, "later")); err != nil {
			t.Errorf("a later model: %v", err)
		}
		left, _ := filepath.Glob(filepath.Join(dir, "*", "*", "*.tmp"))
		if more, _ := filepath.Glob(filepath.Join(dir, "*", "*", "*", "*.tmp")); len(left)+len(more) > 0 &&
			!strings.Contains(t.Name(), "unlinkat") { // then it cannot be deleted
			t.Errorf("temporary files: %v %v", left, more)
		}
	})
}
