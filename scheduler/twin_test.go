package scheduler

import (
	"testing"

	"github.com/disdel/disdel"
)

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
		if err := Fits(whole, d); (err != nil) != c.refused {
			t.Errorf("%s: a quota says %v", c.name, err)
		}
	}
}
