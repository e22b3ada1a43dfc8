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

// disdel's engine trains a program's network if the job asks for it; auto does so only if nothing speaks against it.
func TestAProgramBecomesLayersWhereTheEnginesAgree(t *testing.T) {
	ctx, store := t.Context(), digitsStore(t)
	nowhere := func(string) (int, int) { return 0, 0 }
	sgd := &disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.1}}
	good := disdel.PythonTranslation{
		Layers: []disdel.Layer{{Kind: "dense", Name: "w", Units: 10}}, Optimizer: sgd, Loss: "mse", Weights: "sha256:cd",
		Steps: 20, Rows: 32, RateFactor: 1, Difference: 1e-6, Speedup: 3,
	}
	differs, slow, refused := good, good, disdel.PythonTranslation{Refused: "no layer like GELU"}
	differs.Difference, slow.Speedup = 0.1, 0.5
	for _, c := range []struct {
		name, backend string
		of            *disdel.PythonTranslation
		layers        bool
		says          string
	}{
		{"agreed", disdel.BackendAuto, &good, true, "3.0 times as fast"},
		{"not asked for", disdel.BackendPython, &good, false, "3.0 times as fast by a step of 32 rows in one thread"},
		{"differs", disdel.BackendAuto, &differs, false, "differ by up to 0.1"},
		{"slower", disdel.BackendAuto, &slow, false, "2 times as long"},
		{"refused", disdel.BackendAuto, &refused, false, "no layer like GELU"},
		{"not compared", disdel.BackendAuto, nil, false, "compares no engines"},
		{"as asked", disdel.BackendNative, &differs, true, "as asked: losses"},
	} {
		job := programJob()
		job.Training.Backend, job.Model.Python.Network.Python.Translation = c.backend, c.of
		r, err := Resolve(ctx, job, store, "job.yaml", nowhere, nil)
		if err != nil || r.Job.Model.Translated() != c.layers || (r.Graph.Custom() == nil) != c.layers ||
			!strings.Contains(strings.Join(r.Notes, "\n"), c.says) {
			t.Errorf("%s: %v, translated %v, notes %q", c.name, err, r.Job.Model.Translated(), r.Notes)
		}
		if !c.layers {
			continue
		}
		if o := r.Job.Training; o.Optimizer.SGD == nil || o.Loss != "mse" || o.Backend != disdel.BackendNative ||
			r.Job.Model.Init.Weights != "sha256:cd" || r.Job.Model.NetworkName() != "net.py" {
			t.Errorf("%s: %+v, weights %s, network %s", c.name, o, r.Job.Model.Init.Weights, r.Job.Model.NetworkName())
		}
		again, err := Resolve(ctx, r.Job, store, "record", nowhere, nil)
		if err != nil || again.Graph == nil || len(again.Notes) > 0 || !again.Job.Model.Translated() {
			t.Errorf("%s, resumed: %v, notes %q", c.name, err, again.Notes)
		}
	}
	job := programJob()
	job.Training.Backend, job.Model.Python.Network.Python.Translation = disdel.BackendNative, &refused
	if _, err := Resolve(ctx, job, store, "job.yaml", nowhere, nil); err == nil || !strings.Contains(err.Error(), "GELU") {
		t.Errorf("native without layers: %v", err)
	}
}
