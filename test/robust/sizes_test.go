package robust

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"

	"github.com/disdel/disdel"
)

// largeModel has 135 million weights, 538 MB: more than Redis takes as one value.
const largeModel = `apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: large}
model:
  layers:
    - flatten: {}
    - dense: {units: 11600, activation: relu}
    - dense: {units: 11600, activation: relu}
    - dense: {units: 10}
data: {source: "dataset://digits"}
training: {epochs: 1, batchSize: 512, optimizer: {sgd: {learningRate: 0.01}}}
distribution: {workers: 2, sync: epoch}
`

// A model of more than 512 MB is trained by two workers and averaged, within the limits that were worked out for it. An
// aggregation, which is sent two such models, holds less than two and a half.
func sizes(c *trial) {
	t, d := c.t, newHome(c.t)
	file := filepath.Join(d.home, "large.yaml")
	if err := os.WriteFile(file, []byte(largeModel), 0o600); err != nil {
		t.Fatal(err)
	}
	if free, err := availableMemory(); err != nil || free < 8*disdel.GB {
		t.Skipf("needs 8 GB of free memory, and there are %v (%v)", free, err)
	}
	r := d.run(t, 3*patience, "submit", file, "--action-memory", "4GB", "--pool-memory", "6GB", "-o", "json", "-q")
	if r.code != 0 {
		t.Fatal(r)
	}
	rec := record(t, r)
	if rec.Model == nil || rec.Model.Size < 512*disdel.MB {
		t.Errorf("the model %+v has less than 512 MB", rec.Model)
	}
	for _, a := range rec.Activations {
		t.Logf("%v %d: peak %v of %v", a.Task, a.Member, a.Peak, a.Limits.Memory)
		if a.Peak > a.Limits.Memory {
			t.Errorf("%v %d took %v, more than its limit of %v", a.Task, a.Member, a.Peak, a.Limits.Memory)
		}
		if a.Task == disdel.TaskAggregate && a.Peak > 5*rec.Model.Size/2 {
			t.Errorf("the aggregation took %v for a model of %v", a.Peak, rec.Model.Size)
		}
	}
}

var memAvailable = regexp.MustCompile(`MemAvailable:\s+(\d+) kB`)

// availableMemory is what proc(5)'s meminfo says that new programs can have.
func availableMemory() (disdel.Bytes, error) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	m := memAvailable.FindSubmatch(text)
	if m == nil {
		return 0, errors.New("/proc/meminfo has no MemAvailable")
	}
	return disdel.ParseBytes(string(m[1]) + "KB")
}
