package estimator_test

import (
	"fmt"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine/backends"
)

// ran is an activation that held 256 MB from one second of a job to another.
func ran(task disdel.Task, member, from, to int, outcome disdel.Outcome) disdel.Activation {
	begun := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	a := disdel.Activation{
		Invocation: disdel.Invocation{Task: task, Member: member, Limits: disdel.Limits{Memory: 256 * disdel.MB}},
		Outcome:    outcome, Duration: disdel.Millis(to-from) * disdel.Millis(time.Second),
	}
	a.Start, a.End = begun.Add(time.Duration(from)*time.Second), begun.Add(time.Duration(to)*time.Second)
	return a
}

// The method learned corrects the plan by what actions of earlier jobs really took. A method that there is not is
// refused with the name that was probably meant.
func ExampleEstimator() {
	learned, err := estimator.New(backends.Standard(nil), estimator.MethodLearned, 0.01, nil)
	fmt.Println(learned.Aggregate(input()).Risk, err)
	_, err = estimator.New(backends.Standard(nil), "pepper", 0, nil)
	fmt.Println(err, "-", disdel.AsError(err).Hint)
	// Output:
	// 0.01 <nil>
	// choose estimator: there is no estimator "pepper" - did you mean "paper"?
}

// Stages, for example, are trained by the backend of jobs that name none.
func ExampleEstimator_Default() {
	e, err := estimator.New(backends.Standard(nil), estimator.MethodPlanned, 0, nil)
	fmt.Println(e.Default(""), e.Default(disdel.BackendNative), e.Default(disdel.BackendGorgonia), err)
	// Output: true true false <nil>
}

// Eq. 1: m_a = fit + pkg + dta + mod + saf.
// The peak of a train action lies in this interval in nine cases of ten.
func ExampleMemoryInterval() {
	low, high := estimator.MemoryInterval(disdel.TaskTrain)
	fmt.Printf("from %+.2f to %+.2f standard deviations\n", low, high)
	// Output: from -1.20 to +1.50 standard deviations
}

func ExamplePaper() {
	e := estimator.Paper(input())
	fmt.Println(e.Total == e.Training+e.Package+e.Shard+e.Model+e.Margin, e.Margin)
	// Output: true 256 MB
}

// Two containers would need 300 MB each and may have 200 MB: one more, whose shards are smaller, and then another.
func ExampleContainerRule() {
	estimate := func(containers int) disdel.Estimate {
		shard := 400 * disdel.MB / disdel.Bytes(containers)
		return disdel.Estimate{Total: 100*disdel.MB + shard, Shard: shard}
	}
	containers, e, _, err := estimator.ContainerRule(200*disdel.MB, 8, estimate)
	fmt.Println(containers, "containers with", e.Total, "each", err)
	// Output: 4 containers with 200 MB each <nil>
}

// Containers that share a batch need less of it the more there are: what never fits by its shard alone may fit so.
func ExampleSharedContainerRule() {
	estimate := func(containers int) disdel.Estimate {
		return disdel.Estimate{Total: 50*disdel.MB + 600*disdel.MB/disdel.Bytes(containers)}
	}
	containers, e, _, err := estimator.SharedContainerRule(200*disdel.MB, 8, estimate)
	fmt.Println(containers, "containers with", e.Total, "each", err)
	_, _, _, err = estimator.ContainerRule(200*disdel.MB, 8, estimate)
	fmt.Println(disdel.KindOf(err))
	// Output:
	// 4 containers with 200 MB each <nil>
	// overLimit
}

// Eq. 6 counts the memory of every training and aggregation action from the first start to the last end, whether or not
// it ran all that time. Evaluations are counted apart, by use.
func ExampleCost() {
	done := []disdel.Activation{
		ran(disdel.TaskTrain, 0, 0, 10, disdel.OutcomeSuccess), ran(disdel.TaskTrain, 1, 0, 8, disdel.OutcomeSuccess),
		ran(disdel.TaskAggregate, 0, 10, 12, disdel.OutcomeSuccess),
		ran(disdel.TaskEvaluate, 0, 12, 16, disdel.OutcomeSuccess),
	}
	fmt.Printf("Eq. 6: 12 s x 3 x 0.25 GB = %.1f GB-s\n", estimator.Cost(done))
	// Output:
	// Eq. 6: 12 s x 3 x 0.25 GB = 9.0 GB-s
}

// Two costs under two names: Eq. 6 counts a worker for as long as the job runs, the cost by use for as long as it ran.
func ExampleBill() {
	var b estimator.Bill
	b.Add(ran(disdel.TaskTrain, 0, 0, 10, disdel.OutcomeSuccess))
	b.Add(ran(disdel.TaskTrain, 1, 0, 2, disdel.OutcomeSuccess))
	b.Add(ran(disdel.TaskEvaluate, 0, 10, 12, disdel.OutcomeSuccess))
	fmt.Printf("%.1f GB-s by Eq. 6, and %.1f GB-s of evaluations\n", b.Total(), b.Evaluations)
	fmt.Printf("%.1f GB-s by use\n", b.Used)
	// Output:
	// 5.0 GB-s by Eq. 6, and 0.5 GB-s of evaluations
	// 3.5 GB-s by use
}

// What the attempts that failed cost.
func ExampleLossesOf() {
	l := estimator.LossesOf([]disdel.Activation{
		ran(disdel.TaskTrain, 0, 0, 8, disdel.OutcomeOutOfMemory), ran(disdel.TaskTrain, 0, 8, 20, disdel.OutcomeSuccess),
	})
	fmt.Printf("%d attempt, %v, %.1f GB-s\n", l.Attempts, l.Duration, l.Cost)
	// Output: 1 attempt, 8s, 2.0 GB-s
}

// planned is two workers for three rounds on a platform with OpenWhisk's timeouts.
func planned() disdel.Plan {
	return disdel.Plan{
		Workers: 2, Rounds: 3, Epochs: 1, Parallel: 2,
		Platform: disdel.PlatformLimits{MinTimeout: 100 * millisecond, MaxTimeout: 300_000 * millisecond},
		Shards:   []disdel.RowRange{{End: 5000}, {Start: 5000, End: 10000}},
		Levels:   []disdel.Level{{Height: 1, Clusters: [][]int{{0, 1}}}},
		Actions: []disdel.ActionPlan{
			{Task: disdel.TaskTrain, Limits: disdel.Limits{Memory: 256 * disdel.MB}},
			{Task: disdel.TaskAggregate, Limits: disdel.Limits{Memory: 256 * disdel.MB}},
		},
	}
}

const millisecond = disdel.Millis(time.Millisecond)

// Where no earlier job tells how long the work takes, a probe does: a look at how fast a worker trains.
func ExampleTimingOf() {
	in := estimator.TimingInput{Plan: planned(), Data: disdel.DataInfo{Train: 10000}}
	in.Job.Training.Epochs, in.Job.Training.BatchSize = 3, 64
	unknown := estimator.TimingOf(in)
	fmt.Println(unknown.Timeouts[disdel.TaskTrain], "from", unknown.Source)
	in.Rate = &estimator.Rate{RowsPerSecond: 1000, StartUp: 500 * millisecond}
	probed := estimator.TimingOf(in)
	fmt.Println("less after a", probed.Source, probed.Timeouts[disdel.TaskTrain] < unknown.Timeouts[disdel.TaskTrain])
	// Output:
	// 5m0s from platform maximum
	// less after a probe true
}

// A running job is its own best measure: after a round it is known better how long the others take.
func ExampleRemaining() {
	rounds := []disdel.Round{{Round: 0, Duration: 10_000 * millisecond}, {Round: 1, Duration: 10_000 * millisecond}}
	done := []disdel.Activation{ran(disdel.TaskTrain, 0, 0, 20, disdel.OutcomeSuccess)}
	left := estimator.Remaining(planned(), rounds, done, 20_000*millisecond)
	fmt.Println(left.Duration.Likely, "more, by", left.Source)
	// Output: 10s more, by this job
}

// A job whose rounds have cost 4 GB-s in 10 s is taken to go on like that.
func ExampleRemainingUse() {
	second := disdel.Millis(time.Second)
	rec := disdel.Record{UsedGBs: 4, Rounds: []disdel.Round{{Duration: 10 * second}}}
	duration := disdel.Interval[disdel.Millis]{Low: 15 * second, Likely: 20 * second, High: 30 * second}
	left := disdel.Forecast{Duration: duration}
	fmt.Println(estimator.RemainingUse(&rec, &left))
	// Output: {6 8 12}
}

// The processor's engine keeps activations in half the memory with bf16. Gorgonia's has no bf16.
func ExampleEstimator_Saves() {
	plan := estimator.Planned(backends.Standard(nil))
	dense := input()
	fmt.Println(plan.Saves(dense, disdel.PrecisionBF16), plan.Saves(dense, disdel.PrecisionFloat32))
	dense.Backend = disdel.BackendGorgonia
	fmt.Println(plan.Saves(dense, disdel.PrecisionBF16))
	// Output:
	// true false
	// false
}

// An action that takes one slice of a network after the other never has all weights in memory.
func ExampleEstimator_EvaluateByLayers() {
	plan := estimator.Planned(backends.Standard(nil))
	in := input()
	in.Rows = 100
	var err error
	in.Graph, err = model.Build(disdel.Network{Name: "vgg16", Input: []int{3, 64, 64}, Classes: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	byLayers, err := plan.EvaluateByLayers(in)
	fmt.Println(byLayers.ByLayers, byLayers.Total < plan.Evaluate(in).Total/2, err)
	// Output: true true <nil>
}
