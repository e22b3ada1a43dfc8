package scheduler

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/estimator"
)

func TestAPlanThatCannotFitItsBudgetIsRefused(t *testing.T) {
	plan := disdel.Plan{Workers: 1, Rounds: 1000, Levels: Tree(1, 2), Actions: []disdel.ActionPlan{
		{Task: disdel.TaskTrain, Limits: disdel.Limits{Memory: disdel.GB}},
		{Task: disdel.TaskAggregate, Limits: disdel.Limits{Memory: disdel.GB}},
	}}
	job := disdel.Job{}
	job.Resources.MaxCost = 0.5 // 1,000 rounds of a train and an aggregation of 1 ms, 1 GB each: 2 GB-s
	if err := CheckBudget("job-1", job, plan); !errors.Is(err, disdel.OverLimit) ||
		!strings.Contains(err.Error(), "2 GB-s at the least") {
		t.Errorf("%v", err)
	}
	job.Resources.MaxCost = 2
	if err := CheckBudget("job-1", job, plan); err != nil {
		t.Errorf("%v", err)
	}
}

func TestProposedBudgetsAreNotBelowWhatIsNeeded(t *testing.T) {
	for cost, want := range map[float64]string{
		0.0512: "0.052", 1: "1", 47.1: "48", 1234: "1300", math.Inf(1): "1",
		0: "1",
	} {
		if got := RoundedUp(cost); got != want {
			t.Errorf("%g: %s, want %s", cost, got, want)
		}
	}
}

// A job file's threads win over what the platform has; where nobody knows that, the plan says what it takes for
// granted.
func TestThreadsOfAPlan(t *testing.T) {
	in := planInput(t)
	in.Threads, in.ProcessorsUnknown = func(int) int { return 1 }, "nobody knows; --set resources.threads=N"
	p, err := NewPlan(in)
	if err != nil || p.Threads != 1 ||
		!strings.Contains(strings.Join(p.Reasons, "\n"), "threads: 1 of a train action: nobody knows") {
		t.Errorf("%d threads, %v: %v", p.Threads, p.Reasons, err)
	}
	in.Job.Resources.Threads = 12
	if p, err = NewPlan(in); err != nil || p.Threads != 12 {
		t.Errorf("%d threads, %v", p.Threads, err)
	}
}

// resources.maxCost: the likely cost above it is refused with the figures, and exit code 5 goes with OverLimit.
func TestBudgetOfAPlan(t *testing.T) {
	in := planInput(t)
	rule := in.timing
	in.timing = func(ti estimator.TimingInput) estimator.Timing {
		out := rule(ti)
		out.Legs, out.Reasons = 2, []string{"because"}
		out.Forecast = &disdel.Forecast{Cost: disdel.Interval[float64]{Low: 40, Likely: 50, High: 62.5}, Source: "history"}
		if ti.Work != 416520 || ti.Plan.Threads != 3 || len(ti.Past) != 1 || ti.Plan.Workers == 0 {
			t.Errorf("the timeout manager was told %d MACs, %d threads, %d jobs", ti.Work, ti.Plan.Threads, len(ti.Past))
		}
		return out
	}
	in.Threads, in.Past = func(int) int { return 3 }, make([]disdel.Record, 1)
	in.Job.Resources.MaxCost = 50
	p, err := NewPlan(in)
	if err != nil || p.Legs != 2 || p.Forecast == nil || p.Threads != 3 ||
		!strings.Contains(strings.Join(p.Reasons, "\n"), "because") {
		t.Fatalf("%+v, %v", p, err)
	}
	in.Job.Resources.MaxCost = 49
	_, err = NewPlan(in)
	var e *disdel.Error
	if !errors.As(err, &e) || e.Kind != disdel.OverLimit ||
		!strings.Contains(e.Msg, "likely to cost 50 GB-s (40 to 62.5, by history)") ||
		!strings.Contains(e.Hint, "maxCost=63GB-s") {
		t.Errorf("%v (%v)", err, e)
	}
}

// A budget and a quota hold a job to what it costs without other programs' load, which may end.
func TestLoadRefusesNoJob(t *testing.T) {
	plan := disdel.Plan{Workers: 1, Rounds: 1, Actions: []disdel.ActionPlan{
		{Task: disdel.TaskTrain, Limits: disdel.Limits{Memory: disdel.GB, Timeout: disdel.Millis(1e9)}},
	}}
	plan.Forecast = &disdel.Forecast{
		Used: disdel.Interval[float64]{Low: 6, Likely: 17, High: 40}, Cost: disdel.Interval[float64]{Likely: 20}, Quiet: 1,
	}
	whole := Capacity{Memory: 4 * disdel.GB, Millicores: 4000, Concurrent: 4}
	for _, c := range []struct {
		name    string
		allowed float64
		goal    bool
		refused bool
	}{
		{"as much as the job costs alone", 1, false, false},
		{"less than that", 0.9, false, true},
		{"as much, with a goal", 1, true, false},
	} {
		var job disdel.Job
		job.Resources.MaxCost = c.allowed
		if c.goal {
			job.Training.Goal = &disdel.Goal{Loss: 1}
		}
		if err := CheckBudget("job", job, plan); (err != nil) != c.refused {
			t.Errorf("%s: a budget says %v", c.name, err)
		}
		d, _ := DemandOf("job", plan, whole)
		d.Quota.Cost = c.allowed
		if err := CheckFits(whole, d); (err != nil) != c.refused {
			t.Errorf("%s: a quota says %v", c.name, err)
		}
	}
}
