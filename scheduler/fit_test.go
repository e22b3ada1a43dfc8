package scheduler

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/disdel/disdel"
)

// What the bisection rests on: the memory of an action never falls when the batch grows, and never grows with the
// number of workers.
func TestMemoryIsMonotone(t *testing.T) {
	base := wide(t)
	total := func(t *rapid.T, batch, workers int) disdel.Bytes {
		in := WithoutMemoryLimits(base)
		in.Job.Training.BatchSize, in.Job.Distribution.Workers = batch, workers
		p, err := NewPlan(in)
		if err != nil {
			t.Fatal(err)
		}
		train, _ := p.Action(disdel.TaskTrain)
		return train.Estimate.Total
	}
	rapid.Check(t, func(t *rapid.T) {
		batch, workers := rapid.IntRange(1, 300).Draw(t, "batch"), rapid.IntRange(1, 20).Draw(t, "workers")
		more := rapid.IntRange(1, 100).Draw(t, "more")
		here := total(t, batch, workers)
		if there := total(t, batch+more, workers); there < here {
			t.Fatalf("batch %d takes %d, and %d takes %d", batch, here, batch+more, there)
		}
		if there := total(t, batch, workers+more); there > here {
			t.Fatalf("%d workers take %d, and %d take %d", workers, here, workers+more, there)
		}
	})
}

// The answers are those of trying everything.
func TestFitMemoryAgreesWithTryingAll(t *testing.T) {
	in := wide(t)
	in.Data.Train, in.Data.SampleSize, in.Job.Training.BatchSize = 2000, 40*disdel.KB, 30
	in.Platform.MinMemory, in.Platform.Concurrent = disdel.MB, 5
	for limit := 60 * disdel.MB; limit < 180*disdel.MB; limit += 12 * disdel.MB {
		s := newSearch(in, limit)
		largest, fewest, given, same := 0, 0, 0, 0
		for batch := 1; batch <= in.Data.Train/leastSteps; batch++ {
			for workers := in.Platform.Concurrent; workers >= 1; workers-- {
				if s.point(batch, workers) == nil {
					continue
				}
				if largest, fewest = batch, workers; batch == 30 {
					given = workers
				}
				if workers == 4 {
					same = batch
				}
			}
		}
		f := FitMemory(in, limit, 4)
		got := [4]int{}
		if f.Largest != nil {
			got[0], got[1] = f.Largest.BatchSize, f.Largest.Workers
		}
		if f.Given != nil {
			got[2] = f.Given.Workers
		}
		if f.SameWorkers != nil {
			got[3] = f.SameWorkers.BatchSize
		}
		if want := [4]int{largest, fewest, given, same}; got != want {
			t.Errorf("%v: largest, fewest, given, same: %v, want %v", limit, got, want)
		}
		if f.Fits() != (f.Least <= limit) || (f.Given != nil) != (f.LeastGiven <= limit) {
			t.Errorf("%v: least %v and %v, fits %v", limit, f.Least, f.LeastGiven, f.Fits())
		}
	}
}

// Much memory is no reason for an epoch of one step: only the job's own batch is larger than a tenth of the rows.
func TestFitMemoryLeavesSteps(t *testing.T) {
	in := wide(t)
	in.Data.Train = 200
	for batch, want := range map[int]int{8: 20, 50: 50} {
		in.Job.Training.BatchSize = batch
		if f := FitMemory(in, disdel.GB, 2); f.Largest == nil || f.Largest.BatchSize != want ||
			f.SameWorkers.BatchSize != want {
			t.Errorf("a job's batch of %d: %+v and %+v, want %d rows", batch, f.Largest, f.SameWorkers, want)
		}
	}
}

// A platform that gives no less than its minimum fits nothing below it.
func TestFitMemoryKnowsTheMinimum(t *testing.T) {
	if f := FitMemory(wide(t), 100*disdel.MB, 2); f.Fits() || f.Least != 128*disdel.MB {
		t.Errorf("%+v", f)
	}
}

// apply reads a change as --set would.
func apply(t *testing.T, in PlanInput, sets []string) PlanInput {
	t.Helper()
	for _, set := range sets {
		name, value, _ := strings.Cut(set, "=")
		n := 0
		if strings.HasPrefix(name, "training.batchSize") || strings.HasPrefix(name, "distribution.workers") ||
			name == "training.microBatch" || name == "resources.memory" {
			if _, err := fmt.Sscanf(value, "%d", &n); err != nil {
				t.Fatal(err)
			}
		}
		switch name {
		case "training.batchSize":
			in.Job.Training.BatchSize = n
		case "distribution.workers":
			in.Job.Distribution.Workers = n
		case "resources.memory":
			in.Job.Resources.Memory = disdel.Bytes(n) * disdel.MB
		case "training.microBatch":
			in.Job.Training.MicroBatch = n
		case "training.recompute":
			in.Job.Training.Recompute = disdel.Recompute(value)
		case "training.optimizerState":
			in.Job.Training.StateFormat = disdel.StateFormat(value)
		case "data.keep":
			in.Job.Data.Keep = value
		case "training.precision":
			in.Job.Training.Precision = disdel.Precision(value)
		case "training.optimizer":
			in.Job.Training.Optimizer = disdel.Optimizer{SGD: &disdel.SGD{LearningRate: plainRate}}
		default:
			t.Fatalf("%q", set)
		}
	}
	return in
}

// Every change that is offered makes the job fit, with nothing else changed; limits are those that matter, largest
// first.
func TestToFitLess(t *testing.T) {
	in := wide(t)
	in.Data.SampleSize, in.Platform.MinMemory = 200*disdel.KB, 64*disdel.MB
	in.Job.Data.Keep = disdel.KeepMemory
	for _, c := range []struct {
		max, memory disdel.Bytes
		want        string
	}{
		{512 * disdel.MB, 0, "256MB 128MB 64MB"},
		{300 * disdel.MB, 0, "300MB the platform's maximum 256MB 128MB"},
		{4 * disdel.GB, 4 * disdel.GB, "2048MB 1024MB 512MB"},
	} {
		in.Platform.MaxMemory, in.Job.Resources.Memory = c.max, c.memory
		in.Platform.Pool = 0
		p, err := NewPlan(in)
		if err != nil {
			if p, err = NewPlan(WithoutMemoryLimits(in)); err != nil {
				t.Fatal(err)
			}
		}
		var limits []string
		for _, s := range SmallerLimits(in, p) {
			limits = append(limits, fmt.Sprintf("%dMB", s.Limit.MB()))
			if s.Whose != "" {
				limits = append(limits, s.Whose)
			}
			if len(s.Changes) == 0 && s.Least <= s.Limit {
				t.Errorf("nothing for %v, and %v would do", s.Limit, s.Least)
			}
			for _, change := range s.Changes {
				p, err := NewPlan(apply(t, in, change.Set))
				if most, _ := largestLimit(p); err != nil || most > s.Limit {
					t.Errorf("%v for %v: %v, %v", change.Set, s.Limit, most, err)
				}
			}
		}
		if got := strings.Join(limits, " "); got != c.want {
			t.Errorf("limits %s, want %s", got, c.want)
		}
	}
}

// A job at the least that the platform gives has nothing to save.
func TestNothingIsLessThanTheMinimum(t *testing.T) {
	in := wide(t)
	in.Data.SampleSize = disdel.KB
	p, err := NewPlan(in)
	if got := SmallerLimits(in, p); err != nil || len(got) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

// Plain gradient descent is offered to those who have moments to give up, and only to them.
func TestOptimizerIsAChange(t *testing.T) {
	const plain = "training.optimizer={sgd: {learningRate: 0.01}}"
	s := newSearch(WithoutMemoryLimits(wide(t)), boundless)
	s.in.Platform.MinMemory = disdel.MB
	// A batch at which the moments of so small a network make a whole megabyte's difference.
	limit := func(s search, batch int) disdel.Bytes {
		p := s.point(batch, 40)
		train, _ := p.Plan.Action(disdel.TaskTrain)
		return train.Limits.Memory
	}
	batch := 64
	for limit(s.plain(), batch) == limit(s, batch) {
		batch++
	}
	s.in.Job.Training.BatchSize, s.in.Job.Distribution.Workers, s.limit = batch, 40, limit(s.plain(), batch)
	s.asked = s.in.Job
	offered := func(c Change) bool { return slices.Equal(c.Set, []string{plain}) }
	if got := s.changes(40); !slices.ContainsFunc(got, offered) {
		t.Errorf("adam: %v", got)
	}
	s = s.plain()
	s.asked, s.limit = s.in.Job, s.limit-disdel.MB
	if got := s.changes(40); slices.ContainsFunc(got, func(c Change) bool { return slices.Contains(c.Set, plain) }) {
		t.Errorf("sgd: %v", got)
	}
}

// bf16 is offered where activations are what is too much, alone and with what is not enough alone, to jobs whose engine
// has it and that do not use it.
func TestPrecisionIsAChange(t *testing.T) {
	const short = "training.precision=bf16"
	offered := func(c Change) bool { return slices.Contains(c.Set, short) }
	s := newSearch(WithoutMemoryLimits(wide(t)), boundless)
	s.in.Platform.MinMemory, s.in.Job.Distribution.Workers = disdel.MB, 4
	s.in.Job.Training.BatchSize = 1000
	s.asked = s.in.Job
	limit := func(s search, batch int) disdel.Bytes {
		p := s.point(batch, 4)
		train, _ := p.Plan.Action(disdel.TaskTrain)
		return train.Limits.Memory
	}
	s.limit = limit(s.short(), 1000)
	if whole := limit(newSearch(s.in, boundless), 1000); whole <= s.limit {
		t.Fatalf("bf16 takes %v, and float32 %v", s.limit, whole)
	}
	got := s.changes(4)
	if !slices.ContainsFunc(got, func(c Change) bool { return slices.Equal(c.Set, []string{short}) }) {
		t.Errorf("not alone: %v", got)
	}
	for name, change := range map[string]func(*PlanInput){
		"bf16":     func(in *PlanInput) { in.Job.Training.Precision = disdel.PrecisionBF16 },
		"a device": func(in *PlanInput) { in.Job.Training.Backend = disdel.BackendCUDA },
		"gorgonia": func(in *PlanInput) { in.Job.Training.Backend = disdel.BackendGorgonia },
	} {
		other := s
		change(&other.in)
		other.asked = other.in.Job
		if slices.ContainsFunc(other.changes(4), offered) {
			t.Errorf("%s: offered", name)
		}
	}
}
