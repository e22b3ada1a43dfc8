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
	fmt.Println(training.Goal, "by", stop.Metric, *stop.Target)
	gap, ok := training.Goal.GapOf(disdel.Figures{Loss: &loss})
	fmt.Println(training.Goal.Text(gap), ok)
	_, ok = disdel.Goal{Accuracy: 0.9}.GapOf(disdel.Figures{Loss: &loss})
	fmt.Println(ok)
	// Output:
	// rmse 0.5 by rmse 0.5
	// rmse 0.6 true
	// false
}

// A goal of any metric has that metric's direction: an evaluation reaches it exactly if it is as good or better.
func TestGoalsHaveTheDirectionOfTheirMetric(t *testing.T) {
	scores := func(s disdel.Scores) disdel.Figures {
		return disdel.Figures{Loss: new(1.), Accuracy: new(0.5), Scores: s}
	}
	for _, c := range []struct {
		goal         disdel.Goal
		worse, equal disdel.Figures
		text         string
	}{
		{disdel.Goal{Top5: 0.9}, scores(disdel.Scores{Top5: new(0.8)}), scores(disdel.Scores{Top5: new(0.9)}), "top5 0.8000"},
		{disdel.Goal{F1: 0.7}, scores(disdel.Scores{F1: new(0.6)}), scores(disdel.Scores{F1: new(0.7)}), "f1 0.6000"},
		{disdel.Goal{MAE: 2}, scores(disdel.Scores{MAE: 3}), scores(disdel.Scores{MAE: 2}), "mae 3"},
		{
			disdel.Goal{Perplexity: 8},
			scores(disdel.Scores{Perplexity: 9}), scores(disdel.Scores{Perplexity: 8}),
			"perplexity 9",
		},
	} {
		stop := disdel.Training{Goal: &c.goal}.Stop()
		worse, ok := c.goal.GapOf(c.worse)
		equal, _ := c.goal.GapOf(c.equal)
		if !ok || worse <= c.goal.Enough() || equal != c.goal.Enough() {
			t.Errorf("%v: gaps %g and %g, %t, want one above %g and one at it", c.goal, worse, equal, ok, c.goal.Enough())
		}
		if got := c.goal.Text(worse); got != c.text {
			t.Errorf("%q, want %q", got, c.text)
		}
		if stop.Value(c.worse) <= stop.Value(c.equal) || stop.Of().Rank(stop.Target) != stop.Value(c.equal) {
			t.Errorf("%v stops by %+v", c.goal, stop)
		}
		if _, ok := c.goal.GapOf(scores(disdel.Scores{})); ok {
			t.Errorf("%v: a gap without the figure", c.goal)
		}
	}
}

// A job is compared by what it stops by. A loss is no such figure where there is a better one.
func TestAJobIsComparedByWhatItStopsBy(t *testing.T) {
	for want, training := range map[string]disdel.Training{
		disdel.MetricTop5:     {EarlyStop: &disdel.EarlyStop{Metric: disdel.MetricTop5, Patience: 2}},
		disdel.MetricF1:       {Goal: &disdel.Goal{F1: 0.5}},
		disdel.MetricAccuracy: {EarlyStop: &disdel.EarlyStop{Metric: disdel.MetricValLoss, Patience: 2}},
	} {
		r := disdel.Record{Data: disdel.DataInfo{Classes: 10}}
		r.Job.Training = training
		if got := r.Metric().Name; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
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
	loss, accuracy := 0.2, 0.75
	gap, _ := job.Training.Goal.GapOf(disdel.Figures{Loss: &loss, Accuracy: &accuracy})
	fmt.Println(gap > job.Training.Goal.Enough(), job.Training.Goal.Text(gap))
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
