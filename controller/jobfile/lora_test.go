package jobfile

import (
	"errors"
	"strings"
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

// Frozen layers and adapters are refused by their field for an engine that trains all layers.
func TestOnlyTheNativeEngineFreezes(t *testing.T) {
	given := "model.init.weights=digits:v3"
	for _, engine := range []string{"training.backend=gorgonia", "resources.device=gpu"} {
		for path, value := range map[string]string{"model.init.freeze": "conv1", "model.lora": "{}"} {
			_, err := Parse("job.yaml", []byte(smallest), []string{given, path + "=" + value, engine})
			var faults *disdel.Faults
			if !errors.As(err, &faults) || len(faults.Faults) != 1 || faults.Faults[0].Path != path {
				t.Errorf("%s with %s: %v", path, engine, err)
			}
		}
	}
}

// The moments of Lion are a mean of gradients, which may be rounded. Messages about others name the optimiser.
func TestMomentsThatMayBeRounded(t *testing.T) {
	for optimizer, refused := range map[string]bool{"lion": false, "rmsprop": true} {
		_, err := Parse("job.yaml", []byte(smallest), []string{
			"training.optimizer={" + optimizer + ": {}}", "distribution.aggregation.optimizer=average",
			"distribution.aggregation.wire=bfloat16",
		})
		if (err != nil) != refused || refused && !strings.Contains(err.Error(), optimizer) {
			t.Errorf("%s: %v", optimizer, err)
		}
	}
}
