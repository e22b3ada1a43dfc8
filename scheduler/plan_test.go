package scheduler

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine/backends"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var platformLimits = disdel.PlatformLimits{
	MinMemory: 128 * disdel.MB, MaxMemory: 512 * disdel.MB, MinTimeout: disdel.Millis(100 * time.Millisecond),
	MaxTimeout: disdel.Millis(5 * time.Minute), Concurrent: 30, PerMinute: 60, Pool: 2 * disdel.GB,
}

func planInput(t testing.TB) PlanInput {
	t.Helper()
	g, err := model.Build(disdel.Network{Name: "lenet5", Input: []int{1, 28, 28}, Classes: 10})
	if err != nil {
		t.Fatal(err)
	}
	in := PlanInput{
		Estimator: estimator.Planned(backends.Standard(nil)),
		ID:        "job-1", Graph: g, Platform: platformLimits,
		Data: disdel.DataInfo{
			Name: "fashion-mnist", Checksum: "c", Train: 60000, HeldOut: 10000, Sample: []int{1, 28, 28},
			Classes: 10, SampleSize: 784,
		},
		timing: func(ti estimator.TimingInput) estimator.Timing {
			out := estimator.Timing{Timeouts: map[disdel.Task]disdel.Millis{}, Source: "history"}
			for _, task := range []disdel.Task{disdel.TaskTrain, disdel.TaskAggregate, disdel.TaskEvaluate} {
				out.Timeouts[task] = ti.Timeout(task, disdel.Millis(time.Minute))
				if least := ti.Least[task]; least.Job != "" && ti.Job.Resources.Timeout == 0 {
					out.Reasons = append(out.Reasons, fmt.Sprintf("less was too little for %s", least.Job))
				}
			}
			return out
		},
	}
	in.Job.Training = disdel.Training{
		Epochs: 5, BatchSize: 64,
		Optimizer: disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.001}}, ValidateEvery: 1,
	}
	in.Job.Distribution.Sync = disdel.SyncEpoch
	return in
}

func TestPlanStartsAtTwoContainers(t *testing.T) {
	p, err := NewPlan(planInput(t))
	if err != nil {
		t.Fatal(err)
	}
	if p.Workers != 2 || p.Rounds != 5 || p.Epochs != 1 || p.Parallel != 2 || len(p.Levels) != 1 || p.HeldOut != 10000 {
		t.Errorf("%+v", p)
	}
	if diff := cmp.Diff([]disdel.RowRange{{Start: 0, End: 30000}, {Start: 30000, End: 60000}}, p.Shards); diff != "" {
		t.Errorf("shards (-want +got):\n%s", diff)
	}
	for _, task := range []disdel.Task{disdel.TaskTrain, disdel.TaskAggregate, disdel.TaskEvaluate} {
		a, ok := p.Action(task)
		if !ok || a.Limits.Memory < a.Estimate.Total || a.Limits.Memory%disdel.MB != 0 ||
			a.Limits.Timeout != disdel.Millis(time.Minute) {
			t.Errorf("%s: %+v", task, a.Limits)
		}
	}
}

// A smaller ceiling makes more, smaller shards (DiSDeL's rule); one below the model's own needs is refused.
func TestPlanFollowsTheCeiling(t *testing.T) {
	in := planInput(t)
	free, err := NewPlan(in)
	if err != nil {
		t.Fatal(err)
	}
	train, _ := free.Action(disdel.TaskTrain)
	in.Platform.MinMemory = disdel.MB
	in.Job.Resources.MaxMemory = train.Estimate.Total - 8*disdel.MB
	tight, err := NewPlan(in)
	if err != nil || tight.Workers <= 2 {
		t.Errorf("%d workers under %v, %v", tight.Workers, in.Job.Resources.MaxMemory, err)
	}
	in.Job.Resources.MaxMemory = train.Estimate.Total - train.Estimate.Shard - disdel.MB
	in.Job.Data.Keep = disdel.KeepMemory
	if _, err := NewPlan(in); !errors.Is(err, disdel.OverLimit) {
		t.Errorf("below the model's own needs: %v, want OverLimit", err)
	}
	in.Platform.MinMemory, in.Job.Resources.MaxMemory = 128*disdel.MB, 100*disdel.MB
	if _, err := NewPlan(in); !errors.Is(err, disdel.OverLimit) ||
		!strings.Contains(err.Error(), "resources.maxMemory is 100 MB") {
		t.Errorf("below the platform's least: %v, want OverLimit", err)
	}
	in = planInput(t)
	in.Job.Distribution.Workers, in.Job.Resources.Memory = 2, 30*disdel.MB
	if _, err := NewPlan(in); !errors.Is(err, disdel.OverLimit) || !strings.Contains(err.Error(), "resources.memory") {
		t.Errorf("the job's own memory: %v, want OverLimit that names it", err)
	}
}

// Algorithm 1, lines 12 and 13: a job that is known runs as it ran.
func TestKnownJobsRunAsTheyRan(t *testing.T) {
	in := planInput(t)
	in.History = []disdel.Record{
		{ID: "job-0", Status: disdel.StatusFailed, Data: in.Data, Plan: disdel.Plan{Workers: 9}},
		{ID: "job-00", Status: disdel.StatusSucceeded, Data: in.Data, Plan: disdel.Plan{Workers: 4}},
	}
	p, err := NewPlan(in)
	if err != nil || p.Workers != 4 || !strings.Contains(strings.Join(p.Reasons, "\n"), "job-00") {
		t.Errorf("%d workers, %v", p.Workers, err)
	}
	in.Job.Distribution.Workers = 3
	if p, err := NewPlan(in); err != nil || p.Workers != 3 {
		t.Errorf("the job file says 3: %d workers, %v", p.Workers, err)
	}
}

func TestSyncEndIsOneRound(t *testing.T) {
	in := planInput(t)
	in.Job.Distribution.Sync = disdel.SyncEnd
	if p, err := NewPlan(in); err != nil || p.Rounds != 1 || p.Epochs != 5 {
		t.Errorf("%d rounds of %d epochs, %v", p.Rounds, p.Epochs, err)
	}
}

// A plan never exceeds a limit, and its tree takes every worker up to one root.
func TestPlansKeepTheLimits(t *testing.T) {
	base := planInput(t)
	rapid.Check(t, func(t *rapid.T) {
		in := base
		in.Platform.MaxMemory = disdel.Bytes(rapid.IntRange(128, 1024).Draw(t, "max")) * disdel.MB
		in.Platform.Pool = disdel.Bytes(rapid.IntRange(128, 2048).Draw(t, "pool")) * disdel.MB
		in.Job.Training.BatchSize = rapid.IntRange(1, 512).Draw(t, "batch")
		in.Job.Distribution.Workers = rapid.IntRange(0, 40).Draw(t, "workers")
		p, err := NewPlan(in)
		if err != nil {
			if !errors.Is(err, disdel.OverLimit) {
				t.Fatal(err)
			}
			return
		}
		for _, a := range p.Actions {
			if a.Limits.Memory > in.Platform.MaxMemory || a.Limits.Memory < a.Estimate.Total ||
				a.Limits.Timeout > in.Platform.MaxTimeout {
				t.Fatalf("%s: %+v for %v", a.Task, a.Limits, a.Estimate.Total)
			}
		}
		if train, _ := p.Action(disdel.TaskTrain); disdel.Bytes(p.Parallel)*train.Limits.Memory > in.Platform.Pool ||
			p.Parallel < 1 {
			t.Fatalf("%d at once in %v", p.Parallel, in.Platform.Pool)
		}
		rows := 0
		for _, s := range p.Shards {
			rows += s.Len()
		}
		if rows != in.Data.Train || len(p.Shards) != p.Workers {
			t.Fatalf("%d rows in %d shards", rows, len(p.Shards))
		}
	})
}

func TestTreesTakeEveryMemberOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		workers, fanIn := rapid.IntRange(1, 300).Draw(t, "workers"), rapid.IntRange(2, 20).Draw(t, "fanIn")
		members := workers
		levels := Tree(workers, fanIn)
		for h, l := range levels {
			next := 0
			for _, c := range l.Clusters {
				if len(c) > fanIn || len(c) == 0 {
					t.Fatalf("a cluster of %d, fan-in %d", len(c), fanIn)
				}
				for _, m := range c {
					if m != next {
						t.Fatalf("member %d where %d belongs", m, next)
					}
					next++
				}
			}
			if next != members || l.Height != h+1 {
				t.Fatalf("level %d takes %d of %d", l.Height, next, members)
			}
			members = len(l.Clusters)
		}
		if members != 1 {
			t.Fatalf("%d roots", members)
		}
	})
}

// The rounds of an epoch follow each other, the last takes what is left, and every worker has a batch in each, also
// where shards differ by one.
func TestRoundsOfBatchesCoverAnEpoch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, workers := rapid.IntRange(1, 400).Draw(t, "rows"), rapid.IntRange(1, 9).Draw(t, "workers")
		workers = min(workers, rows)
		batch, k, epochs := rapid.IntRange(1, 40).Draw(t, "batch"), rapid.IntRange(1, 12).Draw(t, "k"),
			rapid.IntRange(1, 3).Draw(t, "epochs")
		b := planBuilder{}
		b.Job.Training.BatchSize, b.Job.Training.Epochs = batch, epochs
		b.plan.Shards = Shards(rows, workers)
		b.every(k)
		for _, shard := range b.plan.Shards {
			batches := (shard.Len() + batch - 1) / batch
			done, epoch := 0, 0
			for round := range b.plan.Rounds {
				at := SpanOf(b.Job, b.plan, round)
				if at.Epoch != epoch || at.Batch != done || at.Epochs != 1 || at.Batch >= batches {
					t.Fatalf("round %d is %+v; %d batches of epoch %d were done of %d", round, at, done, epoch, batches)
				}
				if done += at.Batches; at.Batches == 0 {
					done, epoch = 0, epoch+1
				}
			}
			if epoch != epochs || done != 0 {
				t.Fatalf("it ends at batch %d of epoch %d", done, epoch)
			}
		}
	})
}

// An aggregation action's memory does not grow with its updates, so that what bounds them is how much it reads.
func TestFanInGoesByTheUpdatesSize(t *testing.T) {
	for update, want := range map[disdel.Bytes]int{
		0: 64, 250 * disdel.KB: 64, 32 * disdel.MB: 64, 64 * disdel.MB: 32, 102 * disdel.MB: 20, 550 * disdel.MB: 3,
		3 * disdel.GB: 2,
	} {
		if got := FanIn(update); got != want {
			t.Errorf("%d updates of %v, want %d", got, update, want)
		}
	}
}

// A plan has as many shards as the job asks for, and no more than the weights have columns; then it says so.
func TestPlansHaveNoMoreShardsThanColumns(t *testing.T) {
	for _, c := range []struct {
		network     string
		asked, want int
		says        string
	}{
		{"lenet5", 4, 1, "1 shard instead of 4, because weights of "},
		{"mlp", 0, 1, ""},
		{"vgg16", 3, 3, "the weights in 3 shards"},
		{"vgg16", 1024, 541, "541 shards instead of 1024"},
	} {
		in := planInput(t)
		in.Job.Distribution.Workers, in.Job.Distribution.Aggregation.Shards = 3, c.asked
		in.Platform.MaxMemory, in.Platform.Pool, in.Platform.Concurrent = 16*disdel.GB, 64*disdel.GB, 0
		sides := []int{1, 28, 28}
		if c.network == "vgg16" {
			sides = []int{3, 224, 224}
		}
		g, err := model.Build(disdel.Network{Name: c.network, Input: sides, Classes: 1000})
		if err != nil {
			t.Fatal(err)
		}
		in.Graph = g
		p, err := NewPlan(in)
		if err != nil {
			t.Fatal(err)
		}
		top, shards := p.Levels[len(p.Levels)-1], 1
		if top.JoinShards {
			shards = len(top.Clusters[0])
		}
		if text := strings.Join(p.Reasons, "\n"); shards != c.want || !strings.Contains(text, c.says) {
			t.Errorf("%s: %d shards of %d, want %d:\n%s", c.network, shards, c.asked, c.want, text)
		}
		if n := p.ActionCount(disdel.TaskAggregate); c.want > 1 && n != c.want+1 {
			t.Errorf("%s: %d aggregations for %d shards", c.network, n, c.want)
		}
	}
}

// A stage that ends later scales its plan's forecast: duration, cost and usage. A plan without rounds keeps it.
func TestAContinuedPlansForecastIsScaled(t *testing.T) {
	forecast := disdel.Forecast{
		Duration: disdel.Interval[disdel.Millis]{Low: 10, Likely: 20, High: 40},
		Cost:     disdel.Interval[float64]{Low: 1, Likely: 2, High: 4},
		Used:     disdel.Interval[float64]{Low: 3, Likely: 5, High: 7},
	}
	job := disdel.Job{}
	job.Training.Epochs = 6
	whole := disdel.Plan{Workers: 2, Rounds: 6, Epochs: 1, Shards: Shards(120, 2)}
	stage := whole.AsStage(job)
	if stage.End() != 6 {
		t.Fatalf("the stage ends with round %d", stage.End())
	}
	scaled := disdel.Forecast{
		Duration: disdel.Interval[disdel.Millis]{Low: 15, Likely: 30, High: 60},
		Cost:     disdel.Interval[float64]{Low: 1.5, Likely: 3, High: 6},
		Used:     disdel.Interval[float64]{Low: 4.5, Likely: 7.5, High: 10.5},
	}
	for rounds, want := range map[int]disdel.Forecast{0: forecast, 4: scaled, 6: forecast} {
		given := forecast
		got := ContinuePlan(disdel.Plan{Rounds: rounds, Forecast: &given}, stage)
		if diff := cmp.Diff(want, *got.Forecast); diff != "" || got.Rounds != 6 {
			t.Errorf("a plan of %d rounds: %d rounds, forecast (-want +got):\n%s", rounds, got.Rounds, diff)
		}
		if diff := cmp.Diff(forecast, given); diff != "" {
			t.Errorf("the given plan's forecast has changed (-was +is):\n%s", diff)
		}
	}
	if got := ContinuePlan(disdel.Plan{Rounds: 4}, stage); got.Forecast != nil || got.Rounds != 6 {
		t.Errorf("a plan without a forecast: %+v", got)
	}
}

// The most that a job can cost is every action at its limits in every round, plus as many evaluations.
func TestTheMostAJobCostsCountsEveryAction(t *testing.T) {
	limits := disdel.Limits{Memory: disdel.GB, Timeout: disdel.Millis(10 * time.Second)}
	b := planBuilder{plan: disdel.Plan{
		Workers: 3, Parallel: 3, Rounds: 4, Legs: 2, HeldOut: 1,
		Actions: []disdel.ActionPlan{
			{Task: disdel.TaskTrain, Limits: limits}, {Task: disdel.TaskEvaluate, Limits: limits},
		},
	}}
	if err := b.bound(); err != nil {
		t.Fatal(err)
	}
	memory := float64(b.plan.ActionCount(disdel.TaskTrain) + b.plan.ActionCount(disdel.TaskEvaluate))
	gigabyte := disdel.GB.Gigabytes()
	want := (4*2+4)*10*memory*gigabyte + 4*disdel.GBSeconds(limits.Memory, limits.Timeout)
	if got := b.plan.CostGBs; got < want-0.05 || got > want+0.05 {
		t.Errorf("%v GB·s, not %v", got, want)
	}
	b.plan.HeldOut = 0
	if err := b.bound(); err != nil || b.plan.CostGBs > want-30 {
		t.Errorf("without rows to evaluate it costs %v GB·s, %v", b.plan.CostGBs, err)
	}
}

// An action of a job that draws rows at random reads the whole data set. Others read what they train on, or a test
// part of its own.
func TestRowsAreReadFromTheirPart(t *testing.T) {
	for _, c := range []struct {
		drawn      bool
		rows, want int
	}{
		{true, 10, 700}, {true, 100, 700}, {false, 100, 100}, {false, 10, 600}, {false, 650, 650},
	} {
		b := planBuilder{PlanInput: PlanInput{Data: disdel.DataInfo{Train: 600, HeldOut: 100, Drawn: c.drawn}}}
		if got := b.part(c.rows); got != c.want {
			t.Errorf("%d rows (drawn: %v) are read from %d, not %d", c.rows, c.drawn, got, c.want)
		}
	}
}

// A round's least room is that of its train actions at once, or of one larger action. Processors are capped: by the
// container, by what there are, and not at all where neither is known.
func TestTheLeastRoomOfARound(t *testing.T) {
	plan := disdel.Plan{Workers: 4, Parallel: 2, Threads: 3, Actions: []disdel.ActionPlan{
		{Task: disdel.TaskTrain, Limits: disdel.Limits{Memory: 100 * disdel.MB}},
		{Task: disdel.TaskAggregate, Limits: disdel.Limits{Memory: 150 * disdel.MB}},
		{Task: disdel.TaskEvaluate, Limits: disdel.Limits{Memory: 200 * disdel.MB}},
	}}
	for _, c := range []struct{ container, processors, evaluate, count, memory, millicores int }{
		{0, 0, 200, 2, 100, 3000},
		{2500, 0, 200, 2, 100, 2500},
		{0, 4, 200, 2, 100, 2000},
		{1500, 4, 200, 2, 100, 1500},
		{0, 0, 201, 1, 201, 3000},
	} {
		plan.Platform.Millicores, plan.Platform.Processors = c.container, c.processors
		plan.Actions[2].Limits.Memory = disdel.Bytes(c.evaluate) * disdel.MB
		got := wave(plan)
		want := Capacity{Memory: disdel.Bytes(c.memory) * disdel.MB, Millicores: c.millicores, Concurrent: 1}
		if len(got) != 1 || got[0].Count != c.count || got[0].Each != want {
			t.Errorf("%+v gives %+v, not %d of %+v", c, got, c.count, want)
		}
	}
}
