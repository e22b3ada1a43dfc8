package service

import (
	"cmp"
	"slices"

	"github.com/disdel/disdel"
)

// learnMemory replaces the memory of a program that can be neither traced nor probed by the highest peaks that its
// earlier jobs measured at each batch. Without such peaks nothing changes.
func learnMemory(of *disdel.CustomNetwork, same []disdel.Record) {
	if of == nil || of.Python == nil || of.Python.Basis != disdel.MemoryGiven {
		return
	}
	p := of.Python
	p.Factor = cmp.Or(p.Factor, 1)
	known := map[int]disdel.PythonMemory{}
	for i := range same {
		r := &same[i]
		train := ownPeak(r, disdel.TaskTrain, p.Factor)
		if train == 0 {
			continue
		}
		batch := r.Plan.WorkerBatch(&r.Job)
		m := known[batch]
		infer := cmp.Or(ownPeak(r, disdel.TaskEvaluate, p.Factor), train)
		known[batch] = disdel.PythonMemory{Batch: batch, Train: max(m.Train, train), Infer: max(m.Infer, infer)}
	}
	for _, m := range known {
		p.Memory, p.Basis = append(p.Memory, m), disdel.MemoryLearned
	}
	slices.SortFunc(p.Memory, func(a, b disdel.PythonMemory) int { return a.Batch - b.Batch })
}

// ownPeak is what the actions of a task took at their highest peak besides all that the plan knew exactly, divided by
// the allocator's factor; 0: nothing was measured.
func ownPeak(r *disdel.Record, task disdel.Task, factor float64) (own disdel.Bytes) {
	plan, _ := r.Plan.Action(task)
	e, ratio := plan.Estimate, cmp.Or(plan.Estimate.Ratio, 1)
	exact := float64(e.Training-e.Activations+e.Package+e.Shard+e.Model) / ratio
	for _, a := range r.Activations {
		if a.Task == task && a.Outcome == disdel.OutcomeSuccess && a.Peak > 0 {
			own = max(own, 1, disdel.Bytes((float64(a.Peak)-exact)/factor))
		}
	}
	return own
}
