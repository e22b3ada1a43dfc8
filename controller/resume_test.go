package controller

import (
	"testing"

	"github.com/disdel/disdel"
)

func TestAChangedJobGoesOnOnlyWhereItsRoundsDo(t *testing.T) {
	spec := func(rounds, epochs, per, batches, batch, workers int) Spec {
		var s Spec
		s.Job.Training.Epochs, s.Job.Training.BatchSize = epochs, batch
		s.Plan = disdel.Plan{Rounds: rounds, Epochs: per, Batches: batches, Workers: workers}
		return s
	}
	epochs, every := spec(4, 4, 1, 0, 16, 2), spec(8, 4, 1, 5, 16, 2)
	for name, c := range map[string]struct {
		was, now Spec
		round    int
		ok       bool
	}{
		"as it was":                       {epochs, epochs, 3, true},
		"more epochs":                     {epochs, spec(9, 9, 1, 0, 16, 2), 3, true},
		"fewer epochs":                    {epochs, spec(3, 3, 1, 0, 16, 2), 3, false},
		"another batch":                   {epochs, spec(4, 4, 1, 0, 8, 2), 3, true},
		"other workers":                   {epochs, spec(4, 4, 1, 0, 16, 3), 3, true},
		"rounds of batches":               {epochs, every, 3, false},
		"epochs instead":                  {every, spec(8, 8, 1, 0, 16, 2), 3, false},
		"in an epoch":                     {every, every, 3, true},
		"in an epoch, another batch":      {every, spec(8, 4, 1, 5, 8, 2), 3, false},
		"in an epoch, other workers":      {every, spec(8, 4, 1, 5, 16, 3), 3, false},
		"in an epoch, other K":            {every, spec(8, 4, 1, 6, 16, 2), 3, false},
		"between epochs, another batch":   {every, spec(8, 4, 1, 5, 8, 2), 4, true},
		"between epochs, more in each":    {every, spec(16, 4, 1, 2, 16, 2), 4, false},
		"more epochs of as many rounds":   {every, spec(12, 6, 1, 5, 16, 2), 5, true},
		"all in one round, from a record": {epochs, spec(1, 4, 4, 0, 16, 2), 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := disdel.Record{ID: "job-1", Job: c.was.Job, Plan: c.was.Plan}
			err := CheckResume(r, c.now, disdel.Checkpoint{Round: c.round})
			if ok := err == nil; ok != c.ok || !ok && disdel.KindOf(err) != disdel.Conflict {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestTheBatchThatFailuresLedToIsKept(t *testing.T) {
	var r disdel.Record
	r.Job.Training.BatchSize = 64
	r.Adjustments = []disdel.Adjustment{
		{Invocation: "round 0/train/1", Field: "memory", From: "64", To: "128MB"},
		{Invocation: "round 0/train/1/attempt 2", Field: "batchSize", From: "64", To: "32"},
		{Invocation: "round 0/evaluate/0", Field: "batchSize", From: "32", To: "16"},
		{Invocation: "round 3/train/0", Field: "batchSize", From: "32", To: "8"},
		{Invocation: "round 3/train/0", Field: "batchSize", From: "50", To: "25"}, // of a batch that somebody has changed since
	}
	if n := Adjusted(r).Training.BatchSize; n != 8 {
		t.Errorf("batch %d, want 8", n)
	}
}
