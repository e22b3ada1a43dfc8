package scheduler

import (
	"errors"
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

// Stages get smaller micro-batches where the plan's own do not fit, also if the job file gives the number of stages. A
// whole batch needs no sum of gradients, and comes last. The job file's own micro-batches stay.
func TestStagesFitBySmallerMicroBatches(t *testing.T) {
	in := denseChain(t)
	b := planBuilder{PlanInput: in}
	seen := func(stages int) (out []int) {
		b.Job.Distribution.Stages = stages
		b.stageWays([]disdel.StateFormat{""}, 64, 0, func(w way) bool {
			if w.stages == 2 && w.memory.Recompute == "" {
				out = append(out, w.memory.MicroBatch)
			}
			return true
		})
		return out
	}
	want := []int{0, 8, 4, 2, 1, 64}
	if got := seen(0); !slices.Equal(got, want) {
		t.Errorf("two stages are tried with micro-batches of %v rows, want %v", got, want)
	}
	if got := seen(2); !slices.Equal(got, want) {
		t.Errorf("given stages are tried with micro-batches of %v rows, want %v", got, want)
	}
	if b.microBatch = 4; !slices.Equal(seen(2), []int{4}) {
		t.Error("the job file's micro-batches do not stay")
	}

	in.Job.Distribution.Stages, in.Job.Training.Optimizer = 3, disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.1}}
	in.Job.Training.MicroBatch = in.Job.Training.BatchSize
	p, err := NewPlan(WithoutMemoryLimits(in))
	if err != nil {
		t.Fatal(err)
	}
	in.Job.Training.MicroBatch = 0
	in.Platform.MaxMemory, _ = largestLimit(p)
	in.Platform.MinMemory, in.Job.Resources.MaxMemory = disdel.MB, 0
	if p, err = NewPlan(in); err != nil || len(p.Stages) != 3 {
		t.Errorf("%d stages in %v: %v", len(p.Stages), in.Platform.MaxMemory, err)
	}
}

// Where a copy of the weights does not fit beside the engine, an evaluation reads them in blocks. Else it does not.
func TestAnEvaluationReadsWeightsInBlocksWhereACopyDoesNotFit(t *testing.T) {
	in := denseChain(t)
	in.Job.Training.Optimizer, in.Job.Distribution.Stages = disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.1}}, 3
	in.Platform.MinMemory, in.Job.Resources.MaxMemory = disdel.MB, 0
	p, err := NewPlan(WithoutMemoryLimits(in))
	if err != nil {
		t.Fatal(err)
	}
	whole, _ := p.Action(disdel.TaskEvaluate)
	train, _ := p.Action(disdel.TaskTrain)
	if whole.Estimate.InBlocks || whole.Limits.Memory <= train.Limits.Memory {
		t.Fatalf("without limits: %+v", whole.Estimate)
	}
	in.Platform.MaxMemory = whole.Limits.Memory - disdel.MB
	if p, err = NewPlan(in); err != nil {
		t.Fatal(err)
	}
	a, _ := p.Action(disdel.TaskEvaluate)
	if !a.Estimate.InBlocks || a.Estimate.Total >= whole.Estimate.Total ||
		!strings.Contains(strings.Join(p.Reasons, "\n"), "evaluate: the action reads the weights in blocks") {
		t.Errorf("%+v\n%s", a.Estimate, strings.Join(p.Reasons, "\n"))
	}
}

// An evaluation computes fewer rows at a time where the memory of a batch does not fit, and only there.
func TestAnEvaluationComputesFewerRowsWhereABatchDoesNotFit(t *testing.T) {
	in := wide(t)
	conv := disdel.Layer{Kind: "conv", Filters: 64, Kernel: 3, Padding: 1, Stride: 1, Activation: "relu"}
	var err error
	in.Graph, err = model.Build(disdel.Network{
		Input: []int{1, 32, 32}, Classes: 10,
		Layers: []disdel.Layer{conv, conv, {Kind: "flatten"}, {Kind: "dense", Units: 10, Activation: "softmax"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	in.Data.Train, in.Data.HeldOut, in.Data.SampleSize, in.Job.Distribution.Workers = 1000, 1000, disdel.KB, 1
	in.Job.Training.BatchSize, in.Job.Training.MicroBatch = 64, 2
	in.Platform.MinMemory, in.Job.Resources.MaxMemory = disdel.MB, 0
	p, err := NewPlan(WithoutMemoryLimits(in))
	if err != nil {
		t.Fatal(err)
	}
	batch, _ := p.Action(disdel.TaskEvaluate)
	train, _ := p.Action(disdel.TaskTrain)
	if batch.Estimate.Rows != 0 || batch.Limits.Memory <= train.Limits.Memory {
		t.Fatalf("without limits: %+v", batch.Estimate)
	}
	in.Platform.MaxMemory = train.Limits.Memory
	if p, err = NewPlan(in); err != nil {
		t.Fatal(err)
	}
	a, _ := p.Action(disdel.TaskEvaluate)
	said := fmt.Sprintf("evaluate: the action computes %d rows at a time", a.Estimate.Rows)
	if n := a.Estimate.Rows; n == 0 || n > 32 || !strings.Contains(strings.Join(p.Reasons, "\n"), said) {
		t.Errorf("%+v\n%s", a.Estimate, strings.Join(p.Reasons, "\n"))
	}
}

// A job whose evaluation fits no action, not even layer by layer, is told so before it trains: stages do not help it.
func TestARefusedJobSaysWhatItsEvaluationNeeds(t *testing.T) {
	in := denseChain(t)
	in.Suggest, in.Job.Distribution.Stages = true, 3
	in.Platform.MinMemory, in.Platform.MaxMemory, in.Job.Resources.MaxMemory = disdel.MB, 20*disdel.MB, 0
	if _, err := NewPlan(in); err == nil || !strings.Contains(err.Error(), ". An evaluation needs ") {
		t.Error(err)
	}
}

// A limit that an error names holds for all actions, not only for the one that is too large.
func TestANamedLimitHoldsForAllActions(t *testing.T) {
	in := chainWithin(t)
	in.Job.Training.Fit, in.Job.Distribution.Stages = disdel.FitNone, 3
	in.Job.Resources.MaxMemory = disdel.MB
	_, err := NewPlan(in)
	changes := disdel.AsError(err).Changes
	if len(changes) != 1 {
		t.Fatalf("changes %v of %v", changes, err)
	}
	var mb int
	if _, err := fmt.Sscanf(changes[0][0], "resources.maxMemory=%dMB", &mb); err != nil {
		t.Fatal(changes, err)
	}
	in.Job.Resources.MaxMemory = disdel.Bytes(mb) * disdel.MB
	if _, err := NewPlan(in); err != nil {
		t.Error(err)
	}
}

// A job that is planned again while it runs keeps its replicas: a setting counts train actions.
func TestASettingCountsTheStages(t *testing.T) {
	var job disdel.Job
	job.Distribution.Stages = 3
	if job = ApplySetting(job, disdel.Setting{Workers: 6, Stages: 3}, 0); job.Distribution.Workers != 2 {
		t.Errorf("%d workers", job.Distribution.Workers)
	}
}

// chainWithin is a job that nothing but stages makes fit its limit: that of three stages.
func chainWithin(t *testing.T) PlanInput {
	t.Helper()
	in := denseChain(t)
	in.Job.Training.Optimizer = disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.1}}
	in.Job.Distribution.Stages = 3
	p, err := NewPlan(WithoutMemoryLimits(in))
	if err != nil {
		t.Fatal(err)
	}
	in.Job.Distribution.Stages = 0
	in.Platform.MaxMemory, _ = largestLimit(p)
	in.Platform.MinMemory, in.Job.Resources.MaxMemory = disdel.MB, 0
	return in
}

// A job gets stages by itself only if nothing else makes it fit and its file allows that. The reasons name the ways
// that were turned down.
func TestStagesAreTheLastWayToFit(t *testing.T) {
	in := chainWithin(t)
	p, err := NewPlan(in)
	if replicas := in.Job.Distribution.Workers; err != nil || len(p.Stages) < 2 || p.Workers != replicas*len(p.Stages) {
		t.Fatalf("%d stages, %d workers, %v", len(p.Stages), p.Workers, err)
	}
	text := strings.Join(p.Reasons, "\n")
	for _, want := range []string{
		"fit: whole batches and all activations: a train action needs", "fit: micro-batches of",
		fmt.Sprintf("fit: %d stages: a train action needs", len(p.Stages)),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	s := p.AsStage(in.Job)
	if s.Setting.Stages != len(p.Stages) || s.Replicas() != in.Job.Distribution.Workers || len(s.Parts) != len(p.Stages) {
		t.Errorf("recorded %+v", s.Setting)
	}
	again := in
	again.Job, again.Decided = ApplySetting(in.Job, s.Setting, 0), true
	if q, err := NewPlan(again); err != nil || len(q.Stages) != len(p.Stages) || q.Workers != p.Workers {
		t.Errorf("planned again: %d stages, %d workers, %v", len(q.Stages), q.Workers, err)
	}
	if f := FitMemory(in, in.Platform.MaxMemory, 0); f.Given == nil ||
		!slices.Contains(f.Given.Set, fmt.Sprintf("distribution.stages=%d", len(p.Stages))) {
		t.Errorf("fit %+v", f.Given)
	}
	roomy := WithoutMemoryLimits(in)
	if q, err := NewPlan(roomy); err != nil || len(q.Stages) != 0 {
		t.Errorf("a job that fits has %d stages, %v", len(q.Stages), err)
	}
	for name, change := range map[string]func(*disdel.Job){
		"fit none":     func(j *disdel.Job) { j.Training.Fit = disdel.FitNone },
		"stages 1":     func(j *disdel.Job) { j.Distribution.Stages = 1 },
		"an averaging": func(j *disdel.Job) { j.Distribution.Aggregation.OptimizerState = disdel.StateAverage },
	} {
		other := in
		change(&other.Job)
		if q, err := NewPlan(other); err == nil {
			t.Errorf("%s: %d stages", name, len(q.Stages))
		}
	}
}

// A train action that was killed at the ceiling gets stages if nothing else fits.
func TestAKilledActionGetsStages(t *testing.T) {
	in := chainWithin(t)
	roomy := WithoutMemoryLimits(in)
	roomy.Job.Distribution.Workers = 2
	p, err := NewPlan(roomy)
	if err != nil {
		t.Fatal(err)
	}
	train, _ := p.Action(disdel.TaskTrain)
	a := disdel.Activation{Outcome: disdel.OutcomeOutOfMemory}
	a.Task, a.Limits, a.Estimate = disdel.TaskTrain, train.Limits, train.Estimate.Total
	roomy.Job.Resources.MaxMemory = train.Limits.Memory
	r := FindRemedy(RemedyInput{Activation: a, Job: roomy.Job, Plan: p, Planned: &roomy})
	if !r.Retry || r.Stages < 2 || !strings.Contains(r.Why, "stages") {
		t.Fatalf("%+v", r)
	}
	now := disdel.Setting{Workers: 2}
	d := DecideInBounds(Static{}, Input{
		Boundary: disdel.BoundaryFailure, Now: now, Bounds: Bounds{Least: 1, Most: 2, Batches: 2},
		Failure: &Failure{Activation: a, Remedy: r},
	})
	if d.Next.Stages != r.Stages || d.Next.Workers != 2*r.Stages || d.Next.Replicas() != 2 {
		t.Errorf("decided %+v", d.Next)
	}
}

// An evaluation computes one part of the network after the other where all weights do not fit, with as many rows as
// fit.
func TestAnEvaluationGoesByLayersWhereTheWeightsDoNotFit(t *testing.T) {
	in := denseChain(t)
	in.Job.Training.Optimizer, in.Job.Distribution.Stages = disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.1}}, 3
	in.Platform.MinMemory, in.Job.Resources.MaxMemory = disdel.MB, 0
	b := planBuilder{PlanInput: in}
	b.least = true
	least := b.evaluation()
	if b.least = false; !least.ByLayers || least.Rows != 1 {
		t.Fatalf("the least: %+v", least)
	}
	b.Platform.MaxMemory = b.limit(least.Total)
	tight := b.evaluation()
	b.Platform.MaxMemory += 4 * disdel.MB
	wide := b.evaluation()
	b.Platform.MaxMemory *= 10
	whole := b.evaluation()
	if !tight.ByLayers || tight.Total > b.limit(least.Total) || !wide.ByLayers || wide.Rows <= tight.Rows ||
		whole.ByLayers {
		t.Errorf("with the least memory %+v, with more %+v, with much %+v", tight, wide, whole)
	}
}

// A network that is one piece has no parts: its evaluation holds all weights, and says so even where they do not fit.
func TestAnEvaluationOfOnePieceHoldsAllWeights(t *testing.T) {
	in := denseChain(t)
	one, err := model.Build(disdel.Network{Input: []int{8}, Classes: 4, Layers: []disdel.Layer{{Kind: "dense", Units: 4}}})
	if err != nil {
		t.Fatal(err)
	}
	in.Graph, in.Platform.MaxMemory = one, disdel.MB
	b := planBuilder{PlanInput: in}
	if e := b.evaluation(); e.ByLayers || e.Rows != 1 || e.Total <= b.Platform.MaxMemory {
		t.Errorf("%+v", e)
	}
}

// A job may say stages beside what it says only if no setting of it is one that stages do not have. One shard is none.
func TestStagesAreOfferedBesideWhatTheyHave(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*disdel.Job)
		may    bool
	}{
		"nothing":          {func(*disdel.Job) {}, true},
		"one shard":        {func(j *disdel.Job) { j.Distribution.Aggregation.Shards = 1 }, true},
		"two shards":       {func(j *disdel.Job) { j.Distribution.Aggregation.Shards = 2 }, false},
		"float32 updates":  {func(j *disdel.Job) { j.Distribution.Aggregation.Wire = disdel.WireFloat32 }, true},
		"rounded updates":  {func(j *disdel.Job) { j.Distribution.Aggregation.Wire = "float16" }, false},
		"averaged moments": {func(j *disdel.Job) { j.Distribution.Aggregation.OptimizerState = disdel.StateAverage }, false},
		"kept moments":     {func(j *disdel.Job) { j.Distribution.Aggregation.OptimizerState = disdel.StateKeep }, true},
		"missing workers":  {func(j *disdel.Job) { j.Distribution.Missing.Policy = disdel.MissingProceed }, false},
		"a static policy":  {func(j *disdel.Job) { j.Distribution.Policy = disdel.PolicyStatic }, true},
		"another policy":   {func(j *disdel.Job) { j.Distribution.Policy = "coach" }, false},
		"an exchange":      {func(j *disdel.Job) { j.Distribution.Exchange = &disdel.Exchange{} }, false},
		"bfloat16":         {func(j *disdel.Job) { j.Training.Precision = disdel.PrecisionBF16 }, false},
		"another engine":   {func(j *disdel.Job) { j.Training.Backend = "xla" }, false},
		"a stop by loss": {func(j *disdel.Job) {
			j.Training.EarlyStop = &disdel.EarlyStop{Metric: disdel.MetricLoss}
		}, false},
		"a stop by accuracy": {func(j *disdel.Job) {
			j.Training.EarlyStop = &disdel.EarlyStop{Metric: "accuracy"}
		}, true},
	} {
		b := planBuilder{PlanInput: planInput(t)}
		c.change(&b.Job)
		if got := b.trainsInStages(); got != c.may {
			t.Errorf("%s: stages are offered: %v", name, got)
		}
	}
}

// A job with too many stages is refused with the most that there are: message, hint and change say the same number.
func TestTooManyStagesNameTheMost(t *testing.T) {
	in := planInput(t)
	most := len(in.Graph.Cuts()) + 1
	in.Job.Distribution.Stages = most + 1
	_, err := NewPlan(in)
	e := disdel.AsError(err)
	setting := fmt.Sprintf("distribution.stages=%d", most)
	want := fmt.Sprintf("at most %d stages, %d were", most, most+1)
	if !errors.Is(err, disdel.Invalid) || !strings.Contains(e.Msg, want) ||
		e.Hint != "--set "+setting || len(e.Changes) != 1 || e.Changes[0][0] != setting {
		t.Errorf("%v, hint %q, changes %v; the most is %d", err, e.Hint, e.Changes, most)
	}
}
