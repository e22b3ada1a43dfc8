package jobfile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/disdel/disdel"
)

const batchless = `apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: digits}
model: {name: lenet5}
data: {source: dataset://digits}
training: {epochs: 5%s}
`

// A batch of every worker is the same job as batchSize; one of the job is kept as such, and printed as it was read.
func TestABatchIsTheWorkersOrTheJobs(t *testing.T) {
	for text, want := range map[string]disdel.Training{
		"":                                {BatchSize: 64},
		", batchSize: 32":                 {BatchSize: 32},
		", batch: {size: 32}":             {BatchSize: 32},
		", batch: {size: 32, of: worker}": {BatchSize: 32},
		", batch: {of: job}":              {BatchSize: 64, Batch: &disdel.Batch{Size: 64, Of: disdel.BatchOfJob}},
		", batch: {size: 48, of: job}":    {BatchSize: 48, Batch: &disdel.Batch{Size: 48, Of: disdel.BatchOfJob}},
	} {
		file, err := Parse("job.yaml", fmt.Appendf(nil, batchless, text), nil)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		got := file.Job.Training
		if got.BatchSize != want.BatchSize || !got.SameBatch(want) || (got.Batch == nil) != (want.Batch == nil) {
			t.Errorf("%q is %+v, %+v", text, got.BatchSize, got.Batch)
		}
		printed, err := Print(file.Job)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(printed), "batchSize") == (want.Batch != nil) {
			t.Errorf("%q is printed as\n%s", text, printed)
		}
		again, err := Parse("printed.yaml", printed, nil)
		if err != nil || !again.Job.Training.SameBatch(want) {
			t.Errorf("%q came back as %+v, %v", text, again.Job.Training.Batch, err)
		}
	}
	file, err := Parse("job.yaml", fmt.Appendf(nil, batchless, ", batch: {size: 48, of: job}"),
		[]string{"training.batch.size=16"})
	if err != nil || file.Job.Training.JobBatch() != 16 || !file.Job.Training.Shared() {
		t.Errorf("--set: %+v, %v", file.Job.Training.Batch, err)
	}
}

func TestABatchThatIsNoneIsRefused(t *testing.T) {
	for text, path := range map[string]string{
		", batchSize: 32, batch: {size: 32}": "training.batch",
		", batch: {size: 0}":                 "training.batch.size",
		", batch: {size: 8, of: everybody}":  "training.batch.of",
		", batch: 8":                         "training.batch",
	} {
		_, err := Parse("job.yaml", fmt.Appendf(nil, batchless, text), nil)
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v", text, err)
		}
	}
	_, err := Parse("job.yaml", []byte(strings.Replace(fmt.Sprintf(batchless, ""), "digits}\nt",
		"digits, resize: 0}\nt", 1)), nil)
	if err == nil || !strings.Contains(err.Error(), "data.resize") {
		t.Errorf("a size of 0: %v", err)
	}
	file, err := Parse("job.yaml", []byte(strings.Replace(fmt.Sprintf(batchless, ""), "digits}\nt",
		"digits, resize: 75}\nt", 1)), nil)
	if err != nil || file.Job.Data.Resize != 75 {
		t.Errorf("%d, %v", file.Job.Data.Resize, err)
	}
}
