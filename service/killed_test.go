package service

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/race"
)

// ballast is an environment variable with the bytes that a container's process holds beside its work.
const ballast = "DISDEL_TEST_BALLAST"

// held keeps the ballast of this process in memory.
var held []byte

// hold takes so many megabytes and touches each page, so that they count.
func hold(megabytes int) {
	held = make([]byte, megabytes<<20)
	for i := 0; i < len(held); i += os.Getpagesize() {
		held[i] = 1
	}
}

// heavy is a program that serves actions as this one does, in processes that need more memory than their estimate.
func heavy(t *testing.T, megabytes int) string {
	t.Helper()
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "heavy")
	script := fmt.Sprintf("#!/bin/sh\n%s=%d exec '%s' \"$@\"\n", ballast, megabytes, own)
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// A train action whose process is killed for memory goes on with steps that save memory, within the same limit. The
// record says what changed and why.
func TestAKilledProcessGoesOnInSmallerSteps(t *testing.T) {
	race.SkipMemory(t)
	s, err := Open(t.Context(), Config{Program: heavy(t, 48), Home: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.AddDigits(t.Context()); err != nil {
		t.Fatal(err)
	}
	job := small(t, "distribution.workers=1", "training.epochs=1", "training.batchSize=512")
	job.Model = disdel.Model{Layers: []disdel.Layer{{Kind: "conv", Filters: 64, Kernel: 3, Padding: 1}}}
	for range 16 {
		job.Model.Layers = append(job.Model.Layers, disdel.Layer{Kind: "tanh"})
	}
	job.Model.Layers = append(job.Model.Layers, disdel.Layer{Kind: "globalAvgPool"},
		disdel.Layer{Kind: "dense", Units: 10, Activation: "softmax"})
	run := submit(t, s, job)
	rec, err := run.Wait(t.Context())
	if err != nil || rec.Status != disdel.StatusSucceeded {
		t.Fatalf("%s: %v, %v", rec.Status, rec.Failure, err)
	}
	var killed *disdel.Activation
	for i := range rec.Activations {
		if a := &rec.Activations[i]; a.Task == disdel.TaskTrain && a.Outcome == disdel.OutcomeOutOfMemory {
			killed = a
		}
	}
	if killed == nil {
		t.Fatal("no train action was killed for memory")
	}
	last := rec.Stages[len(rec.Stages)-1]
	if last.StepMemory == (disdel.StepMemory{}) || !strings.Contains(last.Text(), last.StepMemory.String()) {
		t.Errorf("the last stage: %s", last.Text())
	}
	for _, a := range rec.Activations {
		if a.Task == disdel.TaskTrain && a.Limits.Memory > killed.Limits.Memory {
			t.Errorf("%s has %v, and the killed one had %v", a.Invocation.ID, a.Limits.Memory, killed.Limits.Memory)
		}
	}
	t.Log(last.Text())
}
