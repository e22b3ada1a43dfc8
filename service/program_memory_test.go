package service

import (
	"testing"

	"github.com/disdel/disdel"
)

// The peaks of earlier jobs, less what the plan knew exactly, become the memory of a program that nobody could measure.
// The highest peak of a batch counts; failed activations do not.
func TestMemoryOfAnOpaqueProgramIsLearned(t *testing.T) {
	record := func(batch int, peaks ...disdel.Bytes) (r disdel.Record) {
		r.Job.Training.BatchSize = batch
		r.Plan.Actions = []disdel.ActionPlan{{Task: disdel.TaskTrain, Estimate: disdel.Estimate{
			Training: 30 * disdel.MB, Package: 100 * disdel.MB, Shard: 20 * disdel.MB, Method: disdel.MemoryGiven,
		}}}
		for _, peak := range peaks {
			r.Activations = append(r.Activations, disdel.Activation{
				Invocation: disdel.Invocation{Task: disdel.TaskTrain}, Outcome: disdel.OutcomeSuccess, Peak: peak,
			})
		}
		return r
	}
	failed := record(64, 900*disdel.MB)
	failed.Activations[0].Outcome = disdel.OutcomeApplicationError
	past := []disdel.Record{
		record(64, 300*disdel.MB), record(16, 180*disdel.MB, 190*disdel.MB), failed, record(64, 250*disdel.MB),
	}
	described := func(basis string) *disdel.CustomNetwork {
		return &disdel.CustomNetwork{Python: &disdel.PythonNetwork{Basis: basis, Factor: 1.5}}
	}
	c := described(disdel.MemoryGiven)
	learnMemory(c, past)
	p, own := c.Python, func(peak disdel.Bytes) disdel.Bytes { return disdel.Bytes(float64(peak-150*disdel.MB) / 1.5) }
	if p.Basis != disdel.MemoryLearned || len(p.Memory) != 2 ||
		p.Memory[0] != (disdel.PythonMemory{Batch: 16, Train: own(190 * disdel.MB), Infer: own(190 * disdel.MB)}) ||
		p.Memory[1] != (disdel.PythonMemory{Batch: 64, Train: own(300 * disdel.MB), Infer: own(300 * disdel.MB)}) {
		t.Errorf("%s: %+v", p.Basis, p.Memory)
	}
	for basis, past := range map[string][]disdel.Record{disdel.MemoryGiven: {failed}, disdel.MemoryTraced: past} {
		c := described(basis)
		if learnMemory(c, past); c.Python.Basis != basis || len(c.Python.Memory) > 0 {
			t.Errorf("%s became %s: %+v", basis, c.Python.Basis, c.Python.Memory)
		}
	}
}
