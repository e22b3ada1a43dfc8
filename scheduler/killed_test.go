package scheduler

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/disdel/disdel"
)

// killedAt is a drawn train action that was killed at the ceiling of its job, and the plan that it was of.
func killedAt(t *testing.T, draw *rand.Rand) (RemedyInput, disdel.Bytes) {
	t.Helper()
	in := wide(t)
	in.Platform.MinMemory = disdel.MB
	in.Job.Training.BatchSize = 1 << (2 + draw.IntN(8))
	workers := 1 + draw.IntN(4)
	in.Job.Distribution.Workers = workers
	p, err := NewPlan(in)
	if err != nil {
		t.Fatal(err)
	}
	if draw.IntN(2) == 0 {
		in.Job.Distribution.Workers = 0
	}
	train, _ := p.Action(disdel.TaskTrain)
	in.Platform.MaxMemory = train.Limits.Memory
	p.Platform = in.Platform
	a := disdel.Activation{Outcome: disdel.OutcomeOutOfMemory}
	a.Task, a.Limits, a.Estimate = disdel.TaskTrain, train.Limits, train.Estimate.Total
	need, _ := Memory(a, MemoryFactor)
	return RemedyInput{Activation: a, Job: in.Job, Plan: p, Planned: &in}, need
}

// An action was killed at the ceiling and needs more than its estimate. Its job goes on with a planned batch or number
// of workers that fits, or ends if there is none. Advice finds the same.
func TestAKilledActionGoesOnWithWhatWasPlannedAndFits(t *testing.T) {
	draw := rand.New(rand.NewPCG(31, 7))
	went, refused := 0, 0
	for range 80 {
		in, need := killedAt(t, draw)
		r := FindRemedy(in)
		ceiling, times := in.Plan.Platform.MaxMemory, float64(need)/float64(in.Activation.Estimate)
		k := KilledAction{Task: disdel.TaskTrain, Need: need, Batch: in.Job.Training.BatchSize, Workers: in.Plan.Workers}
		changes := FitKilled(*in.Planned, k, ceiling)
		if !r.Retry {
			refused++
			if slices.ContainsFunc(changes, func(c Change) bool {
				return len(c.Set) == 1 && strings.HasPrefix(c.Set[0], "training.batchSize=")
			}) {
				t.Errorf("%s, and a smaller batch fits: %v", r.Why, changes)
			}
			continue
		}
		went++
		again := *in.Planned
		again.Job = ApplySetting(in.Job, disdel.Setting{Workers: max(in.Plan.Workers, r.Workers)}, r.BatchSize)
		again.Job.Training.StepMemory = r.StepMemory
		again.Job.Resources.MaxMemory, again.Job.Distribution.Aggregation.FanIn = 0, 0
		p, err := NewPlan(again)
		if err != nil {
			t.Fatal(err)
		}
		train, _ := p.Action(disdel.TaskTrain)
		if got := scaled(train.Estimate.Total, times); got > ceiling+ceiling/100 {
			t.Errorf("%s needs %v, above %v", r.Why, got, ceiling)
		}
	}
	if went == 0 || refused == 0 {
		t.Errorf("%d went on, %d were refused", went, refused)
	}
}

// killedDeep is a train action of a job that was planned, and that was killed for memory below the platform's maximum.
func killedDeep(t *testing.T, in PlanInput) RemedyInput {
	t.Helper()
	in.Platform.MaxMemory = 4 * disdel.GB
	p, err := NewPlan(in)
	if err != nil {
		t.Fatal(err)
	}
	train, _ := p.Action(disdel.TaskTrain)
	a := disdel.Activation{Outcome: disdel.OutcomeOutOfMemory}
	a.Task, a.Limits, a.Estimate = disdel.TaskTrain, train.Limits, train.Estimate.Total
	return RemedyInput{Activation: a, Job: in.Job, Plan: p, Planned: &in}
}

// A killed train action gets steps that fit its limit by a corrected estimate. If such a step is killed too, the next
// one needs less.
func TestAKilledActionSavesMemoryInItsStepsBeforeItGetsMore(t *testing.T) {
	in := killedDeep(t, deep(t, chain(8, 24, false)))
	need, _ := Memory(in.Activation, MemoryFactor)
	times := float64(need) / float64(in.Activation.Estimate)
	var needed []disdel.Bytes
	for range 2 {
		r := FindRemedy(in)
		if !r.Retry || r.Limits != in.Activation.Limits || r.StepMemory == (disdel.StepMemory{}) || r.BatchSize > 0 {
			t.Fatalf("%+v", r)
		}
		again := *in.Planned
		again.Job.Training.StepMemory = r.StepMemory
		p, err := NewPlan(again)
		if err != nil {
			t.Fatal(err)
		}
		train, _ := p.Action(disdel.TaskTrain)
		needed = append(needed, train.Estimate.Total)
		if got := scaled(train.Estimate.Total, times); got > r.Limits.Memory {
			t.Errorf("%s: it needs %v", r.Why, got)
		}
		if a := r.Adjustment; a.Field != disdel.FieldStepMemory || a.To.Memory > r.Limits.Memory || a.From.Memory != need {
			t.Errorf("%+v", a)
		}
		in.Plan, in.Job.Training.StepMemory = p, r.StepMemory // as the next stage of the job has it
	}
	if needed[1] >= needed[0] {
		t.Errorf("the second remedy needs %v, the first %v", needed[1], needed[0])
	}
}

// Ways that change the results come only when no more memory is to be had, and with training.fit none none comes.
func TestMoreMemoryComesBeforeOtherResults(t *testing.T) {
	norms := deep(t, chain(8, 24, true))
	norms.Job.Training.Recompute = disdel.RecomputeNone
	if r := FindRemedy(killedDeep(t, norms)); r.Adjustment == nil || r.Adjustment.Field != disdel.FieldMemory {
		t.Errorf("batch norms: %+v", r)
	}
	ceiling := killedDeep(t, norms)
	ceiling.Job.Resources.MaxMemory = ceiling.Activation.Limits.Memory
	if r := FindRemedy(ceiling); r.StepMemory.MicroBatch == 0 {
		t.Errorf("batch norms at the ceiling: %+v", r)
	}
	none := deep(t, chain(8, 24, false))
	none.Job.Training.Fit = disdel.FitNone
	if r := FindRemedy(killedDeep(t, none)); r.Adjustment == nil || r.Adjustment.Field != disdel.FieldMemory {
		t.Errorf("training.fit none: %+v", r)
	}
}
