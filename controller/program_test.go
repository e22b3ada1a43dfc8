package controller

import (
	"errors"
	"strings"
	"testing"

	"github.com/disdel/disdel"
)

// programJob is a job with a described Python program for the digits.
func programJob() disdel.Job {
	job := disdel.Job{}
	job.Data.Source, job.Training.BatchSize, job.Training.Loss = "dataset://digits", 64, "crossEntropy"
	job.Training.Optimizer.Adam = &disdel.Adam{LearningRate: 0.001}
	job.Model.Python = &disdel.Python{File: "net.py", Network: &disdel.CustomNetwork{
		Name: "net.py:Net", Input: []int{1, 8, 8}, Classes: 10,
		Params: []disdel.CustomParam{{Name: "w", Shape: []int{10, 64}, Trainable: true}},
		Python: &disdel.PythonNetwork{
			Code: "sha256:ab", Entry: "Net", Form: disdel.PythonModule, Factor: 1.2,
			Memory: []disdel.PythonMemory{{Batch: 1, Train: disdel.MB, Infer: disdel.MB}}, Floor: 100 * disdel.MB,
		},
	}}
	return job
}

// A program that nobody has described, or that was described for other data, is refused; so is memory that no process
// takes, which a client of a server may send.
func TestProgramsNeedADescriptionOfTheirData(t *testing.T) {
	ctx, store := t.Context(), digitsStore(t)
	nowhere := func(string) (int, int) { return 0, 0 }
	for says, change := range map[string]func(p *disdel.Python){
		"nobody has described the program net.py": func(p *disdel.Python) { p.Network = nil },
		"inputs of [1 28 28] and 10 classes":      func(p *disdel.Python) { p.Network.Input = []int{1, 28, 28} },
		"inputs of [1 8 8] and 3 classes":         func(p *disdel.Python) { p.Network.Classes = 3 },
		"memory that no process takes":            func(p *disdel.Python) { p.Network.Python.Floor = -1 },
		"by rising batch sizes": func(p *disdel.Python) {
			p.Network.Python.Memory = append(p.Network.Python.Memory, p.Network.Python.Memory...)
		},
	} {
		job := programJob()
		change(job.Model.Python)
		_, err := Resolve(ctx, job, store, "job.yaml", nowhere, nil)
		var faults *disdel.Faults
		if !errors.As(err, &faults) || len(faults.Faults) != 1 || faults.Faults[0].Path != "model.python" ||
			!strings.Contains(faults.Faults[0].Msg, says) {
			t.Errorf("%q: %v", says, err)
		}
	}
	r, err := Resolve(ctx, programJob(), store, "job.yaml", nowhere, nil)
	if err != nil || r.Graph.Custom() == nil || r.Job.Training.Optimizer.Name() != "adam" {
		t.Errorf("a described program: %v, optimiser %q", err, r.Job.Training.Optimizer.Name())
	}
}

// A program's optimiser replaces the job's. The one of a record stays, since policies change its rate.
func TestTheOptimizerOfAProgramReplacesTheJobs(t *testing.T) {
	ctx, store := t.Context(), digitsStore(t)
	nowhere := func(string) (int, int) { return 0, 0 }
	job := programJob()
	job.Distribution.Aggregation.OptimizerState = disdel.StateAverage
	job.Model.Python.Network.Python.Optimizer = &disdel.OwnOptimizer{LearningRate: 0.5, Opaque: true}
	r, err := Resolve(ctx, job, store, "job.yaml", nowhere, nil)
	if o := r.Job.Training.Optimizer; err != nil || o.Name() != "own" || o.Rate() != 0.5 {
		t.Fatalf("%v, optimiser %q with rate %g", err, o.Name(), o.Rate())
	}
	if state := r.Job.Distribution.Aggregation.OptimizerState; state != disdel.StateReset {
		t.Errorf("an opaque state is to %q", state)
	}
	if !strings.Contains(strings.Join(r.Notes, "\n"), "net.py:Net makes its own optimiser") {
		t.Errorf("notes %q", r.Notes)
	}
	again := r.Job
	again.Training.Optimizer = again.Training.Optimizer.WithRate(0.25)
	if r, err = Resolve(ctx, again, store, "record", nowhere, nil); err != nil || r.Job.Training.Optimizer.Rate() != 0.25 ||
		len(r.Notes) > 0 {
		t.Errorf("resumed: %v, rate %g, notes %q", err, r.Job.Training.Optimizer.Rate(), r.Notes)
	}
}
