package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/bench/rig"
)

// runner runs jobs through the built program, each worker a process of its own, in a home of its own.
type runner struct{ rig.Program }

// newRunner makes a home with the digits in it, which knows of no job.
func newRunner(o options) (*runner, error) {
	home, err := os.MkdirTemp("", "disdel-policies-")
	if err != nil {
		return nil, err
	}
	r := &runner{rig.Program{Path: o.program, Home: home, Longest: o.left()}}
	if _, err := r.Run(nil, "dataset", "add", "digits", "-q"); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

func (r *runner) close() error { return os.RemoveAll(r.Home) }

// trial is a job of a runner's; what is zero is left out.
type trial struct {
	name, model string
	epochs      int
	batch       int
	optimizer   string // as a job file has it
	workers     int    // 0: auto
	policy      string
	sync        string
	moments     string // what becomes of them when a round ends
	seed        int
	evaluate    int     // rounds from one evaluation to the next; 0: 1
	target      float64 // held-out accuracy that ends it; 0: none
}

func (r *runner) file(t trial) []byte {
	workers := "auto"
	if t.workers > 0 {
		workers = fmt.Sprint(t.workers)
	}
	sync, policy, moments := t.sync, t.policy, t.moments
	if sync == "" {
		sync = "epoch"
	}
	if policy == "" {
		policy = disdel.PolicyStatic
	}
	if moments == "" {
		moments = string(disdel.StateReset)
	}
	stop := ""
	if t.target > 0 {
		stop = fmt.Sprintf("\n  earlyStop: {metric: accuracy, target: %g}", t.target)
	}
	return fmt.Appendf(nil, `apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: %s}
model: {name: %s, init: {seed: %d}}
data: {source: "dataset://digits", split: {train: 0.8, validation: 0.2, seed: %d}}
training:
  epochs: %d
  batchSize: %d
  optimizer: %s
  validateEvery: %d%s
distribution:
  workers: %s
  policy: %s
  maxWorkers: 4
  sync: %s
  aggregation: {optimizer: %s}
`, t.name, t.model, t.seed+1, t.seed+1, t.epochs, t.batch, t.optimizer, max(1, t.evaluate), stop, workers, policy,
		sync, moments)
}

// job runs a trial and returns its record.
func (r *runner) job(t trial) (disdel.Record, error) {
	return r.Job(r.file(t), "submit", "-")
}

// seconds is how long a trial's rounds take, the median of its runs.
func (r *runner) seconds(t trial, runs int) (float64, error) {
	var all []float64
	for range runs {
		rec, err := r.job(t)
		if err != nil {
			return 0, err
		}
		all = append(all, whole(&rec))
	}
	return rig.Median(all), nil
}

// evaluated is a held-out accuracy, and the time from the first round's start until its round was over.
type evaluated struct {
	accuracy float64
	at       time.Duration
}

func evaluations(rec *disdel.Record) (out []evaluated) {
	at := time.Duration(0)
	for i := range rec.Rounds {
		at += time.Duration(rec.Rounds[i].Duration)
		if a := rec.Rounds[i].Accuracy; a != nil {
			out = append(out, evaluated{*a, at})
		}
	}
	return out
}

// whole is how long a job's rounds took.
func whole(rec *disdel.Record) (sum float64) {
	for i := range rec.Rounds {
		sum += rec.Rounds[i].Duration.Seconds()
	}
	return sum
}
