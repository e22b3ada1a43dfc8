package export

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
)

// The programs that exports are for open them, and read of them what CSV says: PyArrow, TensorBoard's own reader of
// event files, and MLflow's client.
func TestExportsAreOpenedByTheirPrograms(t *testing.T) {
	python := os.Getenv("DISDEL_TEST_EXPORTS")
	if python == "" {
		t.Skip("DISDEL_TEST_EXPORTS names no Python with PyArrow, TensorBoard and MLflow")
	}
	folder := t.TempDir()
	list := []disdel.Record{job("job-1", `a,"b`), job("job-2", "b")}
	var table bytes.Buffer
	if err := errors.Join(
		Text(&table, Parquet, list),
		Write(filepath.Join(folder, "runs"), TensorBoard, list), Write(filepath.Join(folder, "mlruns"), MLflow, list),
	); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "rounds.parquet"), table.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	said, err := exec.CommandContext(t.Context(), python, "testdata/opened.py", folder).Output()
	if err != nil {
		t.Fatalf("%v: %s", err, err.(*exec.ExitError).Stderr)
	}
	var got struct {
		Parquet     []map[string]any
		TensorBoard map[string][][]float64
		MLflow      []map[string]any
	}
	if err := json.Unmarshal(said, &got); err != nil {
		t.Fatalf("%s: %v", said, err)
	}
	row := map[string]any{
		"job": "job-1", "name": `a,"b`, "status": "succeeded", "model": "lenet5", "dataset": "digits", "round": 2.0,
		"train_loss": 0.5, "loss": 0.25, "accuracy": 0.75, "train_accuracy": nil, "seconds": 2.0,
		"rmse": nil, "mae": nil, "r2": nil, "f1": nil, "micro_f1": nil, "top5": nil,
	}
	if len(got.Parquet) != 4 || cmp.Diff(row, got.Parquet[1]) != "" {
		t.Errorf("PyArrow: %v", got.Parquet)
	}
	points := map[string][][]float64{
		"loss/train": {{1, 1}, {2, 0.5}}, "loss/held-out": {{2, 0.25}}, "accuracy/held-out": {{2, 0.75}},
		"time/seconds": {{1, 2}, {2, 2}},
	}
	if diff := cmp.Diff(points, got.TensorBoard); diff != "" {
		t.Errorf("TensorBoard (-want +got):\n%s", diff)
	}
	wantRuns(t, got.MLflow)
}

// wantRuns compares what MLflow's client reads with the two jobs that were exported.
func wantRuns(t *testing.T, got []map[string]any) {
	t.Helper()
	if len(got) != 2 {
		t.Fatalf("MLflow: %v", got)
	}
	for key, want := range map[string]any{
		"experiment": "disdel", "status": "FINISHED", "batchSize": "64", "tag": "a\nb",
		"train_loss": []any{[]any{1.0, 1.0}, []any{2.0, 0.5}}, "accuracy": []any{[]any{2.0, 0.75}},
	} {
		if diff := cmp.Diff(want, got[0][key]); diff != "" {
			t.Errorf("MLflow's %s (-want +got):\n%s", key, diff)
		}
	}
}
