package disdel_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/disdel/disdel"
)

// The lower of both bounds counts, and messages name the field that it comes from.
func TestTheLowerBoundCounts(t *testing.T) {
	for _, c := range []struct {
		own, goal, want float64
		field           string
	}{
		{0, 0, 0, "resources.maxCost"},
		{5, 0, 5, "resources.maxCost"},
		{0, 5, 5, "training.goal.cost"},
		{4, 5, 4, "resources.maxCost"},
		{5, 4, 4, "training.goal.cost"},
	} {
		var job disdel.Job
		job.Resources.MaxCost, job.Training.Goal = c.own, &disdel.Goal{Loss: 1, Cost: c.goal}
		if most, field := job.Budget(); most != c.want || field != c.field {
			t.Errorf("%g and %g: %g by %s, want %g by %s", c.own, c.goal, most, field, c.want, c.field)
		}
		second := disdel.Duration(time.Second)
		job.Reliability.Deadline = disdel.Duration(c.own) * second
		job.Training.Goal.Within = disdel.Duration(c.goal) * second
		if most, _ := job.TimeLimit(); most != disdel.Duration(c.want)*second {
			t.Errorf("%g s and %g s: %v", c.own, c.goal, most)
		}
	}
}

// A goal of rmse is one of the loss whose root it is, and numbers, which have no accuracy, have a gap to it.
func ExampleGoal_GapOf() {
	training := disdel.Training{Goal: &disdel.Goal{RMSE: 0.5}}
	stop, loss := training.Stop(), 0.36
	fmt.Println(training.Goal, "by", stop.Metric, stop.Target)
	gap, ok := training.Goal.GapOf(disdel.Figures{Loss: &loss})
	fmt.Println(training.Goal.Text(gap), ok)
	_, ok = disdel.Goal{Accuracy: 0.9}.GapOf(disdel.Figures{Loss: &loss})
	fmt.Println(ok)
	// Output:
	// rmse 0.5 by rmse 0.5
	// rmse 0.6 true
	// false
}

func ExampleGoal() {
	var job disdel.Job
	job.Training.Goal = &disdel.Goal{Accuracy: 0.95, Cost: 50}
	stop := job.Training.Stop()
	fmt.Println(job.Training.Goal, "by", stop.Metric, "for", stop.Held, "evaluations")
	most, field := job.Budget()
	fmt.Println(most, "GB-s by", field)
	within, _ := job.TimeLimit()
	fmt.Println("at most", within)
	gap, enough := job.Training.Goal.Gap(0.2, 0.75)
	fmt.Println(gap > enough, job.Training.Goal.Text(gap))
	// Output:
	// accuracy 0.95 by accuracy for 3 evaluations
	// 50 GB-s by training.goal.cost
	// at most 0s
	// true accuracy 0.7500
}

func ExampleGoalForecast() {
	f := disdel.GoalForecast{Goal: "accuracy 0.95", Epochs: disdel.Interval[float64]{Low: 9, Likely: 12, High: 20}}
	fmt.Println(f)
	f.MayNever = true
	fmt.Println(f)
	f.Epochs.Likely = 0
	fmt.Println(f)
	// Output:
	// accuracy 0.95 after about 12 epochs (9 to 20)
	// accuracy 0.95 after about 12 epochs (9 or more), or never
	// accuracy 0.95 is not expected: 9 epochs were not enough
}
