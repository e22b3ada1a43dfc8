package service

import (
	"context"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/service/infer"
)

// A job whose process ended between its model and its record makes no second version when it is taken up: the one that
// is there is described anew. Another job's version is another one.
func TestAJobMakesOneVersion(t *testing.T) {
	t.Parallel()
	home := "file://" + t.TempDir()
	models, err := modelstore.Open(t.Context(), home)
	if err != nil {
		t.Fatal(err)
	}
	defer models.Close()
	data, err := dataset.OpenStore(t.Context(), home)
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	s := &modelSink{store: models, find: func(ctx context.Context, name string) (infer.Dataset, error) {
		m, err := data.Manifest(ctx, name)
		return infer.Dataset{Manifest: m, Store: data}, err
	}}
	commit := func(id disdel.JobID, resumes int, checksum string) int {
		t.Helper()
		r := &disdel.Record{ID: id, Resumes: resumes}
		r.Job.Output.Model, r.Job.Output.Keep = "m", 10
		network := disdel.Network{Name: "lenet5", Input: []int{1, 28, 28}, Classes: 10}
		ref, err := s.Commit(t.Context(), r, network, disdel.ModelRef{
			Name: "m", Checksum: "sha256:" + strings.Repeat(checksum, 64), Path: modelstore.WeightsPath("m", id),
		})
		if err != nil {
			t.Fatal(err)
		}
		return ref.Version
	}
	commit("job-1", 0, "1")
	if v := commit("job-2", 1, "2"); v != 2 {
		t.Errorf("a job that was taken up before it had a model made version %d", v)
	}
	if v := commit("job-1", 1, "3"); v != 1 {
		t.Errorf("taken up after its model it made version %d", v)
	}
	m, err := models.Get(t.Context(), "m:v1")
	if err != nil || m.Checksum != "sha256:"+strings.Repeat("3", 64) {
		t.Errorf("%+v, %v", m.ModelRef, err)
	}
}

// A model's epochs are those of its job: rounds may be parts of an epoch, and rounds before a resume be missing in the
// record.
func TestEpochsOfAModel(t *testing.T) {
	t.Parallel()
	rounds := func(indices ...int) (out []disdel.Round) {
		for _, i := range indices {
			out = append(out, disdel.Round{Round: i})
		}
		return out
	}
	for name, c := range map[string]struct {
		plan disdel.Plan
		done []disdel.Round
		want int
	}{
		"a round an epoch":      {disdel.Plan{Rounds: 5, Epochs: 1}, rounds(0, 1, 2, 3, 4), 5},
		"one round":             {disdel.Plan{Rounds: 1, Epochs: 3}, rounds(0), 3},
		"every four batches":    {disdel.Plan{Rounds: 15, Epochs: 1, Batches: 4}, rounds(0, 1, 14), 3},
		"stopped in the second": {disdel.Plan{Rounds: 15, Epochs: 1, Batches: 4}, rounds(0, 5), 2},
		"resumed":               {disdel.Plan{Rounds: 5, Epochs: 1}, rounds(1, 2, 3, 4), 5},
		"nothing":               {disdel.Plan{Rounds: 5, Epochs: 1}, nil, 0},
	} {
		r := disdel.Record{Plan: c.plan, Rounds: c.done}
		r.Job.Training.Epochs = 3
		if got := epochs(&r); got != c.want {
			t.Errorf("%s: %d epochs, want %d", name, got, c.want)
		}
	}
}
