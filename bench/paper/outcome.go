package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/disdel/disdel"
)

// The environments. Those of the same engine compute the same network on the same rows from the same seed.
const (
	envDefault   = "default"     // one container, its limit found by a try that is not charged
	envMax       = "default-max" // the same at the largest limit there is
	envBare      = "baremetal"   // one process with all processors, without platform, store or limit
	envEnd       = "disdel-end"  // the product, weights averaged once, as the paper has it
	envEpoch     = "disdel"      // the product, weights averaged after every epoch: its default
	envPaper     = "disdel-paper"
	envDefaultTF = "default-tensorflow"   // a Python action with TensorFlow in one container
	envBareTF    = "baremetal-tensorflow" // TensorFlow in one process, mirrored on two devices
)

// outcome is what one run of a job came to.
type outcome struct {
	Environment string       `json:"environment"`
	Job         string       `json:"job"`
	Turn        int          `json:"turn"`
	Beside      int          `json:"beside,omitempty"` // other jobs that ran at the same time
	Passed      bool         `json:"passed"`
	Why         string       `json:"why,omitempty"` // it did not
	Wall        float64      `json:"wallS"`
	Action      disdel.Bytes `json:"actionBytes"`             // peak of the action that needed the most
	Sum         disdel.Bytes `json:"sumBytes"`                // of all train actions that ran at once
	Started     disdel.Bytes `json:"startedBytes,omitempty"`  // resident before anything of the job was there
	Prepared    disdel.Bytes `json:"preparedBytes,omitempty"` // when the data and the network were
	// reading data and building the network, the slowest action's
	Prepare     float64      `json:"prepareS"`
	Compute     float64      `json:"computeS"`
	Failed      int          `json:"failed"`            // activations
	Lost        float64      `json:"lostS"`             // that they ran
	Seen        []float64    `json:"seen,omitempty"`    // training accuracy by epoch
	HeldOut     *float64     `json:"heldOut,omitempty"` // accuracy
	Workers     int          `json:"workers,omitempty"`
	Limit       disdel.Bytes `json:"limitBytes,omitempty"`
	Activations []activation `json:"activations,omitempty"`
	begun       time.Time
}

// activation is one of an outcome's, for a chart of who ran when.
type activation struct {
	Name  string  `json:"name"`
	Start float64 `json:"startS"` // after the job's begin
	End   float64 `json:"endS"`
	Cold  bool    `json:"cold,omitempty"`
}

// ofRecord is what a job of the service came to.
func ofRecord(env string, t task, turn int, rec *disdel.Record, begun time.Time, wall time.Duration) outcome {
	o := outcome{
		Environment: env, Job: t.id, Turn: turn, Passed: rec.Status == disdel.StatusSucceeded, Wall: wall.Seconds(),
		Failed: rec.Losses.Attempts, Lost: rec.Losses.Duration.Seconds(), Workers: rec.Plan.Workers, begun: begun,
	}
	if rec.Failure != nil {
		o.Why = rec.Failure.Error()
	}
	train, _ := rec.Plan.Action(disdel.TaskTrain)
	o.Limit = train.Limits.Memory
	peaks, spent := map[int]disdel.Bytes{}, map[int]map[string]float64{}
	for i := range rec.Activations {
		a := &rec.Activations[i]
		from := a.Start.Sub(begun).Seconds()
		o.Activations = append(o.Activations, activation{a.Invocation.ID, from, from + a.Duration.Seconds(), a.Cold})
		if a.Task != disdel.TaskTrain {
			continue
		}
		peaks[a.Member] = max(peaks[a.Member], a.Peak)
		if spent[a.Member] == nil {
			spent[a.Member] = map[string]float64{}
		}
		for phase, took := range a.Phases {
			spent[a.Member][phase] += took.Seconds()
		}
	}
	o.count(peaks, spent, rec.Plan.Parallel)
	o.Seen = curve(rec)
	if rec.Plan.HeldOut > 0 && o.Passed {
		o.HeldOut = new(rec.Accuracy)
	}
	return o
}

// count sums up what the workers needed, of whom so many ran at once.
func (o *outcome) count(peaks map[int]disdel.Bytes, spent map[int]map[string]float64, parallel int) {
	var all []disdel.Bytes
	for _, p := range peaks {
		all = append(all, p)
	}
	slices.Sort(all)
	slices.Reverse(all)
	for i, p := range all {
		if o.Action = max(o.Action, p); i < max(1, parallel) {
			o.Sum += p
		}
	}
	for _, by := range spent {
		o.Prepare, o.Compute = max(o.Prepare, by["load"]+by["fetch"]), max(o.Compute, by["compute"])
	}
}

// curve is the accuracy of the training rows by epoch.
func curve(rec *disdel.Record) (out []float64) {
	for i := range rec.Rounds {
		r := &rec.Rounds[i]
		switch {
		case len(r.Trained) > 0:
			for _, e := range r.Trained {
				if e.Accuracy != nil {
					out = append(out, *e.Accuracy)
				}
			}
		case r.TrainAccuracy != nil:
			out = append(out, *r.TrainAccuracy)
		}
	}
	return out
}

// String is a line for whoever watches the bench.
func (o outcome) String() string {
	how := "passed"
	if !o.Passed {
		how = "FAILED: " + o.Why
	}
	return fmt.Sprintf("  %-22s %-12s turn %d: %.1f s, %d MB an action, %d MB at once, %s", o.Environment, o.Job, o.Turn+1,
		o.Wall, o.Action.MB(), o.Sum.MB(), how)
}
