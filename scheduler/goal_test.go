package scheduler

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/estimator"
)

// withGoal plans a job of 20 epochs whose goal takes so many of them, each of work/w + fixed seconds on w workers that
// cost 1 GB-s a second each.
func withGoal(t *testing.T, g disdel.Goal, forecast disdel.GoalForecast) PlanInput {
	in := planInput(t)
	in.Job.Training.Epochs, in.Job.Training.Goal = 20, &g
	rule := in.timing
	in.timing = func(ti estimator.TimingInput) estimator.Timing {
		out := rule(ti)
		each := 10/float64(ti.Plan.Workers) + 1
		f := forecast
		f.Goal, f.Jobs, f.Reached = g.String(), 3, 3
		f.Duration.Likely = disdel.Millis(f.Epochs.Likely * each * float64(time.Second))
		f.Cost.Likely = f.Epochs.Likely * each * float64(ti.Plan.Workers)
		f.Duration.Low, f.Cost.Low = f.Duration.Likely*8/10, f.Cost.Likely*0.8
		out.Forecast = &disdel.Forecast{
			Goal: &f, Source: disdel.SourceHistory,
			Cost: disdel.Interval[float64]{Likely: 20 * each * float64(ti.Plan.Workers)},
		}
		return out
	}
	return in
}

var tenEpochs = disdel.GoalForecast{Epochs: disdel.Interval[float64]{Low: 8, Likely: 10, High: 13}}

// The fewest workers are taken that are likely to come to the goal in its time; those of the user stay.
func TestWorkersAreChosenForTheGoal(t *testing.T) {
	goal := disdel.Goal{Accuracy: 0.9, Within: disdel.Duration(40 * time.Second)} // 10 epochs of 4 s: four workers
	p, err := NewPlan(withGoal(t, goal, tenEpochs))
	if err != nil || p.Workers != 4 {
		t.Fatalf("%d workers, %v", p.Workers, err)
	}
	if why := strings.Join(p.Reasons, "\n"); !strings.Contains(why,
		"workers: 4, the fewest that are likely to come to accuracy 0.9 within training.goal.within") {
		t.Error(why)
	}
	in := withGoal(t, goal, tenEpochs)
	in.Job.Distribution.Workers = 2
	_, err = NewPlan(in)
	var e *disdel.Error
	if !errors.As(err, &e) || e.Kind != disdel.OverLimit || !strings.Contains(e.Msg, "accuracy 0.9 takes about 10 epochs "+
		"by 3 earlier jobs, 60.0 s with 2 workers, and training.goal.within is 40s") ||
		!strings.HasPrefix(e.Hint, "--set distribution.workers=") {
		t.Errorf("%v", err)
	}
	in.Job.Distribution.Workers = 4
	if p, err = NewPlan(in); err != nil || p.Workers != 4 {
		t.Errorf("%d workers, %v", p.Workers, err)
	}
}

// Nothing is spent on a goal that no number of workers comes to, with the arithmetic and the least that would do.
func TestAGoalOutOfReachIsRefused(t *testing.T) {
	never := disdel.GoalForecast{MayNever: true, Epochs: disdel.Interval[float64]{Low: 20}}
	for name, c := range map[string]struct {
		goal     disdel.Goal
		forecast disdel.GoalForecast
		epochs   int
		says     []string
		hint     string
	}{
		"cost": {
			disdel.Goal{Loss: 0.2, Cost: 80},
			tenEpochs, 20, // one worker takes 110 GB-s, 88 at the least
			[]string{
				"loss 0.2 takes about 10 epochs", "120 GB-s with 2 workers", "training.goal.cost is 80 GB-s",
				"1 take the least, 110 GB-s",
			},
			"--set training.goal.cost=140GB-s",
		},
		"time": {
			disdel.Goal{Accuracy: 0.9, Within: disdel.Duration(5 * time.Second)},
			tenEpochs, 20,
			[]string{"training.goal.within is 5s", "take the least"},
			"--set training.goal.within=",
		},
		"epochs": {
			disdel.Goal{Accuracy: 0.9},
			tenEpochs, 7,
			[]string{"takes 8 to 13 epochs by 3 earlier jobs, and training.epochs is 7"},
			"--set training.epochs=14",
		},
		"nobody came to it": {
			disdel.Goal{Accuracy: 0.99},
			never, 15,
			[]string{"none of 3 earlier jobs like this one came to accuracy 0.99, in up to 20 epochs", "training.epochs is 15"},
			"--set training.epochs=40",
		},
	} {
		in := withGoal(t, c.goal, c.forecast)
		in.Job.Training.Epochs = c.epochs
		_, err := NewPlan(in)
		var e *disdel.Error
		if !errors.As(err, &e) || e.Kind != disdel.OverLimit || !strings.HasPrefix(e.Hint, c.hint) {
			t.Errorf("%s: %v (%+v)", name, err, e)
			continue
		}
		for _, text := range c.says {
			if !strings.Contains(e.Msg, text) {
				t.Errorf("%s: %s; want %q in it", name, e.Msg, text)
			}
		}
	}
	in := withGoal(t, disdel.Goal{Accuracy: 0.99}, never)
	in.Job.Training.Epochs = 60
	if _, err := NewPlan(in); err != nil { // three times as long as any that tried
		t.Error(err)
	}
}

// A goal that may be come to within its bounds is tried, though that is not likely.
func TestAGoalThatMayBeReachedIsTried(t *testing.T) {
	in := withGoal(t, disdel.Goal{Loss: 0.2, Cost: 100}, tenEpochs) // one worker: 110 GB-s, 88 to begin with
	p, err := NewPlan(in)
	if why := strings.Join(p.Reasons, "\n"); err != nil || p.Workers != 2 ||
		!strings.Contains(why, "loss 0.2 is likely to take more than training.goal.cost allows, and may take less") {
		t.Errorf("%d workers, %v: %s", p.Workers, err, why)
	}
	in = withGoal(t, disdel.Goal{Loss: 0.2, Cost: 90}, tenEpochs)
	p, err = NewPlan(in)
	if why := strings.Join(p.Reasons, "\n"); err != nil || p.Workers != 1 ||
		!strings.Contains(why, "workers: 1, the fewest that may come to loss 0.2 within training.goal.cost") {
		t.Errorf("%d workers, %v: %s", p.Workers, err, why)
	}
}

// What runs is not refused: a plan that is made anew while a job runs is held against the budget alone.
func TestAPlanMadeAnewIsNotHeldAgainstTheGoal(t *testing.T) {
	in := withGoal(t, disdel.Goal{Accuracy: 0.9, Within: disdel.Duration(time.Second)}, tenEpochs)
	in.Decided, in.Job.Distribution.Workers = true, 2
	if _, err := NewPlan(in); err != nil {
		t.Error(err)
	}
}
