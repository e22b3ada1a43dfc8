package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/disdel/disdel"
)

// The environments. Those of the same engine compute the same network on the same rows from the same seed.
const (
	envDefault = "default"      // one container, its limit found by a try that is not charged
	envSlot    = "default-slot" // the same with half of the processors: what each of disdel's two containers has
	envMax     = "default-max"  // one container at the largest limit there is
	envSteps   = "fixed-step"   // one container from the start again with more time, until it passes
	envBare    = "baremetal"    // one process with all processors, without platform, store or limit
	envEnd     = "disdel-end"   // the product, weights averaged once, as the paper has it
	envEpoch   = "disdel"       // the product, weights averaged after every epoch: its default
	envPaper   = "disdel-paper" // the same as the paper has it, with its estimator
	// default-max and disdel-end, where each container has a quota of a quarter of the processors
	envMaxSlots  = "default-max-slots"
	envEndSlots  = "disdel-end-slots"
	envDefaultTF = "default-tensorflow"   // a Python action with TensorFlow in one container
	envBareTF    = "baremetal-tensorflow" // TensorFlow in one process, mirrored on a device for each processor
)

// outcome is what one run of a job came to.
type outcome struct {
	Environment string       `json:"environment"`
	Job         string       `json:"job"`
	Data        string       `json:"data"`
	Rows        int          `json:"rows"`
	Epochs      int          `json:"epochs"`
	Batch       int          `json:"batch"`
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
	Pool        disdel.Bytes `json:"poolBytes,omitempty"`   // of figure 11's
	Begin       float64      `json:"beginS,omitempty"`      // of TensorFlow: import, and what the first step took longer
	Expected    *expected    `json:"expected,omitempty"`    // of figure 3's
	Activations []activation `json:"activations,omitempty"` // of figure 11's
	begun       time.Time
}

// expected is what was said of an action's memory before it ran.
type expected struct {
	Low    disdel.Bytes `json:"lowBytes"`
	Likely disdel.Bytes `json:"likelyBytes"`
	High   disdel.Bytes `json:"highBytes"`
	Limit  disdel.Bytes `json:"limitBytes"`
	Paper  disdel.Bytes `json:"paperBytes"` // its Eq. 1 to 5
}

// outcome is the begin of one of a task's.
func (t task) outcome(env string, turn int, begun time.Time) outcome {
	return outcome{
		Environment: env, Job: t.id, Data: t.data, Rows: t.rows, Epochs: t.epochs, Batch: t.batch, Turn: turn, Workers: 1,
		begun: begun,
	}
}

// activation is one of an outcome's, for a chart of who ran when.
type activation struct {
	Name  string  `json:"name"`
	Train bool    `json:"train,omitempty"`
	Start float64 `json:"startS"` // after the job's begin
	Init  float64 `json:"initS,omitempty"`
	End   float64 `json:"endS"`
	Cold  bool    `json:"cold,omitempty"`
}

func activationOf(a *disdel.Activation, begun time.Time) activation {
	from := a.Start.Sub(begun).Seconds()
	return activation{
		a.Invocation.ID, a.Task == disdel.TaskTrain, from, a.InitTime.Seconds(), from + a.Duration.Seconds(), a.Cold,
	}
}

// ofRecord is what a job of the service came to.
func ofRecord(env string, t task, turn int, rec *disdel.Record, begun time.Time, wall time.Duration) outcome {
	o := t.outcome(env, turn, begun)
	o.Passed, o.Wall, o.Workers = rec.Status == disdel.StatusSucceeded, wall.Seconds(), rec.Plan.Workers
	o.Failed, o.Lost = rec.Losses.Attempts, rec.Losses.Duration.Seconds()
	if rec.Failure != nil {
		o.Why = rec.Failure.Error()
	}
	train, _ := rec.Plan.Action(disdel.TaskTrain)
	o.Limit = train.Limits.Memory
	peaks, spent := map[int]disdel.Bytes{}, map[int]map[string]float64{}
	for i := range rec.Activations {
		a := &rec.Activations[i]
		o.Activations = append(o.Activations, activationOf(a, begun))
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
