package jobfile

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
)

// A record of an older version has a job without the fields that came later: printed, it is a file with their defaults.
func TestPrintLeavesOutWhatNoFileMaySay(t *testing.T) {
	old := disdel.Job{
		APIVersion: disdel.APIVersion, Kind: disdel.JobKind, Metadata: disdel.Metadata{Name: "old"},
		Model:    disdel.Model{Name: "lenet5"},
		Data:     disdel.Data{Source: "dataset://digits"},
		Training: disdel.Training{Epochs: 2, Optimizer: disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.001}}},
	}
	text, err := Print(old)
	if err != nil {
		t.Fatal(err)
	}
	file, err := Parse("old.yaml", text, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	job := file.Job
	if got := []any{
		job.Training.BatchSize, job.Training.Backend, job.Model.Init.Scheme, job.Output.Model,
		job.Output.Keep,
	}; !cmp.Equal(got, []any{64, "native", "glorot", "old", 20}) {
		t.Errorf("%v\n%s", got, text)
	}
}

// A job from before there was a choice kept the last round's weights, and does so when it is taken up again.
func TestAnOldJobKeepsItsLastWeights(t *testing.T) {
	job := smallestJob()
	job.Training.EarlyStop = &disdel.EarlyStop{Metric: "valLoss", Patience: 2}
	text, err := Print(job)
	if err != nil || !strings.Contains(string(text), "keep: last") || job.Training.EarlyStop.Keep != "" {
		t.Fatalf("%s, %v", text, err)
	}
}
