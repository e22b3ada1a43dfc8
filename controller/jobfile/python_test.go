package jobfile

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
)

const pythonJob = `apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: own}
model:
  python:
    file: net.py
    entry: Net
    requirements: requirements.txt
    arguments: {width: 64, rate: 1.0, small: .5, name: "64", deep: true, none: null, sizes: [1, 2.0], more: {k: -1e-3}}
data: {source: dataset://digits}
training: {epochs: 5}
`

// The program gets 1 where the file has 1, and 1.0 where it has 1.0: also after Print, and from a record.
func TestArgumentsOfAProgramKeepTheirTypes(t *testing.T) {
	const want = `{"deep":true,"more":{"k":-1e-3},"name":"64","none":null,"rate":1.0,"sizes":[1,2.0],"small":0.5,"width":64}`
	file := mustParse(t, pythonJob)
	printed, err := Print(file.Job)
	if err != nil {
		t.Fatal(err)
	}
	again := mustParse(t, string(printed))
	record, err := json.Marshal(file.Job)
	if err != nil {
		t.Fatal(err)
	}
	var read disdel.Job
	if err := json.Unmarshal(record, &read); err != nil {
		t.Fatal(err)
	}
	for name, job := range map[string]disdel.Job{"file": file.Job, "printed": again.Job, "record": read} {
		if text, err := json.Marshal(job.Model.Python.Arguments); err != nil || string(text) != want {
			t.Errorf("%s: %s, %v; want %s", name, text, err, want)
		}
		if d := cmp.Diff(file.Job, job); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	if e := file.Job.Training.Backend; e != disdel.BackendPython {
		t.Errorf("backend %q", e)
	}
}

// A program may ask for disdel's own engine; auto is the default engine for other networks.
func TestTheBackendOfAProgram(t *testing.T) {
	plain := "apiVersion: disdel/v1\nkind: TrainingJob\nmetadata: {name: own}\nmodel: {name: lenet5}\n" +
		"data: {source: dataset://digits}\ntraining: {epochs: 5}\n"
	for _, c := range []struct{ file, backend, want string }{
		{pythonJob, "python", "python"},
		{pythonJob, "native", "native"},
		{pythonJob, "auto", "auto"},
		{plain, "auto", "native"},
	} {
		text := strings.Replace(c.file, "epochs: 5", "epochs: 5, backend: "+c.backend, 1)
		if got := mustParse(t, text).Job.Training.Backend; got != c.want {
			t.Errorf("backend %s becomes %q, want %q", c.backend, got, c.want)
		}
	}
	_, err := Parse("job.yaml", []byte(strings.Replace(plain, "epochs: 5", "epochs: 5, backend: python", 1)), nil)
	if err == nil || !strings.Contains(err.Error(), "only Python programs") {
		t.Errorf("Python trains lenet5: %v", err)
	}
}

// A translated program is printed as the program that it is: submission translates it anew.
func TestPrintOfATranslatedProgram(t *testing.T) {
	job := mustParse(t, strings.Replace(pythonJob, "epochs: 5", "epochs: 5, backend: auto", 1)).Job
	job.Model.Python.Translation = &disdel.PythonTranslation{Weights: "sha256:ab"}
	job.Model.Layers, job.Model.Init.Weights = []disdel.Layer{{Kind: "dense", Units: 10}}, "sha256:ab"
	job.Training.Backend = disdel.BackendNative
	text, err := Print(job)
	if err != nil || strings.Contains(string(text), "sha256") || strings.Contains(string(text), "dense") ||
		!strings.Contains(string(text), "backend: native") {
		t.Errorf("%v\n%s", err, text)
	}
	mustParse(t, string(text))
}

// A record has what submission filled in; printed, it is a job file all the same.
func TestPrintLeavesOutWhatSubmissionFillsIn(t *testing.T) {
	job := mustParse(t, pythonJob).Job
	job.Model.Python.Code, job.Model.Python.Interpreter = "sha256:ab", "/usr/bin/python3"
	job.Training.Optimizer = disdel.Optimizer{Own: &disdel.OwnOptimizer{LearningRate: 0.1}}
	text, err := Print(job)
	if err != nil || strings.Contains(string(text), "sha256") || strings.Contains(string(text), "/usr/bin") ||
		strings.Contains(string(text), "own:") {
		t.Errorf("%v\n%s", err, text)
	}
	mustParse(t, string(text))
}
