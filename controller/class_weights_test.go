package controller

import (
	"errors"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// A resolved job has a weight for each class, balanced by the training rows. Unknown classes are told all at once.
func TestClassWeightsNameTheClassesOfTheData(t *testing.T) {
	ctx := t.Context()
	store, err := dataset.OpenStore(ctx, "mem://")
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	train := dataset.Samples{Shape: []int{1, 1, 2}, U8: make([]byte, 8), Labels: []int32{0, 0, 0, 1}}
	test := dataset.Samples{Shape: []int{1, 1, 2}, U8: make([]byte, 4), Labels: []int32{1, 1}}
	in := dataset.Input{Name: "pets", Scale: 1, ClassNames: []string{"cat", "dog"}, Train: train, Test: &test}
	if _, err := store.Add(ctx, in, false); err != nil {
		t.Fatal(err)
	}
	resolve := func(weights disdel.ClassWeights) (Resolved, error) {
		job := disdel.Job{}
		job.Data.Source, job.Training.BatchSize, job.Training.Loss = "dataset://pets", 2, disdel.LossCrossEntropy
		job.Training.ClassWeights = weights
		job.Model.Layers = []disdel.Layer{{Kind: "flatten"}, {Kind: "dense", Units: 2}}
		return Resolve(ctx, job, store, "job.yaml", func(string) (int, int) { return 0, 0 }, nil)
	}
	for given, want := range map[disdel.ClassWeights]disdel.ClassWeights{
		"": "", "balanced": "cat=0.6666667,dog=2", "dog=3": "cat=1,dog=3", "cat=1,dog=3": "cat=1,dog=3",
	} {
		if r, err := resolve(given); err != nil || r.Job.Training.ClassWeights != want {
			t.Errorf("%q became %q, want %q: %v", given, r.Job.Training.ClassWeights, want, err)
		}
	}
	var faults *disdel.Faults
	if _, err := resolve("cow=1,dog=2,pig=3"); !errors.As(err, &faults) || len(faults.Faults) != 1 ||
		faults.Faults[0].Path != "training.classWeights" ||
		faults.Faults[0].Msg != `there is no class "cow"; there is no class "pig"` {
		t.Errorf("unknown classes: %v", err)
	}
}
