package jobfile

import (
	"errors"
	"testing"

	"github.com/disdel/disdel"
)

// Adapters need given weights, take all dense layers where none are named, and do not go with frozen layers.
func TestAdaptersOfAJobFile(t *testing.T) {
	given := "model.init.weights=digits:v3"
	file, err := Parse("job.yaml", []byte(smallest), []string{given, "model.lora={}"})
	want := disdel.LoRA{Rank: 8, Alpha: 16, Layers: "*"}
	if err != nil || !file.Job.Model.LoRA.Same(&want) {
		t.Errorf("%+v, %v", file.Job.Model.LoRA, err)
	}
	for path, sets := range map[string][]string{
		"model.lora":        {"model.lora={}"},
		"model.init.freeze": {given, "model.lora={}", "model.init.freeze=conv1"},
		"model.lora.rank":   {given, "model.lora={rank: 0}"},
	} {
		_, err := Parse("job.yaml", []byte(smallest), sets)
		var faults *disdel.Faults
		if !errors.As(err, &faults) || len(faults.Faults) != 1 || faults.Faults[0].Path != path {
			t.Errorf("%s: %v", path, err)
		}
	}
}
