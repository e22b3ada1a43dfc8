package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/estimator"
)

// The table's quantiles are in standard deviations of the peak, whatever the interval of this version is. Jobs on
// gorgonia, whose intervals are made otherwise, are not in it.
func TestTheCalibrationTableIsInStandardDeviations(t *testing.T) {
	file := filepath.Join(t.TempDir(), "records")
	low, high := estimator.MemoryInterval(disdel.TaskTrain)
	for i, deviation := range []float64{1e6, 2e6, 5e6, 1e6} {
		likely := 100 * disdel.MB
		at := func(deviations float64) disdel.Bytes { return likely + disdel.Bytes(deviations*deviation) }
		rec := disdel.Record{}
		rec.Plan.Actions = []disdel.ActionPlan{{
			Task: disdel.TaskTrain, Estimate: disdel.Estimate{Low: at(low), Likely: likely, High: at(high)},
		}}
		peaks := []float64{-0.5, 0.25, 0.75}
		if i == 3 {
			rec.Job.Training.Backend, peaks = disdel.BackendGorgonia, []float64{-9, 9}
		}
		for _, peak := range peaks {
			rec.Activations = append(rec.Activations, disdel.Activation{
				Invocation: disdel.Invocation{Task: disdel.TaskTrain}, Outcome: disdel.OutcomeSuccess, Peak: at(peak),
			})
		}
		if err := keep(file, &rec); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	if err := calibrationPart(file, &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 {
		t.Fatalf("a head, all sizes and one of them are due:\n%s", out.String())
	}
	for _, line := range lines[1:] {
		words := strings.Fields(line)
		if n := len(words); words[2] != "9" || words[n-2] != "-0.50" || words[n-1] != "0.75" {
			t.Errorf("%q: 9 peaks from -0.50 to 0.75 are due", line)
		}
	}
}
