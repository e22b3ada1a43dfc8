package service

import (
	"testing"

	"github.com/disdel/disdel"
)

// The process of a train action whose moments are in a file needs less memory than one that keeps them, by most of
// their size.
func TestMomentsInAFileAreNotInTheProcess(t *testing.T) {
	s := opened(t, t.TempDir())
	peaks := map[disdel.StateFormat]disdel.Bytes{}
	for _, format := range []disdel.StateFormat{"", disdel.StatePaged} {
		job := small(t, "distribution.workers=1", "training.epochs=1", "data.split.train=0.1", "data.split.validation=0.9")
		job.Model = disdel.Model{Layers: []disdel.Layer{
			{Kind: "flatten"},
			{Kind: "dense", Units: 8192, Activation: "relu"},
			{Kind: "dense", Units: 512},
			{Kind: "dense", Units: 10, Activation: "softmax"},
		}}
		job.Training.StateFormat = format
		rec, err := submit(t, s, job).Wait(t.Context())
		if err != nil || rec.Status != disdel.StatusSucceeded {
			t.Fatalf("%s: %v, %v", rec.Status, rec.Failure, err)
		}
		for _, a := range rec.Activations {
			if a.Task == disdel.TaskTrain {
				peaks[format] = max(peaks[format], a.Peak)
			}
		}
	}
	const moments = 2 * 4 * 8192 * (512 + 64)
	if saved := peaks[""] - peaks[disdel.StatePaged]; saved < moments*3/4 {
		t.Errorf("%v instead of %v: the moments have %v", peaks[disdel.StatePaged], peaks[""], disdel.Bytes(moments))
	}
}
