package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/bench/rig"
)

// cutJob is a job that is short enough to be run often, and whose layers can be cut.
const cutJob = `apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: cut}
model:
  layers:
    - conv: {filters: 32, kernel: 3, padding: 1, activation: relu}
    - conv: {filters: 48, kernel: 3, padding: 1, activation: relu}
    - conv: {filters: 48, kernel: 3, padding: 1, activation: relu}
    - conv: {filters: 32, kernel: 3, padding: 1, activation: relu}
    - flatten: {}
    - dense: {units: 10, activation: softmax}
data: {source: dataset://digits, split: {train: 0.8, validation: 0.2, seed: 1}}
training: {epochs: 10, batchSize: 256, optimizer: {adam: {learningRate: 0.001}}}
distribution: {workers: 1}
`

// forecasts compares the forecast of jobs that never ran in stages with what they take. Before each, the same network
// has run twice in one action.
func forecasts(program string) error {
	var ratios []float64
	for _, how := range [][]string{
		{"--set", "distribution.stages=2"},
		{"--set", "distribution.stages=3"},
		{"--set", "distribution.stages=2", "--set", "training.batchSize=64"},
		{"--set", "distribution.stages=2", "--set", "training.microBatch=64"},
	} {
		ratio, err := forecast(program, how)
		if err != nil {
			return err
		}
		fmt.Printf("%v: the forecast is %.2f of what the job took\n", how, ratio)
		ratios = append(ratios, ratio)
	}
	low, high := math.Inf(1), 0.0
	for _, r := range ratios {
		low, high = min(low, r), max(high, r)
	}
	rig.Figure("pipeline_forecast_ratio", rig.Median(ratios), "likely time over the time taken, of jobs in stages")
	rig.Figure("pipeline_forecast_ratio_min", low, "of these")
	rig.Figure("pipeline_forecast_ratio_max", high, "of these")
	return nil
}

// forecast is the likely time of a job over the time that it takes, in a home of its own.
func forecast(program string, how []string) (float64, error) {
	home, err := os.MkdirTemp("", "bench-forecast-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(home) //nolint:errcheck // a folder for temporary files
	job := filepath.Join(home, "job.yaml")
	if err := os.WriteFile(job, []byte(cutJob), 0o600); err != nil {
		return 0, err
	}
	run := func(args ...string) ([]byte, error) {
		c := exec.Command(program, args...)
		c.Env, c.Stderr = append(os.Environ(), "DISDEL_HOME="+filepath.Join(home, "home")), os.Stderr
		return c.Output()
	}
	submit := []string{"submit", job, "-q"}
	for _, args := range [][]string{
		{"dataset", "add", "digits", "-q"},
		append(submit, "--set", "distribution.stages=1"),
		append(submit, "--set", "distribution.stages=1"), append(submit, how...),
	} {
		if _, err := run(args...); err != nil {
			return 0, fmt.Errorf("disdel %v: %w", args, err)
		}
	}
	text, err := run("history", "show", "@last", "-o", "json")
	if err != nil {
		return 0, err
	}
	var r disdel.Record
	if err := json.Unmarshal(text, &r); err != nil {
		return 0, err
	}
	if r.Plan.Forecast == nil {
		return 0, fmt.Errorf("job %s has no forecast", r.ID)
	}
	return r.Plan.Forecast.Duration.Likely.Seconds() / r.Ended.Sub(r.Created).Seconds(), nil
}
