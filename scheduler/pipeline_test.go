package scheduler

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
)

// The cuts have the least of the largest sums: those that trying everything finds.
func TestCutsAreTheMostEven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		need := append([]float64{0}, rapid.SliceOfN(rapid.Float64Range(0, 9), 3, 8).Draw(t, "need")...)
		var cuts []int
		for at := 2; at < len(need); at++ {
			cuts = append(cuts, at)
		}
		n := rapid.IntRange(1, len(cuts)+1).Draw(t, "stages")
		largest := func(ends []int) (out float64) {
			for i := range len(ends) - 1 {
				sum := 0.0
				for _, v := range need[ends[i]:ends[i+1]] {
					sum += v
				}
				out = max(out, sum)
			}
			return out
		}
		var least func(ends []int) float64
		least = func(ends []int) float64 {
			if len(ends) == n {
				return largest(append(slices.Clone(ends), len(need)))
			}
			best := 1e9
			for _, c := range cuts {
				if c > ends[len(ends)-1] {
					best = min(best, least(append(slices.Clone(ends), c)))
				}
			}
			return best
		}
		if got, want := largest(cutEvenly(cuts, need, n)), least([]int{1}); got > want+1e-9 {
			t.Fatalf("%v, want %v", got, want)
		}
	})
}

// denseChain is a job whose network is a chain of wide layers.
func denseChain(t *testing.T) PlanInput {
	t.Helper()
	in := wide(t)
	b := model.NewBuilder("chain", model.Shape{1, 8, 8})
	x := b.Flatten("flatten", 0)
	for i := range 6 {
		x = b.Same(fmt.Sprintf("act%d", i), b.Dense(fmt.Sprintf("fc%d", i), x, 2000), model.OpReLU)
	}
	b.Same("softmax", b.Dense("out", x, 10), model.OpSoftmax)
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	in.Graph = g
	return in
}

// With stages each replica has as many actions, with its rows, and a level of the tree that joins them. Each stage
// takes a part of the memory.
func TestStagesShareTheMemory(t *testing.T) {
	in := WithoutMemoryLimits(denseChain(t))
	in.Job.Distribution.Workers = 2
	whole, err := NewPlan(in)
	if err != nil {
		t.Fatal(err)
	}
	in.Job.Distribution.Stages = 3
	p, err := NewPlan(in)
	if err != nil {
		t.Fatal(err)
	}
	one, _ := whole.Action(disdel.TaskTrain)
	three, _ := p.Action(disdel.TaskTrain)
	if s := p.Shards; p.Workers != 6 || p.Replicas() != 2 || len(s) != 6 || s[0] != s[2] || s[2] == s[3] {
		t.Errorf("%d workers, %v", p.Workers, p.Shards)
	}
	if l := p.Levels; len(l) != 2 || !l[0].Join || len(l[0].Clusters) != 2 || l[1].Join || l[1].Height != 2 {
		t.Errorf("levels %+v", l)
	}
	if three.Estimate.Training*5 > one.Estimate.Training*3 {
		t.Errorf("a stage takes %v of %v", three.Estimate.Training, one.Estimate.Training)
	}
}

// A job that nothing else makes fit is told how many stages would; stages that do not fit say which is the largest.
func TestStagesAreAHint(t *testing.T) {
	in := denseChain(t)
	in.Suggest, in.Job.Training.Fit = true, disdel.FitNone
	in.Job.Training.Optimizer = disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.1}}
	limits := WithoutMemoryLimits(in)
	limits.Job.Distribution.Stages = 3
	p, err := NewPlan(limits)
	if err != nil {
		t.Fatal(err)
	}
	in.Platform.MaxMemory, _ = largestLimit(p) // an evaluation has the whole network
	in.Platform.MinMemory, in.Job.Resources.MaxMemory = disdel.MB, 0
	if _, err = NewPlan(in); err == nil || !strings.Contains(disdel.AsError(err).Hint, "distribution.stages=") {
		t.Errorf("%v, hint %q", err, disdel.AsError(err).Hint)
	}
	in.Job.Distribution.Stages, in.Platform.MaxMemory = 2, in.Platform.MaxMemory/3
	if _, err = NewPlan(in); err == nil || !strings.Contains(err.Error(), "is the largest: a train action needs") {
		t.Error(err)
	}
}

// A job that is planned again while it runs keeps its replicas: a setting counts train actions.
func TestASettingCountsTheStages(t *testing.T) {
	var job disdel.Job
	job.Distribution.Stages = 3
	if job = ApplySetting(job, disdel.Setting{Workers: 6}, 0); job.Distribution.Workers != 2 {
		t.Errorf("%d workers", job.Distribution.Workers)
	}
}
