package controller

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// With mse a network of dense rows needs one output for each class. The fault says so.
// Models of sparse rows predict a number with one output: no fault.
func TestMSENeedsOneOutputForEachClass(t *testing.T) {
	ctx, store := t.Context(), digitsStore(t)
	if _, err := store.AddSparse(ctx, dataset.SparseInput{
		Name: "prices", Columns: 2, Classes: 1,
		Each: func(yield func(dataset.SparseRow) error) error {
			for i := range 40 {
				row := dataset.SparseRow{Target: float32(i) / 3, Index: []int32{int32(i % 2)}, Value: []float32{1}}
				if err := yield(row); err != nil {
					return err
				}
			}
			return nil
		},
	}, false); err != nil {
		t.Fatal(err)
	}
	nowhere := func(string) (int, int) { return 0, 0 }
	for outputs := 1; outputs <= 12; outputs++ {
		job := disdel.Job{}
		job.Data.Source, job.Training.BatchSize, job.Training.Loss = "dataset://digits", 64, "mse"
		job.Model.Layers = []disdel.Layer{{Kind: "flatten"}, {Kind: "dense", Units: outputs}}
		_, err := Resolve(ctx, job, store, "job.yaml", nowhere, nil)
		if outputs == 10 {
			if err != nil {
				t.Errorf("10 outputs for 10 classes: %v", err)
			}
			continue
		}
		var faults *disdel.Faults
		if !errors.As(err, &faults) || len(faults.Faults) != 1 || faults.Faults[0].Path != "model" {
			t.Errorf("%d outputs: %v", outputs, err)
			continue
		}
		for _, want := range []string{
			fmt.Sprintf("%d outputs", outputs), "10 classes", "mse needs one output for each class",
		} {
			if !strings.Contains(faults.Faults[0].Msg, want) {
				t.Errorf("%d outputs: %q does not say %q", outputs, faults.Faults[0].Msg, want)
			}
		}
	}
	for _, loss := range []string{disdel.LossSquared, "mse"} {
		job := disdel.Job{}
		job.Data.Source, job.Training.BatchSize, job.Training.Loss = "dataset://prices", 4, loss
		job.Model.Name = "linear"
		if _, err := Resolve(ctx, job, store, "job.yaml", nowhere, nil); err != nil {
			t.Errorf("one number from sparse rows, loss %s: %v", loss, err)
		}
	}
}
