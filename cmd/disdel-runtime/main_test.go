package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/jobfile"
	"github.com/disdel/disdel/service"
)

const job = `
apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: digits-cnn}
model: {name: digits-cnn}
data: {source: "dataset://digits", split: {train: 0.8, validation: 0.2, seed: 1}}
training: {epochs: 2, batchSize: 32, optimizer: {adam: {learningRate: 0.002}}}
`

// submit runs a job whose actions are processes of this package's program.
func submit(t *testing.T, s *service.Service, set ...string) disdel.Record {
	t.Helper()
	file, err := jobfile.Parse("job.yaml", []byte(job), set)
	if err != nil {
		t.Fatal(err)
	}
	run, err := s.Submit(t.Context(), service.Request{Job: file.Job})
	if err != nil {
		t.Fatal(err)
	}
	record, _ := run.Wait(t.Context()) // a failed job's error is in its record
	return record
}

// The embedded platform trains with the small program as with the whole one; what only the whole one computes is
// refused by name.
func TestTheSmallRuntimeTrainsAJob(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and trains")
	}
	program := filepath.Join(t.TempDir(), "disdel-runtime")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s, err := service.Open(t.Context(), service.Config{Home: t.TempDir(), Program: program})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.AddDigits(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := submit(t, s); r.Status != disdel.StatusSucceeded {
		t.Errorf("%v: %v", r.Status, r.Failure)
	}
	r := submit(t, s, "training.backend=gorgonia")
	if r.Failure == nil || !strings.Contains(r.Failure.Error(), `there is no backend "gorgonia"`) {
		t.Errorf("%v: %v", r.Status, r.Failure)
	}
}

func TestItSaysWhatItIs(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"version"}, &out); err != nil || out.String() != "disdel-runtime unknown\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
	for _, args := range [][]string{{"train"}, {"--listen"}, {"runtime", "--port", "1"}} {
		if err := run(t.Context(), args, &out); disdel.KindOf(err) != disdel.Invalid {
			t.Errorf("%q: %v", args, err)
		}
	}
}
